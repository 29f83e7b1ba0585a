//! `midpoint-lru`: LRU whose new pages enter in the middle.
//!
//! **Idea** — A large scan flushes an LRU list because its pages enter at the recent end. Let new
//! pages enter at the head of an old sublist instead: they reach the young one only if they are
//! used again, and not just by the same statement a moment later.
//!
//! **Source** — watt 2.1, on InnoDB; InnoDB's manual on its `innodb_old_blocks_pct` and
//! `innodb_old_blocks_time`.
//!
//! **State** — The young and the old sublist, each ordered by recency; for each frame its sublist
//! and the time at which its load put it into the old one; a clock of references.
//!
//! **Invariants** — (1) The two sublists together hold exactly the resident frames. (2) A frame
//! is in the sublist that its mark names.
//!
//! **Cost** — Hit: relink, central. Admit: link, and at most a few moves of the midpoint. Evict:
//! unlink, O(1). 17 bytes per frame, no ghosts.
//!
//! **Deviations** — From InnoDB: `old_time` counts references, not milliseconds. A young page moves
//! to the head whenever it is used; InnoDB leaves it where it is if it is in the first quarter
//! anyway, to save the latch. The old sublist exists from the first page on, not from the 512th.
//! The midpoint may be off by an eighth of the old sublist, at most 20 frames (InnoDB: 20), so that
//! evicting ahead does not lift new pages across it. A refused frame moves to the young head, like
//! one in use.
//!
//! **Defaults** — `old=37.5%`, that is, 3/8: InnoDB's 37 % by its own description. `old_time=5%`
//! of the pool's frames, in references: no figure in milliseconds can be translated; this much
//! hides the repeated references of one statement.

use millpond_base::{FrameId, Share};

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::list::check_holds;
use crate::parts::{Links, List, offer_in_turn};

config! {
    /// Parameters of [`MidpointLru`].
    pub struct MidpointLruConfig {
        /// Share of the resident pages in the old sublist.
        old: Share = Share(0.375), in Share(0.0)..=Share(1.0);
        /// References that must pass before a further reference lifts a page out of the old
        /// sublist: a part of the pool's frames, or a number.
        old_time: Part = Part::Times(0.05);
    }
}

/// LRU with midpoint insertion.
pub struct MidpointLru {
    links: Links,
    young: List,
    old: List,
    is_young: Vec<bool>,
    loaded: Vec<u64>,
    clock: u64,
    old_share: f64,
    old_time: u64,
}

impl MidpointLru {
    #[inline(always)]
    fn unlink(&mut self, frame: u32) {
        if std::mem::replace(&mut self.is_young[frame as usize], false) {
            self.young.remove(&mut self.links, frame);
        } else {
            self.old.remove(&mut self.links, frame);
        }
    }

    #[inline(always)]
    fn make_young(&mut self, frame: u32) {
        self.unlink(frame);
        self.young.push_back(&mut self.links, frame);
        self.is_young[frame as usize] = true;
    }

    /// Moves the midpoint until the old sublist has about its share of the pages.
    #[inline(always)]
    fn adjust(&mut self) {
        let all = self.young.len() + self.old.len();
        let target = (f64::from(all) * self.old_share) as u32;
        let slack = target.min(160) / 8;
        while self.old.len() + slack < target
            && let Some(aged) = self.young.pop_front(&mut self.links)
        {
            self.old.push_back(&mut self.links, aged);
            self.is_young[aged as usize] = false;
        }
        while self.old.len() > target + slack
            && let Some(lifted) = self.old.pop_back(&mut self.links)
        {
            self.young.push_front(&mut self.links, lifted);
            self.is_young[lifted as usize] = true;
        }
    }
}

impl PolicySpec for MidpointLru {
    const INFO: Info = Info {
        id: "midpoint-lru",
        summary: "LRU whose new pages enter in the middle (InnoDB)",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 17.0,
        ghost_bytes: 0.0,
        source: "watt 2.1; InnoDB",
    };
    type Hook = CentralHook;
    type Config = MidpointLruConfig;

    fn new(config: &MidpointLruConfig, shape: &Shape) -> MidpointLru {
        MidpointLru {
            links: Links::new(shape.frames),
            young: List::new(),
            old: List::new(),
            is_young: vec![false; shape.frames as usize],
            loaded: vec![0; shape.frames as usize],
            clock: 0,
            old_share: config.old.0,
            old_time: config.old_time.of(shape.frames),
        }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.is_young.capacity() + self.loaded.capacity() * 8
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        check_holds(&[&self.young, &self.old], &self.links, resident)?;
        let marked = self.is_young.iter().filter(|y| **y).count();
        if marked != self.young.len() as usize {
            return Err(format!("invariant 2: {marked} are marked, {} listed", self.young.len()));
        }
        Ok(())
    }
}

impl Policy for MidpointLru {
    #[inline(always)]
    fn hit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access) {
        self.clock += 1;
        if self.is_young[frame.index()] {
            self.young.move_to_back(&mut self.links, frame.0);
        } else if self.clock - self.loaded[frame.index()] > self.old_time {
            self.make_young(frame.0);
            self.adjust();
        }
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.clock += 1;
        self.loaded[frame.index()] = self.clock;
        self.old.push_back(&mut self.links, frame.0);
        self.adjust();
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
            |lru| lru.old.front().or(lru.young.front()).map(FrameId),
            |lru, frame, _page| lru.unlink(frame.0),
            |lru, frame, _why| lru.make_young(frame.0),
        )
    }

    fn forget(&mut self, _: Frames<'_, CentralHook>, frame: FrameId) {
        self.unlink(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NoConfig;
    use crate::policy::Lru;
    use crate::testing::{TestPool, skewed};

    #[test]
    fn a_scan_passes_through_the_old_sublist_only() {
        let config = MidpointLruConfig { old_time: Part::Count(0), ..Default::default() };
        let mut pool = TestPool::<MidpointLru>::new(&config, 80);
        pool.run((0..80).chain(0..80).chain(1_000..2_000));
        let scanned = pool.pages().iter().filter(|p| **p >= 1_000).count();
        assert!((25..=33).contains(&scanned), "{scanned} of 80 frames hold scanned pages");
    }

    #[test]
    fn references_in_a_burst_do_not_lift_a_page_and_a_later_one_does() {
        let config = MidpointLruConfig { old_time: Part::Count(5), ..Default::default() };
        let mut pool = TestPool::<MidpointLru>::new(&config, 16);
        pool.run((0..16).chain([100, 100, 100, 100]));
        let burst = pool.frame_of(100).unwrap();
        assert!(!pool.policy.is_young[burst.index()]);
        pool.run([0, 1, 100]);
        assert!(pool.policy.is_young[burst.index()]);
    }

    #[test]
    fn without_an_old_sublist_it_is_lru() {
        let config = MidpointLruConfig { old: Share(0.0), ..Default::default() };
        let mut ours = TestPool::<MidpointLru>::new(&config, 9);
        let mut lru = TestPool::<Lru>::new(&NoConfig {}, 9);
        for page in skewed(30, 2_000, 6) {
            // The newest page is lifted to the young tail, not its head: only a pool whose pages
            // are all used twice at once is the same as LRU.
            assert_eq!(ours.run([page, page]), lru.run([page, page]));
        }
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in [
            "midpoint-lru",
            "midpoint-lru(old=0%,old_time=0)",
            "midpoint-lru(old=100%,old_time=all)",
        ] {
            crate::testing::survives_everything::<MidpointLru>(spec);
        }
    }
}
