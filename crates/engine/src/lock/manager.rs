//! The lock manager: the state that all owners share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use millpond_base::PastPoison;
use millpond_base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use millpond_base::sync::{Mutex, unmodelled::RwLock};

use super::bytes::Budget;
use super::counts::LockCounts;
use super::error::LockError;
use super::error::TreeName;
use super::graph::AwaitedLock;
use super::graph::Graph;
use super::graph::WaitCycle;
use super::graph::WaitingThread;
use super::name::Name;
use super::near::RangeFilter;
use super::options::LockOptions;
use super::own::own_transactions;
use super::own::this_thread;
use super::table::Table;
use super::tree::Tree;
use super::waiter::Waiter;
use super::waiter::check_before;
use crate::stats::counters::Counter;
use crate::stats::{Statistics, Wait};

/// The smallest allowed value of [`LockOptions::memory_bytes`].
const MEMORY_MIN: usize = 1 << 20;

/// Increment for one more owner that writes.
const WRITER: u64 = 1;
/// Increment for one more owner that has ever begun to write. The lower twenty bits count the
/// present writers.
const GENERATION: u64 = 1 << 20;

/// Returns the number of stripes of a tree: threads that run at the same time have one each, up to
/// a limit.
fn stripes() -> usize {
    if cfg!(feature = "model") {
        return 2;
    }
    let processors = std::thread::available_parallelism().map_or(8, |number| number.get());
    processors.next_power_of_two().clamp(8, 64)
}

/// All locks of a database.
pub struct LockManager {
    pub(super) options: LockOptions,
    pub(super) table: Table,
    pub(super) graph: Graph,
    pub(super) budget: Budget,
    pub(super) statistics: Statistics,
    trees: RwLock<HashMap<u32, Arc<Tree>>>,
    /// Number of stripes of each tree.
    stripes: usize,
    filter: Arc<RangeFilter>,
    /// Number of owners that hold an `X` lock and, in the bits above, of owners that ever took a
    /// first one.
    writers: AtomicU64,
    /// Number of trees that are locked in `X` as a whole and, in the bits above, of those that ever
    /// were.
    whole_writers: AtomicU64,
    owners: AtomicUsize,
    namer: OnceLock<Box<Namer>>,
    /// Owners that keep their locks for ever.
    stranded: Mutex<Vec<u64>>,
    has_stranded: AtomicBool,
    /// True once no owner may wait any more, because the store closes.
    is_closed: AtomicBool,
}

/// Returns the name that users know the tree with an id by, if known.
pub type Namer = dyn Fn(u32) -> Option<String> + Send + Sync;

/// A request that is in a queue.
pub(super) struct Waits<'a> {
    pub id: u64,
    pub tree: u32,
    pub awaited: AwaitedLock,
    pub waiter: &'a Arc<Waiter>,
    pub wait_max: Duration,
}

/// Token of a moment at which nobody wrote a key: see [`LockManager::key_quiet`].
#[derive(Debug)]
pub struct QuietKey {
    name: Name,
    part: u64,
    whole: u64,
}

/// Bit that makes a tree's id stand for its two ends. A transaction that pops the first or the last
/// entry locks that end in X before it looks for the entry.
pub(super) const TREE_ENDS: u32 = 1 << 31;

impl LockManager {
    /// Returns a manager without locks. Impossible settings are moved to the nearest possible ones.
    pub fn new(options: LockOptions) -> LockManager {
        let shards = options.shards.clamp(1, 1 << 16).next_power_of_two();
        let memory_bytes = options.memory_bytes.max(MEMORY_MIN);
        let escalate_after = options.escalate_after.max(1);
        LockManager {
            table: Table::new(shards),
            graph: Graph::new(),
            budget: Budget::new(memory_bytes),
            statistics: Statistics::default(),
            trees: RwLock::new(HashMap::new()),
            stripes: stripes(),
            filter: Arc::new(RangeFilter::new()),
            writers: AtomicU64::new(0),
            whole_writers: AtomicU64::new(0),
            owners: AtomicUsize::new(0),
            namer: OnceLock::new(),
            stranded: Mutex::default(),
            has_stranded: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            options: LockOptions { shards, memory_bytes, escalate_after, ..options },
        }
    }

    /// Makes errors name trees by `namer`, which must not wait for a lock. Only the first `namer`
    /// is kept.
    pub fn name_trees_by(&self, namer: Box<Namer>) {
        // A thread that comes second has the same names.
        let _ = self.namer.set(namer);
    }

    pub(crate) fn tree_name(&self, id: u32) -> TreeName {
        let id = id & !TREE_ENDS;
        TreeName { id, name: self.namer.get().and_then(|namer| namer(id)) }
    }

