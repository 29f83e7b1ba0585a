//! One round of eviction: the pool as the policy sees it, and the victims.
//!
//! Every offer is decided under try-latches, parent first, then the page; inside the policy host no
//! thread waits and no page is written. Dirty victims are refused, and written afterwards, from the
//! write buffer or at once: the next round finds them clean.

use std::ptr::NonNull;

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, Host, OfferOutcome, PageState, RefusalReason};
use millpond_policies::parts::prefetch;

use crate::page::{PageHeader, PageType};
use crate::pool::frame::{FrameHeader, State};
use crate::pool::latch::Latching;
use crate::pool::memory::frames::Frames;
use crate::pool::options::PoolStrategy;
use crate::pool::swip::Swip;
use crate::pool::translation::translation::Translation;
use crate::pool::writeback::buffer::BATCH_MAX;
use crate::stats::counters::{Counter, Counters};

/// Bytes at the beginning of a page that hold its type and its id.
const PAGE_HEAD: usize = 64;

/// The parts of the pool that an eviction reaches.
pub(crate) struct Reach<'a, M: PoolStrategy> {
    pub(crate) frames: &'a Frames,
    pub(crate) translation: &'a Translation<M>,
    pub(crate) counters: &'a Counters,
}

impl<M: PoolStrategy> Clone for Reach<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: PoolStrategy> Copy for Reach<'_, M> {}

/// Pages that a round evicted, and dirty pages that it refused.
pub(crate) struct Victims {
    /// Frames of pages that only scans had referenced.
    pub(crate) scanned: Vec<FrameId>,
    /// Frames of pages that the policy chose.
    pub(crate) chosen: Vec<FrameId>,
    /// Pages that are to stand by.
    pub(crate) kept: Vec<(PageId, FrameId)>,
    /// Victims that were refused because they are dirty, each once.
    pub(crate) dirty: Vec<FrameId>,
    /// Frames that the policy examined, if it reports them; otherwise the frames it offered or
    /// cooled.
    pub(crate) looked: u32,
}

impl Victims {
    /// Returns the number of pages that were evicted.
    pub(crate) fn taken(&self) -> u32 {
        (self.scanned.len() + self.chosen.len() + self.kept.len()) as u32
    }
}

