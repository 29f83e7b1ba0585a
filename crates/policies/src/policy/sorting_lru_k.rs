//! `sorting-lru-k`: LRU-K by time stamps that are sorted occasionally.
//!
//! **Idea** — As in `sorting-lru`, a hit only overwrites the oldest of its frame's K stamps; the
//! order by the oldest stamp is computed when frames are needed.
//!
//! **Source** — gilbert 1.2.6.2, with algorithm 1.5.
//!
//! **State** — Beside each frame a ring of K stamps, the place of the oldest, and the number of
//! known ones; two lists of frames as in `sorting-lru`. See `parts::sorted`.
//!
//! **Invariants** — (1) A resident frame has a stamp. (2) The list that is served names each frame
//! once at most. (3) An entry whose oldest stamp is not its frame's any more is not offered.
//!
//! **Cost** — Hit: two or three stores in the frame's own metadata, no latch. Admit: the same.
//! Evict: one addition and a comparison, and O(log n) amortised for the sorts. 36 bytes per frame
//! whatever K is, 16 more while sorting; no ghosts.
//!
//! **Deviations** — Pages with fewer than K references come first by the time of their load,
//! instead of by pseudo-stamps from a counter of the infinite past: the same order. Two hits of a
//! frame at the same moment may count as one, as the ring is not locked. From LRU-K itself, as
//! gilbert's: pages loaded or used since the last sort are not considered before the next one,
//! though their K-th last reference may be the oldest; with `resort=0%` it is LRU-K.
//!
//! **Defaults** — `k=2`, `resort=75%` (the catalog; gilbert). A temporarily refused frame counts
//! as used; a permanently refused one has stamps of the far future, which use overwrites one by
//! one. Both rules are his.

use millpond_base::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use millpond_base::{FrameId, Share, Tick};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, OpenPolicy, PolicySpec,
    RefusalReason, Shape, TickSource, Zeroed,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::sorted::{ABSENT, Candidate, NEVER, Sorted, Stamps, recency, stamp_of};

const K_MAX: usize = 4;

/// Marks the stamp of a frame that knows fewer than K references, so that becoming known changes
/// it.
const BELOW: u32 = 1 << 31;

config! {
    /// Parameters of [`SortingLruK`].
    pub struct SortingLruKConfig {
        /// References known of each page.
        k: u8 = 2, in 1..=4;
        /// Share of the sorted list that is consumed before it is re-sorted.
        resort: Share = Share(0.75), in Share(0.0)..=Share(1.0);
    }
}

/// The last K references of a frame.
#[derive(Default)]
pub struct Ring {
    stamps: [AtomicU32; K_MAX],
    next: AtomicU8,
    known: AtomicU8,
}

zeros!(Ring { stamps, next, known });

impl Ring {
    #[inline(always)]
    fn record(&self, k: u8, now: Tick) {
        let k = k.clamp(1, K_MAX as u8);
        let next = self.next.load(Relaxed).min(k - 1);
        self.stamps[usize::from(next)].store(stamp_of(now), Relaxed);
        self.next.store(if next + 1 == k { 0 } else { next + 1 }, Relaxed);
        // The count is of written slots, not of calls. Two calls at the same moment may share a
        // slot, and an unwritten slot must not be taken for the oldest.
        if self.known.load(Relaxed) <= next {
            self.known.store(next + 1, Relaxed);
        }
    }

    #[inline(always)]
    fn restart(&self, k: u8, now: Tick) {
        self.next.store(0, Relaxed);
        self.known.store(0, Relaxed);
        self.record(k, now);
    }

    /// Returns the place of the oldest stamp, and `true` if all K are known.
    #[inline(always)]
    fn oldest(&self, k: u8) -> (&AtomicU32, bool) {
        let all = self.known.load(Relaxed) >= k;
        let at = if all { usize::from(self.next.load(Relaxed)) % K_MAX } else { 0 };
        (&self.stamps[at], all)
    }

    /// Returns the mark that an entry of the list must find again at its frame.
    #[inline(always)]
    fn mark(stamp: u32, all: bool) -> u32 {
        if all { stamp } else { stamp ^ BELOW }
    }

    fn fill(&self, k: u8, stamp: u32) {
        self.stamps.iter().for_each(|s| s.store(stamp, Relaxed));
        self.known.store(k, Relaxed);
        self.next.store(0, Relaxed);
    }
}

/// The hot half: a ring of stamps.
pub struct RingHook;

impl HitHook for RingHook {
    type Meta = Ring;
    type Params = u8;
    const HIT: Hit = Hit::Meta;
    const TICK: TickSource = TickSource::PerAccess;

    #[inline(always)]
    fn on_hit(ring: &Ring, k: &u8, access: &Access) {
        ring.record(*k, access.now);
    }

