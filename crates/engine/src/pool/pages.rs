//! The contract between data structures and the memory that holds their pages.
//!
//! A structure is written once, over [`Pages`], and runs on the buffer pool in each of its
//! compiled combinations and on the in-memory twin.
//!
//! # Rules for structures
//!
//! 1. Every page but a root has exactly one swip, in its parent's page, at an offset that is a
//!    multiple of 8; roots have theirs in an [`Anchor`]. A structure leaves its root where it is:
//!    it grows by moving its content into a new child. Pages, roots as well, get other ids only
//!    when a store shrinks (`moving.rs`).
//! 2. Work happens in mini-transactions ([`Pages::run`]). A mini-transaction waits only for
//!    latches, and takes them downwards; everything else ends it with a
//!    [`Jump`](crate::pool::Jump). Its changes before a jump must be complete in themselves.
//! 3. Before the first change that needs new pages, a mini-transaction allocates them; an allocated
//!    page that is not needed after all is freed with [`Pages::free`].
//! 4. When a swip moves to another page, [`MiniTransaction::adopt`] is called, while both pages are
//!    latched exclusively. Only the pool writes the swip of a page that stays where it is.
//! 5. A page is freed only after its swip was removed, by a thread that holds it exclusively.

use std::ptr::NonNull;

use millpond_base::{Lsn, Mark, PageId};

use crate::page::PageType;
use crate::pool::anchors::Anchor;
use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;
use crate::pool::guard::{Read, Write};
use crate::pool::hint::PageHint;
use crate::pool::jump::{Ordered, Try};
use crate::pool::memory::frame_page;
use crate::pool::mini_transaction::{ChangeLog, MiniTransaction, PageMemory};
use crate::pool::starvation::PATIENCE;
use crate::pool::swip::Swip;

/// Description of a new page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewPage {
    /// Id of the structure that owns it.
    pub owner: u32,
    /// Type of its content.
    pub kind: PageType,
    /// Height above the leaves.
    pub level: u8,
}

/// Memory that holds pages: the buffer pool, or the twin.
pub trait Pages: PageMemory {
    /// `true` if a mini-transaction may read pages of several paths side by side: a reader holds
    /// nothing, and references need not be in the order of single operations.
    const OVERLAPS: bool;

    /// Follows the swip at `at` of `parent`'s page; see [`Read::child`].
    ///
    /// # Errors
    /// A jump, as everywhere in a mini-transaction.
    fn child<'o>(&'o self, parent: &Read<'o, Self>, at: usize, mark: Mark) -> Try<Read<'o, Self>>;
    /// Follows the swip and latches the child exclusively; see [`Read::child_exclusive`].
    ///
    /// # Errors
    /// A jump.
    fn child_exclusive<'o>(
        &'o self,
        parent: &Read<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>>;

    /// Follows a swip of a page that is itself held exclusively; see [`Write::child_exclusive`].
    ///
    /// # Errors
    /// A jump.
    fn child_of_held<'o>(
        &'o self,
        parent: &Write<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>>;

