//! `2q`: new pages queue separately; a page that returns soon after its eviction is worth
//! keeping.
//!
//! **Idea** — A page's first references are often one burst. Let it pass through a short FIFO
//! (A1in) that hits do not touch, remember it for a while after its eviction (A1out), and admit
//! it to the LRU list proper (Am) only if it is referenced then.
//!
//! **Source** — Johnson & Shasha, VLDB 1994, full version; luan 4.6; leanstore VI-B.
//!
//! **State** — A1in and Am over the frames, A1out over ghosts, oldest at the front; the list of
//! each frame.
//!
//! **Invariants** — (1) A1in and Am together hold exactly the resident frames. (2) A1out is at
//! most Kout long.
//!
//! **Cost** — Hit in Am: relink, central; in A1in: only the call. Miss: one lookup among the
//! ghosts. Admit: link. Evict: unlink, one ghost made and one dropped, O(1). 9 bytes per frame,
//! 20 per ghost.
//!
//! **Deviations** — None from the source. The incoming page leaves A1out before a frame is
//! reclaimed for it, as in libCacheSim and Caffeine, whose hits are equal in every cell; a model
//! that removes it afterwards differs by up to 0.12 %. A refused frame moves to the recent end of
//! its list; a list whose frames were all refused, or that is empty, yields to the other one. A
//! page of A1in that stays because a child is evicted instead is in use, and moves to Am.
//!
//! **Defaults** — `kin=25%`, `kout=50%`: the authors' (luan 4.6).

use millpond_base::{FrameId, PageId};

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{FrameLists, Ghosts, List, offer_from_queue};

config! {
    /// Parameters of [`TwoQ`].
    pub struct TwoQConfig {
        /// Length that A1in, the queue of new pages, may exceed only while there is room.
        kin: Part = Part::Times(0.25);
        /// Pages remembered after they left A1in.
        kout: Part = Part::Times(0.5);
    }
}

const IN: usize = 0;
const MAIN: usize = 1;
/// The page has a ghost in A1out.
const REMEMBERED: GhostHit = GhostHit(1);

/// Two queues, full version.
pub struct TwoQ {
    kin: u32,
    kout: u64,
    lists: FrameLists<2>,
    ghosts: Ghosts<()>,
    out: List,
}

impl PolicySpec for TwoQ {
    const INFO: Info = Info {
        id: "2q",
        summary: "a FIFO for new pages, its ghosts, and an LRU list for what came back",
        family: Family::Mixed,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 20.0,
        source: "Johnson & Shasha VLDB 1994, luan 4.6",
    };
    type Hook = CentralHook;
    type Config = TwoQConfig;

    fn new(config: &TwoQConfig, shape: &Shape) -> TwoQ {
        let kout = config.kout.of(shape.frames);
        TwoQ {
            kin: config.kin.frames_of(shape.frames),
            kout,
            lists: FrameLists::new(shape.frames),
            ghosts: Ghosts::new(shape.pages_dense, kout.min(u64::from(shape.frames)) + 1),
            out: List::new(),
        }
    }

    fn ghosts_max(config: &TwoQConfig, frames: u32) -> u64 {
        config.kout.of(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.ghosts.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.lists.bytes() + self.ghosts.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.lists.check(resident).map_err(|e| format!("invariant 1: {e}"))?;
        self.out.check(&self.ghosts.links)?;
        if self.ghosts.len() as u64 > self.kout {
            return Err(format!("invariant 2: {} ghosts", self.ghosts.len()));
        }
        Ok(())
    }
}

impl Policy for TwoQ {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        if self.lists.list_of(frame) == MAIN {
            self.lists.move_to_back(frame);
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        let Some(ghost) = self.ghosts.find(access.page) else { return GhostHit::NONE };
        self.ghosts.drop_from(&mut self.out, ghost);
        REMEMBERED
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        let list = if ghost_hit == REMEMBERED { MAIN } else { IN };
        self.lists.push_back(list, frame);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        offer_from_queue(
            request,
            host,
            &mut (self, [0; 2]),
            |(two_q, refused)| {
                let wanted = if two_q.lists.len(IN) > two_q.kin { IN } else { MAIN };
                two_q.lists.front_of(wanted, refused)
            },
            |(two_q, _), frame, page| {
                if two_q.lists.remove(frame) == IN && two_q.kout > 0 {
                    two_q.ghosts.push(&mut two_q.out, page, ());
                    if two_q.ghosts.len() as u64 > two_q.kout {
                        two_q.ghosts.drop_front(&mut two_q.out);
                    }
                }
            },
            |(two_q, refused), frame, _why| two_q.lists.pass_over(frame, refused),
            |(two_q, _), frame| two_q.lists.move_to(MAIN, frame),
        )
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.lists.remove(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn a_page_is_kept_only_if_it_comes_back_after_it_left() {
        let mut pool = TestPool::<TwoQ>::of("2q", 8);
        // Kin is 2, Kout 4. A burst of references to 1 earns it nothing.
        pool.run([1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(pool.pages(), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(!pool.reference(1));
        assert_eq!(pool.policy.lists.len(MAIN), 1);
        pool.run(10..40);
        assert!(pool.reference(1));
    }

    #[test]
    fn a_page_with_others_below_it_leaves_the_queue_of_new_pages() {
        let mut pool = TestPool::<TwoQ>::of("2q", 8);
        pool.reference(0);
        pool.host.frames[0].has_others_below = true;
        pool.run(1..14);
        assert_eq!(pool.host.gone, [7, 1, 2, 3, 4, 5]);
        assert_eq!(pool.policy.lists.list_of(FrameId(0)), MAIN);
    }

    #[test]
    fn without_ghosts_and_with_one_queue_it_is_fifo() {
        let mut pool = TestPool::<TwoQ>::of("2q(kin=0,kout=0)", 3);
        pool.run([1, 2, 3, 1, 1, 4]);
        assert_eq!(pool.pages(), [2, 3, 4]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["2q", "2q(kin=100%,kout=all)", "2q(kin=0,kout=0)", "2q(kout=2x)"] {
            survives_everything::<TwoQ>(spec);
        }
    }
}
