//! `t2-arc`: adaptive replacement below a first tier, blind to hints.
//!
//! **Idea** — Share the cache between pages requested once lately and pages requested again, and
//! let hits among the ghosts of either side move the border.
//!
//! **Source** — li 5.5, 5.6 (ARC, without hints).
//!
//! **State** — Two lists of frames, two of ghosts, a target for the first.
//!
//! **Invariants** — (1) A resident frame is in exactly one list. (2) The first list and its ghosts
//! are at most c. (3) All four are at most 2c. (4) The target is between 0 and c.
//!
//! **Cost** — Hit: relink. Miss: one lookup among the ghosts. Evict: O(1). 9 bytes per frame, 32
//! per ghost.
//!
//! **Deviations** — None from the published ARC, with a real-valued target. Ghosts are trimmed
//! when a page is admitted, not before the victim is chosen; the same ghosts are dropped. A
//! refused frame moves to the recent end of its list.
//!
//! **Defaults** — No parameters.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Adaptation, Balance};

/// Adaptive replacement, blind to hints.
pub struct T2Arc {
    balance: Balance,
}

impl PolicySpec for T2Arc {
    const INFO: Info = Info {
        id: "t2-arc",
        summary: "second tier: adaptive replacement, blind to hints",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 9.0,
        ghost_bytes: 32.0,
        source: "li 5.5, 5.6",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> T2Arc {
        T2Arc { balance: Balance::new(Adaptation::Real, shape) }
    }

    fn ghosts_max(_config: &NoConfig, frames: u32) -> u64 {
        Balance::ghosts_max(frames)
    }

    fn state_bytes(&self) -> usize {
        self.balance.bytes()
    }

    fn check(&self, _: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.balance.check(resident)
    }
}

impl Policy for T2Arc {
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
