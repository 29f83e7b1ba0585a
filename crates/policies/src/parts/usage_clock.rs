//! GCLOCK's cold half: a hand that wears down usage counts.
//!
//! The effect of a reference, with its weights, is the policy's idea. It is in the policy's file
//! as a [`UsageRule`], the hot half. This file has the common parts: the sweep, and the refusals
//! that may count as references.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::sweep::{CountOn, Counts, Hand};
use crate::config::Config;
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, HitHook, HitOn, Host, OpenPolicy, PolicySpec,
    RefusalReason, Shape,
};
use crate::info::Info;

/// Effect of a reference on a usage count, the only difference between the GCLOCKs.
pub trait UsageRule: HitHook {
    /// The policy's row in the catalog.
    const INFO: Info;
    /// The parameters.
    type Config: Config;

    /// Extracts the parameters of the hit path and the sweep.
    fn read(config: &Self::Config) -> Usage<Self::Params>;

    /// Returns the usage count beside a frame.
    fn count(meta: &Self::Meta) -> &AtomicU32;

    /// Counts a reference to the page with this metadata.
    fn refer(meta: &Self::Meta, params: &Self::Params);

    /// Verifies the metadata of one resident frame.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(meta: &Self::Meta, params: &Self::Params) -> Result<(), String>;
}

/// Parameters common to every GCLOCK, and a policy's own.
pub struct Usage<P> {
    /// The parameters of the hit path.
    pub params: P,
    /// S: the amount that a pass of the hand subtracts, at least 1.
    pub step: u32,
    /// The events that count as references.
    pub variant: CountOn,
}

/// A hand over frames whose counts follow rule `R`.
pub struct UsageClock<R: UsageRule> {
    usage: Usage<R::Params>,
    hand: Hand,
}

struct Swept<'a, R: UsageRule> {
    frames: Frames<'a, R>,
    usage: &'a Usage<R::Params>,
}

impl<R: UsageRule> Counts for Swept<'_, R> {
    #[inline(always)]
    fn count(&self, frame: FrameId) -> &AtomicU32 {
        R::count(self.frames.meta(frame))
    }

    fn refused(&self, frame: FrameId, why: RefusalReason) {
        if self.usage.variant.refusals() && why != RefusalReason::Absent {
            R::refer(self.frames.meta(frame), &self.usage.params);
        }
    }
}

impl<R: UsageRule> PolicySpec for UsageClock<R> {
    const INFO: Info = R::INFO;
    type Hook = R;
    type Config = R::Config;

    fn new(config: &R::Config, _shape: &Shape) -> UsageClock<R> {
        UsageClock { usage: R::read(config), hand: Hand::new() }
    }

    fn params(&self) -> R::Params {
        self.usage.params
    }

    fn hit_on(&self) -> HitOn {
        self.usage.variant.hit_on()
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn check(&self, frames: Frames<'_, R>, resident: &[FrameId]) -> Result<(), String> {
        resident.iter().try_for_each(|&frame| {
            R::check(frames.meta(frame), &self.usage.params)
                .map_err(|e| format!("frame {}: {e}", frame.0))
        })
    }
}

impl<R: UsageRule> OpenPolicy for UsageClock<R> {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, R>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, R>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let swept = Swept { frames, usage: &self.usage };
        self.hand.sweep(frames.len(), self.usage.step, request, &swept, host)
    }

    fn forget(&self, _: Frames<'_, R>, _: FrameId) {}
}

/// Verifies that a count does not exceed `most`.
///
/// # Errors
/// The count exceeds `most`.
pub fn check_count(count: &AtomicU32, most: u32) -> Result<(), String> {
    match count.load(Relaxed) {
        count if count > most => Err(format!("invariant 2: it counts {count} of {most}")),
        _ => Ok(()),
    }
}
