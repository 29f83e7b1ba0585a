//! Eviction: the pool as an evicting policy sees it, and the rounds in which the policy is asked.
//!
//! Every offer is decided under try-latches, parent first, then the page; inside the policy host
//! nothing waits and nothing is written. Dirty victims are refused, and written afterwards, from
//! the write buffer or at once: the next round finds them clean.

use std::ptr::NonNull;

use millpond_base::{FrameId, PageId, Reason};
use millpond_policies::contract::{
    Cooled, EvictRequest, GhostHit, HitHook, Host, OfferOutcome, PageState, RefusalReason,
};
use millpond_policies::parts::prefetch;

use crate::page::{PageHeader, PageType};
use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, IS_MODEL, State};
use crate::pool::latch::Latching;
use crate::pool::options::PoolStrategy;
use crate::pool::swip::Swip;
use crate::pool::writeback::buffer::BATCH_MAX;
use crate::stats::counters::Counter;
use crate::stats::thread_slot::thread_slot;

/// Bytes at the beginning of a page that hold its type and its id.
const PAGE_HEAD: usize = 64;

/// Returns how many frames a policy may examine in one round. A pool that evicts page by page, as a
/// simulator does, examines as many as that: then both find the same victims.
fn steps_max(frames: u32, batch: u32) -> u32 {
    match batch {
        // Under a model checker each of them is a step, and the number of steps is limited.
        0 | 1 if !IS_MODEL => frames.saturating_mul(4).max(1 << 16),
        _ => frames.saturating_mul(2).saturating_add(64),
    }
}

/// One round's view of the pool.
pub(crate) struct LiveHost<'a, M: PoolStrategy> {
    pub(super) pool: &'a Pool<M>,
    wanted: u32,
    pub(super) taken: Vec<FrameId>,
    /// Dirty frames that were offered.
    dirty: Vec<FrameId>,
    refused: u64,
    /// Frames that were offered or should cool.
    asked: u32,
    /// Refusals in a row because of latches.
    latched: u32,
    /// Frames that the policy reports to have examined.
    looked: u32,
    /// Dirty frames are never enough: the round looks for clean ones.
    is_thorough: bool,
    /// Pages that are evicted stay in memory: they stand by (li's free list).
    pub(super) keeps: bool,
    /// Pages that stand by.
    pub(super) kept: Vec<(PageId, FrameId)>,
    /// Chooses one of several children: by the pool's seed, so that runs repeat.
    random: fastrand::Rng,
}

/// The result of a round of eviction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// Pages that were evicted.
    pub(crate) taken: u32,
    /// Victims that were refused because they are dirty, each once.
    pub(crate) dirty: Vec<FrameId>,
    /// Frames that the policy examined.
    pub(crate) looked: u32,
}

/// An exclusive latch that was taken without waiting.
struct Held<'a>(&'a FrameHeader);

