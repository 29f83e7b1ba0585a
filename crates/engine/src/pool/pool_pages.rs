//! The pool's implementation of the interface for data structures. This file needs `unsafe`.

use std::ptr::NonNull;

use millpond_base::{Mark, PageId};

use crate::page::record_body::OrphanRoot;
use crate::pool::anchors::Anchor;
use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::fault::{AHEAD_PART, FRAMES_KEPT};
use crate::pool::frame::FrameHeader;
use crate::pool::guard::{Read, Write};
use crate::pool::hint::PageHint;
use crate::pool::jump::{Jump, Ordered, Try};
use crate::pool::kind::{ANCHOR_SWIP, OWNER_UNKNOWN};
use crate::pool::latch::Latching;
use crate::pool::mini_transaction::{MiniTransaction, PageMemory, RedoLog, References};
use crate::pool::options::PoolStrategy;
use crate::pool::pages::{NewPage, Pages};
use crate::pool::reserved::Reserved;
use crate::pool::swip::Swip;
use crate::stats::Statistics;
use crate::stats::counters::Counter;
use crate::stats::thread_slot::thread_slot;

impl<M: PoolStrategy> PageMemory for Pool<M> {
    type Latching = M::Latching;
    type Local = usize;
    type Log = RedoLog;

    #[inline(always)]
    fn statistics(&self) -> Option<&Statistics> {
        Some(&self.statistics)
    }

    fn page_size(&self) -> usize {
        self.frames.page_size()
    }

    #[inline]
    fn count_rows(&self, owner: u32, change: i64, may_go: bool) {
        if !M::TREES_ONLY {
            self.redo.rows().add(owner, change, may_go);
        }
    }

    fn begin_rows(&self, owner: u32) {
        if !M::TREES_ONLY {
            self.redo.rows().begin(owner);
        }
    }

    #[inline(always)]
    fn local(&self) -> usize {
        thread_slot()
    }

    #[inline(always)]
    fn enter(&self, slot: usize) {
        self.frames.enter(slot);
    }

    #[inline(always)]
    fn leave(&self, slot: usize, made: References, done: bool) {
        self.frames.leave(slot);
        let here = self.statistics.counters.of(slot);
        if done {
            here.add(Counter::References, made.all());
            here.add(Counter::LeafReferences, made.leaves());
        } else {
            here.count(Counter::Restarts);
        }
        if M::RECORDS {
            self.replacement.recorder().leave(slot, done);
        }
    }

    #[cold]
    fn settle(&self, jump: Jump, attempt: u32) -> Result<bool, PoolError> {
        self.settle_jump(jump, attempt)
    }

    #[cold]
    fn over(&self, slot: usize) {
        self.replacement.starvation().end(self.frames.memory(), slot);
    }
}

impl<M: PoolStrategy> Pages for Pool<M> {
    const OVERLAPS: bool = M::SWIZZLES && <M::Latching as Latching>::OPTIMISTIC && !M::RECORDS;

    #[inline(always)]
    fn child<'o>(&'o self, parent: &Read<'o, Self>, at: usize, mark: Mark) -> Try<Read<'o, Self>> {
        self.child_of_reader(parent, at, mark)
    }

    #[inline(always)]
    fn child_exclusive<'o>(
        &'o self,
        parent: &Read<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>> {
        self.child_of_reader_exclusive(parent, at, mark)
    }

    fn child_of_held<'o>(
        &'o self,
        parent: &Write<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>> {
        self.child_of_writer(parent, at, mark)
    }

