//! The locks of a transaction.

use std::sync::Arc;
use std::time::Duration;

use super::bytes::KEY_BYTES;
use super::entry::Answer;
use super::error::LockError;
use super::graph::AwaitedLock;
use super::hold::KeyHold;
use super::hold::TreeHold;
use super::manager::LockManager;
use super::manager::Waits;
use super::mode::LockMode;
use super::name::Name;
use super::own::Claim;
use super::own::own_transactions;
use super::own::this_thread;
use super::range::KEY_MAX;
use super::tree::Asking;
use super::tree::Want;
use super::waiter::Waiter;

/// The locks of one transaction, used by one thread at a time. A thread should reuse its owner by
/// [`LockOwner::renew`], which keeps its memory and the trees that it has looked up.
pub struct LockOwner {
    pub(super) manager: Arc<LockManager>,
    pub(super) id: u64,
    pub(super) waiter: Arc<Waiter>,
    pub(super) stripe: usize,
    /// Trees that this transaction or earlier ones have touched.
    pub(super) trees: Vec<TreeHold>,
    pub(super) keys: Vec<KeyHold>,
    pub(super) used: usize,
    pub(super) reserved: usize,
    pub(super) is_writing: bool,
    /// True if nothing was requested since everything was released.
    pub(super) is_idle: bool,
    pub(super) wait_max: Duration,
    /// Number of the thread that this transaction is tied to; 0 for none.
    pub(super) thread: u64,
    pub(super) claim: Option<Arc<Claim>>,
}

impl LockOwner {
    /// Returns an owner without locks for transaction `id`. No two owners of a manager that hold
    /// locks may have the same id. In a deadlock, the owner with the larger id gives way.
    pub fn begin(manager: &Arc<LockManager>, id: u64) -> LockOwner {
        LockOwner {
            manager: Arc::clone(manager),
            id,
            waiter: Arc::new(Waiter::new()),
            stripe: manager.next_stripe(),
            trees: Vec::new(),
            keys: Vec::new(),
            used: 0,
            reserved: 0,
            is_writing: false,
            is_idle: true,
            wait_max: manager.options.wait_max,
            thread: 0,
            claim: None,
        }
    }

    /// Keeps all locks for ever. No thread can end this owner, and no other owner waits for it from
    /// now on.
    pub fn strand(mut self) {
        self.leave_thread();
        self.manager.strand(self.id);
        std::mem::forget(self);
    }

    /// Releases all locks and continues as transaction `id`.
    pub fn renew(&mut self, id: u64) {
        self.release_all();
        debug_assert!(self.keys.is_empty() && self.used == 0, "an owner that ended holds nothing");
        debug_assert!(!self.is_writing, "an owner that ended is no writer");
        self.id = id;
        self.wait_max = self.manager.options.wait_max;
    }

    /// Returns the transaction's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sets the longest wait of this transaction's requests, instead of the limit in the options.
    pub fn set_wait_max(&mut self, wait_max: Duration) {
        self.wait_max = wait_max;
    }

    /// Ties the transaction to the calling thread, which runs a closure in it. A request of another
    /// transaction by this thread that would have to wait for this one fails with
    /// [`LockError::OwnTransaction`].
    #[inline]
    pub fn claim(&mut self) {
        let thread = this_thread();
        if self.thread != thread {
            self.thread = thread;
            let manager = Arc::as_ptr(&self.manager) as usize;
            self.claim.get_or_insert_with(|| Claim::new(manager)).set(self.id, thread);
        }
    }

    /// Ties the transaction to no thread.
    pub fn leave_thread(&mut self) {
        if std::mem::take(&mut self.thread) != 0
            && let Some(claim) = &self.claim
        {
            claim.clear();
        }
    }

    /// Returns whether the calling thread owns transactions besides this one.
    pub fn thread_owns_others(&self) -> bool {
        !own_transactions(Arc::as_ptr(&self.manager) as usize, self.id).is_empty()
    }

