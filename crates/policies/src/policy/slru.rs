//! `slru`: segmented LRU, a probationary and a protected list.
//!
//! **Idea** — A page must be used again before it may push out pages that were: new pages are on
//! probation, and the second reference protects.
//!
//! **Source** — gilbert 1.2.7.
//!
//! **State** — The probationary and the protected list, both ordered by recency, and the list of
//! each frame.
//!
//! **Invariants** — (1) The two lists together hold exactly the resident frames. (2) The protected
//! list is no longer than its limit.
//!
//! **Cost** — Hit: relink, central; at most one demotion. Admit: link. Evict: unlink, O(1). 9
//! bytes per frame, no ghosts.
//!
//! **Deviations** — With an empty probationary list the protected one gives the victim: a limit as
//! large as the pool makes that possible. From Caffeine (SegmentedLru): none. libCacheSim lets new
//! pages into the protected segment while there is room: a different warm-up, not taken over.
//!
//! **Defaults** — `protected=80%`, the usual share, Caffeine's too; gilbert names none. A refused
//! frame is assumed to be hot and is protected, as in gilbert.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::list::check_holds;
use crate::parts::{Links, List, offer_in_turn};

config! {
    /// Parameters of [`Slru`].
    pub struct SlruConfig {
        /// Maximum number of frames in the protected segment.
        protected: Part = Part::Times(0.8);
    }
}

/// Segmented LRU.
pub struct Slru {
    links: Links,
    probationary: List,
    protected: List,
    is_protected: Vec<bool>,
    protected_max: u32,
}

impl Slru {
    #[inline(always)]
    fn unlink(&mut self, frame: u32) {
        if std::mem::replace(&mut self.is_protected[frame as usize], false) {
            self.protected.remove(&mut self.links, frame);
        } else {
            self.probationary.remove(&mut self.links, frame);
        }
    }

    #[inline(always)]
    fn protect(&mut self, frame: u32) {
        if self.is_protected[frame as usize] {
            self.protected.move_to_back(&mut self.links, frame);
            return;
        }
        self.probationary.remove(&mut self.links, frame);
        self.protected.push_back(&mut self.links, frame);
        self.is_protected[frame as usize] = true;
        if self.protected.len() > self.protected_max
            && let Some(demoted) = self.protected.pop_front(&mut self.links)
        {
            self.is_protected[demoted as usize] = false;
            self.probationary.push_back(&mut self.links, demoted);
        }
    }
}

impl PolicySpec for Slru {
    const INFO: Info = Info {
        id: "slru",
        summary: "segmented LRU: the second reference protects",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.7",
    };
    type Hook = CentralHook;
    type Config = SlruConfig;

    fn new(config: &SlruConfig, shape: &Shape) -> Slru {
        Slru {
            links: Links::new(shape.frames),
            probationary: List::new(),
            protected: List::new(),
            is_protected: vec![false; shape.frames as usize],
            protected_max: config.protected.frames_of(shape.frames),
        }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.is_protected.capacity()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        check_holds(&[&self.probationary, &self.protected], &self.links, resident)?;
        let marked = self.is_protected.iter().filter(|p| **p).count();
        let listed = self.protected.len();
        if marked != listed as usize || listed > self.protected_max {
            let most = self.protected_max;
            return Err(format!(
                "invariant 2: {listed} protected, {marked} marked, {most} allowed"
            ));
        }
        Ok(())
    }
}

impl Policy for Slru {
    #[inline(always)]
    fn hit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access) {
        self.protect(frame.0);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.probationary.push_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        offer_in_turn(
            request,
            host,
            self,
            |slru| slru.probationary.front().or(slru.protected.front()).map(FrameId),
            |slru, frame, _page| slru.unlink(frame.0),
            |slru, frame, _why| slru.protect(frame.0),
        )
    }

    fn forget(&mut self, _: Frames<'_, CentralHook>, frame: FrameId) {
        self.unlink(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    #[test]
    fn a_scan_leaves_pages_that_were_used_twice_alone() {
        let mut pool = TestPool::<Slru>::new(&SlruConfig::default(), 10);
        pool.run([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
        pool.run(100..200);
        assert_eq!(pool.pages(), [0, 1, 2, 3, 4, 5, 6, 7, 198, 199]);
    }

    #[test]
    fn a_refused_page_is_taken_to_be_hot() {
        let mut pool = TestPool::<Slru>::new(&SlruConfig::default(), 5);
        pool.run(0..5);
        pool.refuse(0, Some(RefusalReason::Pinned));
        pool.reference(5);
        pool.refuse(0, None);
        pool.run(100..120);
        assert_eq!(pool.pages(), [0, 116, 117, 118, 119]);
    }

    #[test]
    fn every_limit_works_in_every_tiny_pool() {
        for frames in 1..=4 {
            for protected in [Part::Count(0), Part::Times(0.8), Part::All] {
                let mut pool = TestPool::<Slru>::new(&SlruConfig { protected }, frames);
                pool.run(crate::testing::skewed(12, 400, 3));
            }
        }
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["slru", "slru(protected=0)", "slru(protected=all)"] {
            crate::testing::survives_everything::<Slru>(spec);
        }
    }
}
