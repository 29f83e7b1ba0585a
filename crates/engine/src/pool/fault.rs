//! Page faults: loading a missing page outside of any mini-transaction, and attaching it (leanstore
//! IV-D).
//!
//! # Order
//! The parent's latch may be held while the table of in-flight loads is locked, never the other way
//! round: under the table's mutex a swip is only read, through the parent's version.

use std::ptr::NonNull;

use millpond_base::{FrameId, Lsn, Mark, PageId, PageKind};

use crate::page::PageHeader;
use crate::pool::borrowed::back_off;
use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::guard::Read;
use crate::pool::jump::{Cold, Jump, Load, Ordered, Try};
use crate::pool::latch::Latching;
use crate::pool::options::PoolStrategy;
use crate::pool::recording::storage_recorder::StorageRequest;
use crate::pool::swip::Swip;
use crate::pool::translation::in_flight::{Arrived, Claimed, Step};
use crate::pool::translation::translation::{Place, ReadAhead};
use crate::stats::Wait;
use crate::stats::counters::Counter;
use crate::stats::thread_slot::thread_slot;

/// Number of free frames that ordered reads leave alone: a page that may never be used is not worth
/// an eviction.
pub(crate) const FRAMES_KEPT: u32 = 4;

/// Pages read ahead may take one frame in this many until a thread needs them.
pub(crate) const AHEAD_PART: usize = 8;

/// Result of an order to read a page ahead of its use.
pub(crate) enum Order {
    /// The page will be read.
    Given,
    /// The page is in memory, or on its way, or not referred to any more.
    Needless,
    /// There is no frame for it, or no thread that reads.
    Refused,
}

impl<M: PoolStrategy> Pool<M> {
    /// Does the work that a jump asks for, while the thread holds no guard. Returns whether the
    /// policy has received all references that the mini-transaction made, the one that missed
    /// included.
    pub(crate) fn settle_jump(&self, jump: Jump, attempt: u32) -> Result<bool, PoolError> {
        let checked = || self.translation.kinds().all_registered();
        match jump {
            Jump::Restart => back_off(attempt).map(|()| false),
            Jump::Cold(cold) => match *cold {
                Cold::Load(load) => checked().and_then(|()| self.load(&load, attempt)),
                Cold::Room(frames) => {
                    checked().and_then(|()| self.make_room(frames)).map(|()| true)
                }
                Cold::Failed(error) => Err(error),
            },
        }
    }

    /// Loads a page, unless another thread does; returns whether this thread did.
    fn load(&self, load: &Load, attempt: u32) -> Result<bool, PoolError> {
        if self.options.attempts_max.is_some_and(|most| attempt >= most) {
            return Err(PoolError::Starved { attempts: attempt });
        }
        let in_flight = self.translation.in_flight();
        match in_flight.ask(load.page, || self.translation.is_missing(&self.frames, load)) {
            Step::Changed | Step::Ready => return Ok(false),
            Step::Wait(completion) => {
                let _waiting = self.statistics.wait(Wait::Page);
                completion.wait();
                return Ok(false);
            }
            Step::LoadIt => {}
        }
        let here = self.statistics.counters.here();
        here.count(Counter::Misses);
        if load.mark.kind() == PageKind::BTREE_LEAF {
            here.count(Counter::LeafMisses);
        }
        let access = self.replacement.access(load.page, load.mark, true);
        let ghost_hit = self.replacement.miss(&access);
        let frame = self.frame_for(Some((load.page, ghost_hit)));
        let arrived = frame.and_then(|frame| self.read_into(frame, load.page).map(|()| frame));
        match arrived {
            Ok(frame) => {
                if self.options.attempts_max.is_none() {
                    let id = self.frames.header(frame).id();
                    let starvation = self.replacement.starvation();
                    starvation.hold(self.frames.memory(), thread_slot(), id, attempt);
                }
                let arrived = Arrived { frame, ghost_hit, prefetched: false };
                let attached = self.attach_or_leave(load, arrived);
                if self.options.read_ahead && attached.is_ok() {
                    self.read_ahead_after(load);
                }
                attached.map(|()| true)
            }
            Err(error) => {
                in_flight.end(load.page);
                Err(error)
            }
        }
    }

