//! The versions of one tree: in memory, in buckets of key ranges, and in runs in the spill file.
//!
//! # Rules
//! 1. The versions in the runs are older than those in memory, and the runs are ordered by age. So
//!    the oldest versions of a key come first, as in memory.
//! 2. A writer may put a second version of a key after the first one was spilled. It follows the
//!    first one and has the same stamp, so no snapshot ever sees it.
//! 3. The list of runs changes under the latch of the tree's versions, exclusive, and only by the
//!    holder of the mutex of spilling. Runs are merged outside that latch: a run does not change.
//! 4. Buckets are added, split and removed under that latch, exclusive. Their versions change under
//!    the latch, shared, and the bucket's own mutex: writers and scans meet only in a bucket. A
//!    writer that finds the latch taken leaves the split to a later one, up to a limit.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::{Mutex, RwLock};

use crate::io::{SpillError, SpillFile};
use crate::txn::bounds::Bounds;
use crate::txn::commit_stamp::{COMMITTING, CommitStamp};
use crate::txn::versions::bucket::Bucket;
use crate::txn::versions::first_key::{FirstKey, Key};
use crate::txn::versions::run::{Run, RunCursor, RunWriter};
use crate::txn::versions::version::{Image, Version};
use crate::txn::versions::window::Window;

/// Number of runs of a level that are merged into one of the next.
const FAN_IN: usize = 8;
/// Multiple of the intended size at which a writer waits to split a bucket.
const CROWDED: usize = 8;

/// The state that the latch guards.
#[derive(Default)]
pub(super) struct Ranges {
    /// Buckets by the first key of their range; the first bucket's is empty.
    buckets: BTreeMap<FirstKey, Mutex<Bucket>>,
    runs: Vec<Arc<Run>>,
}

/// The versions of a tree.
#[derive(Default)]
pub(super) struct TreeVersions {
    ranges: RwLock<Ranges>,
    /// Set if there may be versions.
    is_used: AtomicBool,
    /// Bytes that the versions in memory take.
    pub(super) bytes: AtomicUsize,
}

/// Read timestamps of the snapshots, and a timestamp that later snapshots do not precede.
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

/// Returns the bucket whose range has `key`, and the first key of that range.
fn bucket_of<'r>(ranges: &'r Ranges, key: &[u8]) -> Option<(&'r FirstKey, &'r Mutex<Bucket>)> {
    let up_to = (Bound::Unbounded, Bound::Included(Key::new(key)));
    ranges.buckets.range(up_to).next_back()
}

impl Ranges {
    fn is_used(&self) -> bool {
        !self.buckets.is_empty() || !self.runs.is_empty()
    }

    /// Appends the version of `key` for a snapshot at `timestamp`.
    fn seen(&self, key: &[u8], timestamp: u64, out: &mut Window) -> Result<(), SpillError> {
        for run in &self.runs {
            if let Some(found) = run.find(key, |stamp| stamp > timestamp)? {
                let before = found.before.as_ref().map(Image::Apart);
                out.push(key, before, found.stamp.timestamp());
                return Ok(());
            }
        }
        if let Some((_, bucket)) = bucket_of(self, key) {
            bucket.lock().past_poison().seen(key, timestamp, out);
        }
        Ok(())
    }

    /// Appends the versions in memory for a snapshot at `timestamp` of keys between the bounds,
    /// until `out` has `max` keys.
    fn in_memory(
        &self,
        timestamp: u64,
        bounds: Bounds<'_>,
        forward: bool,
        max: usize,
        out: &mut Window,
    ) {
        let Bounds { lower, upper } = bounds;
        let first = match lower {
            Bound::Included(key) | Bound::Excluded(key) => bucket_of(self, key),
            Bound::Unbounded => None,
        };
        let from = first.map_or(Bound::Unbounded, |(first, _)| Bound::Included(first.key()));
        let mut buckets = self.buckets.range((from, upper.map(Key::new)));
        loop {
            let next = if forward { buckets.next() } else { buckets.next_back() };
            let Some((first, bucket)) = next else { return };
            let mut bucket = bucket.lock().past_poison();
            let begin = match lower {
                Bound::Included(key) if first.bytes() <= key => bucket.chain_of(key).start,
                Bound::Excluded(key) if first.bytes() <= key => bucket.chain_of(key).end,
                _ => 0,
            };
            let end = match upper {
                Bound::Included(key) => bucket.chain_of(key).end,
                Bound::Excluded(key) => bucket.chain_of(key).start,
                Bound::Unbounded => bucket.len(),
            };
            bucket.window(timestamp, begin..end, forward, max, out);
            if out.len() >= max {
                return;
            }
        }
    }

