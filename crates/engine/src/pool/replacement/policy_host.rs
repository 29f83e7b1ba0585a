//! The host of the cold half of the replacement policy: under a mutex, or open to all threads.
//!
//! ```text
//! policy_host      for which policies         a hit of a policy that receives hits costs
//! exact     any policy                 the mutex: order is exact
//! batched   any policy                 a slot in the thread's ring (pool/replacement/hit_rings.rs)
//! open      policies written for it    nothing: hits reach them through the frames only
//! ```
//! A thread inside the policy host only try-latches frames and does no I/O; a thread that holds
//! latches may wait for the policy host. So there is no cycle.
//!
//! This file needs `unsafe`, to pair a cold half with the parameters of its hot half where the hot
//! half is chosen at run time ([`any_cold`]). Invariant: **the two stay together**. No part of a
//! [`HostedPolicy`] can be taken from outside the pool. The pool creates the metas of all its
//! frames with [`HitHook::fresh`] of these parameters, or leaves them zero where zeros are such
//! metas, and shows them to this host only.

use std::any::{Any, TypeId};

use millpond_base::sync::Mutex;
use millpond_base::{FrameId, PageId};
use millpond_policies::any_cold;
use millpond_policies::any_hook::{AnyHook, TooLarge};
use millpond_policies::choice;
use millpond_policies::config::{Param, ParamError, Spec};
use millpond_policies::contract::{
    Access, EvictRequest, Frames, GhostHit, HitHook, HitOn, Host, OpenPolicy, Policy, Shape,
};
use millpond_policies::erased::{Cold, OpenCold};

use crate::pool::replacement::hit_rings::{HitRings, Noted};
use crate::pool::sync::locked::locked;
use crate::words::by_word;

/// The host of a policy with hot half `T`.
pub(crate) enum PolicyHost<T: HitHook> {
    /// One thread at a time; each hit of a central policy takes the mutex, too.
    Exact(Mutex<Box<dyn Cold<T>>>),
    /// One thread at a time, but hits are delivered by the batch.
    Batched(Mutex<Box<dyn Cold<T>>>, HitRings),
    /// Any number of threads.
    Open(Box<dyn OpenCold<T>>),
}

/// A hosted policy and the parameters of its hit path.
pub struct HostedPolicy<T: HitHook> {
    pub(crate) policy_host: PolicyHost<T>,
    pub(crate) params: T::Params,
    pub(crate) name: &'static str,
}

macro_rules! hosted {
    ($policy_host:expr, $cold:ident => $call:expr) => {
        match $policy_host {
            PolicyHost::Exact(mutex) | PolicyHost::Batched(mutex, _) => {
                #[allow(unused_mut, reason = "some calls need no &mut")]
                let mut $cold = locked(mutex);
                $call
            }
            PolicyHost::Open($cold) => $call,
        }
    };
}

impl<T: HitHook> PolicyHost<T> {
    /// Notifies the policy of a miss. The policy contract describes this method and those that
    /// follow.
    pub fn miss(&self, access: &Access) -> GhostHit {
        hosted!(self, cold => cold.miss(access))
    }

    /// Admits a page, and calls `publish` before another thread enters.
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

    /// Looks for victims, for the thread with slot `slot`, whose hits are delivered first. `still`
    /// returns whether a frame holds a page, hot.
    pub fn evict(
        &self,
        frames: Frames<'_, T>,
        request: &EvictRequest,
        host: &mut dyn Host,
        slot: usize,
        still: impl Fn(FrameId, PageId) -> bool,
    ) -> u32 {
        match self {
            PolicyHost::Exact(mutex) => locked(mutex).evict(frames, request, host),
            PolicyHost::Batched(mutex, rings) => {
                let mut cold = locked(mutex);
                deliver(cold.as_mut(), rings, frames, slot, still);
                cold.evict(frames, request, host)
            }
            PolicyHost::Open(cold) => cold.evict(frames, request, host),
        }
    }

    /// Notifies the policy that the page was dropped; `publish` runs before another thread enters.
    pub fn forget(&self, frames: Frames<'_, T>, frame: FrameId, publish: impl FnOnce()) {
        hosted!(self, cold => {
            publish();
            cold.forget(frames, frame);
        });
    }

