//! The frames of a pool: their memory, the free lists, and the epochs that decide when a frame is
//! reused. This file needs `unsafe`.

use std::ptr::NonNull;
use std::time::Duration;

use millpond_base::FrameId;
use millpond_policies::contract::HitHook;

use crate::page::View;
use crate::pool::epoch::{Epochs, Reclamation};
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::memory::ahead::{Ahead, Populating};
use crate::pool::memory::frame_page;
use crate::pool::memory::free_list::FreeLists;
use crate::pool::memory::numa::Nodes;
use crate::pool::memory::region::FrameMemory;
use crate::pool::options::PoolOptions;
use crate::pool::swip::Swip;
use crate::pool::sync::event::Event;
use crate::stats::counters::{Counter, Counters};
use crate::stats::thread_slot::thread_slot;

/// All frames of a pool, with and without a page.
///
/// # Invariants
/// 1. The memory stays mapped while this value lives, at addresses that swips hold.
/// 2. A frame is on a free list exactly while its state is free and no thread has taken it. The
///    thread that takes it holds its latch exclusively until the frame has a page, or is given
///    back.
/// 3. A frame that a page left is reused only once no thread is in the epoch in which the page
///    left, or in an older one, unless versions alone protect readers.
pub(crate) struct Frames {
    memory: FrameMemory,
    /// Bytes of a page, as storage has them.
    page_size: usize,
    /// Epochs that delay reuse; `None` if frames are reused at once ([`Reclamation::Version`]).
    epochs: Option<Epochs>,
    free: FreeLists,
    /// Tracks the populated part of the memory of frames that were never used.
    ahead: Ahead,
    /// Signalled when frames became free.
    freed: Event,
    /// Signalled when more memory is to be populated.
    growth: Event,
}

impl Frames {
    /// Maps the frames that `options` ask for, each with a page of `page_size` bytes and the policy
    /// line of hit hook `T`.
    ///
    /// # Errors
    /// No memory, or the policy's state does not fit into its line.
    pub(crate) fn map<T: HitHook>(
        options: &PoolOptions,
        page_size: usize,
        params: &T::Params,
    ) -> Result<Frames, PoolError> {
        let memory = FrameMemory::map(options.frames, page_size)?;
        memory.initialise_metas(T::zeroed(params), || T::fresh(params))?;
        let nodes = Nodes::find(options.nodes);
        nodes.bind(&memory);
        if options.prefault {
            memory.prefault();
        }
        let free = FreeLists::new(options.frames, nodes);
        Ok(Frames {
            memory,
            page_size,
            epochs: (options.reclamation == Reclamation::Epoch).then(Epochs::new),
            ahead: Ahead::new(free.parts()),
            free,
            freed: Event::default(),
            growth: Event::default(),
        })
    }

    /// Returns the memory, in which frames are found by their ids.
    #[inline(always)]
    pub(crate) fn memory(&self) -> &FrameMemory {
        &self.memory
    }

    /// Returns the number of frames.
    #[inline(always)]
    pub(crate) fn count(&self) -> u32 {
        self.memory.frames()
    }

