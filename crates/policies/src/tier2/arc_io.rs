//! `arc-io`: ARC that looks for clean pages first, by the type of their last request.
//!
//! **Idea** — Like ARC, but a clean page is evicted before every dirty one: from the recency list
//! before the frequency list, and within each by the last request, the best predictor of a write
//! first: READ, then RECOV, REPLACE, SYNCH.
//!
//! **Source** — li 5.5.2, algorithm 5.3.
//!
//! **State** — ARC's four lists and target; a heap of the clean frames, keyed by list, type and
//! time of the last request.
//!
//! **Invariants** — (1) A resident frame is in exactly one list. (2) The first list and its ghosts
//! are at most c. (3) All four are at most 2c. (4) The target is between 0 and c. (5) Exactly the
//! clean resident frames are in the heap, under their lists.
//!
//! **Cost** — Hit and admit: relink, and O(log n) for clean pages. Evict: O(log n). 37 bytes per
//! frame, 32 per ghost.
//!
//! **Deviations** — A clean victim leaves a ghost on its side, like any other victim; the source
//! leaves this open. Refused frames: clean ones keep their place, dirty ones move to the recent
//! end of their list.
//!
//! **Defaults** — No parameters. A write without a reason counts as REPLACE.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::balance::{Balance, Side};
use crate::parts::{Adaptation, Hint, Ranking};

const LIST_SHIFT: u32 = 60;
const TYPE_SHIFT: u32 = 56;

/// ARC that looks for clean pages first.
pub struct ArcIo {
    balance: Balance,
    clean: Ranking<u64>,
    /// Type of the last request in the high bits, its time in the low bits.
    last: Vec<u64>,
    now: u64,
}

impl ArcIo {
    fn key(&self, frame: FrameId) -> u64 {
        let list = u64::from(self.balance.side(frame.0) == Side::Again);
        list << LIST_SHIFT | self.last[frame.index()]
    }

    #[inline(always)]
    fn requested(&mut self, frame: FrameId, access: &Access) {
        self.now += 1;
        self.last[frame.index()] = (Hint::of(access.mark) as u64) << TYPE_SHIFT | self.now;
        if access.mark.is_write() {
            self.clean.remove(frame.0);
        }
    }
}

impl PolicySpec for ArcIo {
    const INFO: Info = Info {
        id: "arc-io",
        summary: "second tier: arc, clean pages first by their last request's type",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 37.0,
        ghost_bytes: 32.0,
        source: "li 5.5.2, algorithm 5.3",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> ArcIo {
        ArcIo {
            balance: Balance::new(Adaptation::Real, shape),
            clean: Ranking::new(shape.frames),
            last: vec![0; shape.frames as usize],
            now: 0,
        }
    }

    fn ghosts_max(_config: &NoConfig, frames: u32) -> u64 {
        Balance::ghosts_max(frames)
    }

    fn state_bytes(&self) -> usize {
        self.balance.bytes() + self.clean.bytes() + self.last.capacity() * 8
    }

    fn check(&self, _: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.balance.check(resident)?;
        self.clean.check()?;
        let keyed: Vec<&FrameId> =
            resident.iter().filter(|f| self.clean.key(f.0).is_some()).collect();
        if keyed.len() != self.clean.len() {
            return Err("invariant 5: a frame that is not resident is in the heap".to_string());
        }
        match keyed.iter().find(|f| self.clean.key(f.0) != Some(self.key(***f))) {
            Some(frame) => Err(format!("invariant 5: {frame:?} is keyed under another list")),
            None => Ok(()),
        }
    }
}

impl Policy for ArcIo {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        self.balance.hit(frame);
        self.requested(frame, access);
        if self.clean.key(frame.0).is_some() {
            self.clean.set(frame.0, self.key(frame));
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        self.balance.ghost_hit(access.page)
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, r: GhostHit) {
        self.balance.admit(frame, r);
        self.requested(frame, access);
        if !access.mark.is_write() {
            self.clean.set(frame.0, self.key(frame));
        }
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let balance = &mut self.balance;
        let (taken, steps) =
            self.clean.evict(request, host, |frame, page| balance.gone(frame, page));
        if taken >= request.frames {
            return taken;
        }
        let rest = EvictRequest {
            frames: request.frames - taken,
            steps_max: request.steps_max - steps,
            incoming: if taken == 0 { request.incoming } else { None },
            ..*request
        };
        let clean = &mut self.clean;
        taken
            + balance.evict(&rest, host, |frame| {
                clean.remove(frame.0);
            })
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.balance.forget(frame);
        self.clean.remove(frame.0);
    }

    #[inline(always)]
    fn cleaned(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        if self.balance.side(frame.0) != Side::None {
            self.clean.set(frame.0, self.key(frame));
        }
    }
}