    /// Returns the page of `hint`, latched exclusively, if it is in memory and unchanged since the
    /// hint was taken; `mark` describes the reference.
    #[inline(always)]
    fn recall<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        hint: PageHint,
        mark: Mark,
    ) -> Option<Write<'o, Self>> {
        let _ = (mtr, hint, mark);
        None
    }
    /// Returns the page of `hint`, to be read, if it is in memory and unchanged since the hint was
    /// taken.
    #[inline(always)]
    fn recall_to_read<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        hint: PageHint,
        mark: Mark,
    ) -> Option<Read<'o, Self>> {
        let _ = (mtr, hint, mark);
        None
    }

    /// Creates a page, latched exclusively, zero-filled behind its common header.
    ///
    /// # Errors
    /// [`Jump::room`](crate::pool::Jump::room) where no frame or page id is available without I/O.
    fn allocate<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
    ) -> Try<Write<'o, Self>>;
    /// Frees a page to which nothing refers any more.
    fn free(&self, page: Write<'_, Self>);
    /// Returns the swip to write for `page`, which is in memory.
    fn swip(&self, page: &Write<'_, Self>) -> Swip;
    /// Returns the page that `word`, a swip in a page that is held exclusively, refers to.
    fn page_of(&self, word: Swip) -> PageId;
    /// Records that the swip `word` is in `parent` now; see [`MiniTransaction::adopt`].
    fn adopt(&self, word: Swip, parent: NonNull<FrameHeader>);
    /// Returns whether the page of a swip is in memory: a hint, which may be outdated at once.
    fn is_resident(&self, word: Swip) -> bool;
    /// Begins to load the pages of those swips of `parent`'s page, at the byte offsets `at`, that
    /// are evicted. A hint: it never waits for I/O, and never fails. Returns the number of swips,
    /// from the first on, that need nothing more: there may not be frames for all of them.
    fn prefetch<'o>(&'o self, parent: &Read<'o, Self>, at: &[usize]) -> usize {
        let ordered = self.order_reads(parent, at);
        if ordered.reads > 0 {
            self.begin_reads();
        }
        ordered.passed
    }
    /// Orders the reads that [`Pages::prefetch`] makes, without beginning them.
    fn order_reads<'o>(&'o self, parent: &Read<'o, Self>, at: &[usize]) -> Ordered;
    /// Begins the reads that were ordered.
    fn begin_reads(&self);
    /// Returns the greatest number of pages that a scan should have on their way, as other
    /// operations need frames, too.
    fn ahead_max(&self) -> usize;
    /// Frees frames for about `pages` reads to be ordered. Called outside any mini-transaction.
    ///
    /// # Errors
    /// No frame is available, or a victim could not be written.
    fn make_ready(&self, pages: u32) -> Result<(), PoolError>;
    /// Prefetches the cache lines of the page of `word` that [`Pages::child`] reads, and its first
    /// `len` bytes. `word` need not be valid.
    #[inline(always)]
    fn approach(&self, word: Swip, len: usize) {
        if let Some(frame) = word.frame().filter(|_| word.is_swizzled()) {
            frame_page::prefetch(frame, len);
        }
    }

    /// Makes room for `bytes` in the log; work of many mini-transactions calls it before each.
    ///
    /// # Errors
    /// There is no room.
    fn make_log_room(&self, bytes: usize) -> Result<(), PoolError>;
    /// Returns an anchor for the swip of the root `root`.
    ///
    /// # Errors
    /// No memory.
    fn anchor(&self, root: PageId) -> Result<Anchor, PoolError>;
    /// Returns an anchor for a root that belongs to the structure `owner`: a page of another owner
    /// is an error when it is loaded.
    ///
    /// # Errors
    /// No memory.
    fn anchor_of(&self, owner: u32, root: PageId) -> Result<Anchor, PoolError> {
        let _ = owner;
        self.anchor(root)
    }
    /// Returns an anchor with a new, empty page as root.
    ///
    /// # Errors
    /// No memory, no page id, or nothing can be evicted.
    fn anchor_new(&self, new: NewPage) -> Result<(Anchor, PageId), PoolError>;
    /// Returns an anchor of the structure `owner` with nothing below it. One that is `kept` for
    /// long shares its page with others: no mini-transaction may latch two of them.
    ///
    /// # Errors
    /// No memory.
    fn anchor_empty(&self, owner: u32, kept: bool) -> Result<Anchor, PoolError>;
    /// Releases an anchor after its structure was closed or dropped. Pages below it that are in
    /// memory must have been freed, or evicted, first.
    fn release_anchor(&self, anchor: Anchor);

    /// Runs `attempt` in mini-transactions, one after the other, until it succeeds.
    ///
    /// # Errors
    /// The error with which a mini-transaction, or the work between two of them, failed for good.
    #[inline(always)]
    fn run<T>(
        &self,
        attempt: impl FnMut(&MiniTransaction<'_, Self>) -> Try<T>,
    ) -> Result<T, PoolError> {
        self.run_after(0, attempt)
    }

    /// Like [`Pages::run`]; the policy already received the first `notified` references.
    ///
    /// # Errors
    /// See [`Pages::run`].
    #[inline(always)]
    fn run_after<T>(
        &self,
        notified: u64,
        attempt: impl FnMut(&MiniTransaction<'_, Self>) -> Try<T>,
    ) -> Result<T, PoolError> {
        // Not by `?`, which moves the result as a whole, soon after its parts were written.
        match self.run_from(notified, attempt) {
            Ok((value, _)) => Ok(value),
            Err(error) => Err(error),
        }
    }

    /// Runs `attempt` like [`Pages::run`], and also returns the start of the record of the last
    /// mini-transaction, or 0 without a record.
    ///
    /// # Errors
    /// See [`Pages::run`].
    #[inline(always)]
    fn run_logged<T>(
        &self,
        attempt: impl FnMut(&MiniTransaction<'_, Self>) -> Try<T>,
    ) -> Result<(T, Lsn), PoolError> {
        self.run_from(0, attempt)
    }

    /// Runs `attempt` for [`Pages::run_after`] and [`Pages::run_logged`].
    ///
    /// # Errors
    /// See [`Pages::run`].
    #[inline(always)]
    fn run_from<T>(
        &self,
        mut notified: u64,
        mut attempt: impl FnMut(&MiniTransaction<'_, Self>) -> Try<T>,
    ) -> Result<(T, Lsn), PoolError> {
        let local = self.local();
        let mut attempts = 0;
        loop {
            let mtr = MiniTransaction::new(self, local, notified);
            self.enter(local);
            let result = attempt(&mtr);
            let at = mtr.end();
            self.leave(local, mtr.references(), result.is_ok());
            match result {
                Ok(value) => {
                    if attempts > PATIENCE {
                        self.over(local);
                    }
                    return Ok((value, at));
                }
                Err(jump) => match self.settle(jump, attempts) {
                    Ok(true) => notified = mtr.references().all(),
                    Ok(false) => notified = mtr.notified(),
                    Err(error) => {
                        self.over(local);
                        return Err(error);
                    }
                },
            }
            attempts = attempts.saturating_add(1);
        }
    }
}

impl<P: Pages> MiniTransaction<'_, P> {
    /// Creates a page; see [`Pages::allocate`].
    ///
    /// # Errors
    /// A jump.
    pub fn allocate<'o>(&'o self, new: NewPage) -> Try<Write<'o, P>> {
        self.pages().allocate(self, new)
    }

    /// Declares that `word`, a swip, is in `parent`'s page from now on, so that the child's back
    /// pointer follows it. Both the old and the new parent are held exclusively.
    #[inline]
    pub fn adopt(&self, word: Swip, parent: &Write<'_, P>) {
        self.pages().adopt(word, parent.frame());
    }
}

impl<'o, P: Pages> Read<'o, P> {
    /// Begins to read the parent of a structure's root.
    ///
    /// # Errors
    /// A jump.
    #[inline(always)]
    pub fn anchor(mtr: &'o MiniTransaction<'o, P>, anchor: Anchor) -> Try<Read<'o, P>> {
        // SAFETY: an `Anchor` is used only with the pages that returned it, which keep it.
        unsafe { Read::begin(mtr, anchor.frame) }
    }

    /// Begins to read the root below `anchor`.
    ///
    /// # Errors
    /// A jump.
    #[inline(always)]
    pub fn root(mtr: &'o MiniTransaction<'o, P>, anchor: Anchor, mark: Mark) -> Try<Read<'o, P>> {
        Read::anchor(mtr, anchor)?.child(anchor.swip(), mark)
    }

    /// Follows the swip at byte offset `at` and returns the child. This page had not changed when
    /// the child was reached. `mark` describes the reference: read or write, page kind and depth,
    /// scan.
    ///
    /// # Errors
    /// A jump: a conflict, or the page must be loaded.
    #[inline(always)]
    pub fn child(&self, at: usize, mark: Mark) -> Try<Read<'o, P>> {
        self.mtr().count(mark);
        self.mtr().pages().child(self, at, mark)
    }

    /// Follows the swip at byte offset `at` and latches the child exclusively.
    ///
    /// # Errors
    /// A jump.
    #[inline(always)]
    pub fn child_exclusive(&self, at: usize, mark: Mark) -> Try<Write<'o, P>> {
        self.mtr().count(mark);
        self.mtr().pages().child_exclusive(self, at, mark)
    }
}

impl<'o, P: Pages> Write<'o, P> {
    /// Follows the swip at byte offset `at` and latches the child exclusively, too.
    ///
    /// # Errors
    /// A jump: a conflict, or the page must be loaded.
    #[inline]
    pub fn child_exclusive(&self, at: usize, mark: Mark) -> Try<Write<'o, P>> {
        self.mtr().count(mark);
        self.mtr().pages().child_of_held(self, at, mark)
    }

    /// Returns the swip that refers to this page, to be stored in a parent's page.
    #[inline]
    pub fn swip(&self) -> Swip {
        self.mtr().pages().swip(self)
    }

    /// Frees the page; its swip was removed already.
    pub fn free(self) {
        let mtr = self.mtr();
        if mtr.is_logged() {
            let frame = self.into_frame();
            mtr.log_change(|pages, changes| P::Log::page_freed(pages, changes, frame));
        } else {
            mtr.pages().free(self);
        }
    }
}