    /// Returns the number of key locks held.
    pub fn keys_held(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether the owner holds an `X` lock, or has since it began.
    pub fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Locks `key` of `tree`, whether it exists or not: in `S` for the modes `S` and `IS`, in `X`
    /// for the others. A lock that is already held costs little.
    ///
    /// # Errors
    /// [`LockError`]; earlier locks are still held.
    pub fn lock_key(&mut self, tree: u32, key: &[u8], mode: LockMode) -> Result<(), LockError> {
        if key.len() > KEY_MAX {
            return Ok(());
        }
        let (mode, name) = (mode.of_key(), Name::of(tree, key));
        self.manager.table.fetch(name);
        let at = self.tree_at(tree);
        if self.holds_key(at, key, mode) {
            return Ok(());
        }
        self.lock_intention(at, mode.intention())?;
        if self.make_room(at, KEY_BYTES + key.len())? && self.holds_key(at, key, mode) {
            // Making room has locked the whole tree.
            return Ok(());
        }
        match mode {
            LockMode::X => self.lock_to_write(at, name, key)?,
            _ => {
                self.lock_name(at, name, LockMode::S, false)?;
            }
        }
        let hold = &self.trees[at];
        if hold.keys >= hold.escalate_at {
            self.escalate(at);
        }
        Ok(())
    }

    /// Locks `key` of `tree` in `X` if no other owner blocks it; returns whether it did. For keys
    /// that no owner can wait for, such as ids that a heap is about to assign. Waits only for locks
    /// on the tree as a whole.
    ///
    /// # Errors
    /// [`LockError`]; earlier locks are still held.
    pub fn try_lock_key(&mut self, tree: u32, key: &[u8]) -> Result<bool, LockError> {
        let at = self.tree_at(tree);
        if self.trees[at].covers(LockMode::X) {
            return Ok(true);
        }
        self.lock_intention(at, LockMode::IX)?;
        if self.make_room(at, KEY_BYTES + key.len())? && self.trees[at].covers(LockMode::X) {
            return Ok(true);
        }
        self.begin_writing();
        let (name, id) = (Name::of(tree, key), self.id);
        let table = &self.manager.table;
        let answer = table.lock(name, id, LockMode::X, self.trees[at].written, &self.waiter);
        if answer == Answer::Queued {
            table.leave_queue(name, id);
            return Ok(false);
        }
        if answer == Answer::New {
            self.record(at, name);
        }
        let hold = &self.trees[at];
        let mut writes = hold.writes.lock();
        if let Answer::Held(write) = answer
            && writes.get(write as usize) == Some(key)
        {
            return Ok(true);
        }
        writes.push(key);
        drop(writes);
        let want = Want::Write(key.to_vec());
        if hold.tree.may_have_range_with(key)
            && !hold.tree.request(&self.asking(at), &want, &mut None, false)
        {
            hold.writes.lock().pop();
            self.withdraw(at, name, answer);
            self.trees[at].tree.unwritten(id);
            return Ok(false);
        }
        let hold = &mut self.trees[at];
        hold.written += 1;
        hold.bytes += key.len();
        self.used += key.len();
        Ok(true)
    }

    /// Announces the write of a key of `tree` whose lock no other owner can request yet. Waits for
    /// owners that have locked the tree as a whole, and counts this owner as a writer (rule 8).
    ///
    /// # Errors
    /// [`LockError`]; earlier locks are still held.
    pub fn announce_write(&mut self, tree: u32) -> Result<(), LockError> {
        self.lock_tree(tree, LockMode::IX)?;
        self.begin_writing();
        Ok(())
    }

    /// Returns whether no owner has locked `key` of `tree`, by itself or in a range. Waits for
    /// nothing, and may be called under a latch, after [`LockOwner::announce_write`].
    pub fn is_free(&self, tree: u32, key: &[u8]) -> bool {
        let Some(hold) = self.trees.iter().find(|hold| hold.id == tree) else { return false };
        !self.manager.table.is_locked(Name::of(tree, key))
            && (!hold.tree.may_have_range_with(key) || !hold.tree.has_range_with(key))
    }

    /// Returns whether a lock on more than the key already allows `mode`.
    #[inline]
    fn holds_key(&self, at: usize, key: &[u8], mode: LockMode) -> bool {
        let hold = &self.trees[at];
        hold.covers(mode) || mode == LockMode::S && hold.ranges.iter().any(|range| range.has(key))
    }

    /// Returns the index of `tree` in `trees`.
    #[inline]
    pub(super) fn tree_at(&mut self, tree: u32) -> usize {
        self.is_idle = false;
        if let Some(at) = self.trees.iter().position(|hold| hold.id == tree) {
            return at;
        }
        let escalate_at = self.manager.options.escalate_after;
        self.trees.push(TreeHold::new(self.manager.tree(tree), escalate_at));
        self.trees.len() - 1
    }

    /// Announces `IS` or `IX` at a tree, once.
    #[inline]
    pub(super) fn lock_intention(&mut self, at: usize, mode: LockMode) -> Result<(), LockError> {
        if self.trees[at].intention.is_some_and(|held| held.covers(mode)) {
            return Ok(());
        }
        self.announce(at, mode)
    }

    #[inline(never)]
    fn announce(&mut self, at: usize, mode: LockMode) -> Result<(), LockError> {
        let spare = self.trees[at].spare.take();
        if !self.trees[at].tree.try_intend(&self.asking(at), mode, spare) {
            self.lock_in_tree(at, Want::Intention(mode), &mut None)?;
        }
        self.trees[at].intention = Some(mode);
        Ok(())
    }

    pub(super) fn asking(&self, at: usize) -> Asking<'_> {
        let writes = &self.trees[at].writes;
        Asking { id: self.id, stripe: self.stripe, waiter: &self.waiter, writes }
    }

