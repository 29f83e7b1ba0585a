//! A mini-transaction, one attempt at an operation, and the memory that it runs in.

use std::cell::Cell;

use millpond_base::{Lsn, Mark, PageId, PageKind};

use crate::page::record_body::OrphanRoot;
use crate::pool::error::PoolError;
use crate::pool::jump::Jump;
use crate::pool::latch::Latching;
use crate::pool::mini_transaction::change_log::ChangeLog;
use crate::pool::mini_transaction::change_set::{Actor, ChangeSet, PendingChanges};
use crate::stats::Statistics;

/// Memory in which mini-transactions run: its latches, the state of its threads and its log.
pub trait PageMemory: Send + Sync + Sized + 'static {
    /// Protection of reads.
    type Latching: Latching;
    /// State that a thread keeps while it runs operations (its counters, its epoch).
    type Local: Copy;
    /// Destination of the changes of mini-transactions: a log, or nowhere ([`NoLog`]).
    ///
    /// [`NoLog`]: crate::pool::mini_transaction::NoLog
    type Log: ChangeLog<Self>;

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
    /// Ends a mini-transaction that made these page references; `done` is `true` unless it jumped.
    fn leave(&self, local: Self::Local, made: References, done: bool);
    /// Does the work that a jump asks for, between two mini-transactions; `attempt` counts them
    /// from 0. Returns whether the policy was notified of the reference that caused the jump, as a
    /// miss.
    ///
    /// # Errors
    /// The error that makes the operation fail.
    fn settle(&self, jump: Jump, attempt: u32) -> Result<bool, PoolError>;

    /// Ends an operation that had to restart.
    fn over(&self, local: Self::Local) {
        let _ = local;
    }

    /// Adds `change` to the number of entries of the tree `owner`, for a mini-transaction without a
    /// log. `may_go` is `true` if a transaction made the change and may undo it. Memory without
    /// counts does nothing.
    #[inline(always)]
    fn count_rows(&self, owner: u32, change: i64, may_go: bool) {
        let _ = (owner, change, may_go);
    }
    /// Begins the row count of the tree `owner`, which is new and empty; not logged.
    fn begin_rows(&self, owner: u32) {
        let _ = owner;
    }
}

/// Number of page references of a mini-transaction: all references in the lower half, references to
/// leaves in the upper.
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
pub struct MiniTransaction<'p, P: PageMemory> {
    pages: &'p P,
    local: P::Local,
    references: Cell<References>,
    /// Number of the operation's first references that the policy received before this
    /// mini-transaction, or by admitting a page. A restart takes the same path again, so its
    /// references to these pages are not new.
    notified: Cell<u64>,
    pending: PendingChanges,
}

impl<P: PageMemory> Drop for MiniTransaction<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        // Changes are left only if the closure panicked.
        self.end();
    }
}

impl<'p, P: PageMemory> MiniTransaction<'p, P> {
    #[inline(always)]
    pub(in crate::pool) fn new(
        pages: &'p P,
        local: P::Local,
        notified: u64,
    ) -> MiniTransaction<'p, P> {
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

    /// Returns the references made so far.
    #[inline(always)]
    pub(in crate::pool) fn references(&self) -> References {
        self.references.get()
    }

    /// Returns the number of references that the policy received, for the restart after a conflict.
    /// The latest reference is left out, as the policy may not have received it. If it did, from a
    /// reader that met a conflict later, it receives that reference twice.
    #[inline]
    pub(in crate::pool) fn notified(&self) -> u64 {
        self.notified.get().max(self.references.get().all().saturating_sub(1))
    }

    /// Logs and releases the changes; returns the start of the record, or 0 if there is none.
    #[inline(always)]
    pub(in crate::pool) fn end(&self) -> Lsn {
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

    /// Returns the memory in which it runs.
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
}