    /// Reads `page` into a free frame, which is latched exclusively; on an error the frame is free
    /// again.
    fn read_into(&self, frame: NonNull<FrameHeader>, page: PageId) -> Result<(), PoolError> {
        let result = self.translation.read(&self.frames, &self.statistics, frame, page);
        match result {
            Ok(()) => self.record_read(frame),
            Err(_) => {
                self.counters().count(Counter::ReadErrors);
                self.frames.give_back(frame, 0);
            }
        }
        result
    }

    /// Records that the page of `frame`, which no other thread sees yet, was read.
    fn record_read(&self, frame: NonNull<FrameHeader>) {
        if self.storage_recorder.is_on() {
            let tail = self.redo.tail();
            let header = PageHeader::read(self.frames.bytes(frame));
            let request = StorageRequest::of(&header, Mark::READ, tail, Lsn(0));
            self.storage_recorder.note(std::iter::once(request));
        }
    }

    /// Makes a loaded page reachable if its parent is available, and otherwise leaves it for the
    /// next thread that needs it.
    fn attach_or_leave(&self, load: &Load, arrived: Arrived) -> Result<(), PoolError> {
        let (frames, translation) = (&self.frames, &self.translation);
        let parent = frames.header(load.parent);
        // The parent may have been evicted in the meantime. Its frame may then stay latched for as
        // long as another page takes to load: in the worst case, by a thread that waits for this
        // thread's frame.
        let latched = if parent.page() != load.parent_page {
            false
        } else if M::Latching::THREADS {
            parent.latch.exclusive()
        } else {
            M::Latching::write(&parent.latch)
        };
        if !latched {
            self.leave(load, arrived);
            return Ok(());
        }
        let is_still = parent.page() == load.parent_page;
        let place = match is_still && translation.knows_swips_of(frames, load.parent) {
            true => {
                let word = Swip::evicted(load.page);
                translation.find_swip(frames, load.parent, word, arrived.frame)
            }
            false => None,
        };
        let result = match place {
            Some(at) => self.publish_verified(arrived, load.page, (load.parent, at), load.mark),
            None => Ok(()),
        };
        parent.latch.release_unchanged();
        if place.is_none() {
            self.leave(load, arrived);
        }
        result
    }

    /// Leaves a loaded page for the next thread that needs it: in the page table, if there is one.
    fn leave(&self, load: &Load, arrived: Arrived) {
        if M::SWIZZLES {
            return self.translation.in_flight().arrive(load.page, arrived);
        }
        self.frames.header(arrived.frame).set_unverified(true);
        self.publish(arrived, load.page, None, load.mark);
        self.translation.in_flight().end(load.page);
    }

    /// Makes a loaded page reachable through its swip at `place`, or drops the page if it does not
    /// fit its parent. Ends its in-flight load. The parent is latched exclusively.
    fn publish_verified(
        &self,
        arrived: Arrived,
        page: PageId,
        place: Place,
        mark: Mark,
    ) -> Result<(), PoolError> {
        let fits =
            self.translation.fits(&self.frames, arrived.frame, page, place, || self.is_free(page));
        match fits {
            Ok(()) => self.publish(arrived, page, Some(place), mark),
            Err(_) => {
                self.statistics.counters.count(Counter::ReadErrors);
                self.frames.give_back(arrived.frame, 0);
            }
        }
        self.translation.in_flight().end(page);
        fits
    }

    /// Attaches a claimed page to the swip at `at` of `parent`, which this thread holds
    /// exclusively. The page stays in flight if the swip has changed.
    pub(crate) fn attach_at(
        &self,
        parent: NonNull<FrameHeader>,
        at: usize,
        page: PageId,
        arrived: Arrived,
        mark: Mark,
    ) -> Try<NonNull<FrameHeader>> {
        let fits = Swip(self.frames.view(parent).u64(at)) == Swip::evicted(page);
        if !fits || !self.translation.knows_swips_of(&self.frames, parent) {
            self.translation.in_flight().arrive(page, arrived);
            let registered = self.translation.kinds().all_registered();
            return Err(registered.map_or_else(Jump::failed, |()| Jump::Restart));
        }
        if arrived.prefetched {
            self.statistics.counters.count(Counter::PrefetchHits);
        }
        self.publish_verified(arrived, page, (parent, at), mark).map_err(Jump::failed)?;
        Ok(arrived.frame)
    }