    /// Appends the versions for a snapshot at `timestamp` of keys between the bounds, like
    /// [`VersionStore::window`](crate::txn::versions::version_store::VersionStore::window).
    fn window(
        &self,
        timestamp: u64,
        bounds: Bounds<'_>,
        forward: bool,
        limit: usize,
        out: &mut Window,
    ) -> Result<bool, SpillError> {
        let max = out.len() + limit;
        if self.runs.is_empty() {
            self.in_memory(timestamp, bounds, forward, max, out);
            return Ok(out.len() >= max);
        }
        let mut memory = Window::default();
        self.in_memory(timestamp, bounds, forward, limit, &mut memory);
        // Behind the last key there may be others in memory.
        let last = if memory.len() < limit { None } else { memory.last() };
        let bounds = match (last.map(Bound::Included), forward) {
            (None, _) => bounds,
            (Some(upper), true) => Bounds { upper, ..bounds },
            (Some(lower), false) => Bounds { lower, ..bounds },
        };
        let cursor = |run| RunCursor::new(run, bounds, forward);
        let mut runs: Vec<RunCursor> = self.runs.iter().map(cursor).collect::<Result<_, _>>()?;
        let (mut row, mut key, mut chain) = (0, Vec::new(), Vec::new());
        while out.len() < max {
            let mut has_next = memory.key(row).map(|first| first.clone_into(&mut key)).is_some();
            for run in &mut runs {
                if let Some(other) = run.key()?
                    && (!has_next || (other < &*key) == forward && other != &*key)
                {
                    other.clone_into(&mut key);
                    has_next = true;
                }
            }
            if !has_next {
                return Ok(false);
            }
            chain.clear();
            for run in &mut runs {
                run.take(&key, &mut chain)?;
            }
            let is_in_memory = memory.key(row) == Some(&*key);
            let seen = chain.iter().find(|version| version.stamp.timestamp() > timestamp);
            if let Some(version) = seen {
                let before = version.before.as_ref().map(Image::Apart);
                out.push(&key, before, version.stamp.timestamp());
            } else if is_in_memory {
                out.push(&key, memory.before(row), memory.ended(row));
            }
            row += usize::from(is_in_memory);
        }
        Ok(true)
    }
}