    /// Returns the settings in use.
    pub fn options(&self) -> &LockOptions {
        &self.options
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> LockCounts {
        LockCounts::of(&self.statistics)
    }

    /// Returns the statistics in which the manager counts.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the number of bytes that owners have reserved for their locks; never more than
    /// allowed.
    pub fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// Returns the number of key locks that are held or waited for. Scans the whole table: for
    /// tests and reports.
    pub fn keys_locked(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of ranges that are locked or waited for, from the filter that writers
    /// check; a range that grew may count several times. Scans the whole filter: for tests and
    /// reports.
    pub fn ranges_counted(&self) -> u64 {
        self.filter.counted()
    }

    /// Returns whether the calling thread has transactions with locks.
    pub(crate) fn has_own_thread(&self) -> bool {
        !own_transactions(std::ptr::from_ref(self) as usize, 0).is_empty()
    }

    /// Returns the number of owners that hold an `X` lock on a key or a tree.
    pub fn writers(&self) -> u64 {
        self.writers.load(Ordering::SeqCst) % GENERATION
    }

    /// Returns the number of owners that have begun to write since the manager was created.
    pub fn generation(&self) -> u64 {
        self.writers.load(Ordering::SeqCst) / GENERATION
    }

    /// Returns a token for [`LockManager::still_quiet`] if nobody holds an `X` lock (rule 8).
    #[inline]
    pub fn quiet(&self) -> Option<u64> {
        let writers = self.writers.load(Ordering::SeqCst);
        (writers.is_multiple_of(GENERATION)).then_some(writers)
    }

    /// Returns whether no owner has held an `X` lock since `token` was issued. Reads since then,
    /// without any lock, returned the values that a transaction would have read at that time.
    #[inline]
    pub fn still_quiet(&self, token: u64) -> bool {
        // The reads between the two must be over. Since they are loads, an acquire would let them
        // sink below this one.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        self.writers.load(Ordering::SeqCst) == token
    }

    /// Returns a token for [`LockManager::key_still_quiet`] if nobody holds an `X` lock on `key` of
    /// `tree`, on another key of its part of the table, or on a whole tree (rule 8).
    #[inline]
    pub fn key_quiet(&self, tree: u32, key: &[u8]) -> Option<QuietKey> {
        let name = Name::of(tree, key);
        let part = self.table.quiet(name)?;
        // Read after the part: an owner that replaces its key locks by a tree lock takes the tree
        // lock before it releases the key locks.
        let whole = self.whole_writers.load(Ordering::SeqCst);
        whole.is_multiple_of(GENERATION).then_some(QuietKey { name, part, whole })
    }

    /// Returns whether the state that `token` recorded is unchanged. Reads of its key since then
    /// returned the value that a transaction would have read at that time.
    #[inline]
    pub fn key_still_quiet(&self, token: &QuietKey) -> bool {
        // For the reason in `still_quiet`.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        self.table.still_quiet(token.name, token.part)
            && self.whole_writers.load(Ordering::SeqCst) == token.whole
    }

    /// Counts an owner that has locked a whole tree in `X`.
    pub(super) fn begin_whole(&self) {
        self.whole_writers.fetch_add(GENERATION + WRITER, Ordering::SeqCst);
    }

    /// Ends the hold on a whole tree.
    pub(super) fn end_whole(&self) {
        let before = self.whole_writers.fetch_sub(WRITER, Ordering::SeqCst);
        debug_assert!(before % GENERATION >= WRITER, "a tree that is released was locked");
    }

    /// Returns a token of the present moment, if exactly one owner, the caller's own, has held an
    /// `X` lock since `token`.
    pub fn quiet_after_own(&self, token: u64) -> Option<u64> {
        token.checked_add(GENERATION).filter(|token| self.still_quiet(*token))
    }

    /// Counts an owner that takes its first `X` lock.
    pub(super) fn begin_writing(&self) {
        let before = self.writers.fetch_add(GENERATION + WRITER, Ordering::SeqCst);
        debug_assert!(before % GENERATION < GENERATION - WRITER, "too many writers for their bits");
    }

    /// Ends the count of an owner that has released its last lock.
    pub(super) fn end_writing(&self) {
        let before = self.writers.fetch_sub(WRITER, Ordering::SeqCst);
        debug_assert!(before % GENERATION >= WRITER, "a writer ends once");
    }

    /// Returns a stripe for a new owner.
    pub(super) fn next_stripe(&self) -> usize {
        self.owners.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn tree(&self, id: u32) -> Arc<Tree> {
        if let Some(tree) = self.trees.read().past_poison().get(&id) {
            return Arc::clone(tree);
        }
        let mut trees = self.trees.write().past_poison();
        let tree = || Arc::new(Tree::new(id, self.stripes, &self.filter));
        Arc::clone(trees.entry(id).or_insert_with(tree))
    }

    /// Forgets a tree that was dropped, if no owner remembers it.
    pub fn forget_tree(&self, id: u32) {
        let mut trees = self.trees.write().past_poison();
        for id in [id, id | TREE_ENDS] {
            if trees.get(&id).is_some_and(|tree| Arc::strong_count(tree) == 1) {
                trees.remove(&id);
            }
        }
    }

    /// Strands owner `id`, which keeps its locks: requests that would wait for it fail.
    pub(super) fn strand(&self, id: u64) {
        self.stranded.lock().past_poison().push(id);
        self.has_stranded.store(true, Ordering::Release);
        // Waiting owners check again; owners that enter later see it.
        self.graph.wake_all();
    }

    /// Ends all waits, present and later ones, with [`LockError::Closed`]: the store closes.
    pub fn end_waits(&self) {
        self.is_closed.store(true, Ordering::Release);
        // For the reason in `strand`.
        self.graph.wake_all();
    }

    /// Fails if the store closes.
    fn is_open(&self, waits: &Waits<'_>) -> Result<(), LockError> {
        match self.is_closed.load(Ordering::Acquire) {
            true => Err(LockError::Closed { tree: self.tree_name(waits.tree) }),
            false => Ok(()),
        }
    }

    /// Fails if the store closes, or a blocker is stranded.
    fn is_worth_waiting(&self, waits: &Waits<'_>) -> Result<(), LockError> {
        self.is_open(waits)?;
        if !self.has_stranded.load(Ordering::Acquire) {
            return Ok(());
        }
        let stranded = self.stranded.lock().past_poison().clone();
        let mut blockers = self.blockers(&waits.awaited, waits.id).into_iter();
        match blockers.find(|blocker| stranded.contains(blocker)) {
            None => Ok(()),
            Some(holder) => Err(LockError::Stranded { holder, tree: self.tree_name(waits.tree) }),
        }
    }

    fn blockers(&self, awaited: &AwaitedLock, id: u64) -> Vec<u64> {
        match awaited {
            AwaitedLock::Key(name) => self.table.blockers(*name, id),
            AwaitedLock::Tree(tree) => tree.blockers_of(id),
        }
    }

    /// Sleeps until `attempt` succeeds. On failure the request has left its queue.
    pub(super) fn wait(
        &self,
        waits: &Waits<'_>,
        mut attempt: impl FnMut() -> bool,
    ) -> Result<(), LockError> {
        let waiting = self.statistics.wait(Wait::Lock);
        let result = self.wait_until(waits, waiting.begun(), &mut attempt);
        drop(waiting);
        if result.is_err() {
            match &waits.awaited {
                AwaitedLock::Key(name) => self.table.leave_queue(*name, waits.id),
                AwaitedLock::Tree(tree) => tree.leave_queue(waits.id),
            }
        }
        result
    }

    fn wait_until(
        &self,
        waits: &Waits<'_>,
        begun: Instant,
        attempt: &mut impl FnMut() -> bool,
    ) -> Result<(), LockError> {
        self.is_open(waits)?;
        let victim = waits.id;
        let blockers = |awaited: &AwaitedLock, id: u64| self.blockers(awaited, id);
        let own = own_transactions(std::ptr::from_ref(self) as usize, waits.id);
        let waiting_thread = WaitingThread { thread: this_thread(), own };
        let awaited = waits.awaited.clone();
        let tree = || self.tree_name(waits.tree);
        match self.graph.enter(waits.id, awaited, waits.waiter, waiting_thread, blockers) {
            Ok(()) => {}
            Err(WaitCycle::Own(holder)) => {
                return Err(LockError::OwnTransaction { holder, tree: tree() });
            }
            Err(WaitCycle::Youngest(cycle)) => {
                self.statistics.count(Counter::Deadlocks);
                return Err(LockError::Deadlock { victim, tree: tree(), cycle });
            }
        }
        let deadline = begun + waits.wait_max.min(Duration::from_secs(1 << 30));
        let result = loop {
            if let Err(hopeless) = self.is_worth_waiting(waits) {
                break Err(hopeless);
            }
            let (check, until) = check_before(deadline);
            let woken = waits.waiter.sleep(until);
            if attempt() {
                break Ok(());
            }
            if let Some(cycle) = self.graph.victim_of(waits.id) {
                self.statistics.count(Counter::Deadlocks);
                break Err(LockError::Deadlock { victim, tree: tree(), cycle });
            }
            if woken {
                continue;
            }
            if check.is_some_and(|is_interrupted| is_interrupted()) {
                break Err(LockError::Interrupted { waited: begun.elapsed(), tree: tree() });
            }
            if until == deadline {
                self.statistics.count(Counter::LockTimeouts);
                let mut holders = self.blockers(&waits.awaited, waits.id);
                holders.sort_unstable();
                holders.dedup();
                break Err(LockError::Timeout { waited: begun.elapsed(), tree: tree(), holders });
            }
        };
        self.graph.leave(waits.id);
        result
    }
}
