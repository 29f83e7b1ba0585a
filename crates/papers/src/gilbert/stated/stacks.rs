//! `stated-filo` and `stated-mru`.

use millpond_base::FrameId;
use millpond_policies::config::NoConfig;
use millpond_policies::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, NoHook, Policy, PolicySpec,
    Shape,
};
use millpond_policies::info::{Age, Class, Family, Info, References, Tier};

use super::quasi::Quasi;

/// Evicts the most recently loaded page (gilbert 1.2.3).
pub struct Filo(Quasi);

/// Evicts the most recently unfixed page (gilbert 1.2.5.1).
pub struct Mru(Quasi);

/// The hot half of [`Mru`]: the policy receives every unfix.
pub struct Unfix;

impl HitHook for Unfix {
    type Meta = ();
    type Params = ();
    const HIT: Hit = Hit::Central;
    const UNFIX: bool = true;
}

const FILO: Info = Info {
    id: "stated-filo",
    summary: "first in, last out, as gilbert states it",
    family: Family::Arrival,
    class: Class::One,
    age: Age::First,
    references: References::Ignored,
    tier: Tier::First,
    live: true,
    frame_bytes: 9.0,
    ghost_bytes: 0.0,
    source: "gilbert 1.2.3",
};

macro_rules! quasi_rules {
    () => {
        fn state_bytes(&self) -> usize {
            self.0.bytes()
        }

        fn check(
            &self,
            _frames: Frames<'_, Self::Hook>,
            resident: &[FrameId],
        ) -> Result<(), String> {
            self.0.check(resident)
        }
    };
}

macro_rules! quasi_policy {
    () => {
        fn admit(&mut self, _: Frames<'_, Self::Hook>, frame: FrameId, _: &Access, _: GhostHit) {
            self.0.push(frame.0);
        }

        fn evict<H: Host + ?Sized>(
            &mut self,
            _frames: Frames<'_, Self::Hook>,
            request: &EvictRequest,
            host: &mut H,
        ) -> u32 {
            self.0.evict(request, host)
        }

        fn forget(&mut self, _: Frames<'_, Self::Hook>, frame: FrameId) {
            self.0.remove(frame.0);
        }
    };
}

impl PolicySpec for Filo {
    const INFO: Info = FILO;
    type Hook = NoHook;
    type Config = NoConfig;

    fn new(_: &NoConfig, shape: &Shape) -> Filo {
        Filo(Quasi::new(shape.frames, true))
    }

    quasi_rules!();
}

impl Policy for Filo {
    quasi_policy!();
}

impl PolicySpec for Mru {
    const INFO: Info = Info {
        id: "stated-mru",
        summary: "most recently used goes first, as gilbert states it",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        source: "gilbert 1.2.5.1",
        ..FILO
    };
    type Hook = Unfix;
    type Config = NoConfig;

    fn new(_: &NoConfig, shape: &Shape) -> Mru {
        Mru(Quasi::new(shape.frames, false))
    }

    fn hit_on(&self) -> HitOn {
        HitOn::Unfix
    }

    quasi_rules!();
}

impl Policy for Mru {
    fn hit(&mut self, _: Frames<'_, Unfix>, frame: FrameId, _: &Access) {
        self.0.push(frame.0);
    }

    quasi_policy!();
}
