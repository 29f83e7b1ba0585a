//! A policy with its frames' metadata and its clock: what every single-threaded host needs.

use millpond_base::{FrameId, Tick};
use millpond_policies::contract::{
    Access, Frames, Goal, Hit, Host, Policy, Recall, Shape, TickSource, Touch, TouchOn,
};

/// A policy, seated in a host.
pub struct Seat<P: Policy> {
    policy: P,
    params: <P::Touch as Touch>::Params,
    touch_on: TouchOn,
    metas: Vec<<P::Touch as Touch>::Meta>,
    now: Tick,
    evictions_per_tick: u32,
    until_tick: u32,
}

impl<P: Policy> Seat<P> {
    /// A new policy for an empty pool.
    pub fn new(config: &P::Config, shape: &Shape) -> Seat<P> {
        let policy = P::new(config, shape);
        let mut metas = Vec::new();
        metas.resize_with(shape.frames as usize, Default::default);
        let evictions_per_tick = policy.evictions_per_tick().max(1);
        Seat {
            params: policy.params(),
            touch_on: policy.touch_on(),
            policy,
            metas,
            now: 0,
            evictions_per_tick,
            until_tick: evictions_per_tick,
        }
    }

    /// The policy, to look at.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Has the policy verify its invariants.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.policy.check(Frames::of(&self.metas), resident)
    }

    /// Bytes of policy state.
    pub fn bytes(&self) -> usize {
        self.metas.len() * size_of::<<P::Touch as Touch>::Meta>() + self.policy.state_bytes()
    }

    /// The next reference comes: its time.
    #[inline(always)]
    pub fn tick(&mut self) -> Tick {
        if P::Touch::TICK == TickSource::PerAccess {
            self.now = self.now.wrapping_add(1);
        }
        self.now
    }

    /// A resident page was referenced; `cooling` if its frame cooled.
    #[inline(always)]
    pub fn hit(&mut self, frame: FrameId, access: &Access, cooling: bool) {
        if P::Touch::COOLS && cooling {
            self.policy.revive(Frames::of(&self.metas), frame);
        }
        if P::Touch::HIT != Hit::Nothing {
            self.touched(frame, access);
            if P::Touch::UNFIX && self.touch_on == TouchOn::Both {
                self.touched(frame, access);
            }
        }
    }

    #[inline(always)]
    fn touched(&mut self, frame: FrameId, access: &Access) {
        let frames = Frames::<P::Touch>::of(&self.metas);
        P::Touch::touch(frames.meta(frame), &self.params, access);
        if P::Touch::HIT == Hit::Central {
            self.policy.hit(frames, frame, access);
        }
    }

    /// Whether the policy wants the page that missed.
    #[inline(always)]
    pub fn wants(&mut self, access: &Access) -> bool {
        self.policy.wants(access)
    }

    /// The page will be loaded.
    #[inline(always)]
    pub fn miss(&mut self, access: &Access) -> Recall {
        self.policy.miss(access)
    }

    /// The page was loaded into `frame`.
    #[inline(always)]
    pub fn admit(&mut self, frame: FrameId, access: &Access, recall: Recall) {
        // The clock may have moved since, by evictions.
        let access = &Access { now: self.now, ..*access };
        let frames = Frames::<P::Touch>::of(&self.metas);
        P::Touch::reset(frames.meta(frame), &self.params, access);
        self.policy.admit(frames, frame, access, recall);
        if P::Touch::UNFIX && P::Touch::HIT != Hit::Nothing && self.touch_on != TouchOn::Fix {
            self.touched(frame, access);
        }
    }

    /// Has the policy find `wanted` victims for `host`; says how many it took.
    #[inline(always)]
    pub fn evict<H: Host>(
        &mut self,
        host: &mut H,
        wanted: u32,
        incoming: Option<(millpond_base::PageId, Recall)>,
    ) -> u32 {
        let steps_max = (self.metas.len() as u32).saturating_mul(4).max(1 << 16);
        let goal = Goal { frames: wanted, steps_max, now: self.now, incoming };
        let taken = self.policy.evict(Frames::of(&self.metas), &goal, host);
        if P::Touch::TICK == TickSource::PerEviction {
            self.evicted(taken);
        }
        taken
    }

    #[inline(always)]
    fn evicted(&mut self, mut evictions: u32) {
        while evictions >= self.until_tick {
            evictions -= self.until_tick;
            self.until_tick = self.evictions_per_tick;
            self.now = self.now.wrapping_add(1);
        }
        self.until_tick -= evictions;
    }

    /// A cooling page was referenced, of which [`Seat::hit`] tells next.
    pub fn revive(&mut self, frame: FrameId) {
        self.policy.revive(Frames::of(&self.metas), frame);
    }

    /// The page in `frame` was dropped.
    pub fn forget(&mut self, frame: FrameId) {
        self.policy.forget(Frames::of(&self.metas), frame);
    }

    /// The page in `frame` was written and stays.
    #[inline(always)]
    pub fn cleaned(&mut self, frame: FrameId) {
        self.policy.cleaned(Frames::of(&self.metas), frame);
    }
}
