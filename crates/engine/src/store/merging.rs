//! The background merge: packs leaves that random inserts and removals left badly filled, so that
//! trees take little more room than their data.
//!
//! A tree tells by a counter how much room came up in its leaves. Once that is a sixty-fourth of
//! what the last pass saw, a new pass over the tree is due: what no pass looks at adds little to
//! what a pass leaves. A pass goes on in steps of some leaves
//! ([`BTree::compact`](crate::btree::BTree::compact)), round after round, and is bounded twice. A
//! round looks at no more than `ROUND_BYTES` of leaves, which bounds its I/O. It ends as soon as
//! others have work for the pool. Nothing is held between two steps, so a tree can be dropped.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use millpond_base::sync::unmodelled::Mutex;

use crate::pool::{PageMemory, Pages, Pool, PoolStrategy};
use crate::stats::counters::{Counter, Counters};
use crate::store::named::Named;
use crate::store::opened::Opened;

/// Leaves that a round looks at, in bytes: so much is read, and at most as much written, a second.
const ROUND_BYTES: usize = 16 << 20;
/// Leaves of a step.
const STEP: u32 = 32;
/// Page references of others in a round from which on they are not disturbed: a percent or two of
/// what one thread can do.
const QUIET: u64 = 100_000;
/// Pages that must have come free in leaves before a pass is worth while.
const PAGES_LEAST: u64 = 4;
/// A pass also waits until pages have come free for one leaf in this number. The free space that
/// waits then adds less than two percent to the tree.
const PART: u64 = 64;

/// Progress of the background merge in a tree.
#[derive(Default)]
struct Progress {
    /// Bytes that had come free in leaves when the last pass began.
    loosened: u64,
    /// Leaves that the last pass, or this one, looked at.
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
    /// Held while a tree is worked on: a thread that drops one, or wants one at rest, takes it
    /// first.
    gate: Arc<Mutex<()>>,
    /// By the owner's id.
    progress: HashMap<u32, Progress>,
    /// True if the last round left work, or did not look.
    is_left: bool,
}

/// Page references that were not the calling thread's.
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

    /// Does what can be done now, after a second in which others made `references`.
    pub fn round(&mut self, references: u64, is_over: &dyn Fn() -> bool) {
        self.is_left = true;
        if references > QUIET {
            return;
        }
        let mut left = (ROUND_BYTES / self.pool.page_size() / STEP as usize).max(1);
        let before = references_of_others(self.pool.counters());
        let disturbs =
            || references_of_others(self.pool.counters()).saturating_sub(before) > QUIET / 8;
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let trees: HashMap<u32, String> = named.trees().collect();
        drop(named);
        // What is gone is not under way any more.
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

/// Works on the tree of that name, if there is something to do; whether nothing is left then.
fn step<M: PoolStrategy>(
    pool: &Pool<M>,
    named: &Mutex<Named<M>>,
    gate: &Mutex<()>,
    progress: &mut HashMap<u32, Progress>,
    name: &str,
) -> bool {
    let _gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let opened = named.lock().unwrap_or_else(PoisonError::into_inner).opened(name);
    let Some(Opened::Tree(tree)) = opened else { return true };
    if tree.is_resting() {
        return true;
    }
    let tree = tree.structure();
    let loosened = tree.counters().loosened;
    let progress = progress.entry(tree.owner()).or_default();
    // Another tree may have got the id of one that was dropped.
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
            // Operations that need these pages meet the error; here it is a reason to stop.
            tracing::debug!(%error, "leaves of '{name}' could not be merged");
            progress.under_way = false;
            true
        }
    }
}