    #[inline]
    fn recall<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        hint: PageHint,
        mark: Mark,
    ) -> Option<Write<'o, Self>> {
        let frame = self.frames.memory().frame(hint.frame())?;
        // The first check takes no latch, so that a hint that does not fit disturbs no other
        // thread.
        if !hint.fits(self.frames.header(frame)) {
            return None;
        }
        // SAFETY: a frame of this pool. The check that it holds the page is repeated under the
        // latch.
        let page = unsafe { Write::begin(mtr, frame) }.ok()?;
        if !hint.fits(page.header()) {
            return None;
        }
        mtr.count(mark);
        self.on_hit(mtr, frame, mark);
        Some(page)
    }

    #[inline]
    fn recall_to_read<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        hint: PageHint,
        mark: Mark,
    ) -> Option<Read<'o, Self>> {
        let frame = self.frames.memory().frame(hint.frame())?;
        if !hint.fits(self.frames.header(frame)) {
            return None;
        }
        // SAFETY: a frame of this pool. The check that it holds the page follows, and the reader
        // validates everything that it reads from then on.
        let page = unsafe { Read::begin(mtr, frame) }.ok()?;
        if !hint.fits(page.header()) {
            return None;
        }
        mtr.count(mark);
        self.on_hit(mtr, frame, mark);
        Some(page)
    }

    fn allocate<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
    ) -> Try<Write<'o, Self>> {
        let frame = self.fresh_page(new)?;
        // SAFETY: `fresh_page` latched the frame for us.
        Ok(unsafe { Write::held(mtr, frame) }.log_new())
    }

    fn free(&self, page: Write<'_, Self>) {
        self.free_page(page.into_frame());
    }

    #[inline]
    fn swip(&self, page: &Write<'_, Self>) -> Swip {
        if M::SWIZZLES { Swip::hot(page.frame()) } else { Swip::evicted(page.id()) }
    }

    fn page_of(&self, word: Swip) -> PageId {
        if !word.is_swizzled() {
            return word.page();
        }
        word.frame().and_then(|frame| self.frames.header(frame).page()).unwrap_or_default()
    }

    fn adopt(&self, word: Swip, parent: NonNull<FrameHeader>) {
        if M::SWIZZLES
            && word.is_swizzled()
            && let Some(child) = word.frame()
        {
            self.frames.header(child).set_parent(Some(parent));
            self.translation.knows_swips_of(&self.frames, parent);
        }
    }

    fn is_resident(&self, word: Swip) -> bool {
        if M::SWIZZLES {
            return word.is_swizzled();
        }
        matches!(self.translation.find(&self.frames, word.page()), Ok(Some(_)))
    }

    fn order_reads<'o>(&'o self, parent: &Read<'o, Self>, at: &[usize]) -> Ordered {
        self.order_children(parent, at)
    }

    fn begin_reads(&self) {
        // Threads that need the pages before then wait for the reads.
        self.writeback.wake();
    }

    fn ahead_max(&self) -> usize {
        if self.reads_ahead() { self.frames.count() as usize / AHEAD_PART } else { 0 }
    }

    fn make_ready(&self, pages: u32) -> Result<(), PoolError> {
        if !self.reads_ahead() {
            return Ok(());
        }
        self.translation.kinds().all_registered()?;
        self.make_frames(pages.saturating_add(FRAMES_KEPT))
    }

    fn make_log_room(&self, bytes: usize) -> Result<(), PoolError> {
        match self.redo.log() {
            Some(log) if !Reserved::is_in_use() => Ok(log.make_room(bytes as u64)?),
            _ => Ok(()),
        }
    }

    fn anchor(&self, root: PageId) -> Result<Anchor, PoolError> {
        Ok(Anchor::only(self.anchors.take(Swip::evicted(root), OWNER_UNKNOWN)?))
    }

    fn anchor_of(&self, owner: u32, root: PageId) -> Result<Anchor, PoolError> {
        Ok(Anchor::only(self.anchors.take(Swip::evicted(root), owner)?))
    }

    fn anchor_new(&self, new: NewPage) -> Result<(Anchor, PageId), PoolError> {
        let anchor = self.anchors.take(Swip::NULL, new.owner)?;
        let root = self.run(|mtr| {
            // SAFETY: an anchor of this pool.
            let parent = unsafe { Write::begin(mtr, anchor) }?;
            let root = mtr.allocate(new)?;
            let word = root.swip();
            self.frames.set_swip(anchor, ANCHOR_SWIP, word);
            mtr.adopt(word, &parent);
            mtr.orphaned(root.id(), OrphanRoot { kind: new.kind.0, stamp: 0 });
            Ok(root.id())
        })?;
        Ok((Anchor::only(anchor), root))
    }

    fn anchor_empty(&self, owner: u32, kept: bool) -> Result<Anchor, PoolError> {
        match kept {
            true => self.anchors.take_shared(owner, thread_slot()),
            false => Ok(Anchor::only(self.anchors.take(Swip::NULL, owner)?)),
        }
    }

    fn release_anchor(&self, anchor: Anchor) {
        self.anchors.release(anchor);
    }
}