    /// Acquires `want`, and waits for it if necessary.
    pub(super) fn lock_in_tree(
        &self,
        at: usize,
        want: Want,
        ticket: &mut Option<u64>,
    ) -> Result<(), LockError> {
        let asking = self.asking(at);
        let tree = &self.trees[at].tree;
        if tree.request(&asking, &want, ticket, true) {
            return Ok(());
        }
        self.wait(tree.id, AwaitedLock::Tree(Arc::clone(tree)), || {
            tree.request(&asking, &want, ticket, true)
        })
    }

    fn wait(
        &self,
        tree: u32,
        awaited: AwaitedLock,
        attempt: impl FnMut() -> bool,
    ) -> Result<(), LockError> {
        let (id, waiter, wait_max) = (self.id, &self.waiter, self.wait_max);
        self.manager.wait(&Waits { id, tree, awaited, waiter, wait_max }, attempt)
    }

    /// Locks a name, and records it if it is new. `is_next` is set if the owner's turn to write has
    /// come and its request is still in the tree's queue, so that no other owner overtakes it.
    #[inline]
    fn lock_name(
        &mut self,
        at: usize,
        name: Name,
        mode: LockMode,
        is_next: bool,
    ) -> Result<Answer, LockError> {
        let hold = &self.trees[at];
        debug_assert!(
            hold.intention.is_some_and(|held| held.covers(mode.intention())),
            "a tree is locked with an intention before its keys"
        );
        let table = &self.manager.table;
        match table.lock(name, self.id, mode, hold.written, &self.waiter) {
            Answer::New => {
                self.record(at, name);
                Ok(Answer::New)
            }
            Answer::Queued => self.await_name(at, name, mode, is_next),
            held => Ok(held),
        }
    }

    /// Records a key lock that was just granted.
    #[inline]
    fn record(&mut self, at: usize, name: Name) {
        self.keys.push(KeyHold { name, tree: at as u32 });
        let hold = &mut self.trees[at];
        hold.keys += 1;
        hold.bytes += KEY_BYTES;
        self.used += KEY_BYTES;
    }

