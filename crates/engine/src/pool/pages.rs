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
//! 2. Work happens in mini-transactions ([`Pages::run`]). One never waits for anything but latches,
//!    and takes those downwards; everything else ends it with a [`Jump`]. Its changes before a jump
//!    must be complete in themselves.
//! 3. Before the first change that needs new pages, a mini-transaction allocates them; an allocated
//!    page that is not needed after all is freed with [`Pages::free`].
//! 4. When a swip moves to another page, [`MiniTransaction::adopt`] is called, while both pages are
//!    latched exclusively. Only the pool writes the swip of a page that stays where it is.
//! 5. A page is freed only after its swip was removed, by a thread that holds it exclusively.

use std::cell::Cell;
use std::ptr::NonNull;

use millpond_base::{Lsn, Mark, PageId, PageKind};

use crate::page::PageType;
use crate::page::record_body::OrphanRoot;
use crate::pool::anchors::Anchor;
use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;
use crate::pool::guard::{Read, Write};
use crate::pool::hint::PageHint;
use crate::pool::jump::{Jump, Ordered, Try};
use crate::pool::latch::Latching;
use crate::pool::memory::frame_page;
use crate::pool::mini_transaction::{Actor, ChangeLog, ChangeSet, PendingChanges};
use crate::pool::starvation::PATIENCE;
use crate::pool::swip::Swip;
use crate::stats::Statistics;

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
pub trait Pages: Send + Sync + Sized + 'static {
    /// Protection of reads.
    type Latching: Latching;
    /// State that a thread keeps while it runs operations (its counters, its epoch).
    type Local: Copy;
    /// Destination of the changes of mini-transactions: a log, or nowhere ([`NoLog`]).
    ///
    /// [`NoLog`]: crate::pool::mini_transaction::NoLog
    type Log: ChangeLog<Self>;

    /// `true` if a mini-transaction may read pages of several paths side by side: a reader holds
    /// nothing, and references need not be in the order of single operations.
    const OVERLAPS: bool;

    /// Returns the bytes of a page.
    fn page_size(&self) -> usize;

    /// Returns the counters of latch waits; a twin has none.
    fn statistics(&self) -> Option<&Statistics> {
        None
    }

    /// Returns the state that this thread keeps; called once per operation.
    fn local(&self) -> Self::Local;
    /// Begins a mini-transaction: enters the epoch, where there is one.
    fn enter(&self, local: Self::Local);
    /// Ends a mini-transaction that made these page references; `done` unless it jumped.
    fn leave(&self, local: Self::Local, made: References, done: bool);
    /// Does the work that a jump asks for, between two mini-transactions; `attempt` counts them
    /// from 0. Returns whether the policy was notified, as of a miss, of the reference that caused
    /// the jump.
    ///
    /// # Errors
    /// The error that makes the operation fail.
    fn settle(&self, jump: Jump, attempt: u32) -> Result<bool, PoolError>;

    /// Ends an operation that had to restart.
    fn over(&self, local: Self::Local) {
        let _ = local;
    }

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

    /// Returns the page of `hint`, latched exclusively, if it is in memory and unchanged since
    /// then; `mark` describes the reference.
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
    /// Returns the page of `hint`, to be read, if it is in memory and unchanged since then.
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
    /// [`Jump::room`] where no frame or page id is available without I/O.
    fn allocate<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
    ) -> Try<Write<'o, Self>>;
    /// Frees a page; nothing refers to it any more.
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
    /// Returns the most pages that a scan should have on their way: others want frames, too.
    fn ahead_max(&self) -> usize;
    /// Makes frames for about `pages` reads to be ordered; outside any mini-transaction.
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

    /// Counts the entries that a mini-transaction without a log added to the tree `owner`, or
    /// removed; on behalf of a transaction if they `may_go` again. Memory without counts does
    /// nothing.
    #[inline(always)]
    fn count_rows(&self, owner: u32, change: i64, may_go: bool) {
        let _ = (owner, change, may_go);
    }
    /// Begins the row count of the tree `owner`, which is new and empty; not logged.
    fn begin_rows(&self, owner: u32) {
        let _ = owner;
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

    /// Runs `attempt` like [`Pages::run`], and also returns where the record of the last
    /// mini-transaction begins; 0 without a record.
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
            self.leave(local, mtr.references.get(), result.is_ok());
            match result {
                Ok(value) => {
                    if attempts > PATIENCE {
                        self.over(local);
                    }
                    return Ok((value, at));
                }
                Err(jump) => match self.settle(jump, attempts) {
                    Ok(true) => notified = mtr.references.get().all(),
                    // The policy may not have received the latest reference; if it did, from a
                    // reader that met a conflict later, it receives it twice.
                    Ok(false) => {
                        notified =
                            mtr.notified.get().max(mtr.references.get().all().saturating_sub(1))
                    }
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

/// Number of page references of a mini-transaction: all in the lower half, those of leaves in the
/// upper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct References(u64);

impl References {
    /// Returns the number of all references.
    #[inline(always)]
    pub fn all(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    /// Returns the number of references to leaves of trees.
    #[inline(always)]
    pub fn leaves(self) -> u64 {
        self.0 >> 32
    }
}

/// A mini-transaction, one attempt at an operation: its guards come from here, and its changes are
/// logged as one record.
pub struct MiniTransaction<'p, P: Pages> {
    pub(crate) pages: &'p P,
    pub(crate) local: P::Local,
    pub(crate) references: Cell<References>,
    /// Number of the operation's first references that the policy received before this
    /// mini-transaction, or by admitting a page. A restart takes the same path again, so its
    /// references to these pages are not new.
    notified: Cell<u64>,
    pending: PendingChanges,
}

impl<P: Pages> Drop for MiniTransaction<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        // Anything is left only if the closure panicked.
        self.end();
    }
}

impl<'p, P: Pages> MiniTransaction<'p, P> {
    #[inline(always)]
    fn new(pages: &'p P, local: P::Local, notified: u64) -> MiniTransaction<'p, P> {
        let (references, notified) = (Cell::new(References(0)), Cell::new(notified));
        MiniTransaction { pages, local, references, notified, pending: PendingChanges::default() }
    }

    /// Marks that the policy was notified of the latest reference in another way.
    pub(crate) fn set_notified(&self) {
        self.notified.set(self.references.get().all());
    }

    /// Returns whether the policy has still to be notified of the latest reference.
    #[inline(always)]
    pub(crate) fn is_new(&self) -> bool {
        self.references.get().all() > self.notified.get()
    }

    /// Logs and releases the changes; returns where the record begins.
    #[inline(always)]
    fn end(&self) -> Lsn {
        if !self.is_logged() || self.pending.is_empty() {
            return Lsn(0);
        }
        self.end_changed()
    }

    #[inline(never)]
    fn end_changed(&self) -> Lsn {
        self.pending.take().map_or(Lsn(0), |changes| P::Log::commit(self.pages, changes))
    }

    /// Returns whether the changes are logged.
    #[inline(always)]
    pub fn is_logged(&self) -> bool {
        P::Log::is_on(self.pages)
    }

    /// Adds a change of the page of `frame`, which is held exclusively, to the record.
    #[inline]
    pub(in crate::pool) fn log_change(&self, change: impl FnOnce(&'p P, &mut ChangeSet)) {
        debug_assert!(self.is_logged(), "what is not logged has no undo");
        self.pending.with(|changes| change(self.pages, changes));
    }

    /// Sets the actor of the next change, and how to undo that change.
    #[inline]
    pub fn undo(&self, actor: Actor, undo: impl FnOnce(&mut Vec<u8>)) {
        if self.is_logged() {
            self.pending.with(|changes| changes.undo(actor, undo));
        }
    }

    /// Records that the root `page`, described by `root`, is an orphan now: nothing refers to it.
    pub fn orphaned(&self, page: PageId, root: OrphanRoot) {
        if self.is_logged() {
            self.pending.with(|changes| changes.orphaned(page, root));
        }
    }

    /// Adds `change` to the number of entries of the tree `owner`, on behalf of `actor`. Called
    /// once, with the changed page latched.
    #[inline]
    pub fn rows_changed(&self, owner: u32, change: i64, actor: Actor) {
        if self.is_logged() {
            self.pending.with(|changes| changes.rows_changed(owner, change));
        } else {
            self.pages.count_rows(owner, change, actor != Actor::Itself);
        }
    }

    /// Records that the tree `owner` is new, and has no entries.
    pub fn rows_begin(&self, owner: u32) {
        if self.is_logged() {
            self.pending.with(|changes| changes.rows_begin(owner));
        } else {
            self.pages.begin_rows(owner);
        }
    }

    /// Returns whether the log knows that nothing refers to the root `page`, which is free or an
    /// orphan. A page that names it is then an older version.
    pub fn is_unreferenced(&self, page: PageId) -> bool {
        self.is_logged() && !P::Log::is_referred_to(self.pages, page)
    }

    /// Records that the root `page` was attached, and is no orphan any longer.
    pub fn attached(&self, page: PageId) {
        if self.is_logged() {
            self.pending.with(|changes| changes.attached(page));
        }
    }

    /// Returns the memory.
    #[inline(always)]
    pub fn pages(&self) -> &'p P {
        self.pages
    }

    /// Returns the state that this thread keeps.
    #[inline(always)]
    pub fn local(&self) -> P::Local {
        self.local
    }

    /// Counts one page reference.
    #[inline(always)]
    pub fn count(&self, mark: Mark) {
        let leaf = u64::from(mark.kind() == PageKind::BTREE_LEAF);
        self.references.set(References(self.references.get().0 + (1 | leaf << 32)));
    }

    /// Removes `count` references from the count, `leaves` of them to leaves: another
    /// mini-transaction makes them again.
    pub(crate) fn uncount(&self, count: u64, leaves: u64) {
        let made = self.references.get();
        debug_assert!(count <= made.all() && leaves <= made.leaves(), "they were counted");
        self.references.set(References(made.0 - (count | leaves << 32)));
    }

    /// Creates a page; see [`Pages::allocate`].
    ///
    /// # Errors
    /// A jump.
    pub fn allocate<'o>(&'o self, new: NewPage) -> Try<Write<'o, P>> {
        self.pages.allocate(self, new)
    }

    /// Declares that `word`, a swip, is in `parent`'s page from now on, so that the child's back
    /// pointer follows it. Both the old and the new parent are held exclusively.
    #[inline]
    pub fn adopt(&self, word: Swip, parent: &Write<'_, P>) {
        self.pages.adopt(word, parent.frame());
    }
}