impl TreeVersions {
    /// Returns `true` if there are versions of the tree.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::SeqCst)
    }

    /// Returns `true` if the writer with `stamp` has not yet put a version of `key` in memory.
    pub(super) fn wants(&self, key: &[u8], stamp: &Arc<CommitStamp>) -> bool {
        let ranges = self.ranges.read().past_poison();
        bucket_of(&ranges, key)
            .is_none_or(|(_, bucket)| bucket.lock().past_poison().wants(key, stamp))
    }

    /// Puts a version of `key`, unless the writer with `stamp` has done so. `newest` is the largest
    /// read timestamp. The memory is charged to the tree and to `total`.
    pub(super) fn put(
        &self,
        key: &[u8],
        stamp: &Arc<CommitStamp>,
        before: Option<Image<'_>>,
        newest: &AtomicU64,
        total: &AtomicUsize,
    ) {
        loop {
            let ranges = self.ranges.read().past_poison();
            let Some((_, bucket)) = bucket_of(&ranges, key) else {
                drop(ranges);
                self.add_first(total);
                continue;
            };
            let mut bucket = bucket.lock().past_poison();
            let taken = bucket.memory();
            bucket.put(key, stamp, before, newest);
            // Bytes are charged while the mutex is held, so that a thread that finds and drops the
            // version finds it charged.
            self.charge(taken, bucket.memory(), total);
            let (is_full, is_crowded) = (bucket.is_full(1), bucket.is_full(CROWDED));
            drop(bucket);
            drop(ranges);
            if is_full {
                self.split(key, is_crowded, total);
            }
            return;
        }
    }

    /// Charges the difference between a bucket's bytes before and `now`.
    fn charge(&self, before: usize, now: usize, total: &AtomicUsize) {
        for bytes in [total, &self.bytes] {
            if now > before {
                bytes.fetch_add(now - before, Ordering::Relaxed);
            } else if now < before {
                let was = bytes.fetch_sub(before - now, Ordering::Relaxed);
                debug_assert!(was >= before - now, "versions are charged before they are dropped");
            }
        }
    }

    /// Adds the bucket of all keys, if there is none.
    #[cold]
    fn add_first(&self, total: &AtomicUsize) {
        let mut ranges = self.ranges.write().past_poison();
        if ranges.buckets.is_empty() {
            let bucket = Bucket::new(&[], None);
            self.charge(0, bucket.memory(), total);
            ranges.buckets.insert(FirstKey::new(&[]), Mutex::new(bucket));
            self.is_used.store(true, Ordering::SeqCst);
        }
    }

    /// Splits the full bucket of `key`, if the latch is free, or after a wait if it `must` be
    /// split.
    #[cold]
    fn split(&self, key: &[u8], must: bool, total: &AtomicUsize) {
        let mut ranges = match self.ranges.try_write() {
            Ok(ranges) => ranges,
            Err(_) if !must => return,
            Err(_) => self.ranges.write().past_poison(),
        };
        let behind = (Bound::Excluded(Key::new(key)), Bound::Unbounded);
        let upper = ranges.buckets.range(behind).next().map(|(first, _)| first.clone());
        let up_to = (Bound::Unbounded, Bound::Included(Key::new(key)));
        let Some((lower, bucket)) = ranges.buckets.range_mut(up_to).next_back() else {
            return;
        };
        let bucket = bucket.get_mut().past_poison();
        let taken = bucket.memory();
        if !bucket.is_full(1) {
            return;
        }
        let Some((first, second)) =
            bucket.split(lower.bytes(), upper.as_ref().map(FirstKey::bytes))
        else {
            return;
        };
        self.charge(taken, bucket.memory() + first.len() + second.memory(), total);
        ranges.buckets.insert(FirstKey::new(&first), Mutex::new(second));
    }

    /// Appends the version of `key` for a snapshot at `timestamp`.
    pub(super) fn seen(
        &self,
        key: &[u8],
        timestamp: u64,
        out: &mut Window,
    ) -> Result<(), SpillError> {
        self.ranges.read().past_poison().seen(key, timestamp, out)
    }

    /// Takes the latch and calls [`Ranges::window`].
    pub(super) fn window(
        &self,
        timestamp: u64,
        bounds: Bounds<'_>,
        forward: bool,
        limit: usize,
        out: &mut Window,
    ) -> Result<bool, SpillError> {
        self.ranges.read().past_poison().window(timestamp, bounds, forward, limit, out)
    }

    /// Drops the versions in memory for which `keep` returns `false`; see [`Bucket::retain`].
    pub(super) fn retain(&self, keep: impl Fn(u64, u64) -> bool, total: &AtomicUsize) {
        let mut has_empty = false;
        for bucket in self.ranges.read().past_poison().buckets.values() {
            let mut bucket = bucket.lock().past_poison();
            let taken = bucket.memory();
            bucket.retain(&keep);
            self.charge(taken, bucket.memory(), total);
            has_empty |= bucket.len() == 0;
        }
        if has_empty {
            self.remove_empty(total);
        }
    }

    /// Removes empty buckets; the ones before them take over their ranges.
    fn remove_empty(&self, total: &AtomicUsize) {
        let mut ranges = self.ranges.write().past_poison();
        let mut left: Vec<(FirstKey, Bucket)> = Vec::new();
        for (first, bucket) in std::mem::take(&mut ranges.buckets) {
            let bucket = bucket.into_inner().past_poison();
            if bucket.len() == 0 {
                self.charge(first.bytes().len() + bucket.memory(), 0, total);
            } else if left.is_empty() {
                self.charge(first.bytes().len(), 0, total);
                left.push((FirstKey::new(&[]), bucket));
            } else {
                left.push((first, bucket));
            }
        }
        let mut upper: Option<FirstKey> = None;
        while let Some((first, mut bucket)) = left.pop() {
            let taken = bucket.memory();
            bucket.cover(first.bytes(), upper.as_ref().map(FirstKey::bytes));
            self.charge(taken, bucket.memory(), total);
            ranges.buckets.insert(first.clone(), Mutex::new(bucket));
            upper = Some(first);
        }
        self.is_used.store(ranges.is_used(), Ordering::SeqCst);
    }

    /// Moves the versions in memory to the file. Returns the bytes of memory that this frees and
    /// takes.
    pub(super) fn spill(&self, file: &Arc<SpillFile>) -> Result<(usize, usize), SpillError> {
        let mut ranges = self.ranges.write().past_poison();
        let mut writer = RunWriter::new(file, 0);
        for bucket in ranges.buckets.values_mut() {
            bucket
                .get_mut()
                .past_poison()
                .each(|key, stamp, before| writer.push(key, stamp, before))?;
        }
        let Some(run) = writer.finish()? else { return Ok((0, 0)) };
        let taken = run.bytes;
        ranges.runs.push(Arc::new(run));
        ranges.buckets.clear();
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
            let runs = self.ranges.read().past_poison().runs.clone();
            let Some(level) = runs.last().map(|run| run.level) else { break };
            let same = runs.iter().rev().take_while(|run| all || run.level == level).count();
            if same < if all { 1 } else { FAN_IN } {
                break;
            }
            let from = runs.len() - same;
            let merging = runs.get(from..).unwrap_or(&[]);
            let level = merging.first().map_or(level, |run| run.level) + 1;
            let merged = merge(file, merging, level, horizon)?;
            let mut ranges = self.ranges.write().past_poison();
            let now = ranges.runs.get(from..).unwrap_or(&[]);
            if now.len() != same || !now.iter().zip(merging).all(|(a, b)| Arc::ptr_eq(a, b)) {
                // The snapshot epoch is over, and they are gone.
                break;
            }
            given += merging.iter().map(|run| run.bytes).sum::<usize>();
            taken += merged.as_ref().map_or(0, |run| run.bytes);
            ranges.runs.truncate(from);
            ranges.runs.extend(merged.map(Arc::new));
            self.is_used.store(ranges.is_used(), Ordering::SeqCst);
            if all {
                break;
            }
        }
        Ok((given, taken))
    }

    /// Drops all versions. Returns the bytes of memory that this frees.
    pub(super) fn clear(&self) -> usize {
        let mut ranges = self.ranges.write().past_poison();
        let runs = ranges.runs.drain(..).map(|run| run.bytes).sum::<usize>();
        let buckets = std::mem::take(&mut ranges.buckets);
        self.is_used.store(false, Ordering::SeqCst);
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        // Writers need not wait until they are dropped.
        drop(ranges);
        drop(buckets);
        runs + bytes
    }
}

fn merge(
    file: &Arc<SpillFile>,
    runs: &[Arc<Run>],
    level: u32,
    horizon: &Horizon,
) -> Result<Option<Run>, SpillError> {
    let cursors = runs.iter().map(|run| RunCursor::new(run, Bounds::ALL, true));
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
            writer.push(&key, &version.stamp, version.before.as_ref().map(Image::Apart))?;
        }
    }
    writer.finish()
}
