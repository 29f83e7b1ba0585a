//! The versions of one tree: in memory, and in runs in the spill file.
//!
//! # Rules
//! 1. The versions in the runs are older than those in memory, and the runs are in the order of
//!    their age. So of the versions of a key the oldest come first, as in memory.
//! 2. A writer may put a second version of a key when the first one was spilled. It follows the
//!    first one, with the same stamp; so no snapshot ever sees it.
//! 3. The list of runs changes under the latch of the tree's versions, and only by the holder of
//!    the mutex of spilling. Runs are merged outside that latch: a run does not change.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_base::sync::unmodelled::RwLock;

use crate::io::{SpillError, SpillFile};
use crate::txn::commit_stamp::COMMITTING;
use crate::txn::unpoisoned::unpoisoned;
use crate::txn::versions::run::{Run, RunCursor, RunWriter};
use crate::txn::versions::version::{Seen, Version, Window};

/// Runs of a level that are merged to one of the next.
const FAN_IN: usize = 8;

type Map = BTreeMap<Arc<[u8]>, Vec<Version>>;

/// What the latch guards.
#[derive(Default)]
pub(super) struct Chains {
    pub(super) map: Map,
    pub(super) runs: Vec<Arc<Run>>,
}

/// The versions of a tree.
#[derive(Default)]
pub(super) struct TreeVersions {
    pub(super) chains: RwLock<Chains>,
    /// How many chains and runs there are.
    pub(super) len: AtomicUsize,
    /// Bytes that the versions in memory take.
    pub(super) bytes: AtomicUsize,
}

/// The read timestamps of the snapshots, and a timestamp that later snapshots do not precede.
pub(super) struct Horizon {
    pub(super) read_timestamps: Vec<u64>,
    pub(super) now: u64,
}

impl Horizon {
    /// Removes from a chain the versions that no snapshot may need.
    fn keep(&self, chain: &mut Vec<Version>) {
        let mut since = 0;
        chain.retain(|version| {
            let ended = version.stamp.timestamp();
            debug_assert!(since <= ended, "the versions of a key are in commit order");
            let first = self.read_timestamps.partition_point(|reader| *reader < since);
            let is_needed = ended >= COMMITTING
                || ended > self.now
                || self.read_timestamps.get(first).is_some_and(|reader| *reader < ended);
            since = ended;
            is_needed
        });
    }
}

/// Returns the first version whose writer ended after `read_timestamp`.
pub(super) fn seen_in(chain: &[Version], read_timestamp: u64) -> Option<Seen> {
    let seen = chain.iter().map(|version| (version, version.stamp.timestamp()));
    let (version, ended) = seen.into_iter().find(|(_, ended)| *ended > read_timestamp)?;
    Some((version.before.clone(), ended))
}

impl Chains {
    pub(super) fn len(&self) -> usize {
        self.map.len() + self.runs.len()
    }

    /// Returns what a snapshot at `timestamp` sees of `key`.
    pub(super) fn seen(&self, key: &[u8], timestamp: u64) -> Result<Option<Seen>, SpillError> {
        for run in &self.runs {
            if let Some(found) = run.find(key, |stamp| stamp.timestamp() > timestamp)? {
                let ended = found.stamp.timestamp();
                return Ok(Some((found.before, ended)));
            }
        }
        Ok(self.map.get(key).and_then(|chain| seen_in(chain, timestamp)))
    }

    /// Appends what a snapshot at `timestamp` sees of keys between the bounds, as
    /// [`VersionStore::window`](crate::txn::versions::version_store::VersionStore::window) does.
    pub(super) fn window(
        &self,
        timestamp: u64,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        (forward, limit): (bool, usize),
        out: &mut Window,
    ) -> Result<bool, SpillError> {
        let mut range = self.map.range::<[u8], _>((lower, upper));
        let mut step = || if forward { range.next() } else { range.next_back() };
        let cursor = |run| RunCursor::new(run, (lower, upper), forward);
        let mut runs: Vec<RunCursor> = self.runs.iter().map(cursor).collect::<Result<_, _>>()?;
        let (mut head, before, mut chain) = (step(), out.len(), Vec::new());
        loop {
            let mut next = head.map(|(key, _)| key.clone());
            for run in &mut runs {
                if let Some(key) = run.key()?
                    && next.as_ref().is_none_or(|next| (key < &**next) == forward && key != &**next)
                {
                    next = Some(key.into());
                }
            }
            let Some(key) = next else { return Ok(false) };
            chain.clear();
            for run in &mut runs {
                run.take(&key, &mut chain)?;
            }
            let mut seen = seen_in(&chain, timestamp);
            if let Some((at, last)) = head.filter(|(at, _)| **at == key) {
                debug_assert_eq!(at, &key, "keys of a run ascend");
                seen = seen.or_else(|| seen_in(last, timestamp));
                head = step();
            }
            if let Some(seen) = seen {
                out.push((key, seen));
                if out.len() - before == limit {
                    return Ok(true);
                }
            }
        }
    }
}