impl<'a> Held<'a> {
    fn try_new<L: Latching>(frame: &'a FrameHeader) -> Option<Held<'a>> {
        let held = if L::THREADS { frame.latch.try_exclusive() } else { L::write(&frame.latch) };
        held.then(|| Held(frame))
    }

    /// Ends the hold; readers need not restart.
    fn unchanged(self) {
        self.0.latch.release_unchanged();
        std::mem::forget(self);
    }

    /// Ends the hold; readers restart.
    fn changed(self) {
        self.0.latch.release_exclusive();
        std::mem::forget(self);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.latch.release_unchanged();
    }
}

impl<'a, M: PoolStrategy> LiveHost<'a, M> {
    pub(crate) fn new(pool: &'a Pool<M>, wanted: u32) -> LiveHost<'a, M> {
        let (taken, dirty) = (Vec::with_capacity(wanted as usize), Vec::new());
        LiveHost {
            pool,
            wanted,
            taken,
            dirty,
            refused: 0,
            asked: 0,
            latched: 0,
            looked: 0,
            is_thorough: false,
            keeps: false,
            kept: Vec::new(),
            random: fastrand::Rng::with_seed(pool.options.seed ^ pool.clock.evictions()),
        }
    }

    /// Remembers a dirty victim; once, as far as that is cheap: a policy may draw a frame again.
    fn note_dirty(&mut self, frame: FrameId) {
        const LOOKED_THROUGH: usize = 64;
        if self.dirty.len() >= LOOKED_THROUGH || !self.dirty.contains(&frame) {
            self.dirty.push(frame);
        }
    }

    fn refuse(&mut self, why: RefusalReason) -> OfferOutcome {
        self.refused += 1;
        self.note_latched(why);
        OfferOutcome::Refused(why)
    }

    fn note_latched(&mut self, why: RefusalReason) {
        if why == RefusalReason::Latched {
            self.latched = self.latched.saturating_add(1);
        }
    }

    /// Returns whether latches refuse everything. The threads that hold them may be waiting for the
    /// policy host, to admit a page below a latched parent: the round must end for them to proceed.
    fn is_shut_out(&self) -> bool {
        self.latched >= self.pool.frames.count().saturating_mul(2).saturating_add(64)
    }

    /// Latches the parent of `header`'s page, if it still is the parent then.
    fn parent(
        &self,
        header: &FrameHeader,
    ) -> Result<(NonNull<FrameHeader>, Held<'a>), RefusalReason> {
        let parent = header.parent().ok_or(RefusalReason::Changed)?;
        let held = Held::try_new::<M::Latching>(self.pool.frames.header(parent))
            .ok_or(RefusalReason::Latched)?;
        if header.parent() == Some(parent) {
            Ok((parent, held))
        } else {
            Err(RefusalReason::Changed)
        }
    }

    /// Returns a swizzled child of the page in `frame`, which is latched; any of them, if there are
    /// several. With `hot`, children in the cooling stage do not count.
    fn child(&mut self, frame: NonNull<FrameHeader>, hot: bool) -> Option<FrameId> {
        let pool = self.pool;
        let view = pool.frames.view(frame);
        let kind = pool.translation.kinds().of(view)?;
        let (mut chosen, mut seen, random) = (None, 0usize, &mut self.random);
        kind.swips(view, &mut |at| {
            let word = Swip(view.u64(at));
            if (word.is_hot() || (!hot && word.is_cooling()))
                && let Some(child) = word.frame()
            {
                seen += 1;
                if random.usize(..seen) == 0 {
                    chosen = Some(child);
                }
            }
            true
        });
        chosen.map(|child| pool.frames.header(child).id())
    }

    /// Returns whether it is an inner page of a tree where those are never evicted (gilbert 2.4.1).
    /// Read without a latch: a page that becomes one meanwhile has children, which have to go
    /// first.
    fn stays(&self, frame: NonNull<FrameHeader>) -> bool {
        let is_inner =
            || PageHeader::type_in(self.pool.frames.view(frame)) == PageType::BTREE_INNER;
        M::SWIZZLES && M::HAS_TABLE && is_inner()
    }

    /// Evicts a swizzled victim, or returns the reason for a refusal.
    fn unswizzle(&mut self, frame: NonNull<FrameHeader>) -> Result<OfferOutcome, RefusalReason> {
        let pool = self.pool;
        let header = pool.frames.header(frame);
        if self.stays(frame) {
            return Err(RefusalReason::Permanent);
        }
        let (parent, parent_held) = self.parent(header)?;
        let held = Held::try_new::<M::Latching>(header).ok_or(RefusalReason::Latched)?;
        self.still_evictable(header)?;
        if let Some(child) = self.child(frame, false) {
            return Ok(OfferOutcome::EvictChildFirst(child));
        }
        let page = header.page().ok_or(RefusalReason::Changed)?;
        let cools = header.state() == State::Cooling;
        let word = if cools { Swip::cooling(frame) } else { Swip::hot(frame) };
        let at = pool
            .translation
            .find_swip(&pool.frames, parent, word, frame)
            .ok_or(RefusalReason::Changed)?;
        if !self.leaves(page, header) {
            return Err(RefusalReason::Latched);
        }
        pool.frames.set_swip(parent, at, Swip::evicted(page));
        header.set_parent(None);
        header.set_page(None);
        header.become_state(State::Evicted);
        held.changed();
        // Readers that followed the pointer must restart.
        parent_held.changed();
        pool.statistics.counters.count(Counter::Unswizzles);
        Ok(OfferOutcome::Taken(page))
    }

    /// Evicts a victim from the page table, or returns the reason for a refusal.
    fn take_from_table(
        &mut self,
        frame: NonNull<FrameHeader>,
    ) -> Result<OfferOutcome, RefusalReason> {
        let pool = self.pool;
        let header = pool.frames.header(frame);
        let held = Held::try_new::<M::Latching>(header).ok_or(RefusalReason::Latched)?;
        self.still_evictable(header)?;
        let page = header.page().ok_or(RefusalReason::Changed)?;
        if !self.leaves(page, header) {
            return Err(RefusalReason::Latched);
        }
        header.set_page(None);
        header.become_state(State::Evicted);
        held.changed();
        Ok(OfferOutcome::Taken(page))
    }

    /// Checks the state again, under the latch.
    fn still_evictable(&self, header: &FrameHeader) -> Result<(), RefusalReason> {
        match header.state() {
            State::Hot | State::Cooling if header.is_dirty_or_writing() => {
                Err(RefusalReason::Dirty)
            }
            State::Hot | State::Cooling => Ok(()),
            State::Free | State::Loading | State::Evicted => Err(RefusalReason::Absent),
        }
    }

    fn try_cool(&mut self, frame: NonNull<FrameHeader>) -> Result<Cooled, RefusalReason> {
        let pool = self.pool;
        let header = pool.frames.header(frame);
        match header.state() {
            State::Hot => {}
            State::Cooling => return Err(RefusalReason::Changed),
            State::Free | State::Loading | State::Evicted => return Err(RefusalReason::Absent),
        }
        if header.is_held() {
            return Err(RefusalReason::Pinned);
        }
        if !M::SWIZZLES {
            return self.cool_in_table(header);
        }
        if self.stays(frame) {
            return Err(RefusalReason::Permanent);
        }
        let (parent, parent_held) = self.parent(header)?;
        if header.state() != State::Hot {
            return Err(RefusalReason::Changed);
        }
        if pool.translation.kinds().of(pool.frames.view(frame)).is_some() {
            let held = Held::try_new::<M::Latching>(header).ok_or(RefusalReason::Latched)?;
            let child = self.child(frame, true);
            held.unchanged();
            if let Some(child) = child {
                return Ok(Cooled::CoolChildFirst(child));
            }
        }
        let at = pool
            .translation
            .find_swip(&pool.frames, parent, Swip::hot(frame), frame)
            .ok_or(RefusalReason::Changed)?;
        pool.frames.set_swip(parent, at, Swip::cooling(frame));
        header.become_state(State::Cooling);
        parent_held.unchanged();
        pool.statistics.counters.count(Counter::Cooled);
        Ok(Cooled::Yes)
    }
}

impl<M: PoolStrategy> LiveHost<'_, M> {
    /// Puts a page into the cooling stage. With a page table there is no swip to mark, only the
    /// frame's state.
    fn cool_in_table(&self, header: &FrameHeader) -> Result<Cooled, RefusalReason> {
        let held = Held::try_new::<M::Latching>(header).ok_or(RefusalReason::Latched)?;
        if header.state() != State::Hot {
            return Err(RefusalReason::Changed);
        }
        header.become_state(State::Cooling);
        held.unchanged();
        self.pool.statistics.counters.count(Counter::Cooled);
        Ok(Cooled::Yes)
    }
}

impl<M: PoolStrategy> Host for LiveHost<'_, M> {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.asked = self.asked.saturating_add(1);
        let Some(at) = self.pool.frames.memory().frame(frame) else {
            return self.refuse(RefusalReason::Absent);
        };
        let header = self.pool.frames.header(at);
        match header.state() {
            State::Free | State::Loading | State::Evicted => {
                return self.refuse(RefusalReason::Absent);
            }
            State::Hot | State::Cooling => {}
        }
        if header.is_held() {
            return self.refuse(RefusalReason::Pinned);
        }
        if header.is_writing() {
            return self.refuse(RefusalReason::Dirty);
        }
        if header.is_dirty() {
            // Frames in the write buffer are on their way.
            if !header.is_queued() {
                self.note_dirty(frame);
            }
            return self.refuse(RefusalReason::Dirty);
        }
        let outcome = if M::SWIZZLES { self.unswizzle(at) } else { self.take_from_table(at) };
        match outcome {
            Ok(OfferOutcome::Taken(page)) => {
                debug_assert_eq!(
                    header.state(),
                    State::Evicted,
                    "a victim that was taken is evicted"
                );
                debug_assert_eq!(header.page(), None, "an evicted frame holds no page");
                self.latched = 0;
                OfferOutcome::Taken(page)
            }
            Ok(other) => other,
            Err(why) => self.refuse(why),
        }
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        self.asked = self.asked.saturating_add(1);
        let Some(at) = self.pool.frames.memory().frame(frame) else {
            return Cooled::Refused(RefusalReason::Absent);
        };
        self.try_cool(at).unwrap_or_else(|why| {
            self.note_latched(why);
            Cooled::Refused(why)
        })
    }

    fn has_enough(&self) -> bool {
        let (wanted, dirty) = (self.wanted as usize, self.dirty.len());
        if self.is_shut_out() {
            true
        } else if self.wanted <= 1 || self.is_thorough {
            // Page by page, as in a simulator: the first clean one is evicted.
            false
        } else if self.pool.evicts_after_writing() {
            self.taken.len() + self.kept.len() + dirty >= wanted
        } else {
            dirty >= wanted.max(BATCH_MAX)
        }
    }

    fn will_offer(&self, frame: FrameId) {
        if let (Some(header), Some(at)) =
            (self.pool.frames.memory().header(frame), self.pool.frames.memory().frame(frame))
        {
            prefetch(std::slice::from_ref(header), 0);
            self.pool.frames.view(at).prefetch(0, PAGE_HEAD);
        }
    }

    fn count_examined(&mut self, frames: u32) {
        self.looked = self.looked.saturating_add(frames);
    }

    fn state(&self, frame: FrameId) -> PageState {
        match self.pool.frames.memory().header(frame) {
            Some(header) if header.is_dirty_or_writing() => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Asks the policy for up to `wanted` victims; frees them, and returns which dirty frames were
    /// refused.
    pub(crate) fn evict_round(&self, wanted: u32, incoming: Option<(PageId, GhostHit)>) -> Round {
        self.evict_as(LiveHost::new(self, wanted), wanted, incoming)
    }

    /// Evicts up to `wanted` clean pages, however many dirty ones are refused.
    fn evict_clean(&self, wanted: u32) -> Round {
        self.evict_as(LiveHost { is_thorough: true, ..LiveHost::new(self, wanted) }, wanted, None)
    }

    pub(super) fn evict_as(
        &self,
        mut host: LiveHost<'_, M>,
        wanted: u32,
        incoming: Option<(PageId, GhostHit)>,
    ) -> Round {
        let steps_max = steps_max(self.frames.count(), self.options.batch);
        let wanted = wanted.max(1);
        let first = self.evict_scanned(&mut host, wanted);
        if first < wanted {
            let now = self.now(false);
            let request = EvictRequest { frames: wanted - first, steps_max, now, incoming };
            let still = |frame, page| self.holds_hot(frame, page);
            self.policy_host.evict(self.metas(), &request, &mut host, thread_slot(), still);
        }
        let LiveHost { taken, kept, mut dirty, refused, asked, looked, .. } = host;
        // A hand that completes a turn offers a frame again.
        dirty.sort_unstable();
        dirty.dedup();
        self.statistics.counters.add(Counter::EvictionRefusals, refused);
        // Those that stand by count as chosen.
        let (scanned, chosen) = taken.split_at((first as usize).min(taken.len()));
        let first = scanned.len() as u32;
        self.statistics.counters.add(Counter::Evictions, u64::from(first));
        self.statistics.counters.add(Counter::EvictionsScanned, u64::from(first));
        self.frames.give_back_evicted(scanned, self.counters());
        self.free_taken(chosen);
        self.stand_by(&kept);
        Round { taken: (taken.len() + kept.len()) as u32, dirty, looked: looked.max(asked) }
    }

    /// Evicts in the thread of a worker; returns whether there was any progress.
    pub(super) fn evict_here(
        &self,
        incoming: Option<(PageId, GhostHit)>,
    ) -> Result<bool, PoolError> {
        let round = self.evict_round(self.options.batch, incoming);
        let count = |evicted: u32| {
            self.statistics.counters.add(Counter::EvictionsWorker, u64::from(evicted));
        };
        count(round.taken);
        if round.taken > 0 && self.options.background_writer && !self.cleans() {
            // Dirty pages are written in the background.
            self.hand_over(&round.dirty);
            return Ok(true);
        }
        if round.taken > 0 {
            // Else no thread would ever write what the policy wants evicted, and it would have to
            // take the few clean pages again and again. An error does not concern this operation,
            // which has its frame: the page stays dirty, and the thread that needs its frame gets
            // the error.
            match self.write_victims(&round.dirty, Reason::Synch) {
                Ok((_, evicted)) => count(evicted),
                Err(error) => tracing::warn!(%error, "a page could not be written"),
            }
            return Ok(true);
        }
        let (written, evicted) = self.write_or_pass_by(&round, Reason::Synch)?;
        count(evicted);
        Ok(written + evicted > 0)
    }

    /// Writes the dirty victims of a round; returns the number of pages written, and of further
    /// pages evicted. Where they cannot be written, others may be clean.
    ///
    /// # Errors
    /// Pages could not be written, and no other can be evicted.
    pub(crate) fn write_or_pass_by(
        &self,
        round: &Round,
        reason: Reason,
    ) -> Result<(u32, u32), PoolError> {
        let mut done = self.write_victims(&round.dirty, reason);
        if round.taken == 0 && matches!(done, Ok((0, 0))) {
            // All that is left to evict may be in the write buffer.
            done = self.write_buffered(reason);
        }
        let error = match done {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let others = if round.taken > 0 { 0 } else { self.evict_clean(self.options.batch).taken };
        if round.taken + others == 0 {
            return Err(error);
        }
        tracing::warn!(%error, "a page could not be written");
        Ok((0, others))
    }

    /// Returns whether the hosted policy lets pages cool.
    pub fn cools(&self) -> bool {
        M::Hook::cools(&self.params)
    }
}
