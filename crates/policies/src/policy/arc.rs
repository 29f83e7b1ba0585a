//! `arc`: two lists, pages seen once and pages seen again, and ghosts that decide which should
//! grow.
//!
//! **Idea** — Split the pool into a list T1 of pages seen once lately and a list T2 of pages seen
//! at least twice. Remember as many evicted pages of either list (B1, B2). A miss on a ghost of B1
//! shows that T1 was too short, one on a ghost of B2 that T2 was: the target length p of T1
//! follows.
//!
//! **Source** — Megiddo & Modha, FAST 2003; luan 4.9.
//!
//! **State** — T1 and T2 over the frames, B1 and B2 over ghosts, oldest at the front; which list
//! each frame is in; p.
//!
//! **Invariants** — (1) T1 and T2 together hold exactly the resident frames. (2) After an
//! admission |T1| + |B1| is at most c and all four lists together are at most 2c, c being the
//! number of frames. (3) 0 ≤ p ≤ c.
//!
//! **Cost** — Hit: relink, central. Miss: one lookup among the ghosts. Admit: link, at most two
//! ghosts dropped. Evict: unlink, one ghost made, O(1). 9 bytes per frame, 28 per ghost.
//!
//! **Deviations** — The paper trims the ghosts before it replaces a page; here they are trimmed
//! when the page is admitted, so that a refused or failed load costs no memory of the past. The
//! same ghosts are dropped either way. The page of case IV(A) without B1, which never becomes a
//! ghost in the paper, becomes one here and is dropped at once. A refused frame moves to the
//! recent end of its own list, since pinning proves no second use; a list whose frames were all
//! refused yields to the other one. Hits equal libCacheSim's in every cell; with
//! `adaptation=integer`, where p moves by the whole part of the quotient, they equal the Caffeine
//! simulator's in every cell.
//!
//! **Defaults** — `adaptation=real`, which reproduces the paper's OLTP column. The policy has no
//! other parameter: that is its point.

use millpond_base::{FrameId, PageId};

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Adaptation, Balance};

config! {
    /// Parameters of [`Arc`].
    pub struct ArcConfig {
        /// Steps of the target: real or whole numbers.
        adaptation: Adaptation = Adaptation::Real;
    }
}

/// Adaptive replacement cache.
pub struct Arc {
    balance: Balance,
}

impl PolicySpec for Arc {
    const INFO: Info = Info {
        id: "arc",
        summary: "two lists whose lengths follow the hits on their ghosts",
        family: Family::Adaptive,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 28.0,
        source: "Megiddo & Modha FAST 2003, luan 4.9",
    };
    type Hook = CentralHook;
    type Config = ArcConfig;

    fn new(config: &ArcConfig, shape: &Shape) -> Arc {
        Arc { balance: Balance::new(config.adaptation, shape) }
    }

    fn ghosts_max(_config: &ArcConfig, frames: u32) -> u64 {
        Balance::ghosts_max(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.balance.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.balance.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.balance.check(resident)
    }
}

impl Policy for Arc {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.balance.hit(frame);
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        self.balance.ghost_hit(access.page)
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _: Frames<'_, CentralHook>,
        frame: FrameId,
        _: &Access,
        ghost_hit: GhostHit,
    ) {
        self.balance.admit(frame, ghost_hit);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.balance.evict(request, host, |_frame| ())
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.balance.forget(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn a_ghost_of_the_first_list_lets_it_grow_and_one_of_the_second_shrink() {
        let mut pool = TestPool::<Arc>::of("arc", 4);
        pool.run([1, 2, 1, 2, 3, 4, 5]);
        // T2 = 1 2, T1 = 4 5, B1 = 3.
        assert_eq!((pool.pages(), pool.policy.balance.target()), (vec![1, 2, 4, 5], 0.0));
        assert!(!pool.reference(3));
        // p = 1: of T1 = 4 5, the 4 is evicted, and 3 is in T2.
        assert_eq!((pool.pages(), pool.policy.balance.target()), (vec![1, 2, 3, 5], 1.0));
        pool.reference(6);
        // |T1| = 1 is not above p: T2 gives 1.
        assert_eq!(pool.pages(), [2, 3, 5, 6]);
        pool.reference(1);
        assert_eq!(pool.policy.balance.target(), 0.0);
    }

    #[test]
    fn a_loop_longer_than_the_pool_leaves_the_second_list_alone() {
        let mut pool = TestPool::<Arc>::of("arc", 8);
        pool.run([1, 2, 3, 1, 2, 3]);
        pool.run((100..160).collect::<Vec<_>>());
        assert_eq!(pool.run([1, 2, 3]), 3);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        survives_everything::<Arc>("arc");
        survives_everything::<Arc>("arc(adaptation=integer)");
    }
}
