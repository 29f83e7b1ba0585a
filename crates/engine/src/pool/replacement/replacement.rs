//! The choice of pages to evict: the policy, the references that reach it, and rounds of eviction.
//! This file needs `unsafe`.

use std::ptr::NonNull;

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{
    self, Access, EvictRequest, GhostHit, Hit, HitHook, HitOn, Host, OfferOutcome, Screen,
    TickSource,
};

use crate::pool::frame::{FrameHeader, IS_MODEL, POLICY_LINE, State};
use crate::pool::memory::frames::Frames;
use crate::pool::mini_transaction::{MiniTransaction, PageMemory};
use crate::pool::options::{PoolOptions, PoolStrategy};
use crate::pool::recording::recorder::Recorder;
use crate::pool::replacement::clock::PolicyClock;
use crate::pool::replacement::eviction::{LiveHost, Reach, Victims};
use crate::pool::replacement::policy_host::{HostedPolicy, PolicyHost};
use crate::pool::replacement::scanned::Scanned;
use crate::pool::starvation::StarvationGuard;
use crate::stats::counters::{Counter, Counters};
use crate::stats::thread_slot::thread_slot;

/// Returns the number of frames that a policy may examine in one round. A pool that evicts page by
/// page allows as many as a simulator does, so that both find the same victims.
fn steps_max(frames: u32, batch: u32) -> u32 {
    match batch {
        // Under a model checker each examined frame is a step, and the number of steps is limited.
        0 | 1 if !IS_MODEL => frames.saturating_mul(4).max(1 << 16),
        _ => frames.saturating_mul(2).saturating_add(64),
    }
}

/// Chooses the pages to evict.
///
/// # Invariants
/// 1. The policy knows the pages in state hot or cooling, and no others: each is admitted, and
///    dropped, inside the policy host.
/// 2. The policy's lines of all frames were made from `params`, and reach this host only.
/// 3. A thread inside the policy host only tries latches, and does no I/O.
pub(crate) struct Replacement<M: PoolStrategy> {
    // Read, or may be read, by each reference to a page.
    /// Parameters of the policy's hot half, which the cold half in `host` provided.
    params: <M::Hook as HitHook>::Params,
    /// End of an access that the policy counts as the reference.
    hit_on: HitOn,
    /// The time that the policy sees.
    clock: PolicyClock,
    recorder: Recorder,

    /// The cold half of the policy.
    host: PolicyHost<M::Hook>,
    name: &'static str,
    /// Frames that only scans have referenced: victims before the policy is asked.
    scanned: Scanned,
    /// The one operation for which pages are held, so that it ends.
    starvation: StarvationGuard,
    /// Number of victims that a round looks for.
    batch: u32,
    /// `true` if the evictor threads are page cleaners, whose victims stand by once they are
    /// written.
    cleans: bool,
    /// Seed of random choices.
    seed: u64,
}

impl<M: PoolStrategy> Replacement<M> {
    /// Returns the replacement by the policy `hosted`.
    pub(crate) fn new(hosted: HostedPolicy<M::Hook>, options: &PoolOptions) -> Replacement<M> {
        let evictions_per_tick = hosted.policy_host.evictions_per_tick();
        Replacement {
            params: hosted.params,
            hit_on: hosted.policy_host.hit_on(),
            clock: PolicyClock::new(options.references_per_tick, evictions_per_tick),
            recorder: Recorder::default(),
            host: hosted.policy_host,
            name: hosted.name,
            scanned: Scanned::default(),
            starvation: StarvationGuard::default(),
            batch: options.batch,
            cleans: options.cleaning.is_some(),
            seed: options.seed,
        }
    }

    /// Returns the policy's name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the policy lets pages cool.
    #[inline(always)]
    pub(crate) fn cools(&self) -> bool {
        M::Hook::cools(&self.params)
    }

    /// Returns the recorder of page references.
    #[inline(always)]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the operation for which pages are held.
    pub(crate) fn starvation(&self) -> &StarvationGuard {
        &self.starvation
    }

    /// Returns whether victims are evicted once they are written, without being offered again. Open
    /// policies keep no order, so another round would find other victims, and write those, too. A
    /// pool that evicts page by page waits for the next offer, as a simulator does.
    pub(crate) fn evicts_after_writing(&self) -> bool {
        let is_open = matches!(self.host, PolicyHost::Open(_));
        self.cleans || (self.batch > 1 && is_open)
    }