    #[inline(always)]
    fn reset(ring: &Ring, k: &u8, access: &Access) {
        ring.restart(*k, access.now);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// LRU-K by sorted time stamps.
pub struct SortingLruK {
    sorted: Sorted,
    k: u8,
}

struct View<'a> {
    frames: Frames<'a, RingHook>,
    now: Tick,
    k: u8,
}

impl Stamps for View<'_> {
    fn collect(&self, candidates: &mut Vec<Candidate>) {
        for frame in 0..self.frames.len() {
            let (oldest, all) = self.frames.meta(FrameId(frame)).oldest(self.k);
            let stamp = oldest.load(Relaxed);
            if stamp != ABSENT && stamp != NEVER {
                let order = u64::from(all) << 32 | u64::from(recency(stamp, self.now));
                candidates.push(Candidate { order, frame, stamp: Ring::mark(stamp, all) });
            }
        }
    }

    #[inline(always)]
    fn is_current(&self, frame: FrameId, mark: u32) -> bool {
        let (oldest, all) = self.frames.meta(frame).oldest(self.k);
        Ring::mark(oldest.load(Relaxed), all) == mark
    }

    #[inline(always)]
    fn taken(&self, frame: FrameId, mark: u32) {
        let (oldest, all) = self.frames.meta(frame).oldest(self.k);
        // A page loaded in the meantime has a later stamp there, and keeps it.
        let stamp = Ring::mark(mark, all);
        _ = oldest.compare_exchange(stamp, ABSENT, Relaxed, Relaxed);
    }

    fn refused(&self, frame: FrameId, why: RefusalReason) {
        match why {
            RefusalReason::Absent => {}
            RefusalReason::Permanent => self.frames.meta(frame).fill(self.k, NEVER),
            _ => self.frames.meta(frame).record(self.k, self.now),
        }
    }
}

impl PolicySpec for SortingLruK {
    const INFO: Info = Info {
        id: "sorting-lru-k",
        summary: "LRU-K by time stamps, sorted when frames are needed; hits take no latch",
        family: Family::Mixed,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 36.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.6.2",
    };
    type Hook = RingHook;
    type Config = SortingLruKConfig;

    fn new(config: &SortingLruKConfig, shape: &Shape) -> SortingLruK {
        SortingLruK { sorted: Sorted::new(shape.frames, config.resort.0), k: config.k }
    }

    fn params(&self) -> u8 {
        self.k
    }

    fn state_bytes(&self) -> usize {
        self.sorted.bytes()
    }

    fn check(&self, frames: Frames<'_, RingHook>, resident: &[FrameId]) -> Result<(), String> {
        self.sorted.check()?;
        let oldest = |f: FrameId| frames.meta(f).oldest(self.k).0.load(Relaxed);
        match resident.iter().find(|f| oldest(**f) == ABSENT) {
            Some(frame) => Err(format!("invariant 1: frame {} has no stamp", frame.0)),
            None => Ok(()),
        }
    }
}

impl OpenPolicy for SortingLruK {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, RingHook>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, RingHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.sorted.evict(request, host, &View { frames, now: request.now, k: self.k })
    }

    fn forget(&self, frames: Frames<'_, RingHook>, frame: FrameId) {
        frames.meta(frame).fill(self.k, ABSENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Spec;
    use crate::policy::LruK;
    use crate::testing::{TestPool, skewed};

    #[test]
    fn sorted_at_each_eviction_it_is_lru_k() {
        for k in 1..=4 {
            for frames in [1, 2, 3, 20] {
                let config = SortingLruKConfig { k, resort: Share(0.0) };
                let mut ours = TestPool::<SortingLruK>::new(&config, frames);
                let list = Spec::parse(&format!("lru-k(k={k})")).unwrap().config().unwrap();
                let mut list = TestPool::<LruK>::new(&list, frames);
                for page in skewed(60, 2_000, 2) {
                    assert_eq!(ours.reference(page), list.reference(page), "{k} {frames}");
                }
            }
        }
    }

    #[test]
    fn a_page_refused_for_good_needs_k_references_to_be_offered_again() {
        let config = SortingLruKConfig { k: 2, ..Default::default() };
        let mut pool = TestPool::<SortingLruK>::new(&config, 4);
        pool.run(0..4);
        pool.refuse(0, Some(RefusalReason::Permanent));
        let offers =
            |pool: &TestPool<SortingLruK>| pool.host.offered.iter().filter(|f| **f == 0).count();
        pool.run((10..30).chain([0]).chain(30..50));
        assert_eq!(offers(&pool), 1);
        // Now it knows two references, like all others except the newest.
        pool.run([0].into_iter().chain((50..60).flat_map(|p| [p, p])));
        assert_eq!(offers(&pool), 2);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["x", "x(resort=0%,k=1)", "x(resort=100%,k=4)"] {
            crate::testing::survives_everything::<SortingLruK>(spec);
        }
    }
}
