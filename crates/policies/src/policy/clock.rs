//! `clock`: a hand sweeps the frames and spares those whose usage bit is set, once.
//!
//! **Idea** — LRU's order is too expensive to keep per hit. One bit per frame, and a hand that
//! clears it, distinguish pages used since the last sweep from others.
//!
//! **Source** — gilbert 1.2.8; luan 4.2.
//!
//! **State** — A usage bit beside each frame; the hand, which is the frame to examine next.
//!
//! **Invariants** — (1) The frame at the hand is examined before any other is examined twice.
//! (2) A frame whose bit is set is not offered.
//!
//! **Cost** — Hit: set a mark in the frame's own metadata if it is not set. Admit: one store.
//! Evict: a sweep, amortised one frame per hit. 1 byte per frame, no ghosts.
//!
//! **Deviations** — gilbert's text sets swept bits to true; here they are cleared. All threads
//! share one hand, so two evictors never examine the same frame in one round. A host that has
//! the policy to itself moves the hand without a locked instruction, which costs more than the
//! rest.
//!
//! **Defaults** — `variant=full`, as gilbert runs it. `fix` enters with the bit off, the others
//! end the loading access with the bit on; `full` also marks a frame that could not be evicted.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, HitOn, Host, OpenPolicy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::mark::{MarkOn, MarkOnHit, second_chance};

config! {
    /// Parameters of [`Clock`].
    pub struct ClockConfig {
        /// Events that set the usage bit.
        variant: MarkOn = MarkOn::Full;
    }
}

/// Second chance by a sweeping hand.
pub struct Clock {
    variant: MarkOn,
    hand: AtomicU32,
}

/// Returns the frame at the hand and moves the hand on; any number of threads may do so.
#[inline(always)]
fn claim(hand: &AtomicU32, len: u32) -> u32 {
    hand.fetch_update(Relaxed, Relaxed, |at| Some(after(at, len))).unwrap_or_else(|at| at)
}

/// Like `claim`, for a single thread.
#[inline(always)]
fn claim_alone(hand: &AtomicU32, len: u32) -> u32 {
    let at = hand.load(Relaxed);
    hand.store(after(at, len), Relaxed);
    at
}

#[inline(always)]
fn after(at: u32, len: u32) -> u32 {
    if at + 1 < len { at + 1 } else { 0 }
}

impl Clock {
    #[inline(always)]
    fn sweep<H: Host + ?Sized>(
        &self,
        claim: impl Fn(&AtomicU32, u32) -> u32,
        frames: Frames<'_, MarkOnHit>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let hand = || FrameId(claim(&self.hand, frames.len()));
        second_chance(frames, request, host, hand, |_why| self.variant == MarkOn::Full)
    }
}

impl PolicySpec for Clock {
    const INFO: Info = Info {
        id: "clock",
        summary: "a hand spares frames whose usage bit is set",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 1.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.8, luan 4.2",
    };
    type Hook = MarkOnHit;
    type Config = ClockConfig;

    fn new(config: &ClockConfig, _shape: &Shape) -> Clock {
        Clock { variant: config.variant, hand: AtomicU32::new(0) }
    }

    fn hit_on(&self) -> HitOn {
        self.variant.hit_on()
    }

    fn state_bytes(&self) -> usize {
        0
    }
}

impl OpenPolicy for Clock {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, MarkOnHit>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, MarkOnHit>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.sweep(claim, frames, request, host)
    }

    #[inline(always)]
    fn evict_alone<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, MarkOnHit>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.sweep(claim_alone, frames, request, host)
    }

    fn forget(&self, _: Frames<'_, MarkOnHit>, _: FrameId) {}
}
