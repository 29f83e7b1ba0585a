//! `t2-lru`: least recently used below a first tier, blind to hints.
//!
//! **Idea** — The baseline: every request, read or write, is a use, whatever its hint.
//!
//! **Source** — li 3.4 and 5.5 (LRU).
//!
//! **State** — One list of the resident frames, least recent at the front.
//!
//! **Invariants** — (1) The list holds exactly the resident frames, in the order of their last
//! requests.
//!
//! **Cost** — Hit: relink. Admit: link. Evict: unlink, O(1). 8 bytes per frame, no ghosts.
//!
//! **Deviations** — None from `lru`, which has the same victims; it is here under its name in the
//! paper. A refused frame moves to the recent end.
//!
//! **Defaults** — No parameters.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::list::check_holds;
use crate::parts::{Links, List};

/// Least recently used, blind to hints.
pub struct T2Lru {
    links: Links,
    list: List,
}

impl PolicySpec for T2Lru {
    const INFO: Info = Info {
        id: "t2-lru",
        summary: "second tier: least recently requested, blind to hints",
        family: Family::SecondTier,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::Second,
        live: false,
        frame_bytes: 8.0,
        ghost_bytes: 0.0,
        source: "li 3.4, 5.5",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> T2Lru {
        T2Lru { links: Links::new(shape.frames), list: List::new() }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        check_holds(&[&self.list], &self.links, resident)
    }
}

impl Policy for T2Lru {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.list.move_to_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.list.push_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.list.evict(&mut self.links, request, host, |_frame| ())
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.list.remove(&mut self.links, frame.0);
    }
}
