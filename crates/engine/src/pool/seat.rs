//! Where the cold half of the replacement policy sits: under a mutex, or open to all threads.
//!
//! Whoever holds the seat only try-latches frames and does no I/O; a thread that holds latches may
//! wait for the seat. So there is no cycle.

use std::any::{Any, TypeId};

use millpond_base::FrameId;
use millpond_base::sync::{Mutex, MutexGuard};
use millpond_policies::config::{ParamError, Spec};
use millpond_policies::contract::{
    Access, Frames, Goal, Host, OpenPolicy, Policy, Recall, Shape, Touch, TouchOn,
};
use millpond_policies::erased::{Cold, OpenCold};

/// The seat of a policy with hot half `T`.
pub enum Seat<T: Touch> {
    /// One thread at a time; each hit of a central policy takes the mutex, too.
    Exact(Mutex<Box<dyn Cold<T>>>),
    /// Any number of threads.
    Open(Box<dyn OpenCold<T>>),
}

/// A seated policy and the parameters of its hit path.
pub struct Seated<T: Touch> {
    /// The cold half.
    pub seat: Seat<T>,
    /// What the hot half needs.
    pub params: T::Params,
    /// The policy's name.
    pub name: &'static str,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

macro_rules! seated {
    ($seat:expr, $cold:ident => $call:expr) => {
        match $seat {
            Seat::Exact(mutex) => {
                #[allow(unused_mut, reason = "some calls need no &mut")]
                let mut $cold = locked(mutex);
                $call
            }
            Seat::Open($cold) => $call,
        }
    };
}

impl<T: Touch> Seat<T> {
    /// See the policy contract; so for all that follow.
    pub fn miss(&self, access: &Access) -> Recall {
        seated!(self, cold => cold.miss(access))
    }

    /// Admits, and lets `publish` run before anybody else is let in.
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

    /// Looks for victims.
    pub fn evict(&self, frames: Frames<'_, T>, goal: &Goal, host: &mut dyn Host) -> u32 {
        seated!(self, cold => cold.evict(frames, goal, host))
    }

    /// The page was dropped; `publish` runs before anybody else is let in.
    pub fn forget(&self, frames: Frames<'_, T>, frame: FrameId, publish: impl FnOnce()) {
        seated!(self, cold => {
            publish();
            cold.forget(frames, frame);
        });
    }

    /// Revives, if `publish` agrees once the seat is had.
    pub fn revive(&self, frames: Frames<'_, T>, frame: FrameId, publish: impl FnOnce() -> bool) {
        seated!(self, cold => {
            if publish() {
                cold.revive(frames, frame);
            }
        });
    }

    /// Tells of a page that was written and stays, if `still` holds once the seat is had.
    pub fn cleaned(&self, frames: Frames<'_, T>, frame: FrameId, still: impl FnOnce() -> bool) {
        seated!(self, cold => {
            if still() {
                cold.cleaned(frames, frame);
            }
        });
    }

    /// Tells a central policy of a hit, if `still` holds once the seat is had.
    #[inline]
    pub fn hit(
        &self,
        frames: Frames<'_, T>,
        frame: FrameId,
        access: &Access,
        still: impl FnOnce() -> bool,
    ) {
        // An open policy hears of hits through its hot half only.
        if let Seat::Exact(mutex) = self {
            let mut cold = locked(mutex);
            if still() {
                cold.hit(frames, frame, access);
            }
        }
    }

    /// Which end of an access counts.
    pub fn touch_on(&self) -> TouchOn {
        seated!(self, cold => cold.touch_on())
    }

    /// Evictions per tick of the policy's clock.
    pub fn evictions_per_tick(&self) -> u32 {
        seated!(self, cold => cold.evictions_per_tick())
    }

    /// Bytes that the policy holds outside the frames.
    pub fn state_bytes(&self) -> usize {
        seated!(self, cold => cold.state_bytes())
    }

    /// Verifies the policy's invariants.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, frames: Frames<'_, T>, resident: &[FrameId]) -> Result<(), String> {
        seated!(self, cold => cold.check(frames, resident))
    }
}

impl<T: Touch> Seated<T> {
    /// Seats `P` under a mutex.
    ///
    /// # Errors
    /// A parameter that the policy does not have, or a value that it does not take.
    pub fn exact<P: Policy<Touch = T>>(
        spec: &Spec,
        shape: &Shape,
    ) -> Result<Seated<T>, ParamError> {
        let policy = P::new(&spec.config::<P::Config>()?, shape);
        let params = policy.params();
        let seat = Seat::Exact(Mutex::new(Box::new(policy)));
        Ok(Seated { seat, params, name: P::INFO.id })
    }

    /// Seats `P` open to all threads.
    ///
    /// # Errors
    /// As [`Seated::exact`].
    pub fn open<P: OpenPolicy<Touch = T>>(
        spec: &Spec,
        shape: &Shape,
    ) -> Result<Seated<T>, ParamError> {
        let policy = P::new(&spec.config::<P::Config>()?, shape);
        let params = policy.params();
        Ok(Seated { seat: Seat::Open(Box::new(policy)), params, name: P::INFO.id })
    }

    /// The same as a seat for hot half `U`, if that is what `T` is: for code that finds a policy
    /// by its name and then learns its hot half.
    pub fn cast<U: Touch>(self) -> Option<Seated<U>> {
        if TypeId::of::<T>() != TypeId::of::<U>() {
            return None;
        }
        let this: Box<dyn Any> = Box::new(self);
        this.downcast::<Seated<U>>().ok().map(|seated| *seated)
    }
}