    /// Returns the policy lines of all frames.
    #[inline(always)]
    fn metas<'f>(&self, frames: &'f Frames) -> contract::Frames<'f, M::Hook> {
        let memory = frames.memory();
        // SAFETY: every frame's policy line holds a `Meta`, written or zeros that are one, which is
        // shared only; the memory stays mapped while it is borrowed. A `Meta` without size needs
        // none.
        unsafe {
            let first = memory.start().add(POLICY_LINE);
            contract::Frames::strided(first.as_ptr(), memory.stride(), memory.frames())
        }
    }

    /// Returns the policy's line of a frame, which is mapped while the pool lives.
    #[inline(always)]
    fn meta(&self, frame: NonNull<FrameHeader>) -> &<M::Hook as HitHook>::Meta {
        // SAFETY: a frame's policy line holds an initialised `Meta`, which is only shared, and
        // stays mapped while the pool is borrowed. Anchors have none, and are never asked for it.
        unsafe { frame.cast::<u8>().add(POLICY_LINE).cast::<<M::Hook as HitHook>::Meta>().as_ref() }
    }

    /// Returns the time of the policy's clock. With `reference`, the clock counts one more
    /// reference first.
    #[inline(always)]
    fn now(&self, reference: bool) -> u32 {
        match M::Hook::tick_source(&self.params) {
            TickSource::None => 0,
            TickSource::PerAccess if reference => self.clock.reference(thread_slot()),
            TickSource::PerAccess | TickSource::PerEviction => self.clock.now(),
        }
    }

    /// Returns an access as the policy sees it.
    #[inline(always)]
    pub(crate) fn access(&self, page: PageId, mark: Mark, reference: bool) -> Access {
        Access { page, mark, now: self.now(reference), next: 0, next_read: 0 }
    }

    /// Counts `count` evictions, which may advance the policy's clock.
    pub(crate) fn count_evictions(&self, count: usize, counters: &Counters) {
        counters.add(Counter::Evictions, count as u64);
        let counts = M::Hook::tick_source(&self.params) == TickSource::PerEviction;
        self.clock.count_evictions(count as u32, counts);
    }

    /// Delivers a reference to the page in `frame` to the policy, and to the recorder.
    #[inline(always)]
    pub(crate) fn on_hit<P: PageMemory<Local = usize>>(
        &self,
        frames: &Frames,
        counters: &Counters,
        mtr: &MiniTransaction<'_, P>,
        frame: NonNull<FrameHeader>,
        mark: Mark,
    ) {
        if !mark.is_scan() {
            frames.header(frame).set_scanned(false);
        }
        let screen = M::Hook::screen(&self.params);
        match screen {
            _ if M::RECORDS => {}
            Screen::Ignore => return,
            Screen::AskFirst => {
                let access = self.access(PageId::default(), mark, false);
                if M::Hook::is_noop(self.meta(frame), &self.params, &access) {
                    return;
                }
            }
            Screen::Deliver => {}
        }
        // The page may have been evicted by now.
        let page = match M::Hook::READS_PAGE || M::RECORDS {
            true => frames.header(frame).page().unwrap_or_default(),
            false => PageId::default(),
        };
        if M::RECORDS && page != PageId::default() {
            self.recorder.note(mtr.local(), page, mark);
        }
        if screen == Screen::Ignore || !mtr.is_new() {
            return;
        }
        let access = self.access(page, mark, true);
        self.touched(frames, counters, frame, &access);
        if M::Hook::UNFIX && self.hit_on == HitOn::Both {
            self.touched(frames, counters, frame, &access);
        }
    }

    /// Delivers one event of an access to the policy. An optimistic reader holds nothing, so the
    /// end of an access is delivered with its beginning: parents before children, as lock coupling
    /// releases them.
    #[inline(always)]
    fn touched(
        &self,
        frames: &Frames,
        counters: &Counters,
        frame: NonNull<FrameHeader>,
        access: &Access,
    ) {
        M::Hook::on_hit(self.meta(frame), &self.params, access);
        if M::Hook::hit_cost(&self.params) == Hit::Central {
            let (id, slot) = (frames.header(frame).id(), thread_slot());
            let still = |frame, page| holds_hot(frames, frame, page);
            if !self.host.hit(self.metas(frames), id, access, slot, still) {
                counters.count(Counter::HitsLost);
            }
        }
    }

    /// Notifies the policy of a page that is not in memory; returns its ghost hit, the policy's
    /// memory of the page.
    pub(crate) fn miss(&self, access: &Access) -> GhostHit {
        self.host.miss(access)
    }

    /// Admits the page of `access`, which `frame` holds, latched exclusively; `publish` makes it
    /// reachable inside the policy host.
    pub(crate) fn admit(
        &self,
        frames: &Frames,
        counters: &Counters,
        frame: NonNull<FrameHeader>,
        access: &Access,
        ghost_hit: GhostHit,
        publish: impl FnOnce(),
    ) {
        let header = frames.header(frame);
        M::Hook::reset(self.meta(frame), &self.params, access);
        header.set_scanned(access.mark.is_scan());
        self.host.admit(self.metas(frames), header.id(), access, ghost_hit, publish);
        // The end of the access that loaded or created a page is a reference, for policies that ask
        // for that (rule 8).
        if M::Hook::UNFIX && self.hit_on != HitOn::Fix {
            self.touched(frames, counters, frame, access);
        }
        if access.mark.is_scan() {
            self.scanned.note(frames, header.id(), access.page);
        }
    }

    /// Notifies the policy that the page in `frame` was dropped, by `publish` inside the policy
    /// host.
    pub(crate) fn forget(&self, frames: &Frames, frame: FrameId, publish: impl FnOnce()) {
        self.host.forget(self.metas(frames), frame, publish);
    }

    /// Makes the page in `frame` hot again, by `publish` inside the policy host.
    pub(crate) fn revive(
        &self,
        frames: &Frames,
        counters: &Counters,
        frame: FrameId,
        publish: impl FnOnce(),
    ) {
        self.host.revive(self.metas(frames), frame, || {
            publish();
            true
        });
        counters.count(Counter::Revived);
    }

    /// Notifies the policy that `page` was written, if `frame` still holds it.
    pub(crate) fn cleaned(&self, frames: &Frames, frame: FrameId, page: PageId) {
        let still = || {
            let header = frames.memory().header(frame);
            header.is_some_and(|header| {
                header.page() == Some(page) && matches!(header.state(), State::Hot | State::Cooling)
            })
        };
        self.host.cleaned(self.metas(frames), frame, still);
    }

    /// Looks for up to `wanted` victims: first among pages that only scans have referenced, then by
    /// asking the policy. With `is_thorough`, the round passes by dirty pages, however many. With
    /// `keeps`, its victims stand by.
    pub(crate) fn evict(
        &self,
        reach: Reach<'_, M>,
        wanted: u32,
        incoming: Option<(PageId, GhostHit)>,
        is_thorough: bool,
        keeps: bool,
    ) -> Victims {
        let (Reach { frames, counters, .. }, wanted) = (reach, wanted.max(1));
        let mut host = self.host(reach, wanted, is_thorough, keeps);
        let first = self.scanned.evict(frames, wanted, |frame| {
            let mut outcome = OfferOutcome::Refused(contract::RefusalReason::Changed);
            self.host.forget_if(self.metas(frames), frame, || {
                outcome = host.offer(frame);
                matches!(outcome, OfferOutcome::Taken(_))
            });
            outcome
        });
        if first < wanted {
            let (steps_max, now) = (steps_max(frames.count(), self.batch), self.now(false));
            let request = EvictRequest { frames: wanted - first, steps_max, now, incoming };
            let still = |frame, page| holds_hot(frames, frame, page);
            self.host.evict(self.metas(frames), &request, &mut host, thread_slot(), still);
        }
        counters.add(Counter::EvictionRefusals, host.refused());
        host.into_victims(first as usize)
    }

    /// Evicts the pages of `dirty`, which were written, as far as they can be evicted.
    pub(crate) fn evict_written(
        &self,
        reach: Reach<'_, M>,
        dirty: &[FrameId],
        keeps: bool,
    ) -> Victims {
        let frames = reach.frames;
        let mut host = self.host(reach, 0, false, keeps);
        for frame in dirty {
            if let OfferOutcome::Taken(_) = host.offer(*frame) {
                // The policy did not offer it, so it must be notified.
                self.forget(frames, *frame, || ());
            }
        }
        host.into_victims(0)
    }

    fn host<'a>(
        &self,
        reach: Reach<'a, M>,
        wanted: u32,
        is_thorough: bool,
        keeps: bool,
    ) -> LiveHost<'a, M> {
        let seed = self.seed ^ self.clock.evictions();
        LiveHost::new(reach, wanted, is_thorough, keeps, self.evicts_after_writing(), seed)
    }

    /// Checks the policy's invariants, when nothing else runs.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub(crate) fn check(&self, frames: &Frames, resident: &[FrameId]) -> Result<(), String> {
        self.host.check(self.metas(frames), resident)
    }
}

/// Returns whether `frame` holds `page`, hot.
fn holds_hot(frames: &Frames, frame: FrameId, page: PageId) -> bool {
    let header = frames.memory().header(frame);
    header.is_some_and(|header| header.page() == Some(page) && header.state() == State::Hot)
}