    /// Admits a loaded page and makes it reachable: by its swip, or by the page table.
    fn publish(&self, arrived: Arrived, page: PageId, place: Option<Place>, mark: Mark) {
        let header = self.frames.header(arrived.frame);
        debug_assert!(
            header.latch.is_exclusive(),
            "a loaded page is latched until it is reachable"
        );
        debug_assert_eq!(header.state(), State::Loading, "a page is published once");
        debug_assert_eq!(header.page(), Some(page), "the frame holds the page that was loaded");
        debug_assert!(
            place.is_none_or(|(parent, _)| self.frames.header(parent).latch.is_exclusive()),
            "a swip changes under its page's exclusive latch"
        );
        let access = self.replacement.access(page, mark, false);
        let (frame, ghost_hit, counters) = (arrived.frame, arrived.ghost_hit, self.counters());
        self.replacement.admit(&self.frames, counters, frame, &access, ghost_hit, || {
            self.translation.attach(&self.frames, frame, page, place);
        });
        counters.count(Counter::Swizzles);
        header.latch.release_exclusive();
    }

    /// Takes a page that is in memory without a swip, to attach it.
    pub(crate) fn claim(&self, page: PageId, mark: Mark) -> Option<Arrived> {
        match self.translation.in_flight().claim(page)? {
            Claimed::Arrived(arrived) => Some(arrived),
            Claimed::StandsBy(frame) => self.rescue(frame, page, mark),
        }
    }

    /// Drops a loaded page that no thread needed; returns whether there was one.
    pub(crate) fn drop_abandoned(&self) -> bool {
        match self.translation.in_flight().abandon() {
            Some((_, arrived)) => {
                // The page may have stood by before, and failed to be attached.
                let epoch = if self.cleans() { self.frames.giving_up(self.counters()) } else { 0 };
                self.frames.give_back(arrived.frame, epoch);
                true
            }
            None => false,
        }
    }

    /// See [`crate::pool::Pages::order_reads`].
    pub(crate) fn order_children(&self, parent: &Read<'_, Self>, at: &[usize]) -> Ordered {
        let mut done = Ordered::default();
        if !self.reads_ahead() {
            return Ordered { passed: at.len(), ..done };
        }
        for place in at {
            let word = parent.swip(*place);
            if parent.validate().is_err() || self.frames_ready() <= FRAMES_KEPT {
                return done;
            }
            if !word.is_evicted()
                || (!M::SWIZZLES && self.translation.has(&self.frames, word.page()))
            {
                done.passed += 1;
                continue;
            }
            let page = word.page();
            let is_missing = || {
                let as_before = parent.swip(*place) == word && parent.validate().is_ok();
                as_before && (M::SWIZZLES || !self.translation.has(&self.frames, page))
            };
            match self.order(page, is_missing) {
                Order::Needless => done.passed += 1,
                Order::Given => (done.reads, done.passed) = (done.reads + 1, done.passed + 1),
                Order::Refused => return done,
            }
        }
        done
    }

    /// Orders the read of one page in the background, unless it is in flight, or `is_missing` finds
    /// under the table's mutex that its swip has changed.
    pub(crate) fn order(&self, page: PageId, is_missing: impl FnOnce() -> bool) -> Order {
        if !matches!(self.translation.in_flight().ask(page, is_missing), Step::LoadIt) {
            return Order::Needless;
        }
        // Pages that no thread needed must not fill the pool.
        let most = (self.frames.count() as usize / AHEAD_PART).max(1);
        let crowded = self.translation.in_flight().len() > most && !self.drop_abandoned();
        let Some(frame) = (if crowded { None } else { self.take_free() }) else {
            self.translation.in_flight().end(page);
            return Order::Refused;
        };
        if !self.translation.orders().give(page, self.frames.header(frame).id()) {
            // The background thread has ended: nothing would read it.
            self.frames.give_back_unused(frame);
            self.translation.in_flight().end(page);
            return Order::Refused;
        }
        self.statistics.counters.count(Counter::Prefetches);
        Order::Given
    }

    /// Reads pages ahead of their use, into the frames that were taken for them.
    pub(crate) fn read_ahead(&self, orders: &[(PageId, FrameId)]) {
        let read = self.translation.read_ahead(&self.frames, &self.statistics, orders);
        for ReadAhead { page, frame, result } in read {
            if result.is_err() {
                // The thread that needs the page will meet the error.
                self.frames.give_back(frame, 0);
                self.translation.in_flight().end(page);
                continue;
            }
            self.record_read(frame);
            let ghost_hit =
                self.replacement.miss(&self.replacement.access(page, Mark::READ, false));
            let arrived = Arrived { frame, ghost_hit, prefetched: true };
            self.translation.in_flight().arrive(page, arrived);
        }
    }
}
