//! The three kinds of policy host in a live pool: exact, batched, open.

use millpond_base::FrameId;
use millpond_base::sync::Mutex;
use millpond_policies::contract::{Access, EvictRequest, Frames, GhostHit, HitHook, HitOn, Host};
use millpond_policies::erased::{Cold, OpenCold};

/// Hits that a thread keeps to itself before it drains them.
pub const RING: usize = 8;

/// A hit not delivered yet: the frame, its version then, and the access.
pub type Told = (FrameId, u64, Access);

/// The cold half, and the way in which it receives hits.
pub enum PolicyHost<T: HitHook> {
    /// Under a mutex, notified of every hit at once: order is exact, each hit pays.
    Exact(Mutex<Box<dyn Cold<T>>>),
    /// Under a mutex, notified of hits in batches, and late.
    Batched(Mutex<Box<dyn Cold<T>>>),
    /// Used by all threads at once.
    Open(Box<dyn OpenCold<T>>),
}

/// Calls the cold half, whatever the kind of host.
macro_rules! hosted {
    ($policy_host:expr, $cold:ident => $call:expr) => {
        match $policy_host {
            PolicyHost::Exact(mutex) | PolicyHost::Batched(mutex) => {
                #[allow(unused_mut, reason = "some calls need no &mut")]
                let mut $cold = mutex.lock().expect("no policy panicked");
                $call
            }
            PolicyHost::Open($cold) => $call,
        }
    };
}

impl<T: HitHook> PolicyHost<T> {
    pub fn miss(&self, access: &Access) -> GhostHit {
        hosted!(self, cold => cold.miss(access))
    }

    /// Admits, and lets `publish` run before anyone else is let in.
    pub fn admit(
        &self,
        frames: Frames<'_, T>,
        frame: FrameId,
        access: &Access,
        ghost_hit: GhostHit,
        publish: impl FnOnce(),
    ) {
        hosted!(self, cold => {
            cold.admit(frames, frame, access, ghost_hit);
            publish();
        });
    }

    pub fn evict(&self, frames: Frames<'_, T>, request: &EvictRequest, host: &mut dyn Host) -> u32 {
        hosted!(self, cold => cold.evict(frames, request, host))
    }

    pub fn forget(&self, frames: Frames<'_, T>, frame: FrameId) {
        hosted!(self, cold => cold.forget(frames, frame));
    }

    /// Revives, if `still` holds once the latch is acquired.
    pub fn revive(&self, frames: Frames<'_, T>, frame: FrameId, still: impl FnOnce() -> bool) {
        hosted!(self, cold => {
            if still() {
                cold.revive(frames, frame);
            }
        });
    }

    /// Notifies the policy of a clean page, if `still` holds once the latch is acquired.
    pub fn cleaned(&self, frames: Frames<'_, T>, frame: FrameId, still: impl FnOnce() -> bool) {
        hosted!(self, cold => {
            if still() {
                cold.cleaned(frames, frame);
            }
        });
    }

    /// Tells of a hit, at once or later. `is_still` returns whether a frame is what it was.
    pub fn hit(
        &self,
        frames: Frames<'_, T>,
        told: Told,
        ring: &mut Vec<Told>,
        is_still: impl Fn(FrameId, u64) -> bool,
    ) {
        match self {
            PolicyHost::Exact(mutex) => {
                let mut cold = mutex.lock().expect("no policy panicked");
                if is_still(told.0, told.1) {
                    cold.hit(frames, told.0, &told.2);
                }
            }
            PolicyHost::Batched(mutex) => {
                ring.push(told);
                if ring.len() < RING {
                    return;
                }
                // A full ring that cannot be drained loses its oldest hit rather than wait.
                match mutex.try_lock() {
                    Ok(mut cold) => tell(cold.as_mut(), frames, ring, is_still),
                    Err(_) => drop(ring.remove(0)),
                }
            }
            // An open policy receives hits through its hot half only.
            PolicyHost::Open(_) => {}
        }
    }

    /// Drains a thread's ring.
    pub fn drain(
        &self,
        frames: Frames<'_, T>,
        ring: &mut Vec<Told>,
        is_still: impl Fn(FrameId, u64) -> bool,
    ) {
        if let PolicyHost::Batched(mutex) = self {
            tell(mutex.lock().expect("no policy panicked").as_mut(), frames, ring, is_still);
        }
    }

    pub fn hit_on(&self) -> HitOn {
        hosted!(self, cold => cold.hit_on())
    }

    pub fn evictions_per_tick(&self) -> u32 {
        hosted!(self, cold => cold.evictions_per_tick())
    }

    pub fn check(&self, frames: Frames<'_, T>, resident: &[FrameId]) -> Result<(), String> {
        hosted!(self, cold => cold.check(frames, resident))
    }
}

/// Rule 4: a hit is delivered only if the frame is still what it was when it was hit.
fn tell<T: HitHook>(
    cold: &mut dyn Cold<T>,
    frames: Frames<'_, T>,
    ring: &mut Vec<Told>,
    is_still: impl Fn(FrameId, u64) -> bool,
) {
    for (frame, version, access) in ring.drain(..) {
        if is_still(frame, version) {
            cold.hit(frames, frame, &access);
        }
    }
}
