//! `second-touch`: pages referenced once leave in the order they came, before all others; pages
//! referenced again are kept by LRU, up to a share of the frames.
//!
//! A toy with just enough in it to show the whole contract: two lists, a parameter, refusals.

use millpond_base::{FrameId, Share};
use millpond_policies::config;
use millpond_policies::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use millpond_policies::info::{Age, Class, Family, Info, References, Tier};
use millpond_policies::parts::{Links, List};

config! {
    /// Parameters of [`SecondTouch`].
    pub struct SecondTouchConfig {
        /// Share of the frames that pages referenced again may fill.
        kept: Share = Share(0.75);
    }
}

/// The policy's state: which frames were referenced once, which again.
pub struct SecondTouch {
    links: Links,
    once: List,
    again: List,
    is_again: Vec<bool>,
    again_max: u32,
}

impl PolicySpec for SecondTouch {
    const INFO: Info = Info {
        id: "second-touch",
        summary: "pages referenced once go first, the others by LRU",
        family: Family::Mixed,
        class: Class::Two,
        age: Age::Last,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "your own idea",
    };
    // Every hit must reach us: we keep lists, and nothing beside the frame.
    type Hook = CentralHook;
    type Config = SecondTouchConfig;

    fn new(config: &SecondTouchConfig, shape: &Shape) -> Self {
        SecondTouch {
            links: Links::new(shape.frames),
            once: List::new(),
            again: List::new(),
            is_again: vec![false; shape.frames as usize],
            again_max: config.kept.of(shape.frames),
        }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.is_again.capacity()
    }

    fn check(&self, _: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.once.check(&self.links)?;
        self.again.check(&self.links)?;
        let listed = self.once.len() + self.again.len();
        if listed as usize != resident.len() {
            return Err(format!("{listed} frames are listed, {} are resident", resident.len()));
        }
        Ok(())
    }
}

impl SecondTouch {
    fn list_of(&mut self, frame: FrameId) -> &mut List {
        if self.is_again[frame.index()] { &mut self.again } else { &mut self.once }
    }

    fn unlink(&mut self, frame: FrameId) {
        let mut list = std::mem::take(self.list_of(frame));
        list.remove(&mut self.links, frame.0);
        *self.list_of(frame) = list;
        self.is_again[frame.index()] = false;
    }

    /// To the recent end of `again`; what no longer fits there gets another chance in `once`.
    fn keep(&mut self, frame: FrameId) {
        self.unlink(frame);
        self.is_again[frame.index()] = true;
        self.again.push_back(&mut self.links, frame.0);
        if self.again.len() > self.again_max
            && let Some(old) = self.again.pop_front(&mut self.links)
        {
            self.is_again[old as usize] = false;
            self.once.push_back(&mut self.links, old);
        }
    }
}

impl Policy for SecondTouch {
    fn hit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access) {
        self.keep(frame);
    }

    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.once.push_back(&mut self.links, frame.0);
    }

    fn evict<H: Host + ?Sized>(
        &mut self,
        _: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            let Some(victim) = self.once.front().or(self.again.front()) else { break };
            match host.take(FrameId(victim)) {
                // Not necessarily the frame that was offered: a child may have gone first.
                Ok((frame, _page)) => {
                    self.unlink(frame);
                    taken += 1;
                }
                // Pinned, latched, dirty, …: the page is in use. It counts as a reference.
                Err(_why) => self.keep(FrameId(victim)),
            }
        }
        taken
    }

    fn forget(&mut self, _: Frames<'_, CentralHook>, frame: FrameId) {
        self.unlink(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_base::{Mark, PageId};
    use millpond_lab::sim::{Cell, SimOptions};

    #[test]
    fn a_scan_cannot_flush_pages_that_were_referenced_twice() {
        let mut cell =
            Cell::<SecondTouch>::new(&SecondTouchConfig::default(), &SimOptions::new(8, None));
        let mut reference = |page| cell.step(PageId(page), Mark::READ).unwrap();
        for page in [1, 2, 3, 1, 2, 3] {
            reference(page);
        }
        (100..200).for_each(|page| assert!(!reference(page)));
        assert!((1..=3).all(&mut reference), "the three are still there");
        cell.check().unwrap();
    }

    #[test]
    fn the_invariants_hold_on_a_real_trace() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/cache2k_web07.txt.gz");
        let mut source = millpond_workload::formats::open(path, &Default::default()).unwrap();
        let mut batch = millpond_workload::trace::Batch::default();
        while source.fill(&mut batch, 1 << 16).unwrap() > 0 {}
        for frames in [1, 2, 7, 500] {
            let options = SimOptions::new(frames, None);
            let mut cell = Cell::<SecondTouch>::new(&SecondTouchConfig::default(), &options);
            for (at, page) in batch.pages.iter().take(20_000).enumerate() {
                cell.step(PageId(*page), Mark::READ).unwrap();
                if at % 1000 == 0 {
                    cell.check().unwrap();
                }
            }
        }
    }

    #[test]
    fn it_replaces_pages_in_a_live_store() {
        use millpond::{Db, Options, OwnPolicies};
        let own = OwnPolicies::default().with::<SecondTouch>();
        let options = Options::new().own_policies(own).policy("second-touch(kept=50%)");
        let db = Db::in_memory(options.lab(|lab| lab.frames = Some(40))).unwrap();
        let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
        for key in 0..20_000 {
            tree.put(&key, [key as u8; 100].as_slice()).unwrap();
        }
        for key in (0..20_000).step_by(7) {
            assert_eq!(tree.get(&key).unwrap(), Some(vec![key as u8; 100]));
        }
        assert!(db.stats().evictions > 1000, "{} evictions", db.stats().evictions);
        assert_eq!(tree.raw().check().unwrap().violations, []);
    }
}
