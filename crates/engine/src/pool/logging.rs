//! The pool's side of logging: it hands over pages without pointers, sets their LSNs, and releases
//! them once the record about them is in the log.
//!
//! The rules are in `pool/mini_transaction`.

use std::ptr::NonNull;

use millpond_base::{Lsn, PageId};

use crate::page::View;
use crate::pool::buffer_pool::Pool;
use crate::pool::frame::FrameHeader;
use crate::pool::mini_transaction::{ChangeLog, ChangeSet, PageCopies, RedoLog};
use crate::pool::options::PoolStrategy;
use crate::stats::counters::Counter;

impl<M: PoolStrategy> ChangeLog<Pool<M>> for RedoLog {
    #[inline(always)]
    fn is_on(pool: &Pool<M>) -> bool {
        !M::TREES_ONLY && pool.redo_log().log().is_some()
    }

    #[inline]
    fn page_changes(pool: &Pool<M>, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        let header = pool.frames.header(frame);
        let Some(page) = header.page() else { return };
        debug_assert!(header.latch.is_exclusive(), "a page changes under its exclusive latch");
        let begin =
            || header.begin_logged_change(|| pool.redo.tail()) && pool.writeback.is_in_place();
        let copy = |arena: &mut Vec<u8>| {
            pool.frames.view(frame).copy_to(0, pool.frames.page_size(), arena);
        };
        changes.page_changes(frame, page, begin, copy);
    }

    #[inline]
    fn page_changes_by(
        pool: &Pool<M>,
        changes: &mut ChangeSet,
        frame: NonNull<FrameHeader>,
        redo: impl FnOnce(&mut Vec<u8>),
    ) {
        let header = pool.frames.header(frame);
        let Some(page) = header.page() else { return };
        debug_assert!(header.latch.is_exclusive(), "a page changes under its exclusive latch");
        let begin =
            || header.begin_logged_change(|| pool.redo.tail()) && pool.writeback.is_in_place();
        changes.page_changes_by(frame, page, begin, redo);
    }

    fn page_allocated(pool: &Pool<M>, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        let Some(page) = pool.frames.header(frame).page() else { return };
        changes.page_allocated(frame, page);
    }

    fn page_freed(pool: &Pool<M>, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        let Some(page) = pool.frames.header(frame).page() else { return };
        changes.page_freed(frame, page);
    }

    fn is_referred_to(pool: &Pool<M>, page: PageId) -> bool {
        pool.redo.space_at_tail(|_, space| space.is_referred_to(page))
    }

    fn commit(pool: &Pool<M>, mut changes: Box<ChangeSet>) -> Lsn {
        changes.compose(pool);
        let appended = pool.redo.append(&changes);
        if let Some(appended) = appended {
            debug_assert!(appended.start < appended.end, "LSNs grow");
            for changed in changes.pages() {
                debug_assert!(
                    changed.is_freed() || pool.frames.header(changed.frame()).is_dirty(),
                    "a page that changed is dirty"
                );
                pool.set_page_lsn(changed.frame(), appended.end);
            }
        }
        for changed in changes.pages() {
            if changed.is_freed() {
                pool.free_page(changed.frame());
            } else {
                pool.frames.header(changed.frame()).latch.release_exclusive();
            }
        }
        changes.recycle();
        appended.map_or(Lsn(0), |appended| appended.start)
    }
}

impl<M: PoolStrategy> PageCopies for Pool<M> {
    fn image(&self, frame: NonNull<FrameHeader>, copy: &mut Vec<u8>) {
        let view = self.frames.view(frame);
        view.copy_to(0, self.frames.page_size(), copy);
        if M::SWIZZLES
            && let Some(kind) = self.translation.kinds().of(view)
        {
            kind.swips(view, &mut |at| {
                self.frames.unswizzle_copy(view, copy, at);
                true
            });
        }
    }

    fn after(&self, frame: NonNull<FrameHeader>, before: &[u8], copy: &mut Vec<u8>) {
        let view = self.frames.view(frame);
        view.copy_to(0, self.frames.page_size(), copy);
        if !M::SWIZZLES {
            return;
        }
        let Some(kind) = self.translation.kinds().of(view) else { return };
        // An unchanged word that was a swip before still means the same child, and the log has it.
        // An unchanged word that was no swip is a remnant of an entry, perhaps a pointer; an image
        // in the log may have it, too.
        let was = View::of(before);
        let mut swips = Vec::new();
        if let Some(kind) = self.translation.kinds().of(was) {
            kind.swips(was, &mut |at| {
                swips.push(at);
                true
            });
            swips.sort_unstable();
        }
        kind.swips(view, &mut |at| {
            let is_same =
                before.get(at..at + 8) == copy.get(at..at + 8) && swips.binary_search(&at).is_ok();
            if !is_same {
                self.frames.unswizzle_copy(view, copy, at);
            }
            true
        });
    }

    fn leave_out_gaps(&self, before: &mut [u8], after: &mut [u8]) {
        if !self.writeback.compresses() {
            return;
        }
        let gap = |page: &[u8]| {
            let view = View::of(page);
            self.translation.kinds().of(view).map_or(0..0, |kind| kind.gap(view))
        };
        let (was, is) = (gap(before), gap(after));
        if let (Some(before), Some(after)) = (before.get_mut(was.clone()), after.get(was)) {
            before.iter_mut().zip(after).for_each(|(before, after)| *before = !after);
        }
        if let (Some(before), Some(after)) = (before.get(is.clone()), after.get_mut(is)) {
            after.copy_from_slice(before);
        }
    }

    fn count_image(&self, bytes: u64) {
        self.counters().add(Counter::LogImages, 1);
        self.counters().add(Counter::LogImageBytes, bytes);
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Returns the redo log, with the page space and the row counts at its end.
    #[inline(always)]
    pub fn redo_log(&self) -> &RedoLog {
        &self.redo
    }

    /// Returns whether changes are logged, and pages therefore have LSNs.
    pub(crate) fn is_logged(&self) -> bool {
        <RedoLog as ChangeLog<Pool<M>>>::is_on(self)
    }

    /// Returns whether the log knows that `page` is free. A page that refers to it is then an older
    /// version. The latch of the referring page is held: a thread that frees a page holds the latch
    /// of the page's parent.
    pub(crate) fn is_free(&self, page: PageId) -> bool {
        <RedoLog as ChangeLog<Pool<M>>>::is_on(self)
            && self.redo.space_at_tail(|_, space| !space.is_taken(page))
    }

    /// Sets the LSN of the page in `frame`, which is latched exclusively: the end of the last
    /// record about it.
    fn set_page_lsn(&self, frame: NonNull<FrameHeader>, lsn: Lsn) {
        let header = self.frames.header(frame);
        let bytes = self.frames.bytes(frame);
        // Not compared with the page's own LSN: a store that got a new log, as a backup does, keeps
        // the LSNs of the old one.
        debug_assert!(header.rec_lsn() < lsn, "its records begin before the last one ends");
        if let Some(place) = bytes.get_mut(8..16) {
            place.copy_from_slice(&lsn.0.to_le_bytes());
        }
    }
}
