//! `lru`: least recently used, by one list.
//!
//! **Idea** — Recently used pages will be used soon: the page with the oldest last reference is
//! evicted.
//!
//! **Source** — gilbert 1.2.4.1; luan 4.1.
//!
//! **State** — One doubly linked list of the resident frames, least recent at the front.
//!
//! **Invariants** — (1) The list holds exactly the resident frames. (2) Their order is the order
//! of their last references.
//!
//! **Cost** — Hit: relink, central. Admit: link. Evict: unlink, O(1). 8 bytes per frame, no
//! ghosts.
//!
//! **Deviations** — The list is indexed by frame instead of hashed by page, since the host's
//! table has already been searched. A refused frame moves to the recent end, like one in use.
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

/// Least recently used.
pub struct Lru {
    links: Links,
    list: List,
}

impl PolicySpec for Lru {
    const INFO: Info = Info {
        id: "lru",
        summary: "least recently used: one list, one relink per hit",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 8.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.4.1, luan 4.1",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> Lru {
        Lru { links: Links::new(shape.frames), list: List::new() }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        check_holds(&[&self.list], &self.links, resident)
    }
}

impl Policy for Lru {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.list.move_to_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
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
