//! `lrd-v1`: least reference density.
//!
//! **Idea** — A page is as useful as its density of references: its references per reference to any
//! page since it was loaded. The least dense page is evicted.
//!
//! **Source** — gilbert 1.2.12, 1.2.12.1, algorithm 1.14 (after Effelsberg and Härder 1984).
//!
//! **State** — A reference count beside each frame; in the tournament the count as last seen and
//! the time of the load, and one match per frame.
//!
//! **Invariants** — (1) Exactly the resident frames take part. (2) Of those not yet offered, the
//! least dense is offered.
//!
//! **Cost** — Hit: a load and a store in the frame's own metadata, no latch. Admit: one walk up the
//! tournament, O(log frames). Evict: the matches whose result time has changed, and one walk for
//! each winner that was hit since; `linear` examines all frames. 36 to 52 bytes per frame,
//! depending on the distance to a power of two; no ghosts.
//!
//! **Deviations** — gilbert's search of all frames is `search=linear`; by default a tournament
//! finds the same victims ([`parts::density`](crate::parts::density)). Densities are compared as
//! products, not as rounded quotients; among equals the lowest frame is evicted, as in his search.
//! A refused frame is not offered again in the same eviction. A temporary refusal counts as a
//! reference, a permanent one as if every reference so far had been to that page.
//!
//! **Defaults** — `search=tournament`.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, Policy, PolicySpec, RefusalReason,
    Shape, TickSource, Zeroed,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::density::{Search, Tournament};

config! {
    /// Parameters of [`LrdV1`].
    pub struct LrdV1Config {
        /// Method of finding the least dense frame.
        search: Search = Search::Tournament;
    }
}

/// The hot half: a count.
pub struct CountReferences;

impl HitHook for CountReferences {
    type Meta = AtomicU32;
    type Params = ();
    const HIT: Hit = Hit::Meta;
    const TICK: TickSource = TickSource::PerAccess;

    #[inline(always)]
    fn on_hit(references: &AtomicU32, _: &(), _: &Access) {
        // A lost increment among racing hits weighs little in a density.
        references.store(references.load(Relaxed).saturating_add(1), Relaxed);
    }

    #[inline(always)]
    fn reset(references: &AtomicU32, _: &(), _: &Access) {
        references.store(1, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// Least reference density.
pub struct LrdV1 {
    tournament: Tournament,
}

impl PolicySpec for LrdV1 {
    const INFO: Info = Info {
        id: "lrd-v1",
        summary: "least references per time in the pool",
        family: Family::Frequency,
        class: Class::Two,
        age: Age::First,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 36.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.12.1",
    };
    type Hook = CountReferences;
    type Config = LrdV1Config;

    fn new(config: &LrdV1Config, shape: &Shape) -> LrdV1 {
        LrdV1 { tournament: Tournament::new(shape.frames, config.search) }
    }

    fn state_bytes(&self) -> usize {
        self.tournament.bytes()
    }

    fn check(
        &self,
        _frames: Frames<'_, CountReferences>,
        resident: &[FrameId],
    ) -> Result<(), String> {
        self.tournament.check(resident)
    }
}

impl Policy for LrdV1 {
    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CountReferences>,
        frame: FrameId,
        access: &Access,
        _recall: GhostHit,
    ) {
        self.tournament.load(frame.0, 1, access.now);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, CountReferences>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let live = |frame| frames.meta(frame).load(Relaxed);
        let refused = |frame, why: RefusalReason, now: u64| {
            let references = frames.meta(frame);
            let count = references.load(Relaxed);
            let all = u32::try_from(now).unwrap_or(u32::MAX);
            let more = if why.is_temporary() { count.saturating_add(1) } else { count.max(all) };
            references.store(more, Relaxed);
        };
        self.tournament.evict(request, host, live, refused)
    }

    fn forget(&mut self, _frames: Frames<'_, CountReferences>, frame: FrameId) {
        self.tournament.leave(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, PageId};

    use super::*;
    use crate::contract::OfferOutcome;

    struct Offers(Vec<u32>);

    impl Host for Offers {
        fn offer(&mut self, frame: FrameId) -> OfferOutcome {
            self.0.push(frame.0);
            OfferOutcome::Taken(PageId(0))
        }
    }

    /// References and first reference of sixteen frames, at global count 2500 (gilbert fig. 1.24).
    const FRAMES: [(u32, u32); 16] = [
        (120, 0),
        (4, 1500),
        (7, 600),
        (2, 2100),
        (8, 400),
        (1, 2450),
        (3, 1800),
        (5, 1150),
        (1, 2425),
        (1, 2400),
        (2, 2200),
        (5, 1100),
        (6, 1000),
        (4, 1200),
        (8, 400),
        (9, 200),
    ];

    #[test]
    fn the_worked_example_evicts_frame_13_first_and_ties_by_frame() {
        for search in [Search::Tournament, Search::Linear] {
            let shape = Shape { frames: 16, pages_dense: None, seed: 1 };
            let mut policy = LrdV1::new(&LrdV1Config { search }, &shape);
            let metas: Vec<AtomicU32> = (0..16).map(|_| AtomicU32::new(1)).collect();
            let frames = Frames::<CountReferences>::of(&metas);
            let mut by_load: Vec<usize> = (0..16).collect();
            by_load.sort_by_key(|&f| FRAMES[f].1);
            for f in by_load {
                let (page, now) = (PageId(f as u64), FRAMES[f].1);
                let access = Access { page, mark: Mark::READ, now, next: 0, next_read: 0 };
                policy.admit(frames, FrameId(f as u32), &access, GhostHit::NONE);
            }
            for (meta, (references, _)) in metas.iter().zip(FRAMES) {
                meta.store(references, Relaxed);
            }
            let request = EvictRequest { frames: 6, steps_max: 100, now: 2500, incoming: None };
            let mut host = Offers(Vec::new());
            assert_eq!(policy.evict(frames, &request, &mut host), 6);
            assert_eq!(host.0, [13, 11, 2, 7, 4, 14], "{search:?}");
        }
    }
}
