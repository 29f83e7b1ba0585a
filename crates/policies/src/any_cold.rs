//! Cold halves for a pool that is compiled for [`AnyHook`]. This file needs `unsafe`: see there.

use millpond_base::FrameId;

use crate::any_hook::{AnyHook, AnyParams, TooLarge};
use crate::contract::{Access, EvictRequest, Frames, GhostHit, HitOn, Host, OpenPolicy, Policy};
use crate::erased::{Cold, OpenCold};

/// A cold half that views the frames' lines as the metadata of its own hot half.
struct AsAny<P>(P);

/// Returns the frames with the metadata of `P`.
fn own<P: Policy>(frames: Frames<'_, AnyHook>) -> Frames<'_, P::Hook> {
    // SAFETY: `AsAny<P>` is made only by `host` and `host_open`, whose callers show it no other
    // metas than those that hold a `P::Hook::Meta`.
    unsafe { frames.cast() }
}

impl<P: Policy> Cold<AnyHook> for AsAny<P> {
    fn hit(&mut self, frames: Frames<'_, AnyHook>, frame: FrameId, access: &Access) {
        Policy::hit(&mut self.0, own::<P>(frames), frame, access);
    }
    fn revive(&mut self, frames: Frames<'_, AnyHook>, frame: FrameId) {
        Policy::revive(&mut self.0, own::<P>(frames), frame);
    }
    fn wants(&mut self, access: &Access) -> bool {
        Policy::wants(&mut self.0, access)
    }
    fn miss(&mut self, access: &Access) -> GhostHit {
        Policy::miss(&mut self.0, access)
    }
    fn admit(
        &mut self,
        frames: Frames<'_, AnyHook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        Policy::admit(&mut self.0, own::<P>(frames), frame, access, ghost_hit);
    }
    fn evict(
        &mut self,
        frames: Frames<'_, AnyHook>,
        request: &EvictRequest,
        host: &mut dyn Host,
    ) -> u32 {
        Policy::evict(&mut self.0, own::<P>(frames), request, host)
    }
    fn forget(&mut self, frames: Frames<'_, AnyHook>, frame: FrameId) {
        Policy::forget(&mut self.0, own::<P>(frames), frame);
    }
    fn cleaned(&mut self, frames: Frames<'_, AnyHook>, frame: FrameId) {
        Policy::cleaned(&mut self.0, own::<P>(frames), frame);
    }
    fn hit_on(&self) -> HitOn {
        Cold::hit_on(&self.0)
    }
    fn evictions_per_tick(&self) -> u32 {
        Cold::evictions_per_tick(&self.0)
    }
    fn state_bytes(&self) -> usize {
        Cold::state_bytes(&self.0)
    }
    fn check(&self, frames: Frames<'_, AnyHook>, resident: &[FrameId]) -> Result<(), String> {
        Cold::check(&self.0, own::<P>(frames), resident)
    }
}

impl<P: OpenPolicy> OpenCold<AnyHook> for AsAny<P> {
    fn revive(&self, frames: Frames<'_, AnyHook>, frame: FrameId) {
        OpenPolicy::revive(&self.0, own::<P>(frames), frame);
    }
    fn miss(&self, access: &Access) -> GhostHit {
        OpenPolicy::miss(&self.0, access)
    }
    fn admit(
        &self,
        frames: Frames<'_, AnyHook>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
    ) {
        OpenPolicy::admit(&self.0, own::<P>(frames), frame, access, ghost_hit);
    }
    fn evict(
        &self,
        frames: Frames<'_, AnyHook>,
        request: &EvictRequest,
        host: &mut dyn Host,
    ) -> u32 {
        OpenPolicy::evict(&self.0, own::<P>(frames), request, host)
    }
    fn forget(&self, frames: Frames<'_, AnyHook>, frame: FrameId) {
        OpenPolicy::forget(&self.0, own::<P>(frames), frame);
    }
    fn cleaned(&self, frames: Frames<'_, AnyHook>, frame: FrameId) {
        OpenPolicy::cleaned(&self.0, own::<P>(frames), frame);
    }
    fn hit_on(&self) -> HitOn {
        OpenCold::hit_on(&self.0)
    }
    fn evictions_per_tick(&self) -> u32 {
        OpenCold::evictions_per_tick(&self.0)
    }
    fn state_bytes(&self) -> usize {
        OpenCold::state_bytes(&self.0)
    }
    fn check(&self, frames: Frames<'_, AnyHook>, resident: &[FrameId]) -> Result<(), String> {
        OpenCold::check(&self.0, own::<P>(frames), resident)
    }
}

/// Wraps `policy` for a pool that is compiled for [`AnyHook`] and uses it under a mutex.
///
/// # Errors
/// [`TooLarge`].
///
/// # Safety
/// The parameters, copies of them, and the cold half are used only with metas that
/// [`HitHook::fresh`](crate::contract::HitHook::fresh) made of these parameters or of a copy.
pub unsafe fn host<P: Policy>(policy: P) -> Result<(Box<dyn Cold<AnyHook>>, AnyParams), TooLarge> {
    let params = AnyParams::of::<P::Hook>(P::INFO.id, policy.params())?;
    Ok((Box::new(AsAny(policy)), params))
}

/// Wraps `policy` for a pool that is compiled for `AnyHook`, in which any number of threads use
/// it at once.
///
/// # Errors
/// [`TooLarge`].
///
/// # Safety
/// As [`host`].
pub unsafe fn host_open<P: OpenPolicy>(
    policy: P,
) -> Result<(Box<dyn OpenCold<AnyHook>>, AnyParams), TooLarge> {
    let params = AnyParams::of::<P::Hook>(P::INFO.id, policy.params())?;
    Ok((Box::new(AsAny(policy)), params))
}
