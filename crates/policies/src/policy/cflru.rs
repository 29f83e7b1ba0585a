//! `cflru`: the least recent clean page is evicted first, if it is cold enough.
//!
//! **Idea** — Dropping a clean page costs a read later; dropping a dirty one also costs a write
//! now. Among the coldest pages, the *clean-first window*, a clean one is evicted before any dirty
//! one.
//!
//! **Source** — watt 2.2, after Park et al. 2006 (CFLRU).
//!
//! **State** — The resident frames in the order of their last references, cut into two lists: the
//! window at the cold end and the rest; the window's clean frames again, in the same order; two
//! flags per frame.
//!
//! **Invariants** — (1) The two lists hold exactly the resident frames. (2) The window holds its
//! share of the pool, or all frames if there are fewer. (3) The clean list holds exactly the
//! window's frames without the dirty flag, in the window's order. (4) A clean frame of the window
//! is offered before a dirty one, unless as many as the window holds were refused in a row.
//!
//! **Cost** — Hit, admit, evict: O(1), two relinks and at most one more for the frame that crosses
//! the window's edge; nothing scans the window. Cleaning a page in the window walks over the dirty
//! frames just before it, none when a writer cleans from the cold end. 17 bytes per frame, no
//! ghosts.
//!
//! **Deviations** — The original adapts the window to the costs of a flash device; here it is a
//! share of the pool, as watt runs it. A refused frame counts as referenced. Hits and writes equal
//! those of the WATT authors' simulator, with windows of 10 % and 50 %, in every cell.
//!
//! **Defaults** — `window=10%`: the smaller of the two settings that simulators agree on; watt 4.1
//! finds 30 % best on its traces. `window=0` is LRU.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, PageState, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Links, List};

config! {
    /// Parameters of [`Cflru`].
    pub struct CflruConfig {
        /// The clean-first window: the part of the pool, from the cold end, that gives up clean
        /// pages before dirty ones.
        window: Part = Part::Times(0.1);
    }
}

/// The page was changed since it was last written.
const DIRTY: u8 = 1;
/// The frame is in the window.
const WINDOW: u8 = 2;

/// Clean-first LRU.
pub struct Cflru {
    window_max: u32,
    links: Links,
    recent: List,
    window: List,
    clean_links: Links,
    clean: List,
    flags: Vec<u8>,
    /// Clean frames refused since the last taken frame.
    refused_in_row: u32,
}

impl PolicySpec for Cflru {
    const INFO: Info = Info {
        id: "cflru",
        summary: "LRU that drops clean pages first within a window at the cold end",
        family: Family::WriteAware,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 17.0,
        ghost_bytes: 0.0,
        source: "watt 2.2",
    };
    type Hook = CentralHook;
    type Config = CflruConfig;

    fn new(config: &CflruConfig, shape: &Shape) -> Cflru {
        Cflru {
            window_max: config.window.frames_of(shape.frames),
            links: Links::new(shape.frames),
            recent: List::new(),
            window: List::new(),
            clean_links: Links::new(shape.frames),
            clean: List::new(),
            flags: vec![0; shape.frames as usize],
            refused_in_row: 0,
        }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.clean_links.bytes() + self.flags.capacity()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.recent.check(&self.links)?;
        self.window.check(&self.links)?;
        self.clean.check(&self.clean_links)?;
        let listed = self.recent.len() + self.window.len();
        if listed as usize != resident.len() {
            let there = resident.len();
            return Err(format!("invariant 1: {listed} frames are listed, {there} are resident"));
        }
        if self.window.len() != self.window_max.min(listed) {
            return Err(format!("invariant 2: the window holds {}", self.window.len()));
        }
        let is_in_window = |f: u32| self.flags[f as usize] & WINDOW != 0;
        let clean = self.window.iter(&self.links).filter(|&f| self.flags[f as usize] & DIRTY == 0);
        if !clean.eq(self.clean.iter(&self.clean_links)) {
            return Err("invariant 3: the clean list is not the window's clean frames".into());
        }
        if !self.window.iter(&self.links).all(is_in_window)
            || self.recent.iter(&self.links).any(is_in_window)
        {
            return Err("invariant 3: a frame's window flag is wrong".into());
        }
        Ok(())
    }
}

impl Cflru {
    /// Removes `frame` from its lists.
    #[inline(always)]
    fn unlink(&mut self, frame: u32) {
        let flags = self.flags[frame as usize];
        if flags & WINDOW == 0 {
            self.recent.remove(&mut self.links, frame);
            return;
        }
        self.window.remove(&mut self.links, frame);
        if flags & DIRTY == 0 {
            self.clean.remove(&mut self.clean_links, frame);
        }
    }

    /// Moves the edge until the window holds its share.
    #[inline(always)]
    fn fill_window(&mut self) {
        while self.window.len() < self.window_max
            && let Some(frame) = self.recent.pop_front(&mut self.links)
        {
            self.window.push_back(&mut self.links, frame);
            let flags = &mut self.flags[frame as usize];
            *flags |= WINDOW;
            if *flags & DIRTY == 0 {
                self.clean.push_back(&mut self.clean_links, frame);
            }
        }
    }

    /// Adds `frame`, which is in no list, as the most recent one.
    #[inline(always)]
    fn push(&mut self, frame: u32, dirty: bool) {
        self.flags[frame as usize] = if dirty { DIRTY } else { 0 };
        self.recent.push_back(&mut self.links, frame);
        self.fill_window();
    }

