//! A transaction's locks.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::bytes::KEY_BYTES;
use super::bytes::PIECE;
use super::counts::count;
use super::entry::Answer;
use super::error::LockError;
use super::graph::Place;
use super::manager::Waits;
use super::manager::{LockManager, TREE_ENDS};
use super::mode::LockMode;
use super::name::Name;
use super::own::Badge;
use super::own::own_transactions;
use super::own::this_thread;
use super::range::Range;
use super::spinlock::Spinlock;
use super::tree::Asking;
use super::tree::Tree;
use super::tree::Want;
use super::waiter::Waiter;
use super::writes::Writes;

/// Trees that an idle owner remembers, so that it need not look them up again.
const REMEMBERED: usize = 64;

/// What one transaction holds. Used by one thread at a time; a thread should reuse its owner by
/// [`LockOwner::renew`], for it keeps its memory and what it knows about trees.
pub struct LockOwner {
    manager: Arc<LockManager>,
    id: u64,
    waiter: Arc<Waiter>,
    stripe: usize,
    /// Those that this transaction touches, and those that earlier ones did.
    trees: Vec<TreeHold>,
    keys: Vec<KeyHold>,
    used: usize,
    reserved: usize,
    is_writing: bool,
    /// Nothing was asked for since everything was released.
    is_idle: bool,
    wait_max: Duration,
    /// The thread that this transaction is known to be in; 0: none.
    thread: u64,
    badge: Option<Arc<Badge>>,
}

struct KeyHold {
    name: Name,
    /// Index in `trees`.
    tree: u32,
}

/// What the owner holds of a tree.
struct TreeHold {
    /// The tree's id.
    id: u32,
    tree: Arc<Tree>,
    intention: Option<LockMode>,
    /// `S` or `X` on all of it.
    whole: Option<LockMode>,
    ranges: Vec<Range>,
    range_bytes: usize,
    /// Its key locks.
    keys: u32,
    /// The keys that are locked in `X`, and how many there are.
    writes: Arc<Spinlock<Writes>>,
    written: u32,
    /// Bytes used for keys and writes.
    bytes: usize,
    /// At how many keys to try to lock all of it.
    escalate_at: u32,
}

impl TreeHold {
    fn new(tree: Arc<Tree>, escalate_at: u32) -> TreeHold {
        TreeHold {
            id: tree.id,
            tree,
            intention: None,
            whole: None,
            ranges: Vec::new(),
            range_bytes: 0,
            keys: 0,
            writes: Arc::new(Spinlock::new(Writes::default())),
            written: 0,
            bytes: 0,
            escalate_at,
        }
    }

    /// Whether what is held allows `mode` on every key.
    fn covers(&self, mode: LockMode) -> bool {
        self.whole.is_some_and(|whole| whole.covers(mode))
    }
}

