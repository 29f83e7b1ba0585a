//! Creation and deletion of pages. This file needs `unsafe`.
//!
//! The code here runs under latches, so it never waits. A new page needs a free frame and a page id
//! that was allocated ahead. If either is missing, `fresh_page` returns [`Jump::room`], which ends
//! the mini-transaction, and `allocate_below` returns a `Lacking`.
//!
//! A page can be deleted while it is being written. Readers and the policy lose it at once; its
//! frame and its id are freed only when the write is complete ([`Pool::reap`]).

use std::ptr::NonNull;

use millpond_base::{Lsn, Mark, PageId, PageKind};
use millpond_policies::contract::GhostHit;

use crate::page::{PageHeader, PageType};
use crate::pool::buffer_pool::Pool;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::guard::Write;
use crate::pool::jump::{Jump, Try};
use crate::pool::mini_transaction::MiniTransaction;
use crate::pool::options::PoolStrategy;
use crate::pool::pages::NewPage;
use crate::stats::counters::Counter;

/// Resource that is missing to create a page with an id below a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lacking {
    /// No page id below the bound is free.
    Id,
    /// No frame is free.
    Frame,
}

/// Depth recorded for a page that was just created. Most such pages are leaves, and the next
/// reference sets the depth.
const DEPTH_UNKNOWN: u8 = u8::MAX;

fn kind_of(page_type: PageType) -> PageKind {
    match page_type {
        PageType::BTREE_INNER => PageKind::BTREE_INNER,
        PageType::BTREE_LEAF => PageKind::BTREE_LEAF,
        _ => PageKind::OTHER,
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Creates a page and returns its frame, latched exclusively.
    pub(crate) fn fresh_page(&self, new: NewPage) -> Try<NonNull<FrameHeader>> {
        /// Frames and page ids that a split of a whole path may need.
        const ROOM: u32 = 6;
        if self.frames.free() == 0 {
            return Err(Jump::room(ROOM));
        }
        let Some(id) = self.ids.take() else { return Err(Jump::room(ROOM)) };
        let Some(frame) = self.take_free() else {
            self.ids.untake(id);
            return Err(Jump::room(ROOM));
        };
        self.begin_page(frame, id, new);
        Ok(frame)
    }

    /// Creates a page with an id below `bound`, latched exclusively.
    ///
    /// # Errors
    /// The resource that is missing; nothing has changed then.
    pub(crate) fn allocate_below<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
        bound: PageId,
    ) -> Result<Write<'o, Self>, Lacking> {
        let id = self.ids.take_below(bound).ok_or(Lacking::Id)?;
        let Some(frame) = self.take_free() else {
            self.ids.give(id);
            return Err(Lacking::Frame);
        };
        self.begin_page(frame, id, new);
        // SAFETY: `take_free` latched the frame for us.
        Ok(unsafe { Write::held(mtr, frame) }.log_new())
    }

    /// Initialises and admits the new page `id` in the free `frame`, which is latched exclusively.
    fn begin_page(&self, frame: NonNull<FrameHeader>, id: PageId, new: NewPage) {
        let header = self.frames.header(frame);
        debug_assert_eq!(header.state(), State::Free, "a new page gets a free frame");
        debug_assert!(header.latch.is_exclusive());
        header.set_page(Some(id));
        header.set_parent(None);
        header.set_rec_lsn(self.redo.tail());
        header.set_dirty();
        let page = self.frames.bytes(frame);
        page.fill(0);
        let (kind, level, owner) = (new.kind, new.level, new.owner);
        let lsn = Lsn(0);
        PageHeader { checksum: 0, lsn, page: id, owner, kind, level }.write(page);
        self.statistics.counters.count(Counter::PagesAllocated);
        self.admit_new(frame, id, kind);
    }

    /// Admits a page that was just allocated; its frame is latched exclusively.
    fn admit_new(&self, frame: NonNull<FrameHeader>, page: PageId, kind: PageType) {
        let mark = Mark::WRITE.with_kind(kind_of(kind), DEPTH_UNKNOWN);
        let access = self.replacement.access(page, mark, false);
        let none = GhostHit::NONE;
        self.replacement.admit(&self.frames, self.counters(), frame, &access, none, || {
            self.translation.attach(&self.frames, frame, page, None);
        });
    }

    /// Deletes a page; its frame is latched exclusively.
    pub(crate) fn free_page(&self, frame: NonNull<FrameHeader>) {
        let header = self.frames.header(frame);
        debug_assert!(header.latch.is_exclusive());
        let Some(page) = header.page() else {
            header.latch.release_exclusive();
            return;
        };
        self.translation.remove(&self.frames, page, header.id());
        let publish = || header.become_state(State::Evicted);
        self.replacement.forget(&self.frames, header.id(), publish);
        header.clear_dirty();
        header.set_parent(None);
        self.statistics.counters.count(Counter::PagesFreed);
        if header.is_writing() {
            // The page id must not be reused before the write is complete.
            header.latch.release_exclusive();
            self.writeback.defer(header.id(), page);
            self.reap();
            return;
        }
        self.finish_free(frame, page);
    }

    /// Takes the last steps of [`Pool::free_page`], once no write of the page is under way.
    fn finish_free(&self, frame: NonNull<FrameHeader>, page: PageId) {
        let header = self.frames.header(frame);
        debug_assert_eq!(header.page(), Some(page), "a deferred page keeps its frame");
        debug_assert!(!header.is_writing(), "{page:?} would be reused before its write is over");
        header.set_page(None);
        // A write that was under way may have failed, and made the page dirty once more.
        header.clear_dirty();
        self.ids.give(page);
        self.frames.give_back_deleted(frame, self.counters());
    }

    /// Finishes deletions that waited for a write.
    pub(crate) fn reap(&self) {
        for (id, page) in self.writeback.take_deferred() {
            let Some(frame) = self.frames.memory().frame(id) else { continue };
            let header = self.frames.header(frame);
            if header.is_writing() || !header.latch.exclusive() {
                self.writeback.defer(id, page);
                continue;
            }
            self.finish_free(frame, page);
        }
    }
}