    /// Notifies the policy that the page was dropped, if `publish`, which drops it inside the
    /// policy host, returns `true`.
    pub fn forget_if(&self, frames: Frames<'_, T>, frame: FrameId, publish: impl FnOnce() -> bool) {
        hosted!(self, cold => {
            if publish() {
                cold.forget(frames, frame);
            }
        });
    }

    /// Makes a page hot again, if `publish` returns `true` inside the policy host.
    pub fn revive(&self, frames: Frames<'_, T>, frame: FrameId, publish: impl FnOnce() -> bool) {
        hosted!(self, cold => {
            if publish() {
                cold.revive(frames, frame);
            }
        });
    }

    /// Notifies the policy of a page that was written and stays, if `still` returns `true` inside
    /// the policy host.
    pub fn cleaned(&self, frames: Frames<'_, T>, frame: FrameId, still: impl FnOnce() -> bool) {
        hosted!(self, cold => {
            if still() {
                cold.cleaned(frames, frame);
            }
        });
    }

    /// Delivers a hit to a central policy, now or later, for the thread with slot `slot`; returns
    /// `false` if the hit was lost. `still` returns whether a frame holds a page, hot, at the time
    /// of the delivery.
    #[inline]
    pub fn hit(
        &self,
        frames: Frames<'_, T>,
        frame: FrameId,
        access: &Access,
        slot: usize,
        still: impl Fn(FrameId, PageId) -> bool,
    ) -> bool {
        let at_once = |mutex: &Mutex<Box<dyn Cold<T>>>| {
            let mut cold = locked(mutex);
            if still(frame, access.page) {
                cold.hit(frames, frame, access);
            }
            true
        };
        match self {
            PolicyHost::Exact(mutex) => at_once(mutex),
            PolicyHost::Batched(mutex, rings) => match rings.note(slot, frame, access) {
                Noted::Kept => true,
                Noted::NoRing => at_once(mutex),
                noted => {
                    let Ok(mut cold) = mutex.try_lock() else { return noted == Noted::Due };
                    deliver(cold.as_mut(), rings, frames, slot, &still);
                    if noted == Noted::Lost && still(frame, access.page) {
                        cold.hit(frames, frame, access);
                    }
                    true
                }
            },
            // Hits reach an open policy through its hot half only.
            PolicyHost::Open(_) => true,
        }
    }

    /// Returns the end of an access that counts as the reference.
    pub fn hit_on(&self) -> HitOn {
        hosted!(self, cold => cold.hit_on())
    }

    /// Returns the evictions per tick of the policy's clock.
    pub fn evictions_per_tick(&self) -> u32 {
        hosted!(self, cold => cold.evictions_per_tick())
    }

    /// Checks the policy's invariants.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, frames: Frames<'_, T>, resident: &[FrameId]) -> Result<(), String> {
        hosted!(self, cold => cold.check(frames, resident))
    }
}

/// Delivers the hits in the ring of the thread with slot `slot` (rule 4 of the contract: of pages
/// that are still there).
fn deliver<T: HitHook>(
    cold: &mut dyn Cold<T>,
    rings: &HitRings,
    frames: Frames<'_, T>,
    slot: usize,
    still: impl Fn(FrameId, PageId) -> bool,
) {
    rings.drain(slot, |frame, access| {
        if still(frame, access.page) {
            cold.hit(frames, frame, access);
        }
    });
}

choice! {
    /// Number of threads that the replacement policy serves at a time.
    #[derive(Default, Hash)]
    pub enum HitDelivery {
        /// Policies made for it serve all threads at once, others are under a mutex.
        #[default]
        Auto = "auto",
        /// Under a mutex, taken at each hit that the policy has to receive: its order is exact.
        Exact = "exact",
        /// Under a mutex that hits take by the batch, and only if it is free: hits arrive late, and
        /// some not at all. Policies that receive no hits behave as with `auto`.
        Batched = "batched",
    }
}
by_word! {
    HitDelivery "hit_delivery";
}

