//! The cold half with its type erased, which a live pool keeps behind a latch.
//!
//! A pool's hit path must be compiled for its hot half, of which there are few. The cold half is
//! called only when pages are admitted and evicted, where a virtual call has no measurable cost. So
//! a pool is generic over [`HitHook`] and holds a `Box<dyn Cold<T>>` or, if any number of threads
//! may use the policy at once, a `Box<dyn OpenCold<T>>`.
//!
//! **Never import this module's traits beside [`Policy`] or [`OpenPolicy`] with a `*`**: they have
//! the same method names, and every `self.hit(…)` in a policy would become ambiguous.

use millpond_base::FrameId;

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, HitHook, HitOn, Host, OpenPolicy, Policy,
};

/// A [`Policy`] with hot half `T` and an erased type.
pub trait Cold<T: HitHook>: Send {
    /// See [`Policy::hit`].
    fn hit(&mut self, frames: Frames<'_, T>, frame: FrameId, access: &Access);
    /// See [`Policy::revive`].
    fn revive(&mut self, frames: Frames<'_, T>, frame: FrameId);
    /// See [`Policy::wants`].
    fn wants(&mut self, access: &Access) -> bool;
    /// See [`Policy::miss`].
    fn miss(&mut self, access: &Access) -> GhostHit;
    /// See [`Policy::admit`].
    fn admit(
        &mut self,
        frames: Frames<'_, T>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    );
    /// See [`Policy::evict`].
    fn evict(&mut self, frames: Frames<'_, T>, request: &EvictRequest, host: &mut dyn Host) -> u32;
    /// See [`Policy::forget`].
    fn forget(&mut self, frames: Frames<'_, T>, frame: FrameId);
    /// See [`Policy::cleaned`].
    fn cleaned(&mut self, frames: Frames<'_, T>, frame: FrameId);
    /// See [`PolicySpec::hit_on`](crate::contract::PolicySpec::hit_on); `Fix` without
    /// [`HitHook::UNFIX`].
    fn hit_on(&self) -> HitOn;
    /// See [`PolicySpec::evictions_per_tick`](crate::contract::PolicySpec::evictions_per_tick); at
    /// least 1.
    fn evictions_per_tick(&self) -> u32;
    /// See [`PolicySpec::state_bytes`](crate::contract::PolicySpec::state_bytes).
    fn state_bytes(&self) -> usize;
    /// See [`PolicySpec::check`](crate::contract::PolicySpec::check).
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self, frames: Frames<'_, T>, resident: &[FrameId]) -> Result<(), String>;
}

impl<P: Policy> Cold<P::Hook> for P {
    fn hit(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId, access: &Access) {
        Policy::hit(self, frames, frame, access);
    }
    fn revive(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        Policy::revive(self, frames, frame);
    }
    fn wants(&mut self, access: &Access) -> bool {
        Policy::wants(self, access)
    }
    fn miss(&mut self, access: &Access) -> GhostHit {
        Policy::miss(self, access)
    }
    fn admit(
        &mut self,
        frames: Frames<'_, P::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        Policy::admit(self, frames, frame, access, ghost_hit);
    }
    fn evict(
        &mut self,
        frames: Frames<'_, P::Hook>,
        request: &EvictRequest,
        host: &mut dyn Host,
    ) -> u32 {
        Policy::evict(self, frames, request, host)
    }
    fn forget(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        Policy::forget(self, frames, frame);
    }
    fn cleaned(&mut self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        Policy::cleaned(self, frames, frame);
    }
    fn hit_on(&self) -> HitOn {
        if P::Hook::UNFIX { P::hit_on(self) } else { HitOn::Fix }
    }
    fn evictions_per_tick(&self) -> u32 {
        P::evictions_per_tick(self).max(1)
    }
    fn state_bytes(&self) -> usize {
        P::state_bytes(self)
    }
    fn check(&self, frames: Frames<'_, P::Hook>, resident: &[FrameId]) -> Result<(), String> {
        P::check(self, frames, resident)
    }
}

/// An [`OpenPolicy`] with hot half `T` and an erased type.
pub trait OpenCold<T: HitHook>: Send + Sync {
    /// See [`OpenPolicy::revive`].
    fn revive(&self, frames: Frames<'_, T>, frame: FrameId);
    /// See [`OpenPolicy::miss`].
    fn miss(&self, access: &Access) -> GhostHit;
    /// See [`OpenPolicy::admit`].
    fn admit(&self, frames: Frames<'_, T>, frame: FrameId, access: &Access, ghost_hit: GhostHit);
    /// See [`OpenPolicy::evict`].
    fn evict(&self, frames: Frames<'_, T>, request: &EvictRequest, host: &mut dyn Host) -> u32;
    /// See [`OpenPolicy::forget`].
    fn forget(&self, frames: Frames<'_, T>, frame: FrameId);
    /// See [`OpenPolicy::cleaned`].
    fn cleaned(&self, frames: Frames<'_, T>, frame: FrameId);
    /// See [`PolicySpec::hit_on`](crate::contract::PolicySpec::hit_on); `Fix` without
    /// [`HitHook::UNFIX`].
    fn hit_on(&self) -> HitOn;
    /// See [`PolicySpec::evictions_per_tick`](crate::contract::PolicySpec::evictions_per_tick); at
    /// least 1.
    fn evictions_per_tick(&self) -> u32;
    /// See [`PolicySpec::state_bytes`](crate::contract::PolicySpec::state_bytes).
    fn state_bytes(&self) -> usize;
    /// See [`PolicySpec::check`](crate::contract::PolicySpec::check).
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self, frames: Frames<'_, T>, resident: &[FrameId]) -> Result<(), String>;
}

impl<P: OpenPolicy> OpenCold<P::Hook> for P {
    fn revive(&self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        OpenPolicy::revive(self, frames, frame);
    }
    fn miss(&self, access: &Access) -> GhostHit {
        OpenPolicy::miss(self, access)
    }
    fn admit(
        &self,
        frames: Frames<'_, P::Hook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        OpenPolicy::admit(self, frames, frame, access, ghost_hit);
    }
    fn evict(
        &self,
        frames: Frames<'_, P::Hook>,
        request: &EvictRequest,
        host: &mut dyn Host,
    ) -> u32 {
        OpenPolicy::evict(self, frames, request, host)
    }
    fn forget(&self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        OpenPolicy::forget(self, frames, frame);
    }
    fn cleaned(&self, frames: Frames<'_, P::Hook>, frame: FrameId) {
        OpenPolicy::cleaned(self, frames, frame);
    }
    fn hit_on(&self) -> HitOn {
        if P::Hook::UNFIX { P::hit_on(self) } else { HitOn::Fix }
    }
    fn evictions_per_tick(&self) -> u32 {
        P::evictions_per_tick(self).max(1)
    }
    fn state_bytes(&self) -> usize {
        P::state_bytes(self)
    }
    fn check(&self, frames: Frames<'_, P::Hook>, resident: &[FrameId]) -> Result<(), String> {
        P::check(self, frames, resident)
    }
}
