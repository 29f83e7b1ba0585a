//! The three seats of a cold half in a live pool.

use millpond_base::FrameId;
use millpond_base::sync::Mutex;
use millpond_policies::contract::{Access, Frames, Goal, Host, Recall, Touch, TouchOn};
use millpond_policies::erased::{Cold, OpenCold};

/// Hits that a thread keeps to itself before it drains them.
pub const RING: usize = 8;

/// A hit not told yet: the frame, its version then, and the access.
pub type Told = (FrameId, u64, Access);

/// Where the cold half sits.
pub enum Seat<T: Touch> {
    /// Under a mutex, told of every hit at once: order is exact, each hit pays.
    Exact(Mutex<Box<dyn Cold<T>>>),
    /// Under a mutex, told of hits by the batch, and late.
    Batched(Mutex<Box<dyn Cold<T>>>),
    /// Used by all threads at once.
    Open(Box<dyn OpenCold<T>>),
}

/// Calls the cold half, whatever the seat.
macro_rules! seated {
    ($seat:expr, $cold:ident => $call:expr) => {
        match $seat {
            Seat::Exact(mutex) | Seat::Batched(mutex) => {
                #[allow(unused_mut, reason = "some calls need no &mut")]
                let mut $cold = mutex.lock().expect("no policy panicked");
                $call
            }
            Seat::Open($cold) => $call,
        }
    };
}

impl<T: Touch> Seat<T> {
    pub fn miss(&self, access: &Access) -> Recall {
        seated!(self, cold => cold.miss(access))
    }

    /// Admits, and lets `publish` run before anyone else is let in.
    pub fn admit(
        &self,
        frames: Frames<'_, T>,
        frame: FrameId,
        access: &Access,
        recall: Recall,
        publish: impl FnOnce(),
    ) {
        seated!(self, cold => {
            cold.admit(frames, frame, access, recall);
            publish();
        });
    }

    pub fn evict(&self, frames: Frames<'_, T>, goal: &Goal, host: &mut dyn Host) -> u32 {
        seated!(self, cold => cold.evict(frames, goal, host))
    }

    pub fn forget(&self, frames: Frames<'_, T>, frame: FrameId) {
        seated!(self, cold => cold.forget(frames, frame));
    }

    /// Revives, if `still` holds once the seat is had.
    pub fn revive(&self, frames: Frames<'_, T>, frame: FrameId, still: impl FnOnce() -> bool) {
        seated!(self, cold => {
            if still() {
                cold.revive(frames, frame);
            }
        });
    }

    /// Tells of a clean page, if `still` holds once the seat is had.
    pub fn cleaned(&self, frames: Frames<'_, T>, frame: FrameId, still: impl FnOnce() -> bool) {
        seated!(self, cold => {
            if still() {
                cold.cleaned(frames, frame);
            }
        });
    }

    /// Tells of a hit, at once or later. `is_still` says whether a frame is what it was.
    pub fn hit(
        &self,
        frames: Frames<'_, T>,
        told: Told,
        ring: &mut Vec<Told>,
        is_still: impl Fn(FrameId, u64) -> bool,
    ) {
        match self {
            Seat::Exact(mutex) => {
                let mut cold = mutex.lock().expect("no policy panicked");
                if is_still(told.0, told.1) {
                    cold.hit(frames, told.0, &told.2);
                }
            }
            Seat::Batched(mutex) => {
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
            // An open policy hears of hits through its hot half only.
            Seat::Open(_) => {}
        }
    }

    /// Drains a thread's ring.
    pub fn drain(
        &self,
        frames: Frames<'_, T>,
        ring: &mut Vec<Told>,
        is_still: impl Fn(FrameId, u64) -> bool,
    ) {
        if let Seat::Batched(mutex) = self {
            tell(mutex.lock().expect("no policy panicked").as_mut(), frames, ring, is_still);
        }
    }

    pub fn touch_on(&self) -> TouchOn {
        seated!(self, cold => cold.touch_on())
    }

    pub fn evictions_per_tick(&self) -> u32 {
        seated!(self, cold => cold.evictions_per_tick())
    }

    pub fn check(&self, frames: Frames<'_, T>, resident: &[FrameId]) -> Result<(), String> {
        seated!(self, cold => cold.check(frames, resident))
    }
}

/// Rule 4: a hit is told only of a frame that is still what it was when it was hit.
fn tell<T: Touch>(
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
