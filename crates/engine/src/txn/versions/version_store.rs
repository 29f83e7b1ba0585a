//! Earlier versions of entries, which snapshots read instead of the present ones.
//!
//! While there is a snapshot, a writer puts the before image of an entry here before it changes it.
//! Such a *version* carries its writer's stamp, whose commit timestamp is the writer's position in
//! the order of commits: a snapshot with an earlier read timestamp sees the version.
//!
//! ```text
//! tree, key ─→ (before, stamp) (before, stamp) …     oldest first; the last may be pending
//! ```
//!
//! 1. A version is put before its page is changed, by the holder of the key's lock in X. A reader
//!    that reads the page first and the versions afterwards misses nothing: either the page was not
//!    changed yet, or the version is here.
//! 2. If a writer changes a key several times, only the first change puts a version.
//! 3. Stamps get their timestamps in the order of commits, before the writer's locks are released.
//!    A writer that rolls back gets one as well, once everything is undone.
//! 4. A time with snapshots is a *snapshot epoch*. When one begins, no writer knows yet, so the
//!    thread that begins it captures the versions of all writers. It waits until the pending calls
//!    are over (writer quiescence), and puts the before images of the changes made so far
//!    ([`VersionStore::begin`]'s `capture_versions`). A writer that begins a call afterwards sees
//!    the epoch. Snapshots that join an epoch later find everything here.
//! 5. A version is dropped when no read timestamp lies between the timestamp of the version before
//!    it and its own.
//! 6. A tree that is changed as a whole (emptied, loaded) need not have versions: it is
//!    *bulk-modified* until that is over, for snapshots that began before (`bulk_modified.rs`).
//! 7. If versions exceed their memory, those of the trees with most of them are spilled
//!    (`spilled.rs`, `memory.rs`). A writer may put a second version of a key then, which is never
//!    seen.
//! 8. If they cannot be spilled, because the file is full or fails or there is none, the oldest
//!    snapshot is lost. It is marked first, and then the versions that only it needed are dropped.
//!    A reader checks the mark after it has read the versions.
//! 9. Latches are taken in this order: readers, spilling, trees, the ranges of one tree, a bucket.
//!    No holder of one waits for a page or a lock, except the thread that begins an epoch, which
//!    waits for single calls.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, TryLockError};

use hashbrown::HashMap;
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::{Mutex, RwLock};

use crate::io::SpillFile;
use crate::pool::PoolError;
use crate::pool::borrowed::pages_borrowed;
use crate::txn::bounds::Bounds;
use crate::txn::commit_stamp::CommitStamp;
use crate::txn::error::TxnError;
use crate::txn::trees::Look;
use crate::txn::versions::bulk_modified::{BulkModifiedTrees, Visible};
use crate::txn::versions::found_before::Before;
use crate::txn::versions::reader::{ReadTimestamps, Reader, ReaderKey};
use crate::txn::versions::spilled::TreeVersions;
use crate::txn::versions::version::Image;
use crate::txn::versions::window::Window;

/// Growth since the last clean-up that does not justify another one.
const SLACK_BYTES: usize = 64 << 10;

/// Attempts to begin the first snapshot beside calls that change more than fits in the meantime.
const TRIES: u32 = 8;

/// The present snapshots.
#[derive(Default)]
pub(super) struct Readers {
    /// Readers by read timestamp, oldest first.
    pub(super) all: BTreeMap<ReaderKey, Arc<Reader>>,
    /// Number of snapshots so far.
    begun: u64,
    /// Bytes of versions that the last clean-up left.
    pub(super) kept: usize,
}

/// The locked list of snapshots. Its release ends the snapshots that could not wait for the lock.
pub(super) struct ReadersGuard<'v> {
    versions: &'v VersionStore,
    readers: Option<MutexGuard<'v, Readers>>,
}

impl Deref for ReadersGuard<'_> {
    type Target = Readers;

    fn deref(&self) -> &Readers {
        // Cannot fail: it is taken only when the guard is dropped.
        self.readers.as_ref().expect("locked until it is dropped")
    }
}

impl DerefMut for ReadersGuard<'_> {
    fn deref_mut(&mut self) -> &mut Readers {
        // Cannot fail: it is taken only when the guard is dropped.
        self.readers.as_mut().expect("locked until it is dropped")
    }
}

impl Drop for ReadersGuard<'_> {
    fn drop(&mut self) {
        while let Some(mut readers) = self.readers.take() {
            self.versions.forget_over(&mut readers);
            drop(readers);
            // A thread that adds an ended snapshot tries to lock afterwards. If that fails, it came
            // before the lock was released just now, and its snapshot is found here.
            if !self.versions.ended.lock().past_poison().is_empty() {
                self.readers = self.versions.try_lock_readers();
            }
        }
    }
}