impl TreeVersions {
    /// Moves the versions in memory to the file. Returns the bytes of memory that this frees and
    /// takes.
    pub(super) fn spill(&self, file: &Arc<SpillFile>) -> Result<(usize, usize), SpillError> {
        let mut chains = unpoisoned(self.chains.write());
        let mut writer = RunWriter::new(file, 0);
        for (key, chain) in &chains.map {
            for version in chain {
                writer.push(key, version)?;
            }
        }
        let Some(run) = writer.finish()? else { return Ok((0, 0)) };
        let taken = run.bytes;
        chains.runs.push(Arc::new(run));
        chains.map.clear();
        self.len.store(chains.len(), Ordering::SeqCst);
        Ok((self.bytes.swap(0, Ordering::Relaxed), taken))
    }

    /// Merges the newest runs while there are enough of a level, or `all` of them. Returns the
    /// bytes of memory that this frees and takes.
    pub(super) fn merge(
        &self,
        file: &Arc<SpillFile>,
        horizon: &Horizon,
        all: bool,
    ) -> Result<(usize, usize), SpillError> {
        let (mut given, mut taken) = (0, 0);
        loop {
            let runs = unpoisoned(self.chains.read()).runs.clone();
            let Some(level) = runs.last().map(|run| run.level) else { break };
            let same = runs.iter().rev().take_while(|run| all || run.level == level).count();
            if same < if all { 1 } else { FAN_IN } {
                break;
            }
            let from = runs.len() - same;
            let merging = runs.get(from..).unwrap_or(&[]);
            let level = merging.first().map_or(level, |run| run.level) + 1;
            let merged = merge(file, merging, level, horizon)?;
            let mut chains = unpoisoned(self.chains.write());
            let now = chains.runs.get(from..).unwrap_or(&[]);
            if now.len() != same || !now.iter().zip(merging).all(|(a, b)| Arc::ptr_eq(a, b)) {
                // The snapshot epoch is over, and they are gone.
                break;
            }
            given += merging.iter().map(|run| run.bytes).sum::<usize>();
            taken += merged.as_ref().map_or(0, |run| run.bytes);
            chains.runs.truncate(from);
            chains.runs.extend(merged.map(Arc::new));
            self.len.store(chains.len(), Ordering::SeqCst);
            if all {
                break;
            }
        }
        Ok((given, taken))
    }

    /// Forgets everything. Returns the bytes of memory that this frees.
    pub(super) fn clear(&self) -> usize {
        let mut chains = unpoisoned(self.chains.write());
        let runs = chains.runs.drain(..).map(|run| run.bytes).sum::<usize>();
        chains.map.clear();
        self.len.store(0, Ordering::SeqCst);
        runs + self.bytes.swap(0, Ordering::Relaxed)
    }
}

fn merge(
    file: &Arc<SpillFile>,
    runs: &[Arc<Run>],
    level: u32,
    horizon: &Horizon,
) -> Result<Option<Run>, SpillError> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let cursors = runs.iter().map(|run| RunCursor::new(run, all, true));
    let mut cursors: Vec<RunCursor> = cursors.collect::<Result<_, _>>()?;
    let mut writer = RunWriter::new(file, level);
    let mut chain = Vec::new();
    loop {
        let mut next: Option<Arc<[u8]>> = None;
        for cursor in &mut cursors {
            if let Some(key) = cursor.key()?
                && next.as_ref().is_none_or(|next| key < &**next)
            {
                next = Some(key.into());
            }
        }
        let Some(key) = next else { break };
        for cursor in &mut cursors {
            cursor.take(&key, &mut chain)?;
        }
        horizon.keep(&mut chain);
        for version in chain.drain(..) {
            writer.push(&key, &version)?;
        }
    }
    writer.finish()
}
