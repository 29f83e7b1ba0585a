//! Translation of page ids to frames, and reads of pages from storage into frames.

use std::ptr::NonNull;
use std::sync::Arc;

use millpond_base::read_ahead::after;
use millpond_base::{FrameId, PageId};

use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::jump::Load;
use crate::pool::kind::Kinds;
use crate::pool::latch::Latching;
use crate::pool::memory::frames::Frames;
use crate::pool::options::PoolStrategy;
use crate::pool::storage::{PageIn, Storage};
use crate::pool::swip::Swip;
use crate::pool::translation::in_flight::InFlight;
use crate::pool::translation::page_table::{Busy, PageTable};
use crate::pool::translation::read_orders::ReadOrders;
use crate::stats::Statistics;
use crate::stats::counters::{Counter, Gauge, Timing};

/// Place of a swip: the frame of the page that holds it, and its offset in that page.
pub(crate) type Place = (NonNull<FrameHeader>, usize);

/// A page that is not in memory, and the offset of its swip in its parent's page.
pub(crate) type Missing = (PageId, usize);

/// A page that was read ahead into a frame, and the result of the read.
pub(crate) struct ReadAhead {
    pub(crate) page: PageId,
    pub(crate) frame: NonNull<FrameHeader>,
    pub(crate) result: Result<(), PoolError>,
}

/// Finds the frames of pages, and loads pages.
///
/// # Invariants
/// 1. Each page in state hot or cooling is in the page table, if there is one, and each page in it
///    is in one of these states.
/// 2. A page is in memory once at most: its load begins in the table of in-flight I/O.
/// 3. A page is read only into a frame that the thread has latched exclusively, and cannot be
///    reached before its swips were checked.
pub(crate) struct Translation<M: PoolStrategy> {
    /// Page table, from page id to frame; empty if swips alone lead to pages.
    table: PageTable<M::Latching>,
    /// Pages that are being loaded, are loaded and not attached yet, or stand by.
    in_flight: InFlight,
    /// Reads that are ordered ahead of need.
    orders: ReadOrders,
    /// Finds the swips of each page type.
    kinds: Kinds,
    storage: Arc<dyn Storage>,
}

impl<M: PoolStrategy> Translation<M> {
    /// Returns the translation of pages in `storage` to `frames` frames.
    pub(crate) fn new(storage: Arc<dyn Storage>, frames: u32) -> Translation<M> {
        Translation {
            table: PageTable::new(if M::HAS_TABLE { frames } else { 2 }),
            in_flight: InFlight::default(),
            orders: ReadOrders::default(),
            kinds: Kinds::new(),
            storage,
        }
    }

    /// Returns the kinds of pages.
    #[inline(always)]
    pub(crate) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the loads that are in flight.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Returns the reads that are ordered ahead of need.
    pub(crate) fn orders(&self) -> &ReadOrders {
        &self.orders
    }

    /// Returns the frame of `page`, as found in the page table.
    ///
    /// # Errors
    /// [`Busy`]: another thread changes that part of the table.
    #[inline(always)]
    pub(crate) fn find(&self, frames: &Frames, page: PageId) -> Result<Option<FrameId>, Busy> {
        self.table.find(frames.memory(), page)
    }

    /// Returns whether `page` may be in the page table.
    pub(crate) fn has(&self, frames: &Frames, page: PageId) -> bool {
        !matches!(self.find(frames, page), Ok(None))
    }

    /// Makes the page in `frame` hot, and reachable: by its swip at `place`, if there is one, and
    /// by the page table, if there is one. The page that holds the swip is latched exclusively.
    pub(crate) fn attach(
        &self,
        frames: &Frames,
        frame: NonNull<FrameHeader>,
        page: PageId,
        place: Option<Place>,
    ) {
        let header = frames.header(frame);
        if let (true, Some((parent, at))) = (M::SWIZZLES, place) {
            debug_assert_eq!(Swip(frames.view(parent).u64(at)), Swip::evicted(page));
            header.set_parent(Some(parent));
        }
        header.become_state(State::Hot);
        if M::HAS_TABLE {
            self.table.insert(frames.memory(), page, header.id());
        }
        if let (true, Some((parent, at))) = (M::SWIZZLES, place) {
            frames.set_swip(parent, at, Swip::hot(frame));
        }
    }

    /// Removes the page in `frame` from the page table, if there is one; returns `false` if that
    /// part of the table is in use.
    pub(crate) fn try_remove(&self, frames: &Frames, page: PageId, frame: FrameId) -> bool {
        !M::HAS_TABLE || self.table.try_remove(frames.memory(), page, frame)
    }

    /// Removes the page in `frame` from the page table, if there is one.
    pub(crate) fn remove(&self, frames: &Frames, page: PageId, frame: FrameId) {
        if M::HAS_TABLE {
            self.table.remove(frames.memory(), page, frame);
        }
    }

    /// Returns whether the swips of the page in `parent`, which this thread holds, can be found.
    /// If not, nothing is written any more: pointers in such a page would reach storage.
    pub(crate) fn knows_swips_of(&self, frames: &Frames, parent: NonNull<FrameHeader>) -> bool {
        !M::SWIZZLES || self.kinds.finds_swips_of(frames.view(parent))
    }

