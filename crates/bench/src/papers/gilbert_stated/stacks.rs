//! `stated-filo` and `stated-mru`.

use millpond_base::FrameId;
use millpond_policies::config::NoConfig;
use millpond_policies::contract::{
    Access, Frames, Goal, Hit, Host, NoTouch, Policy, Recall, Rules, Shape, Touch, TouchOn,
};
use millpond_policies::info::{Age, Class, Family, Info, References, Tier};

use super::quasi::Quasi;

/// The page that was loaded last goes first (gilbert 1.2.3).
pub struct Filo(Quasi);

/// The page that was unfixed last goes first (gilbert 1.2.5.1).
pub struct Mru(Quasi);

/// The hot half of [`Mru`]: every unfix is told.
pub struct Unfix;

impl Touch for Unfix {
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
            _frames: Frames<'_, Self::Touch>,
            resident: &[FrameId],
        ) -> Result<(), String> {
            self.0.check(resident)
        }
    };
}

macro_rules! quasi_policy {
    () => {
        fn admit(&mut self, _: Frames<'_, Self::Touch>, frame: FrameId, _: &Access, _: Recall) {
            self.0.push(frame.0);
        }

        fn evict<H: Host + ?Sized>(
            &mut self,
            _frames: Frames<'_, Self::Touch>,
            goal: &Goal,
            host: &mut H,
        ) -> u32 {
            self.0.evict(goal, host)
        }

        fn forget(&mut self, _: Frames<'_, Self::Touch>, frame: FrameId) {
            self.0.remove(frame.0);
        }
    };
}

impl Rules for Filo {
    const INFO: Info = FILO;
    type Touch = NoTouch;
    type Config = NoConfig;

    fn new(_: &NoConfig, shape: &Shape) -> Filo {
        Filo(Quasi::new(shape.frames, true))
    }

    quasi_rules!();
}

impl Policy for Filo {
    quasi_policy!();
}

impl Rules for Mru {
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
    type Touch = Unfix;
    type Config = NoConfig;

    fn new(_: &NoConfig, shape: &Shape) -> Mru {
        Mru(Quasi::new(shape.frames, false))
    }

    fn touch_on(&self) -> TouchOn {
        TouchOn::Unfix
    }

    quasi_rules!();
}

impl Policy for Mru {
    fn hit(&mut self, _: Frames<'_, Unfix>, frame: FrameId, _: &Access) {
        self.0.push(frame.0);
    }

    quasi_policy!();
}