impl HitDelivery {
    fn policy_host<T: HitHook>(self, cold: Box<dyn Cold<T>>) -> PolicyHost<T> {
        match self {
            HitDelivery::Auto | HitDelivery::Exact => PolicyHost::Exact(Mutex::new(cold)),
            HitDelivery::Batched => PolicyHost::Batched(Mutex::new(cold), HitRings::default()),
        }
    }
}

/// Reason why a policy cannot be hosted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostingError {
    /// A parameter that the policy does not have, or a value that it does not take.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The policy's state does not fit into a frame's line.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl HostedPolicy<AnyHook> {
    /// Hosts `P`, whatever its hot half, under a mutex.
    ///
    /// # Errors
    /// [`HostingError`].
    pub fn any<P: Policy>(
        spec: &Spec,
        shape: &Shape,
        delivery: HitDelivery,
    ) -> Result<HostedPolicy<AnyHook>, HostingError> {
        let policy = P::new(&spec.config::<P::Config>()?, shape);
        // SAFETY: the two stay together, the invariant of this file.
        let (cold, params) = unsafe { any_cold::host(policy) }?;
        Ok(HostedPolicy { policy_host: delivery.policy_host(cold), params, name: P::INFO.id })
    }

    /// Hosts `P`, whatever its hot half, open to all threads.
    ///
    /// # Errors
    /// [`HostingError`].
    pub fn any_open<P: OpenPolicy>(
        spec: &Spec,
        shape: &Shape,
    ) -> Result<HostedPolicy<AnyHook>, HostingError> {
        let policy = P::new(&spec.config::<P::Config>()?, shape);
        // SAFETY: the two stay together, the invariant of this file.
        let (cold, params) = unsafe { any_cold::host_open(policy) }?;
        Ok(HostedPolicy { policy_host: PolicyHost::Open(cold), params, name: P::INFO.id })
    }
}

impl<T: HitHook> HostedPolicy<T> {
    /// Hosts `P` under a mutex, with exact delivery of hits.
    ///
    /// # Errors
    /// A parameter that the policy does not have, or a value that it does not take.
    pub fn exact<P: Policy<Hook = T>>(
        spec: &Spec,
        shape: &Shape,
    ) -> Result<HostedPolicy<T>, ParamError> {
        HostedPolicy::closed::<P>(spec, shape, HitDelivery::Exact)
    }

    /// Hosts `P` under a mutex.
    ///
    /// # Errors
    /// See [`HostedPolicy::exact`].
    pub fn closed<P: Policy<Hook = T>>(
        spec: &Spec,
        shape: &Shape,
        delivery: HitDelivery,
    ) -> Result<HostedPolicy<T>, ParamError> {
        let policy = P::new(&spec.config::<P::Config>()?, shape);
        let params = policy.params();
        Ok(HostedPolicy {
            policy_host: delivery.policy_host(Box::new(policy)),
            params,
            name: P::INFO.id,
        })
    }

    /// Hosts `P` open to all threads.
    ///
    /// # Errors
    /// See [`HostedPolicy::exact`].
    pub fn open<P: OpenPolicy<Hook = T>>(
        spec: &Spec,
        shape: &Shape,
    ) -> Result<HostedPolicy<T>, ParamError> {
        let policy = P::new(&spec.config::<P::Config>()?, shape);
        let params = policy.params();
        Ok(HostedPolicy {
            policy_host: PolicyHost::Open(Box::new(policy)),
            params,
            name: P::INFO.id,
        })
    }

    /// Returns the policy's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the host is open to all threads.
    pub fn is_open(&self) -> bool {
        matches!(self.policy_host, PolicyHost::Open(_))
    }

    /// Returns the hosted policy with hot half `U`, if `U` is `T`. For code that finds a policy by
    /// its name and then learns its hot half.
    pub fn cast<U: HitHook>(self) -> Option<HostedPolicy<U>> {
        if TypeId::of::<T>() != TypeId::of::<U>() {
            return None;
        }
        let this: Box<dyn Any> = Box::new(self);
        this.downcast::<HostedPolicy<U>>().ok().map(|hosted| *hosted)
    }
}
