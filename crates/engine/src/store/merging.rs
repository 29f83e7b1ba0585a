//! The background merge: packs leaves that random inserts and removals left badly filled, so that
//! trees take little more room than their data.
//!
//! A tree counts the room that becomes free in its leaves. A new pass over the tree is due once
//! that room, in pages, is a sixty-fourth of the leaves that the last pass saw. Less than that adds
//! little to the free space that a pass leaves anyway. A pass takes steps of some leaves
//! ([`BTree::compact`](crate::btree::BTree::compact)), round after round, and is bounded twice. A
//! round reads no more than `ROUND_BYTES` of leaves, which bounds its I/O. It ends as soon as
//! others have work for the pool. Nothing is held between two steps, so a tree can be dropped.

use std::collections::HashMap;
use std::sync::Arc;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::pool::{PageMemory, Pages, Pool, PoolStrategy};
use crate::stats::counters::{Counter, Counters};
use crate::store::named::Named;
use crate::store::opened::Opened;

/// Bytes of leaves that a round examines: it reads that much per second, and writes at most as
/// much.
const ROUND_BYTES: usize = 16 << 20;
/// Leaves per step.
const STEP: u32 = 32;
/// References of others in a round from which on they are not disturbed: a percent or two of the
/// rate of one thread.
const QUIET: u64 = 100_000;
/// Pages that must have become free in leaves before a pass is worthwhile.
const PAGES_LEAST: u64 = 4;
/// Divisor of the leaves that gives the pages of free room that a pass also waits for. The free
/// space that waits then adds less than two percent to the tree.
const PART: u64 = 64;

/// Progress of the background merge in a tree.
#[derive(Default)]
struct Progress {
    /// Bytes that had become free in leaves when the last pass began.
    loosened: u64,
    /// Leaves that the last pass, or this one, examined.
    leaves: u64,
    under_way: bool,
}

impl Progress {
    fn is_due(&self, loosened: u64, page_size: usize) -> bool {
        let pages = loosened.saturating_sub(self.loosened) / page_size as u64;
        self.under_way || pages >= PAGES_LEAST.max(self.leaves / PART)
    }
}

/// Merges leaves of a store's trees, in rounds.
pub struct Merging<M: PoolStrategy> {
    pool: Arc<Pool<M>>,
    named: Arc<Mutex<Named<M>>>,
    /// Held during work on a tree. A thread that drops a tree, or wants one at rest, takes it
    /// first.
    gate: Arc<Mutex<()>>,
    /// Progress by owner id.
    progress: HashMap<u32, Progress>,
    /// Set if the last round left work, or did not check.
    is_left: bool,
}

/// Returns the page references of other threads.
pub(crate) fn references_of_others(counters: &Counters) -> u64 {
    let own = counters.here().get(Counter::References);
    counters.get(Counter::References).saturating_sub(own)
}

impl<M: PoolStrategy> Merging<M> {
    pub(crate) fn new(
        pool: Arc<Pool<M>>,
        named: Arc<Mutex<Named<M>>>,
        gate: Arc<Mutex<()>>,
    ) -> Merging<M> {
        Merging { pool, named, gate, progress: HashMap::new(), is_left: false }
    }

    /// Returns `true` if the last round left work, or may have.
    pub(crate) fn has_work(&self) -> bool {
        self.is_left
    }

    /// Runs a round, after a second in which others made `references`.
    pub fn round(&mut self, references: u64, is_over: &dyn Fn() -> bool) {
        self.is_left = true;
        if references > QUIET {
            return;
        }
        let mut left = (ROUND_BYTES / self.pool.page_size() / STEP as usize).max(1);
        let before = references_of_others(self.pool.counters());
        let disturbs =
            || references_of_others(self.pool.counters()).saturating_sub(before) > QUIET / 8;
        let named = self.named.lock().past_poison();
        let trees: HashMap<u32, String> = named.trees().collect();
        drop(named);
        // Dropped trees have no progress.
        self.progress.retain(|owner, _| trees.contains_key(owner));
        for name in trees.into_values() {
            loop {
                if left == 0 || is_over() || disturbs() {
                    return;
                }
                left -= 1;
                if step(&self.pool, &self.named, &self.gate, &mut self.progress, &name) {
                    break;
                }
            }
        }
        self.is_left = false;
    }
}

/// Works on the tree of that name, if there is work; returns `true` if none is left.
fn step<M: PoolStrategy>(
    pool: &Pool<M>,
    named: &Mutex<Named<M>>,
    gate: &Mutex<()>,
    progress: &mut HashMap<u32, Progress>,
    name: &str,
) -> bool {
    let _gate = gate.lock().past_poison();
    let opened = named.lock().past_poison().opened(name);
    let Some(Opened::Tree(tree)) = opened else { return true };
    if tree.is_resting() {
        return true;
    }
    let tree = tree.structure();
    let loosened = tree.counters().loosened;
    let progress = progress.entry(tree.owner()).or_default();
    // Another tree may have got the id of a dropped one.
    progress.loosened = progress.loosened.min(loosened);
    if !progress.is_due(loosened, pool.page_size()) {
        return true;
    }
    if pool.make_log_room(STEP as usize * pool.page_size()).is_err() {
        return true;
    }
    if !progress.under_way {
        *progress = Progress { loosened, leaves: 0, under_way: true };
    }
    let done = tree.compact(STEP);
    progress.leaves += u64::from(STEP);
    pool.counters().add(Counter::BackgroundLeaves, u64::from(STEP));
    match done {
        Ok(false) => false,
        Ok(true) => {
            progress.under_way = false;
            pool.counters().count(Counter::BackgroundPasses);
            true
        }
        Err(error) => {
            // Operations that need these pages report the error; here it is a reason to stop.
            tracing::debug!(%error, "leaves of '{name}' could not be merged");
            progress.under_way = false;
            true
        }
    }
}
