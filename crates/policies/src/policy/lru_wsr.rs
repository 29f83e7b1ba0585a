//! `lru-wsr`: LRU that gives a dirty page one more round before it is evicted.
//!
//! **Idea** — Writing a page back costs more than reading one again. A dirty page at the cold end
//! is spared once; if it was not referenced by the time it is there again, it was cold, and is
//! evicted.
//!
//! **Source** — watt 2.2, after Jung et al. 2008 (LRU-WSR).
//!
//! **State** — One doubly linked list of the resident frames, least recent at the front, and a
//! "cold" flag per frame: it was dirty at the cold end once and has not been referenced since.
//!
//! **Invariants** — (1) The list holds exactly the resident frames. (2) A frame whose flag is set
//! has not been referenced since it was spared. (3) A dirty frame is offered only with its flag
//! set.
//!
//! **Cost** — Hit: relink and clear a flag, central. Admit: link. Evict: amortised O(1), since a
//! frame is spared at most once between two references. 9 bytes per frame, no ghosts.
//!
//! **Deviations** — The policy asks the host for a page's dirty state when the page is at the cold
//! end, so pages that were written back count as clean. A refused frame counts as referenced: it
//! moves to the recent end without its flag. Hits and writes equal those of the WATT authors'
//! simulator in every cell.
//!
//! **Defaults** — No parameters.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, PageState, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Links, List};

/// LRU with write sequence reordering.
pub struct LruWsr {
    links: Links,
    list: List,
    cold: Vec<bool>,
}

impl PolicySpec for LruWsr {
    const INFO: Info = Info {
        id: "lru-wsr",
        summary: "LRU whose dirty pages get one more round",
        family: Family::WriteAware,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "watt 2.2",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> LruWsr {
        let cold = vec![false; shape.frames as usize];
        LruWsr { links: Links::new(shape.frames), list: List::new(), cold }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.cold.capacity()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.list.check(&self.links)?;
        let (listed, there) = (self.list.len() as usize, resident.len());
        if listed != there {
            return Err(format!("invariant 1: {listed} frames are listed, {there} are resident"));
        }
        let mut is_listed = vec![false; self.cold.len()];
        self.list.iter(&self.links).for_each(|f| is_listed[f as usize] = true);
        if let Some(frame) = resident.iter().find(|f| !is_listed[f.index()]) {
            return Err(format!("invariant 1: frame {} is resident and not listed", frame.0));
        }
        Ok(())
    }
}

impl LruWsr {
    #[inline(always)]
    fn referenced(&mut self, frame: u32) {
        self.cold[frame as usize] = false;
        self.list.move_to_back(&mut self.links, frame);
    }
}

impl Policy for LruWsr {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.referenced(frame.0);
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.cold[frame.index()] = false;
        self.list.push_back(&mut self.links, frame.0);
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
            let Some(victim) = self.list.front() else { break };
            steps += 1;
            let spared = self.cold[victim as usize];
            if !spared && host.state(FrameId(victim)) == PageState::Dirty {
                self.list.move_to_back(&mut self.links, victim);
                self.cold[victim as usize] = true;
                continue;
            }
            match host.take(FrameId(victim)) {
                Ok((frame, _page)) => {
                    self.list.remove(&mut self.links, frame.0);
                    taken += 1;
                }
                Err(_why) => self.referenced(victim),
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.list.remove(&mut self.links, frame.0);
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;
    use crate::contract::RefusalReason;
    use crate::testing::TestPool;

    #[test]
    fn a_dirty_page_is_spared_once_and_a_reference_earns_it_another_round() {
        let mut pool = TestPool::<LruWsr>::new(&NoConfig {}, 3);
        pool.access(1, Mark::WRITE, 0);
        pool.access(2, Mark::READ, 0);
        pool.access(3, Mark::WRITE, 0);
        pool.access(4, Mark::READ, 0);
        assert_eq!(pool.host.gone, [2], "1 was spared");
        pool.access(1, Mark::READ, 0);
        pool.access(5, Mark::READ, 0);
        assert_eq!(pool.host.gone, [2, 4], "3 was spared");
        pool.access(6, Mark::READ, 0);
        assert_eq!(pool.host.gone, [2, 4, 3], "1 was referenced, and spared again; 3 was not");
        pool.access(7, Mark::READ, 0);
        assert_eq!(pool.host.gone, [2, 4, 3, 5]);
    }

    #[test]
    fn one_frame_that_can_go_is_found_among_dirty_and_refused_ones() {
        let mut pool = TestPool::<LruWsr>::new(&NoConfig {}, 8);
        (0..8).for_each(|page| assert!(!pool.access(page, Mark::WRITE, 0)));
        (0..8).filter(|p| *p != 5).for_each(|page| pool.refuse(page, Some(RefusalReason::Dirty)));
        assert_eq!(pool.evict(2), 1);
        assert_eq!(pool.host.gone, [5]);
    }
}