    /// Returns the offset of the swip `word` of `child` in the page of `parent`, which is latched
    /// exclusively.
    pub(crate) fn find_swip(
        &self,
        frames: &Frames,
        parent: NonNull<FrameHeader>,
        word: Swip,
        child: NonNull<FrameHeader>,
    ) -> Option<usize> {
        debug_assert!(
            frames.header(parent).latch.is_exclusive(),
            "swips are looked for under a latch"
        );
        let view = frames.view(parent);
        let kind = self.kinds.of(view)?;
        let at = kind.find(view, word.0, frames.view(child));
        debug_assert!(at.is_none_or(|at| view.u64(at) == word.0), "not at {at:?}");
        at.filter(|at| view.u64(*at) == word.0)
    }

    /// Returns whether the swip is still there, in its evicted form; waits for nothing.
    pub(crate) fn is_missing(&self, frames: &Frames, load: &Load) -> bool {
        if !M::SWIZZLES && self.has(frames, load.page) {
            return false;
        }
        // Even with a page table, the parent must still refer to the page: otherwise the page may
        // have been loaded and deleted since, and its id may belong to another page.
        let latch = &frames.header(load.parent).latch;
        let word = Swip(frames.view(load.parent).u64(load.at));
        let still = if M::Latching::THREADS {
            latch.is_still(load.version)
        } else {
            latch.version_held() == load.version
        };
        still && word == Swip::evicted(load.page)
    }

    /// Reads `page` into a free frame, which is latched exclusively, and checks its swips.
    ///
    /// # Errors
    /// The page cannot be read, or is damaged.
    pub(crate) fn read(
        &self,
        frames: &Frames,
        statistics: &Statistics,
        frame: NonNull<FrameHeader>,
        page: PageId,
    ) -> Result<(), PoolError> {
        let bytes = begin_read(frames, frame, page);
        let started = statistics.latencies.start(Timing::ReadTime);
        statistics.counters.raise(Gauge::ReadsInFlight);
        let result = self.storage.read(page, bytes);
        statistics.counters.lower(Gauge::ReadsInFlight);
        statistics.latencies.stop(Timing::ReadTime, started);
        let here = statistics.counters.here();
        here.count(Counter::Reads);
        here.add(Counter::BytesRead, frames.page_size() as u64);
        result.and_then(|()| self.verify(frames, frame, page))
    }

    /// Reads pages ahead of their use, into the frames that were taken for them.
    pub(crate) fn read_ahead(
        &self,
        frames: &Frames,
        statistics: &Statistics,
        orders: &[(PageId, FrameId)],
    ) -> Vec<ReadAhead> {
        let mut reads = Vec::with_capacity(orders.len());
        for (page, id) in orders {
            let Some(frame) = frames.memory().frame(*id) else { continue };
            reads.push(PageIn::new(*page, *id, begin_read(frames, frame, *page)));
        }
        self.storage.read_batch(&mut reads);
        let here = statistics.counters.here();
        let done = reads.into_iter().filter_map(|PageIn { page, frame, result, .. }| {
            let frame = frames.memory().frame(frame)?;
            here.count(Counter::Reads);
            here.count(Counter::ReadsAhead);
            here.add(Counter::BytesRead, frames.page_size() as u64);
            let result = result.and_then(|()| self.verify(frames, frame, page));
            Some(ReadAhead { page, frame, result })
        });
        done.collect()
    }

    /// Returns the children of the load's parent that are to be read ahead, in the order of their
    /// ids. The parent is latched.
    pub(crate) fn missing_after(&self, frames: &Frames, load: &Load) -> Vec<Missing> {
        let view = frames.view(load.parent);
        let mut children: Vec<(PageId, usize, bool)> = Vec::new();
        let Some(kind) = self.kinds.of(view) else { return Vec::new() };
        kind.swips(view, &mut |at| {
            let word = Swip(view.u64(at));
            if let Some(child) = named_by(frames, word) {
                children.push((child, at, word.is_swizzled()));
            }
            true
        });
        children.sort_unstable();
        let child = |page: PageId| {
            let found = children.binary_search_by_key(&page, |child| child.0).ok()?;
            children.get(found)
        };
        let is_here = |page: PageId| {
            let is_found = if M::HAS_TABLE {
                self.has(frames, page)
            } else {
                load.parent_page == Some(page) || child(page).is_some_and(|child| child.2)
            };
            is_found || self.in_flight.has(page)
        };
        let ahead = after(load.page.0, frames.count(), |page| is_here(PageId(page)));
        let missing = ahead.map(PageId).filter(|page| !is_here(*page));
        missing.filter_map(|page| child(page).map(|child| (page, child.1))).collect()
    }

    /// Reports to storage that the bytes read for `page` are sound, and cannot be the page.
    pub(super) fn distrust(&self, page: PageId) {
        self.storage.distrust(page);
    }

    /// Returns the number of pages that can exist in storage now.
    pub(super) fn pages(&self) -> u64 {
        self.storage.pages()
    }
}

/// Begins the read of `page` into `frame`, which is free and latched exclusively.
fn begin_read(frames: &Frames, frame: NonNull<FrameHeader>, page: PageId) -> &mut [u8] {
    let header = frames.header(frame);
    debug_assert!(header.latch.is_exclusive(), "a page is loaded into a frame that is latched");
    header.become_state(State::Loading);
    header.set_page(Some(page));
    frames.bytes(frame)
}

/// Returns the page that a swip of a latched page refers to.
fn named_by(frames: &Frames, word: Swip) -> Option<PageId> {
    if word == Swip::NULL {
        None
    } else if word.is_swizzled() {
        word.frame().and_then(|frame| frames.header(frame).page())
    } else {
        Some(word.page())
    }
}
