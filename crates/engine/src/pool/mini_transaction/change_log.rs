//! The log of a mini-transaction's changes: a pool logs them, the twin does not.

use std::ptr::NonNull;

use millpond_base::{Lsn, PageId};

use crate::pool::frame::FrameHeader;
use crate::pool::mini_transaction::change_set::ChangeSet;

/// The log of the changes that mini-transactions make to the pages of a `P`.
///
/// Every frame that is passed belongs to `P`, and is latched exclusively by the mini-transaction
/// whose changes these are.
pub trait ChangeLog<P>: 'static {
    /// Returns whether changes are logged. If not, no other function is called.
    fn is_on(pages: &P) -> bool;

    /// Records that the page of `frame` is about to change without a redo record: only its bytes
    /// show the change.
    fn page_changes(pages: &P, changes: &mut ChangeSet, frame: NonNull<FrameHeader>);

    /// Records that the page of `frame` is about to change exactly as the physiological redo record
    /// of `redo` describes.
    fn page_changes_by(
        pages: &P,
        changes: &mut ChangeSet,
        frame: NonNull<FrameHeader>,
        redo: impl FnOnce(&mut Vec<u8>),
    );

    /// Records that the page of `frame` was just allocated.
    fn page_allocated(pages: &P, changes: &mut ChangeSet, frame: NonNull<FrameHeader>);

    /// Records that the page of `frame` is to be freed once the record is in the log.
    fn page_freed(pages: &P, changes: &mut ChangeSet, frame: NonNull<FrameHeader>);

    /// Returns whether something refers to the root `page`: it is in use, and no orphan.
    fn is_referred_to(pages: &P, page: PageId) -> bool;

    /// Ends the mini-transaction: logs its changes as one record, releases its pages, and returns
    /// the start of the record.
    fn commit(pages: &P, changes: Box<ChangeSet>) -> Lsn;
}

/// The log of memory that logs nothing.
pub struct NoLog;

impl<P> ChangeLog<P> for NoLog {
    #[inline(always)]
    fn is_on(_: &P) -> bool {
        false
    }

    fn page_changes(_: &P, _: &mut ChangeSet, _: NonNull<FrameHeader>) {}

    fn page_changes_by(
        _: &P,
        _: &mut ChangeSet,
        _: NonNull<FrameHeader>,
        _: impl FnOnce(&mut Vec<u8>),
    ) {
    }

    fn page_allocated(_: &P, _: &mut ChangeSet, _: NonNull<FrameHeader>) {}

    fn page_freed(_: &P, _: &mut ChangeSet, _: NonNull<FrameHeader>) {}

    fn is_referred_to(_: &P, _: PageId) -> bool {
        true
    }

    fn commit(_: &P, _: Box<ChangeSet>) -> Lsn {
        Lsn(0)
    }
}
