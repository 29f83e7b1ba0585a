//! A policy with its frames' metadata and its clock: what every host needs that calls it from one
//! thread at a time, the simulator first. Generic in the policy and inlined, so that a hit costs no
//! call; behind a pointer for a second tier, whose requests are I/O.

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, Policy, Shape, TickSource,
};
use millpond_base::{FrameId, PageId, Tick};

/// A policy with its frames' metadata and its clock.
pub struct PolicyHost<P: Policy> {
    policy: P,
    params: <P::Hook as HitHook>::Params,
    hit_on: HitOn,
    metas: Vec<<P::Hook as HitHook>::Meta>,
    now: Tick,
    evictions_per_tick: u32,
    until_tick: u32,
    steps_max: u32,
}

impl<P: Policy> PolicyHost<P> {
    /// A new policy for an empty pool.
    pub fn new(config: &P::Config, shape: &Shape) -> PolicyHost<P> {
        let policy = P::new(config, shape);
        let mut metas = Vec::new();
        metas.resize_with(shape.frames as usize, Default::default);
        let evictions_per_tick = policy.evictions_per_tick().max(1);
        PolicyHost {
            params: policy.params(),
            hit_on: policy.hit_on(),
            policy,
            metas,
            now: 0,
            evictions_per_tick,
            until_tick: evictions_per_tick,
            steps_max: shape.frames.saturating_mul(4).max(1 << 16),
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
        self.metas.len() * size_of::<<P::Hook as HitHook>::Meta>() + self.policy.state_bytes()
    }

    /// Advances the clock for the next reference; returns its time.
    #[inline(always)]
    pub fn tick(&mut self) -> Tick {
        if P::Hook::TICK == TickSource::PerAccess {
            self.now = self.now.wrapping_add(1);
        }
        self.now
    }

    /// Delivers a reference to a resident page; `cooling` if its frame cooled.
    #[inline(always)]
    pub fn hit(&mut self, frame: FrameId, access: &Access, cooling: bool) {
        if P::Hook::COOLS && cooling {
            self.policy.revive(Frames::of(&self.metas), frame);
        }
        if P::Hook::HIT != Hit::Nothing {
            self.deliver_hit(frame, access);
            if P::Hook::UNFIX && self.hit_on == HitOn::Both {
                self.deliver_hit(frame, access);
            }
        }
    }

    #[inline(always)]
    fn deliver_hit(&mut self, frame: FrameId, access: &Access) {
        let frames = Frames::<P::Hook>::of(&self.metas);
        if P::Hook::KEEPS_META {
            P::Hook::on_hit(frames.meta(frame), &self.params, access);
        }
        if P::Hook::HIT == Hit::Central {
            self.policy.hit(frames, frame, access);
        }
    }

    /// `page` will be referenced soon.
    #[inline(always)]
    pub fn will_reference(&self, page: PageId) {
        self.policy.will_reference(page);
    }

    /// Returns `true` if the policy wants the page that missed.
    #[inline(always)]
    pub fn wants(&mut self, access: &Access) -> bool {
        self.policy.wants(access)
    }

    /// The page will be loaded.
    #[inline(always)]
    pub fn miss(&mut self, access: &Access) -> GhostHit {
        self.policy.miss(access)
    }

    /// The page was loaded into `frame`.
    #[inline(always)]
    pub fn admit(&mut self, frame: FrameId, access: &Access, ghost_hit: GhostHit) {
        // The clock may have moved since, by evictions.
        let access = &Access { now: self.now, ..*access };
        let frames = Frames::<P::Hook>::of(&self.metas);
        if P::Hook::KEEPS_META {
            P::Hook::reset(frames.meta(frame), &self.params, access);
        }
        self.policy.admit(frames, frame, access, ghost_hit);
        if P::Hook::UNFIX && P::Hook::HIT != Hit::Nothing && self.hit_on != HitOn::Fix {
            self.deliver_hit(frame, access);
        }
    }

    /// Has the policy find `wanted` victims for `host`; returns how many it took.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        wanted: u32,
        incoming: Option<(PageId, GhostHit)>,
    ) -> u32 {
        let steps_max = self.steps_max;
        let request = EvictRequest { frames: wanted, steps_max, now: self.now, incoming };
        let taken = self.policy.evict(Frames::of(&self.metas), &request, host);
        if P::Hook::TICK == TickSource::PerEviction {
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

    /// A cooling page was referenced, of which [`PolicyHost::hit`] tells next.
    pub fn revive(&mut self, frame: FrameId) {
        self.policy.revive(Frames::of(&self.metas), frame);
    }

    /// The page in `frame` was dropped.
    #[inline(always)]
    pub fn forget(&mut self, frame: FrameId) {
        self.policy.forget(Frames::of(&self.metas), frame);
    }

    /// The page in `frame` was written and stays.
    #[inline(always)]
    pub fn cleaned(&mut self, frame: FrameId) {
        self.policy.cleaned(Frames::of(&self.metas), frame);
    }
}

/// A [`PolicyHost`] whose policy's type is forgotten; each method does what that of the same name
/// there does.
pub trait ErasedPolicyHost: Send {
    /// See [`PolicyHost::tick`].
    fn tick(&mut self) -> Tick;
    /// See [`PolicyHost::hit`].
    fn hit(&mut self, frame: FrameId, access: &Access, cooling: bool);
    /// See [`PolicyHost::wants`].
    fn wants(&mut self, access: &Access) -> bool;
    /// See [`PolicyHost::miss`].
    fn miss(&mut self, access: &Access) -> GhostHit;
    /// See [`PolicyHost::admit`].
    fn admit(&mut self, frame: FrameId, access: &Access, ghost_hit: GhostHit);
    /// See [`PolicyHost::evict`].
    fn evict(
        &mut self,
        host: &mut dyn Host,
        wanted: u32,
        incoming: Option<(PageId, GhostHit)>,
    ) -> u32;
    /// See [`PolicyHost::revive`].
    fn revive(&mut self, frame: FrameId);
    /// See [`PolicyHost::forget`].
    fn forget(&mut self, frame: FrameId);
    /// See [`PolicyHost::cleaned`].
    fn cleaned(&mut self, frame: FrameId);
    /// See [`PolicyHost::bytes`].
    fn bytes(&self) -> usize;
    /// See [`PolicyHost::check`].
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self, resident: &[FrameId]) -> Result<(), String>;
}

impl<P: Policy> ErasedPolicyHost for PolicyHost<P> {
    fn tick(&mut self) -> Tick {
        PolicyHost::tick(self)
    }
    fn hit(&mut self, frame: FrameId, access: &Access, cooling: bool) {
        PolicyHost::hit(self, frame, access, cooling);
    }
    fn wants(&mut self, access: &Access) -> bool {
        PolicyHost::wants(self, access)
    }
    fn miss(&mut self, access: &Access) -> GhostHit {
        PolicyHost::miss(self, access)
    }
    fn admit(&mut self, frame: FrameId, access: &Access, ghost_hit: GhostHit) {
        PolicyHost::admit(self, frame, access, ghost_hit);
    }
    fn evict(
        &mut self,
        host: &mut dyn Host,
        wanted: u32,
        incoming: Option<(PageId, GhostHit)>,
    ) -> u32 {
        PolicyHost::evict(self, host, wanted, incoming)
    }
    fn revive(&mut self, frame: FrameId) {
        PolicyHost::revive(self, frame);
    }
    fn forget(&mut self, frame: FrameId) {
        PolicyHost::forget(self, frame);
    }
    fn cleaned(&mut self, frame: FrameId) {
        PolicyHost::cleaned(self, frame);
    }
    fn bytes(&self) -> usize {
        PolicyHost::bytes(self)
    }
    fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        PolicyHost::check(self, resident)
    }
}