    /// Waits for a name whose request is in the queue.
    #[cold]
    fn await_name(
        &mut self,
        at: usize,
        name: Name,
        mode: LockMode,
        is_next: bool,
    ) -> Result<Answer, LockError> {
        let (id, hold) = (self.id, &self.trees[at]);
        if is_next {
            // No owner must wait for a turn that does not come.
            hold.tree.leave_queue(id);
        }
        let (table, write, mut answer) = (&self.manager.table, hold.written, Answer::Queued);
        self.wait(hold.tree.id, AwaitedLock::Key(name), || {
            answer = table.lock(name, id, mode, write, &self.waiter);
            answer != Answer::Queued
        })?;
        if answer == Answer::New {
            self.record(at, name);
        }
        Ok(answer)
    }

    /// Locks a key in `X`: the name first, then against the owners of ranges that contain the key
    /// (rule 5).
    #[inline]
    fn lock_to_write(&mut self, at: usize, name: Name, key: &[u8]) -> Result<(), LockError> {
        self.begin_writing();
        debug_assert!(self.is_writing, "an owner counts as a writer before it locks in X");
        let mut ticket = None;
        loop {
            let answer = self.lock_name(at, name, LockMode::X, ticket.is_some())?;
            let hold = &self.trees[at];
            let mut writes = hold.writes.lock();
            if let Answer::Held(write) = answer
                // After a wait the key is not among the writes, and the request still has to leave
                // the queue.
                && ticket.is_none()
                && writes.get(write as usize) == Some(key)
            {
                return Ok(());
            }
            // If the lock is held, it is for another key of the same name: this key still has to be
            // recorded.
            writes.push(key);
            drop(writes);
            let want = || Want::Write(key.to_vec());
            // A request that waited is still in the tree's queue.
            if ticket.is_none() && !hold.tree.may_have_range_with(key)
                || hold.tree.request(&self.asking(at), &want(), &mut ticket, true)
            {
                let hold = &mut self.trees[at];
                hold.written += 1;
                hold.bytes += key.len();
                self.used += key.len();
                return Ok(());
            }
            // No owner must wait for this key while its owner waits for others.
            hold.writes.lock().pop();
            self.withdraw(at, name, answer);
            self.trees[at].tree.unwritten(self.id);
            self.wait_for_ranges(at, want(), ticket)?;
        }
    }

    /// Releases a lock that a request for `X` has just acquired.
    fn withdraw(&mut self, at: usize, name: Name, answer: Answer) {
        match answer {
            Answer::New => {
                debug_assert!(
                    self.keys.last().is_some_and(|last| last.name == name),
                    "what is withdrawn was acquired last"
                );
                self.manager.table.unlock(name, self.id);
                self.keys.pop();
                let hold = &mut self.trees[at];
                hold.keys -= 1;
                hold.bytes -= KEY_BYTES;
                self.used -= KEY_BYTES;
            }
            Answer::Upgraded => self.manager.table.downgrade(name, self.id),
            // Another key of the same name is locked in `X` and stays locked.
            Answer::Held(_) | Answer::Queued => {}
        }
    }

    /// Waits for the owners of ranges, with a request that is in the tree's queue already.
    fn wait_for_ranges(&self, at: usize, want: Want, ticket: Option<u64>) -> Result<(), LockError> {
        let tree = &self.trees[at].tree;
        let asking = self.asking(at);
        self.wait(tree.id, AwaitedLock::Tree(Arc::clone(tree)), || {
            tree.is_turn_of(&asking, &want, ticket)
        })
    }

    /// Counts the owner as a writer (rule 8).
    #[inline]
    pub(super) fn begin_writing(&mut self) {
        if !self.is_writing {
            self.is_writing = true;
            self.manager.begin_writing();
        }
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        self.release_all();
        debug_assert!(self.keys.is_empty(), "an owner that is dropped holds no key");
        self.manager.budget.give_back(self.reserved);
    }
}