    /// Returns the bytes of a page.
    #[inline(always)]
    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    /// Returns the number of frames without a page, a moment ago.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.free.len()
    }

    /// Returns the headers of all frames, in order.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (FrameId, &FrameHeader)> {
        (0..self.count()).map(FrameId).filter_map(|id| Some((id, self.memory.header(id)?)))
    }

    /// Returns the headers of all frames that were ever handed out. To read a header that was never
    /// used costs a page of memory.
    pub(crate) fn used_headers(&self) -> impl Iterator<Item = (FrameId, &FrameHeader)> {
        let used = self.free.ever_used().into_iter().flatten().map(FrameId);
        used.filter_map(|id| Some((id, self.memory.header(id)?)))
    }

    /// Counts the frames whose page must be written: a walk over all headers.
    pub(crate) fn dirty(&self) -> u32 {
        self.headers().filter(|(_, header)| header.is_dirty()).count() as u32
    }

    /// Returns the page of a frame or an anchor, to be read raw.
    #[inline]
    pub(crate) fn view(&self, frame: NonNull<FrameHeader>) -> View<'_> {
        // SAFETY: a frame or an anchor of this pool, followed by its page, mapped while the pool
        // is borrowed.
        unsafe { frame_page::view(frame, self.page_size) }
    }

    /// Returns the header of a frame or an anchor.
    #[inline]
    pub(crate) fn header(&self, frame: NonNull<FrameHeader>) -> &FrameHeader {
        // SAFETY: frames and anchors of this pool stay mapped while the pool is borrowed, and are
        // made of atomics. All addresses come from swips that were validated, or from headers.
        unsafe { frame.as_ref() }
    }

    /// Returns the page of a frame that this thread holds exclusively.
    #[expect(clippy::mut_from_ref, reason = "the exclusive latch is the permission")]
    pub(crate) fn bytes(&self, frame: NonNull<FrameHeader>) -> &mut [u8] {
        debug_assert!(self.header(frame).latch.is_exclusive());
        // SAFETY: the caller holds the frame's latch exclusively (it is a free or loading frame of
        // its own, or a guard's); readers read raw and validate.
        unsafe { frame_page::bytes_mut(frame, self.page_size) }
    }

    /// Stores the swip at `at` in the page of `frame`, which this thread holds exclusively. The
    /// store is atomic.
    pub(crate) fn set_swip(&self, frame: NonNull<FrameHeader>, at: usize, word: Swip) {
        debug_assert!(self.header(frame).latch.is_exclusive());
        // SAFETY: a frame or an anchor of this pool; the caller holds its latch exclusively.
        unsafe { frame_page::store_swip(frame, self.page_size, at, word) }
    }

    /// Stores the swip at `at` of the latched page `view` in a copy of it, in evicted form.
    pub(crate) fn unswizzle_copy(&self, view: View<'_>, copy: &mut [u8], at: usize) {
        let word = Swip(view.u64(at));
        if !word.is_swizzled() {
            return;
        }
        let child = word.frame().and_then(|child| self.header(child).page());
        debug_assert!(child.is_some(), "a swizzled child has a page");
        if let (Some(child), Some(place)) = (child, copy.get_mut(at..at + 8)) {
            place.copy_from_slice(&Swip::evicted(child).0.to_le_bytes());
        }
    }

    /// Enters the current epoch, for the thread with slot `slot`.
    #[inline(always)]
    pub(crate) fn enter(&self, slot: usize) {
        if let Some(epochs) = &self.epochs {
            epochs.enter(slot);
        }
    }

    /// Leaves the current epoch, for the thread with slot `slot`.
    #[inline(always)]
    pub(crate) fn leave(&self, slot: usize) {
        if let Some(epochs) = &self.epochs {
            epochs.leave(slot);
        }
    }

    /// Begins the next epoch, because a thread waits for frames.
    pub(crate) fn step_epoch(&self) {
        if let Some(epochs) = &self.epochs {
            epochs.step();
        }
    }

    /// Counts a frame that is given up, and returns its epoch; 0 if frames are reused at once.
    pub(crate) fn giving_up(&self, counters: &Counters) -> u64 {
        let Some(epochs) = &self.epochs else { return 0 };
        let (epoch, stepped) = epochs.give_up();
        if stepped {
            counters.count(Counter::EpochAdvances);
        }
        epoch
    }

    /// Takes a frame without a page, if there is one now, and latches it exclusively.
    pub(crate) fn take(&self) -> Option<NonNull<FrameHeader>> {
        let slot = thread_slot();
        let take = || self.free.take(slot, || self.epochs.as_ref().map_or(0, Epochs::oldest));
        let taken = match (take(), &self.epochs) {
            (Some(taken), _) => taken,
            (None, Some(epochs)) if !self.free.is_empty() => {
                // The free frames wait for an epoch that no other thread would end.
                epochs.step();
                take()?
            }
            (None, _) => return None,
        };
        if taken.fresh {
            if self.ahead.taken(self.free.node_of(taken.frame), taken.frame) {
                self.growth.signal();
            }
            self.memory.initialise(taken.frame);
        }
        let frame = self.memory.frame(taken.frame)?;
        let header = self.header(frame);
        // A sampling evictor, or a reader that is late, may hold it for a moment.
        while !header.latch.exclusive() {
            millpond_base::sync::thread::yield_now();
        }
        debug_assert_eq!(header.state(), State::Free);
        debug_assert_eq!(header.page(), None);
        debug_assert!(!header.is_dirty_or_writing(), "a free frame owes storage nothing");
        Some(frame)
    }

    /// Puts a frame on a free list, for reuse once no thread is in an epoch up to `epoch`. This
    /// thread holds its latch exclusively, and the policy does not know its page.
    pub(crate) fn give_back(&self, frame: NonNull<FrameHeader>, epoch: u64) {
        let header = self.header(frame);
        header.set_page(None);
        header.set_parent(None);
        header.clear_dirty();
        header.become_state(State::Free);
        header.latch.release_exclusive();
        self.free.give(&[header.id()], epoch);
        self.freed.signal();
    }

    /// Puts back a frame that was taken and is still free.
    pub(crate) fn give_back_unused(&self, frame: NonNull<FrameHeader>) {
        let header = self.header(frame);
        debug_assert_eq!(header.state(), State::Free);
        let id = header.id();
        header.latch.release_exclusive();
        self.free.give(&[id], 0);
        self.freed.signal();
    }

    /// Puts the frame of a deleted page on this thread's own list. The frame's latch is held
    /// exclusively.
    pub(crate) fn give_back_deleted(&self, frame: NonNull<FrameHeader>, counters: &Counters) {
        let header = self.header(frame);
        header.become_state(State::Free);
        header.latch.release_exclusive();
        let epoch = self.giving_up(counters);
        self.free.give_deleted(header.id(), thread_slot(), epoch);
    }

    /// Puts the frames of evicted pages on a free list.
    pub(crate) fn give_back_evicted(&self, evicted: &[FrameId], counters: &Counters) {
        if evicted.is_empty() {
            return;
        }
        for header in evicted.iter().filter_map(|id| self.memory.header(*id)) {
            debug_assert_eq!(header.page(), None);
            header.become_state(State::Free);
        }
        let mut epoch = 0;
        evicted.iter().for_each(|_| epoch = self.giving_up(counters));
        self.free.give(evicted, epoch);
        self.freed.signal();
    }

    /// Sleeps for `moment`, or until frames become free; returns at once if `is_due` returns
    /// `true`.
    pub(crate) fn nap(&self, moment: Duration, is_due: impl FnOnce() -> bool) {
        self.freed.nap(moment, is_due);
    }

    /// Wakes the threads that wait for free frames.
    pub(crate) fn signal_freed(&self) {
        self.freed.signal();
    }

    /// Wakes the threads that wait for free frames, or to populate memory.
    pub(crate) fn wake(&self) {
        self.freed.signal();
        self.growth.signal();
    }

    /// Populates memory ahead of its use, until all is populated or `is_over`. Runs in a thread of
    /// its own.
    pub(crate) fn populate_ahead(&self, is_over: impl Fn() -> bool) {
        const LONGEST: Duration = Duration::from_secs(60);
        let mut populating = Populating::new(&self.memory, &self.ahead, &self.free.ever_used());
        while !is_over() {
            self.growth.wait(LONGEST, || self.ahead.is_asked() || is_over());
            if self.ahead.is_asked() && !populating.advance(&self.free.ever_used()) {
                break;
            }
        }
        self.ahead.end();
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use millpond_base::PageId;
    use millpond_policies::any_hook::AnyHook;

    use super::*;

    #[test]
    fn a_frame_is_taken_by_one_thread_and_again_when_its_page_has_left() {
        let options = PoolOptions::new(8);
        let frames = Frames::map::<AnyHook>(&options, 512, &Default::default()).unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| frames.take()).collect();
        assert_eq!((taken.len(), frames.free()), (8, 0));
        let header = frames.header(taken[3]);
        assert!(header.latch.is_exclusive(), "who takes a frame holds it");
        frames.give_back_unused(taken[0]);
        header.become_state(State::Loading);
        header.set_page(Some(PageId(7)));
        frames.bytes(taken[3]).fill(1);
        frames.give_back(taken[3], 0);
        assert_eq!((header.page(), header.state(), frames.free()), (None, State::Free, 2));
        let again = [frames.take().unwrap(), frames.take().unwrap()];
        assert!(again.contains(&taken[3]) && frames.take().is_none());
    }
}