impl LockOwner {
    /// An owner without locks for transaction `id`. No two owners of a manager that hold locks
    /// may have the same id; of two in a deadlock, the one with the larger id gives way.
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
            badge: None,
        }
    }

    /// Keeps everything for good. No thread can end it, and nobody waits for it from now on.
    pub fn strand(mut self) {
        self.leave_thread();
        self.manager.strand(self.id);
        std::mem::forget(self);
    }

    /// Releases everything and goes on as transaction `id`.
    pub fn renew(&mut self, id: u64) {
        self.release_all();
        self.id = id;
        self.wait_max = self.manager.options.wait_max;
    }

    /// The transaction's id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How long this transaction's requests wait, instead of what the options say.
    pub fn set_wait_max(&mut self, wait_max: Duration) {
        self.wait_max = wait_max;
    }

    /// From now on the transaction is the calling thread's own: another request of this thread that
    /// would have to wait for it fails with [`LockError::OwnTransaction`]. To be called before a
    /// request, on behalf of whatever lives longer than one call.
    #[inline]
    pub fn claim(&mut self) {
        let thread = this_thread();
        if self.thread != thread {
            self.thread = thread;
            let manager = Arc::as_ptr(&self.manager) as usize;
            self.badge.get_or_insert_with(|| Badge::new(manager)).give(self.id, thread);
        }
    }

    /// The transaction is no thread's own until it is claimed again: it is given to another thread.
    pub fn leave_thread(&mut self) {
        if std::mem::take(&mut self.thread) != 0
            && let Some(badge) = &self.badge
        {
            badge.take();
        }
    }

    /// Whether the calling thread has transactions of its own besides this one.
    pub fn has_company(&self) -> bool {
        !own_transactions(Arc::as_ptr(&self.manager) as usize, self.id).is_empty()
    }

    /// Key locks that it holds.
    pub fn keys_held(&self) -> usize {
        self.keys.len()
    }

    /// Whether it holds an `X` lock, or has since it began.
    pub fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Locks `key` of `tree`, whether it is there or not: in `S` for the modes `S` and `IS`, in
    /// `X` for the others. What is held already costs little.
    ///
    /// # Errors
    /// [`LockError`]; what was held before is still held.
    pub fn lock_key(&mut self, tree: u32, key: &[u8], mode: LockMode) -> Result<(), LockError> {
        let mode = mode.of_key();
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
            LockMode::X => self.lock_to_write(at, tree, key)?,
            _ => {
                self.lock_name(at, Name::of(tree, key), LockMode::S, false)?;
            }
        }
        if self.trees[at].keys >= self.trees[at].escalate_at {
            self.escalate(at);
        }
        Ok(())
    }

    /// Whether a lock on more than the key allows it already.
    fn holds_key(&self, at: usize, key: &[u8], mode: LockMode) -> bool {
        let hold = &self.trees[at];
        hold.covers(mode) || mode == LockMode::S && hold.ranges.iter().any(|range| range.has(key))
    }

    /// Where `tree` is in `trees`.
    #[inline]
    fn tree_at(&mut self, tree: u32) -> usize {
        self.is_idle = false;
        if let Some(at) = self.trees.iter().position(|hold| hold.id == tree) {
            return at;
        }
        let escalate_at = self.manager.options.escalate_after;
        self.trees.push(TreeHold::new(self.manager.tree(tree), escalate_at));
        self.trees.len() - 1
    }

    /// Announces `IS` or `IX` at a tree.
    fn lock_intention(&mut self, at: usize, mode: LockMode) -> Result<(), LockError> {
        let hold = &self.trees[at];
        if hold.intention.is_some_and(|held| held.covers(mode)) {
            return Ok(());
        }
        let asking = self.asking(at);
        if !hold.tree.try_intend(&asking, mode) {
            self.lock_in_tree(at, Want::Intention(mode), &mut None)?;
        }
        self.trees[at].intention = Some(mode);
        Ok(())
    }

    fn asking(&self, at: usize) -> Asking<'_> {
        let writes = &self.trees[at].writes;
        Asking { id: self.id, stripe: self.stripe, waiter: &self.waiter, writes }
    }

    /// Gets `want`, and waits for it if need be.
    fn lock_in_tree(
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
        self.wait(tree.id, Place::Tree(Arc::clone(tree)), || {
            tree.request(&asking, &want, ticket, true)
        })
    }

    fn wait(
        &self,
        tree: u32,
        place: Place,
        attempt: impl FnMut() -> bool,
    ) -> Result<(), LockError> {
        let (id, waiter, wait_max) = (self.id, &self.waiter, self.wait_max);
        self.manager.wait(&Waits { id, tree, place, waiter, wait_max }, attempt)
    }

    /// Locks a name, and notes it if it is new. `is_next`: the owner's turn to write has come, and
    /// its request is still in the tree's queue, so that nobody comes between.
    fn lock_name(
        &mut self,
        at: usize,
        name: Name,
        mode: LockMode,
        is_next: bool,
    ) -> Result<Answer, LockError> {
        let (id, write) = (self.id, self.trees[at].written);
        let table = &self.manager.table;
        let mut answer = table.lock(name, id, mode, write, &self.waiter);
        if answer == Answer::Queued {
            if is_next {
                // Nobody is to wait for a turn that does not come.
                self.trees[at].tree.leave_queue(id);
            }
            self.wait(self.trees[at].tree.id, Place::Key(name), || {
                answer = table.lock(name, id, mode, write, &self.waiter);
                answer != Answer::Queued
            })?;
        }
        if answer == Answer::New {
            self.keys.push(KeyHold { name, tree: at as u32 });
            let hold = &mut self.trees[at];
            hold.keys += 1;
            hold.bytes += KEY_BYTES;
            self.used += KEY_BYTES;
        }
        Ok(answer)
    }

    /// `X` on a key: the name first, then whoever has locked a range with the key in it (rule 5).
    fn lock_to_write(&mut self, at: usize, tree: u32, key: &[u8]) -> Result<(), LockError> {
        self.begin_writing();
        let name = Name::of(tree, key);
        let mut ticket = None;
        loop {
            let answer = self.lock_name(at, name, LockMode::X, ticket.is_some())?;
            let hold = &self.trees[at];
            let mut writes = hold.writes.lock();
            if let Answer::Held(write) = answer
                // After a wait it is not, and the request is still to be taken from the queue.
                && ticket.is_none()
                && writes.get(write as usize) == Some(key)
            {
                return Ok(());
            }
            // If it is held, then for another key of the same name: this one is still to be noted.
            writes.push(key);
            drop(writes);
            let want = || Want::Write(key.to_vec());
            if !hold.tree.needs_attention()
                || hold.tree.request(&self.asking(at), &want(), &mut ticket, true)
            {
                let hold = &mut self.trees[at];
                hold.written += 1;
                hold.bytes += key.len();
                self.used += key.len();
                return Ok(());
            }
            // Nobody is to wait for this key while its owner waits for others.
            hold.writes.lock().pop();
            self.take_back(at, name, answer);
            self.trees[at].tree.unwritten(self.id);
            self.wait_for_ranges(at, want(), ticket)?;
        }
    }

    /// Undoes what a request for `X` has just got.
    fn take_back(&mut self, at: usize, name: Name, answer: Answer) {
        match answer {
            Answer::New => {
                self.manager.table.unlock(name, self.id);
                self.keys.pop();
                let hold = &mut self.trees[at];
                hold.keys -= 1;
                hold.bytes -= KEY_BYTES;
                self.used -= KEY_BYTES;
            }
            Answer::Upgraded => self.manager.table.downgrade(name, self.id),
            // Another key of the same name is locked in `X`, and remains so.
            Answer::Held(_) | Answer::Queued => {}
        }
    }

    /// The request is in the tree's queue already.
    fn wait_for_ranges(&self, at: usize, want: Want, ticket: Option<u64>) -> Result<(), LockError> {
        let tree = &self.trees[at].tree;
        let asking = self.asking(at);
        self.wait(tree.id, Place::Tree(Arc::clone(tree)), || {
            tree.is_turn_of(&asking, &want, ticket)
        })
    }

    fn begin_writing(&mut self) {
        if !self.is_writing {
            self.is_writing = true;
            self.manager.begin_writing();
        }
    }

    /// Locks the first or the last end of `tree` against other owners that lock it: those that pop
    /// entries there take turns. It protects no key.
    ///
    /// # Errors
    /// [`LockError`]; what was held before is still held.
    pub fn lock_end(&mut self, tree: u32, first: bool) -> Result<(), LockError> {
        self.lock_key(tree | TREE_ENDS, &[u8::from(first)], LockMode::X)
    }

    /// Locks all of `tree`, or, in `IS` and `IX`, announces that keys will be locked.
    ///
    /// # Errors
    /// [`LockError`]; what was held before is still held.
    pub fn lock_tree(&mut self, tree: u32, mode: LockMode) -> Result<(), LockError> {
        let at = self.tree_at(tree);
        let whole = match mode {
            LockMode::IS | LockMode::IX => None,
            LockMode::S | LockMode::SIX => Some(LockMode::S),
            LockMode::X => Some(LockMode::X),
        };
        let intention = matches!(mode, LockMode::IS | LockMode::IX | LockMode::SIX);
        if intention && !self.trees[at].covers(mode) {
            self.lock_intention(
                at,
                if mode == LockMode::IS { LockMode::IS } else { LockMode::IX },
            )?;
        }
        if let Some(whole) = whole
            && !self.trees[at].covers(whole)
        {
            if whole == LockMode::X {
                self.begin_writing();
            }
            self.lock_in_tree(at, Want::Whole(whole), &mut None)?;
            self.trees[at].whole = Some(whole);
        }
        Ok(())
    }

    /// Locks every key between the bounds in `S`, whether it is there or not: once it returns,
    /// nobody else has locked one of them in `X`, and nobody will. Ranges that touch each other
    /// become one.
    ///
    /// # Errors
    /// [`LockError`]; what was held before is still held.
    pub fn lock_range(
        &mut self,
        tree: u32,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<(), LockError> {
        if (lower, upper) == (Bound::Unbounded, Bound::Unbounded) {
            return self.lock_tree(tree, LockMode::S);
        }
        let range = Range::new(lower, upper);
        let at = self.tree_at(tree);
        let holds = |hold: &TreeHold| {
            hold.covers(LockMode::S) || hold.ranges.iter().any(|held| held.has_all(&range))
        };
        if range.is_empty() || holds(&self.trees[at]) {
            return Ok(());
        }
        self.lock_intention(at, LockMode::IS)?;
        let bytes = 2 * range.bytes();
        if self.make_room(at, bytes)? && holds(&self.trees[at]) {
            return Ok(());
        }
        self.lock_in_tree(at, Want::Range(range.clone()), &mut None)?;
        let hold = &mut self.trees[at];
        if !hold.ranges.iter_mut().any(|held| held.extend(&range)) {
            hold.ranges.push(range);
            hold.range_bytes += bytes;
            self.used += bytes;
        }
        Ok(())
    }

    /// Makes sure that `bytes` more may be used; answers whether other locks may be held in place
    /// of some from then on.
    #[inline]
    fn make_room(&mut self, at: usize, bytes: usize) -> Result<bool, LockError> {
        if self.used + bytes <= self.reserved {
            return Ok(false);
        }
        self.reserve(at, bytes)?;
        Ok(true)
    }

    #[cold]
    fn reserve(&mut self, at: usize, bytes: usize) -> Result<(), LockError> {
        let budget = &self.manager.budget;
        for piece in [PIECE.max(bytes), bytes] {
            if budget.reserve(piece) {
                self.reserved += piece;
                return Ok(());
            }
        }
        let largest = (0..self.trees.len()).max_by_key(|at| self.trees[*at].keys);
        if largest.is_some_and(|largest| self.trees[largest].keys > 1 && self.escalate(largest))
            && self.used + bytes <= self.reserved
        {
            return Ok(());
        }
        count(&self.manager.counters.out_of_memory);
        let budget = &self.manager.budget;
        let hold = &self.trees[at];
        let (tree, keys) = (self.manager.tree_name(hold.tree.id), hold.keys);
        Err(LockError::Memory { used: budget.used(), limit: budget.limit, tree, keys })
    }

    /// Tries to lock the whole tree in place of its keys, without waiting (rule 9). Returns
    /// whether some keys were released.
    fn escalate(&mut self, at: usize) -> bool {
        let hold = &self.trees[at];
        let shared = hold.keys.saturating_sub(hold.written) > 0;
        let wanted: &[LockMode] = match (hold.written > 0, shared) {
            (true, true) => &[LockMode::X, LockMode::S],
            (true, false) => &[LockMode::X],
            _ => &[LockMode::S],
        };
        let asking = self.asking(at);
        let get =
            |mode: &&LockMode| hold.tree.request(&asking, &Want::Whole(**mode), &mut None, false);
        let granted = wanted.iter().find(get).copied();
        let every = self.manager.options.escalate_after;
        let hold = &mut self.trees[at];
        let Some(mode) = granted else {
            count(&self.manager.counters.escalations_refused);
            hold.escalate_at = hold.keys.saturating_add(every / 8 + 1);
            return false;
        };
        count(&self.manager.counters.escalations);
        hold.whole = Some(mode);
        self.release_ranges(at);
        self.release_keys(at, mode);
        let hold = &mut self.trees[at];
        hold.escalate_at = hold.keys.saturating_add(every);
        true
    }

    fn release_ranges(&mut self, at: usize) {
        let hold = &mut self.trees[at];
        if !hold.ranges.is_empty() {
            hold.ranges.clear();
            hold.tree.leave_ranges(self.id);
            self.used = self.used.saturating_sub(std::mem::take(&mut hold.range_bytes));
        }
    }

    /// Releases the keys of a tree that is locked as a whole in `mode`, as far as that covers
    /// them.
    fn release_keys(&mut self, at: usize, mode: LockMode) {
        let (table, id) = (&self.manager.table, self.id);
        let before = self.keys.len();
        self.keys.retain(|key| {
            if key.tree as usize != at {
                return true;
            }
            if mode == LockMode::X {
                table.unlock(key.name, id);
                return false;
            }
            !table.unlock_shared(key.name, id)
        });
        let released = before - self.keys.len();
        let hold = &mut self.trees[at];
        hold.keys = hold.keys.saturating_sub(released as u32);
        let mut bytes = released * KEY_BYTES;
        if mode == LockMode::X {
            hold.writes.lock().clear();
            hold.written = 0;
            bytes = hold.bytes;
        }
        hold.bytes = hold.bytes.saturating_sub(bytes);
        self.used = self.used.saturating_sub(bytes);
    }

    /// Releases an `S` lock on one key, for reads that need not be repeatable. Returns whether
    /// there was one; what is locked in `X`, by a range or by a tree lock remains so.
    pub fn release_shared(&mut self, tree: u32, key: &[u8]) -> bool {
        let name = Name::of(tree, key);
        let at = self.tree_at(tree);
        if !self.manager.table.unlock_shared(name, self.id) {
            return false;
        }
        if let Some(key) = self.keys.iter().rposition(|key| key.name == name) {
            self.keys.remove(key);
            let hold = &mut self.trees[at];
            hold.keys = hold.keys.saturating_sub(1);
            hold.bytes = hold.bytes.saturating_sub(KEY_BYTES);
            self.used = self.used.saturating_sub(KEY_BYTES);
        }
        true
    }

    /// Releases all `S` locks on keys and all ranges: the end of a statement that need not be
    /// repeatable. `X` locks and tree locks remain.
    pub fn release_all_shared(&mut self) {
        for at in 0..self.trees.len() {
            self.release_ranges(at);
            if self.trees[at].keys > self.trees[at].written {
                self.release_keys(at, LockMode::S);
            }
        }
    }

    /// Releases everything: the end of the transaction.
    pub fn release_all(&mut self) {
        if std::mem::replace(&mut self.is_idle, true) {
            return;
        }
        self.leave_thread();
        let (table, id) = (&self.manager.table, self.id);
        for key in self.keys.drain(..) {
            table.unlock(key.name, id);
        }
        let escalate_at = self.manager.options.escalate_after;
        for hold in &mut self.trees {
            let in_core = hold.whole.is_some() || !hold.ranges.is_empty();
            if hold.written > 0 {
                hold.writes.lock().clear();
            }
            if in_core || hold.intention.is_some() {
                hold.tree.leave(id, self.stripe, in_core);
            }
            (hold.intention, hold.whole) = (None, None);
            hold.ranges.clear();
            (hold.keys, hold.written, hold.bytes, hold.range_bytes) = (0, 0, 0, 0);
            hold.escalate_at = escalate_at;
        }
        if self.trees.len() > REMEMBERED {
            self.trees.clear();
        }
        self.used = 0;
        if self.reserved > PIECE {
            self.manager.budget.give_back(self.reserved - PIECE);
            self.reserved = PIECE;
            self.keys.shrink_to(PIECE / KEY_BYTES);
        }
        if std::mem::take(&mut self.is_writing) {
            self.manager.end_writing();
        }
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        self.release_all();
        self.manager.budget.give_back(self.reserved);
    }
}