/// The versions of all trees.
pub(in crate::txn) struct VersionStore {
    /// Odd while there are snapshots.
    snapshot_epoch: AtomicU64,
    /// The last commit timestamp.
    pub(super) clock: AtomicU64,
    /// The largest read timestamp.
    newest: AtomicU64,
    pub(super) trees: RwLock<HashMap<u32, Arc<TreeVersions>>>,
    pub(super) bulk_modified: BulkModifiedTrees,
    readers: Mutex<Readers>,
    /// Ended snapshots that are still among the readers.
    ended: Mutex<Vec<ReaderKey>>,
    /// Read timestamps of the snapshots; a snapshot draws its own while this is locked.
    pub(super) read_timestamps: Mutex<ReadTimestamps>,
    pub(super) bytes: AtomicUsize,
    pub(super) limit: usize,
    /// Takes the versions that do not fit into memory.
    pub(super) spill: Option<Arc<SpillFile>>,
    pub(super) spilling: Mutex<()>,
    /// An epoch whose versions are incomplete, since something could not be read; 0 if there is
    /// none.
    lost_epoch: AtomicU64,
    /// Error of the last lost epoch.
    why_lost: Mutex<Option<Arc<TxnError>>>,
}

/// Returns `true` if no key can be between the bounds.
fn is_empty(bounds: Bounds<'_>) -> bool {
    match (bounds.lower, bounds.upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

impl VersionStore {
    /// Returns an empty store that keeps about `limit` bytes of versions in memory at most.
    pub(in crate::txn) fn new(limit: usize, spill: Option<Arc<SpillFile>>) -> VersionStore {
        VersionStore {
            snapshot_epoch: AtomicU64::new(0),
            clock: AtomicU64::new(1),
            newest: AtomicU64::new(0),
            trees: RwLock::default(),
            bulk_modified: BulkModifiedTrees::default(),
            readers: Mutex::default(),
            ended: Mutex::default(),
            read_timestamps: Mutex::default(),
            bytes: AtomicUsize::new(0),
            limit,
            spill,
            spilling: Mutex::new(()),
            lost_epoch: AtomicU64::new(0),
            why_lost: Mutex::default(),
        }
    }

    /// Loses all snapshots of `snapshot_epoch`: `error` prevented puts of versions.
    pub(in crate::txn) fn lose_epoch(&self, snapshot_epoch: u64, error: TxnError) {
        debug_assert_eq!(snapshot_epoch % 2, 1, "a snapshot epoch is odd");
        *self.why_lost.lock().past_poison() = Some(Arc::new(error));
        self.lost_epoch.store(snapshot_epoch, Ordering::SeqCst);
    }

    /// Returns the error of a snapshot whose epoch is lost.
    fn lost_with_epoch(&self, reader: &Reader) -> TxnError {
        let Some(error) = self.why_lost.lock().past_poison().clone() else { return reader.lost() };
        let what = "the versions of what a transaction changed could not be kept".to_string();
        TxnError::SnapshotUnreadable { caller: reader.caller.to_string(), what, error }
    }

    /// Fails if `reader`'s snapshot is lost: versions that it needs may be missing.
    pub(in crate::txn) fn check_lost(&self, reader: &Reader) -> Result<(), TxnError> {
        if self.lost_epoch.load(Ordering::SeqCst) == reader.snapshot_epoch {
            return Err(self.lost_with_epoch(reader));
        }
        if reader.is_lost() { Err(reader.lost()) } else { Ok(()) }
    }

    /// Returns the snapshot epoch, or `None` if there are no snapshots. In an epoch, a writer puts
    /// a version before it changes an entry.
    #[inline]
    pub(in crate::txn) fn snapshot_epoch(&self) -> Option<u64> {
        let snapshot_epoch = self.snapshot_epoch.load(Ordering::SeqCst);
        (snapshot_epoch % 2 == 1).then_some(snapshot_epoch)
    }

    /// Returns roughly the bytes of memory that versions may take.
    pub(in crate::txn) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes of memory that versions take.
    pub(in crate::txn) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of open snapshots.
    pub(in crate::txn) fn snapshots(&self) -> u64 {
        // Not `readers`: the thread that holds them may wait for a page that this thread lends.
        self.read_timestamps.lock().past_poison().len()
    }

    pub(super) fn lock_readers(&self) -> ReadersGuard<'_> {
        ReadersGuard { versions: self, readers: Some(self.readers.lock().past_poison()) }
    }

    pub(super) fn try_readers(&self) -> Option<ReadersGuard<'_>> {
        let readers = self.try_lock_readers()?;
        Some(ReadersGuard { versions: self, readers: Some(readers) })
    }

    fn try_lock_readers(&self) -> Option<MutexGuard<'_, Readers>> {
        match self.readers.try_lock() {
            Ok(readers) => Some(readers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn tree(&self, tree: u32) -> Arc<TreeVersions> {
        if let Some(found) = self.trees.read().past_poison().get(&tree) {
            return found.clone();
        }
        self.trees.write().past_poison().entry(tree).or_default().clone()
    }

    fn tree_with_versions(&self, tree: u32) -> Option<Arc<TreeVersions>> {
        let trees = self.trees.read().past_poison();
        trees.get(&tree).filter(|tree| tree.is_used()).cloned()
    }

    /// Returns `true` if the writer with `stamp` has not yet put a version of `key`.
    pub(in crate::txn) fn wants(&self, tree: u32, key: &[u8], stamp: &Arc<CommitStamp>) -> bool {
        self.tree_with_versions(tree).is_none_or(|tree| tree.wants(key, stamp))
    }

    /// Puts the entry of `key` as a version, unless the writer with `stamp` has done so (rule 2).
    pub(in crate::txn) fn put(
        &self,
        tree: u32,
        key: &[u8],
        stamp: &Arc<CommitStamp>,
        before: Option<Image<'_>>,
    ) {
        self.tree(tree).put(key, stamp, before, &self.newest, &self.bytes);
        if self.bytes() > self.limit
            && let Err(error) = self.spill()
        {
            self.make_room(&error);
        }
    }

    /// Like [`VersionStore::put`], with the before image that `look` finds.
    ///
    /// # Errors
    /// `look` failed.
    pub(in crate::txn) fn put_found(
        &self,
        tree: u32,
        key: &[u8],
        stamp: &Arc<CommitStamp>,
        look: &mut Look<'_, '_>,
    ) -> Result<(), PoolError> {
        let before = Before::of(self.spill.as_ref(), look)?;
        self.put(tree, key, stamp, before.as_image());
        Ok(())
    }

    /// Returns the spill file.
    pub(in crate::txn) fn file(&self) -> Option<&Arc<SpillFile>> {
        self.spill.as_ref()
    }

    /// Ends the writer with `stamp`: snapshots that begin from now on see its changes.
    pub(in crate::txn) fn end_writer(&self, stamp: &CommitStamp) {
        stamp.end(&self.clock);
    }

    /// Appends the version of `key` for `reader` to `out`, unless the value in the page is the
    /// right one.
    ///
    /// # Errors
    /// The version cannot be read from the spill file; then the snapshot is lost.
    pub(in crate::txn) fn seen(
        &self,
        reader: &Reader,
        tree: u32,
        key: &[u8],
        out: &mut Window,
    ) -> Result<(), TxnError> {
        let Some(tree) = self.tree_with_versions(tree) else { return Ok(()) };
        tree.seen(key, reader.timestamp, out).map_err(|error| reader.unreadable(error))
    }

    /// Appends the versions for `reader` of keys between the bounds to `out`, in the given
    /// direction. Returns `true` if there may be more than the `limit` keys that were looked at.
    ///
    /// # Errors
    /// Same as [`VersionStore::seen`].
    pub(in crate::txn) fn window(
        &self,
        reader: &Reader,
        tree: u32,
        bounds: Bounds<'_>,
        forward: bool,
        limit: usize,
        out: &mut Window,
    ) -> Result<bool, TxnError> {
        if is_empty(bounds) {
            return Ok(false);
        }
        let Some(tree) = self.tree_with_versions(tree) else { return Ok(false) };
        let found = tree.window(reader.timestamp, bounds, forward, limit, out);
        found.map_err(|error| reader.unreadable(error))
    }

    /// Begins a snapshot of the state that is committed now. If it is the first one,
    /// `capture_versions` puts the versions of all writers (rule 4).
    ///
    /// # Errors
    /// `capture_versions` failed, or the entries changed by active writers take too much memory.
    pub(in crate::txn) fn begin(
        &self,
        caller: &'static Location<'static>,
        mut capture_versions: impl FnMut(u64) -> Result<(), TxnError>,
    ) -> Result<Arc<Reader>, TxnError> {
        let mut readers = self.lock_readers();
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let begun = self.try_begin(&mut readers, caller, &mut capture_versions);
            // Calls change entries in the meantime. A snapshot in its own epoch does not need their
            // versions.
            if tries == 0 || !matches!(begun, Err(TxnError::SnapshotTooLarge { .. })) {
                return begun;
            }
        }
    }

    fn try_begin(
        &self,
        readers: &mut Readers,
        caller: &'static Location<'static>,
        capture_versions: &mut dyn FnMut(u64) -> Result<(), TxnError>,
    ) -> Result<Arc<Reader>, TxnError> {
        self.forget_over(readers);
        let is_first = readers.all.is_empty();
        // Until its read timestamp is known, no version counts as unneeded.
        self.newest.store(u64::MAX, Ordering::SeqCst);
        if is_first {
            self.clear();
            self.snapshot_epoch.fetch_add(1, Ordering::SeqCst);
        }
        let snapshot_epoch = self.snapshot_epoch.load(Ordering::SeqCst);
        let timestamp = {
            let mut timestamps = self.read_timestamps.lock().past_poison();
            let timestamp = self.clock.load(Ordering::SeqCst);
            assert!(timestamps.last().is_none_or(|last| last <= timestamp), "the clock grows");
            timestamps.add(timestamp);
            timestamp
        };
        self.newest.store(timestamp, Ordering::SeqCst);
        let key = (timestamp, readers.begun);
        readers.begun += 1;
        let reader = Reader::new(key, snapshot_epoch, caller);
        readers.all.insert(key, reader.clone());
        if self.lost_epoch.load(Ordering::SeqCst) == snapshot_epoch {
            // A snapshot that joined the epoch would miss the same versions.
            self.forget(readers, key);
            return Err(self.lost_with_epoch(&reader));
        }
        if is_first {
            self.bulk_modified.forget_before(timestamp);
            let captured = capture_versions(snapshot_epoch).and_then(|()| self.fits(readers));
            if let Err(error) = captured {
                self.forget(readers, key);
                self.end_epoch();
                return Err(error);
            }
        }
        Ok(reader)
    }

    /// Ends a snapshot.
    pub(in crate::txn) fn end(&self, reader: &Reader) {
        self.ended.lock().past_poison().push(reader.key());
        if pages_borrowed() == 0 {
            drop(self.lock_readers());
        } else {
            // The thread that holds them may wait for a page that this thread lends. It ends the
            // snapshot when it releases them.
            drop(self.try_readers());
        }
    }

    /// Forgets the ended snapshots, and drops versions if that is worth it.
    pub(super) fn forget_over(&self, readers: &mut Readers) {
        let ended = std::mem::take(&mut *self.ended.lock().past_poison());
        let before = readers.all.len();
        ended.into_iter().for_each(|key| self.forget(readers, key));
        if readers.all.is_empty() {
            if before > 0 {
                self.end_epoch();
            }
        } else if self.bytes() / 2 > readers.kept + SLACK_BYTES / 2 {
            self.collect(readers);
        }
    }

    /// Forgets a snapshot, unless it is forgotten already.
    pub(super) fn forget(&self, readers: &mut Readers, key: ReaderKey) {
        if readers.all.remove(&key).is_some() {
            self.read_timestamps.lock().past_poison().remove(key.0);
        }
    }

    /// Ends the snapshot epoch: the last snapshot is over.
    pub(in crate::txn) fn end_epoch(&self) {
        let epoch = self.snapshot_epoch.fetch_add(1, Ordering::SeqCst);
        assert_eq!(epoch % 2, 1, "a snapshot epoch is odd");
        self.clear();
    }

    /// Begins a bulk modification of `tree`. `put_all` puts versions of all entries, if there are
    /// snapshots and the tree is not empty.
    ///
    /// # Errors
    /// `put_all` failed.
    pub(in crate::txn) fn mark_bulk_modified(
        &self,
        tree: u32,
        was_empty: bool,
        put_all: impl FnOnce(&Arc<CommitStamp>) -> Result<(), TxnError>,
    ) -> Result<BulkModification<'_>, TxnError> {
        let stamp = CommitStamp::new();
        let mut snapshot_epoch = 0;
        if let (Some(now), false) = (self.snapshot_epoch(), was_empty) {
            snapshot_epoch = now;
            if let Err(error) = put_all(&stamp) {
                self.end_writer(&stamp);
                return Err(error);
            }
        }
        self.bulk_modified.begin(tree, snapshot_epoch, was_empty);
        Ok(BulkModification { versions: self, tree, stamp })
    }

    /// Returns the visible part of `tree` for `reader`, which has read pages and versions already.
    ///
    /// # Errors
    /// [`TxnError::TreeBulkModified`].
    pub(in crate::txn) fn visible(&self, reader: &Reader, tree: u32) -> Result<Visible, TxnError> {
        self.bulk_modified.visible(reader, tree)
    }
}

/// A bulk modification of a tree, which ends when this is dropped.
pub(in crate::txn) struct BulkModification<'v> {
    versions: &'v VersionStore,
    tree: u32,
    stamp: Arc<CommitStamp>,
}

impl Drop for BulkModification<'_> {
    fn drop(&mut self) {
        self.versions.end_writer(&self.stamp);
        let timestamp = self.versions.clock.load(Ordering::SeqCst);
        let has_snapshots = self.versions.snapshot_epoch().is_some();
        self.versions.bulk_modified.end(self.tree, timestamp, has_snapshots);
    }
}
