//! `clock-pro-plus`: CLOCK-Pro that learns its cold share as CAR does.
//!
//! **Idea** — CLOCK-Pro counts every test period that ends. Count instead the set that would have
//! profited from being larger: a used ghost votes for the cold set, a used page that was demoted
//! from hot votes for the hot set. The step is the quotient of their numbers.
//!
//! **Source** — Li, SYSTOR 2019; gilbert 1.4.1 names it as future work.
//!
//! **State** — State of CLOCK-Pro, and a demoted flag beside each frame.
//!
//! **Invariants** — Those of `parts::pro_clock`: (1) The clock holds exactly the resident frames,
//! hot or cold, and the ghosts. (2) Each hand points at the oldest node of its kind. (3) There are
//! at most `nonresident` ghosts. (4) The target is within its bounds, and demoted pages are
//! counted.
//!
//! **Cost** — Hit: set a mark, no latch. Miss: one lookup among the ghosts. Admit and evict: walks
//! of the hands, amortised a constant. 11 bytes per frame, 21 per ghost.
//!
//! **Deviations** — None known: hits equal those of the Caffeine simulator, the only other
//! implementation, in every cell. A refused frame moves to the head of the clock; if all cold
//! frames were refused, the hot hand gives the victim.
//!
//! **Defaults** — `cold_min=1%`, at least two frames, `cold_max=50%` and `nonresident=1x`: the
//! author's research code, as the Caffeine simulator reports it.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{ColdTarget, MarkHook, ProClock, ProClockOptions};

config! {
    /// Parameters of [`ClockProPlus`].
    pub struct ClockProPlusConfig {
        /// Least number of cold frames; two, if there is room.
        cold_min: Part = Part::Times(0.01);
        /// Greatest number of cold frames.
        cold_max: Part = Part::Times(0.5);
        /// Pages remembered after their eviction.
        nonresident: Part = Part::Times(1.0);
    }
}

/// The page has a ghost.
const REMEMBERED: GhostHit = GhostHit(1);

/// CLOCK-Pro that adapts by utility.
pub struct ClockProPlus {
    clock: ProClock,
}

impl PolicySpec for ClockProPlus {
    const INFO: Info = Info {
        id: "clock-pro-plus",
        summary: "CLOCK-Pro whose cold share follows uses of ghosts and of demoted pages",
        family: Family::Adaptive,
        class: Class::Three,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 11.0,
        ghost_bytes: 21.0,
        source: "Li SYSTOR 2019, gilbert 1.4.1",
    };
    type Hook = MarkHook;
    type Config = ClockProPlusConfig;

    fn new(config: &ClockProPlusConfig, shape: &Shape) -> ClockProPlus {
        let options = ProClockOptions {
            frames: shape.frames,
            pages_dense: shape.pages_dense,
            cold_min: config.cold_min.frames_of(shape.frames),
            cold_max: config.cold_max.frames_of(shape.frames),
            ghosts_max: config.nonresident.of(shape.frames),
            target: ColdTarget::Utility,
        };
        ClockProPlus { clock: ProClock::new(&options) }
    }

    fn ghosts_max(config: &ClockProPlusConfig, frames: u32) -> u64 {
        config.nonresident.of(frames)
    }

    fn state_bytes(&self) -> usize {
        self.clock.bytes()
    }

    fn check(&self, _frames: Frames<'_, MarkHook>, resident: &[FrameId]) -> Result<(), String> {
        self.clock.check(resident)
    }
}

impl Policy for ClockProPlus {
    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        if self.clock.has_ghost(access.page) { REMEMBERED } else { GhostHit::NONE }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        frames: Frames<'_, MarkHook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        self.clock.admit(frames, frame, access.page, ghost_hit == REMEMBERED);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, MarkHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.clock.evict(frames, request, host)
    }

    fn forget(&mut self, frames: Frames<'_, MarkHook>, frame: FrameId) {
        self.clock.forget(frames, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn used_ghosts_raise_the_cold_target() {
        let mut pool = TestPool::<ClockProPlus>::of("clock-pro-plus", 8);
        pool.run(0..8);
        pool.run([8, 6]);
        assert_eq!((pool.policy.clock.hot(), pool.policy.clock.target()), (5, 3));
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["clock-pro-plus", "clock-pro-plus(nonresident=0,cold_max=all)"] {
            survives_everything::<ClockProPlus>(spec);
        }
    }
}
