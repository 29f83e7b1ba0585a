//! `2q-simple`: two queues without ghosts.
//!
//! **Idea** — A page that is never referenced again should not push out one that was: new pages
//! wait in a separate queue (A1), and the second reference moves them to an LRU list (Am).
//!
//! **Source** — Johnson & Shasha, VLDB 1994, simplified version; luan 4.6.
//!
//! **State** — A1, in order of arrival, and Am, in order of use, over the frames; the list of each
//! frame.
//!
//! **Invariants** — (1) A1 and Am together hold exactly the resident frames. (2) Every frame of Am
//! was hit since its page was loaded.
//!
//! **Cost** — Hit: relink, central. Admit: link. Evict: unlink, O(1). 9 bytes per frame, no ghosts.
//!
//! **Deviations** — None; no independent simulator has it. A refused frame moves to the recent end
//! of its list; a list whose frames were all refused, or that is empty, yields to the other one.
//!
//! **Defaults** — `kin=25%`: luan 4.6.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{FrameLists, offer_in_turn};

config! {
    /// Parameters of [`TwoQSimple`].
    pub struct TwoQSimpleConfig {
        /// Length that A1, the queue of new pages, may exceed only while there is room.
        kin: Part = Part::Times(0.25);
    }
}

const NEW: usize = 0;
const MAIN: usize = 1;

/// Two queues, simplified version.
pub struct TwoQSimple {
    kin: u32,
    lists: FrameLists<2>,
}

impl PolicySpec for TwoQSimple {
    const INFO: Info = Info {
        id: "2q-simple",
        summary: "a FIFO for new pages and an LRU list for those that were hit",
        family: Family::Mixed,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "Johnson & Shasha VLDB 1994, luan 4.6",
    };
    type Hook = CentralHook;
    type Config = TwoQSimpleConfig;

    fn new(config: &TwoQSimpleConfig, shape: &Shape) -> TwoQSimple {
        TwoQSimple { kin: config.kin.frames_of(shape.frames), lists: FrameLists::new(shape.frames) }
    }

    fn state_bytes(&self) -> usize {
        self.lists.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.lists.check(resident).map_err(|e| format!("invariant 1: {e}"))
    }
}

impl Policy for TwoQSimple {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.lists.move_to(MAIN, frame);
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.lists.push_back(NEW, frame);
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
            &mut (self, [0; 2]),
            |(two_q, refused)| {
                let wanted = if two_q.lists.len(NEW) > two_q.kin { NEW } else { MAIN };
                two_q.lists.front_of(wanted, refused)
            },
            |(two_q, _), frame, _page| _ = two_q.lists.remove(frame),
            |(two_q, refused), frame, _why| two_q.lists.pass_over(frame, refused),
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
    fn a_second_reference_saves_a_page_from_a_scan() {
        let mut pool = TestPool::<TwoQSimple>::of("2q-simple", 8);
        pool.run([1, 2, 1, 2]);
        pool.run(100..200);
        assert_eq!(pool.run([1, 2]), 2);
    }

    #[test]
    fn the_main_list_gives_when_the_new_one_is_short() {
        let mut pool = TestPool::<TwoQSimple>::of("2q-simple", 4);
        pool.run([1, 2, 3, 4, 1, 2, 3, 4, 5]);
        // A1 was empty: Am gave its least recent page.
        assert_eq!(pool.pages(), [2, 3, 4, 5]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["2q-simple", "2q-simple(kin=all)", "2q-simple(kin=0)"] {
            survives_everything::<TwoQSimple>(spec);
        }
    }
}