/// View of the pool for one round of eviction.
pub(super) struct LiveHost<'a, M: PoolStrategy> {
    reach: Reach<'a, M>,
    wanted: u32,
    taken: Vec<FrameId>,
    /// Dirty frames that were offered.
    dirty: Vec<FrameId>,
    refused: u64,
    /// Frames that were offered or should cool.
    asked: u32,
    /// Refusals in a row because of latches.
    latched: u32,
    /// Frames that the policy reports to have examined.
    looked: u32,
    /// `true` if dirty victims never end the round, which looks for clean ones.
    is_thorough: bool,
    /// `true` if evicted pages stay in memory and stand by (li's free list).
    keeps: bool,
    /// `true` if dirty victims are evicted once they are written, and so count as victims.
    evicts_after_writing: bool,
    /// Pages that stand by.
    kept: Vec<(PageId, FrameId)>,
    /// Chooses one of several children. The pool's seed starts it, so that runs repeat.
    random: fastrand::Rng,
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
    pub(super) fn new(
        reach: Reach<'a, M>,
        wanted: u32,
        is_thorough: bool,
        keeps: bool,
        evicts_after_writing: bool,
        seed: u64,
    ) -> LiveHost<'a, M> {
        let (taken, dirty) = (Vec::with_capacity(wanted as usize), Vec::new());
        LiveHost {
            reach,
            wanted,
            taken,
            dirty,
            refused: 0,
            asked: 0,
            latched: 0,
            looked: 0,
            is_thorough,
            keeps,
            evicts_after_writing,
            kept: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Returns the number of offers that were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Ends the round, whose first `scanned` victims only scans had referenced.
    pub(super) fn into_victims(self, scanned: usize) -> Victims {
        let LiveHost { mut taken, kept, mut dirty, asked, looked, .. } = self;
        // A hand that completes a turn offers a frame again.
        dirty.sort_unstable();
        dirty.dedup();
        // Pages that stand by count as chosen.
        let chosen = taken.split_off(scanned.min(taken.len()));
        Victims { scanned: taken, chosen, kept, dirty, looked: looked.max(asked) }
    }

    /// Removes the page in the frame of `header`, which is latched, from the page table, if there
    /// is one. If the page is to stand by, threads that need it wait from then on. Returns `false`
    /// if the table is in use.
    fn leaves(&mut self, page: PageId, header: &FrameHeader) -> bool {
        let (translation, frame) = (self.reach.translation, header.id());
        let stands_by = self.keeps && translation.in_flight().begin_standing_by(page);
        if !translation.try_remove(self.reach.frames, page, frame) {
            if stands_by {
                translation.in_flight().end(page);
            }
            return false;
        }
        if stands_by {
            self.kept.push((page, frame));
        } else {
            self.taken.push(frame);
        }
        true
    }

    /// Remembers a dirty victim. A policy may draw a frame again, so repeats are left out as far as
    /// that is cheap.
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
        self.latched >= self.reach.frames.count().saturating_mul(2).saturating_add(64)
    }

    /// Latches the parent of `header`'s page, if it still is the parent under the latch.
    fn parent(
        &self,
        header: &FrameHeader,
    ) -> Result<(NonNull<FrameHeader>, Held<'a>), RefusalReason> {
        let parent = header.parent().ok_or(RefusalReason::Changed)?;
        let held = Held::try_new::<M::Latching>(self.reach.frames.header(parent))
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
        let (frames, translation) = (self.reach.frames, self.reach.translation);
        let view = frames.view(frame);
        let kind = translation.kinds().of(view)?;
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
        chosen.map(|child| frames.header(child).id())
    }

    /// Returns whether the page in `frame` is an inner page of a tree, in a pool that never evicts
    /// those (gilbert 2.4.1). Reads the page without a latch: a page that becomes an inner page at
    /// the same time has children, which have to go first.
    fn stays(&self, frame: NonNull<FrameHeader>) -> bool {
        let is_inner =
            || PageHeader::type_in(self.reach.frames.view(frame)) == PageType::BTREE_INNER;
        M::SWIZZLES && M::HAS_TABLE && is_inner()
    }

    /// Evicts a swizzled victim, or returns the reason for a refusal.
    fn unswizzle(&mut self, frame: NonNull<FrameHeader>) -> Result<OfferOutcome, RefusalReason> {
        let Reach { frames, translation, counters } = self.reach;
        let header = frames.header(frame);
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
        let at =
            translation.find_swip(frames, parent, word, frame).ok_or(RefusalReason::Changed)?;
        if !self.leaves(page, header) {
            return Err(RefusalReason::Latched);
        }
        frames.set_swip(parent, at, Swip::evicted(page));
        header.set_parent(None);
        header.set_page(None);
        header.become_state(State::Evicted);
        held.changed();
        // Readers that followed the pointer must restart.
        parent_held.changed();
        counters.count(Counter::Unswizzles);
        Ok(OfferOutcome::Taken(page))
    }

    /// Evicts a victim from the page table, or returns the reason for a refusal.
    fn take_from_table(
        &mut self,
        frame: NonNull<FrameHeader>,
    ) -> Result<OfferOutcome, RefusalReason> {
        let frames = self.reach.frames;
        let header = frames.header(frame);
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
        let Reach { frames, translation, counters } = self.reach;
        let header = frames.header(frame);
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
        if translation.kinds().of(frames.view(frame)).is_some() {
            let held = Held::try_new::<M::Latching>(header).ok_or(RefusalReason::Latched)?;
            let child = self.child(frame, true);
            held.unchanged();
            if let Some(child) = child {
                return Ok(Cooled::CoolChildFirst(child));
            }
        }
        let at = translation
            .find_swip(frames, parent, Swip::hot(frame), frame)
            .ok_or(RefusalReason::Changed)?;
        frames.set_swip(parent, at, Swip::cooling(frame));
        header.become_state(State::Cooling);
        parent_held.unchanged();
        counters.count(Counter::Cooled);
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
        self.reach.counters.count(Counter::Cooled);
        Ok(Cooled::Yes)
    }
}

impl<M: PoolStrategy> Host for LiveHost<'_, M> {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.asked = self.asked.saturating_add(1);
        let Some(at) = self.reach.frames.memory().frame(frame) else {
            return self.refuse(RefusalReason::Absent);
        };
        let header = self.reach.frames.header(at);
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
        let Some(at) = self.reach.frames.memory().frame(frame) else {
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
        } else if self.evicts_after_writing {
            self.taken.len() + self.kept.len() + dirty >= wanted
        } else {
            dirty >= wanted.max(BATCH_MAX)
        }
    }

    fn will_offer(&self, frame: FrameId) {
        if let (Some(header), Some(at)) =
            (self.reach.frames.memory().header(frame), self.reach.frames.memory().frame(frame))
        {
            prefetch(std::slice::from_ref(header), 0);
            self.reach.frames.view(at).prefetch(0, PAGE_HEAD);
        }
    }

    fn count_examined(&mut self, frames: u32) {
        self.looked = self.looked.saturating_add(frames);
    }

    fn state(&self, frame: FrameId) -> PageState {
        match self.reach.frames.memory().header(frame) {
            Some(header) if header.is_dirty_or_writing() => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}