    #[inline(always)]
    fn referenced(&mut self, frame: u32, writes: bool) {
        let dirty = writes || self.flags[frame as usize] & DIRTY != 0;
        self.unlink(frame);
        self.push(frame, dirty);
    }

    /// Returns the frame to offer next.
    #[inline(always)]
    fn coldest<H: Host + ?Sized>(&mut self, host: &H) -> Option<u32> {
        // A window full of clean frames that cannot be evicted must not hide a dirty one that can.
        while self.refused_in_row < self.window_max.max(1)
            && let Some(frame) = self.clean.front()
        {
            if host.state(FrameId(frame)) != PageState::Dirty {
                return Some(frame);
            }
            // The policy did not receive the write, since the host batches or drops hits.
            self.flags[frame as usize] |= DIRTY;
            self.clean.remove(&mut self.clean_links, frame);
        }
        self.window.front().or(self.recent.front())
    }
}

impl Policy for Cflru {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        self.referenced(frame.0, access.mark.is_write());
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        access: &Access,
        _recall: GhostHit,
    ) {
        self.push(frame.0, access.mark.is_write());
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            let Some(victim) = self.coldest(host) else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, _page)) => {
                    self.unlink(frame.0);
                    self.fill_window();
                    self.refused_in_row = 0;
                    taken += 1;
                }
                Err(_why) => {
                    let clean = self.flags[victim as usize] & DIRTY == 0;
                    self.refused_in_row = self.refused_in_row.saturating_add(u32::from(clean));
                    self.referenced(victim, false);
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.unlink(frame.0);
        self.fill_window();
    }

    fn cleaned(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        let flags = &mut self.flags[frame.index()];
        let was = *flags;
        *flags &= !DIRTY;
        if was != DIRTY | WINDOW {
            return;
        }
        let mut before = self.links.prev(frame.0);
        while let Some(at) = before
            && self.flags[at as usize] & DIRTY != 0
        {
            before = self.links.prev(at);
        }
        let after = match before {
            Some(at) => self.clean_links.next(at),
            None => self.clean.front(),
        };
        match after {
            Some(at) => self.clean.insert_before(&mut self.clean_links, at, frame.0),
            None => self.clean.push_back(&mut self.clean_links, frame.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;
    use crate::config::NoConfig;
    use crate::contract::RefusalReason;
    use crate::policy::Lru;
    use crate::testing::TestPool;

    fn with(window: Part, frames: u32) -> TestPool<Cflru> {
        TestPool::new(&CflruConfig { window }, frames)
    }

    #[test]
    fn a_window_of_nothing_is_lru() {
        let mut rng = fastrand::Rng::with_seed(17);
        for frames in [1, 2, 3, 10] {
            let mut lru = TestPool::<Lru>::new(&NoConfig {}, frames);
            let mut cflru = with(Part::Count(0), frames);
            for _ in 0..3_000 {
                let (page, write) = (rng.u64(0..u64::from(2 * frames)), rng.bool());
                let mark = if write { Mark::WRITE } else { Mark::READ };
                assert_eq!(lru.access(page, mark, 0), cflru.access(page, mark, 0));
            }
            assert_eq!(lru.host.gone, cflru.host.gone);
        }
    }

    #[test]
    fn the_victim_is_the_coldest_clean_page_of_the_window_or_else_the_coldest() {
        let mut rng = fastrand::Rng::with_seed(18);
        for (frames, window) in [(1, 1), (2, 1), (7, 3), (10, 10), (12, 5)] {
            let mut pool = with(Part::Count(window), frames);
            // Pages with their dirtiness, most recent last.
            let mut model: Vec<(u64, bool)> = Vec::new();
            for _ in 0..3_000 {
                let (page, write) = (rng.u64(0..u64::from(3 * frames)), rng.u8(0..3) == 0);
                let found = model.iter().position(|(p, _)| *p == page);
                let dirty = match found {
                    Some(at) => model.remove(at).1 || write,
                    None => write,
                };
                if found.is_none() && model.len() == frames as usize {
                    let clean = model.iter().take(window as usize).position(|(_, d)| !d);
                    model.remove(clean.unwrap_or(0));
                }
                model.push((page, dirty));
                pool.access(page, if write { Mark::WRITE } else { Mark::READ }, 0);
                if rng.u8(0..4) == 0 {
                    let any = rng.usize(0..model.len());
                    model[any].1 = false;
                    pool.clean(model[any].0);
                }
                if rng.u8(0..40) == 0 {
                    let (page, _) = model.remove(rng.usize(0..model.len()));
                    pool.drop_page(page);
                }
                let mut pages: Vec<u64> = model.iter().map(|(p, _)| *p).collect();
                pages.sort_unstable();
                assert_eq!(pool.pages(), pages);
            }
        }
    }

    #[test]
    fn refused_clean_pages_do_not_hide_a_dirty_one_that_can_go() {
        for window in [0, 1, 2, 4, 8] {
            let mut pool = with(Part::Count(window), 8);
            pool.access(0, Mark::WRITE, 0);
            (1..8).for_each(|page| assert!(!pool.access(page, Mark::READ, 0)));
            (1..8).for_each(|page| pool.refuse(page, Some(RefusalReason::Pinned)));
            assert_eq!(pool.evict(2), 1, "window {window}");
            assert_eq!(pool.host.gone, [0]);
        }
    }
}
