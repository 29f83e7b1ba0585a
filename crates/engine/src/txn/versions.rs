//! What entries were before they were changed: what snapshots read instead.
//!
//! While there is a snapshot, whoever is about to change an entry first puts here what it is. Such
//! a *version* carries its writer's stamp, which says at what place in the order of commits the
//! writer ended: the version is what a snapshot sees whose own place lies before that.
//!
//! ```text
//! tree, key ─→ (before, stamp) (before, stamp) …     oldest first; the last may be pending
//! ```
//!
//! # Rules
//! 1. A version is put before its page is changed, by whoever holds the key's lock in X. So who
//!    reads the page first and looks here afterwards misses nothing: either the page was not
//!    changed yet, or the version is here.
//! 2. Of several changes of one key by one writer only the first puts a version.
//! 3. Stamps are set in the order of commits, before the writer's locks are given back. A writer
//!    that takes its changes back sets its stamp as well, when all is as it was.
//! 4. Times with snapshots are *eras*. When one begins, no writer knows yet; so whoever begins it
//!    goes to all writers: it waits for the single call that each is in, and puts what those have
//!    changed already ([`Versions::begin`]'s `capture_versions`). A writer that begins a call
//!    afterwards sees the era. Snapshots that join an era later find everything here.
//! 5. A version goes when no snapshot's place lies between the stamp before it and its own.
//! 6. A tree that is changed as a whole (emptied, loaded) need not have versions: it is *unsteady*
//!    until that is over, for snapshots that began before.
//! 7. If versions take more memory than they may, those of the trees with most of them go to the
//!    spill file (`spilled.rs`): of rule 2 is left there that a second version is never seen.
//! 8. If they cannot be spilled, because the file is full or fails or there is none, the oldest
//!    snapshot is lost: it is marked first, and what only it needed goes then. A reader looks
//!    whether it is marked after it looked here.
//! 9. Latches are taken in this order: readers, spilling, trees, the chains of one tree. Nobody
//!    who holds one waits for a page or a lock, but whoever begins an era, for single calls.

use std::collections::HashMap;
use std::ops::Bound;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread::Thread;
use std::time::Instant;

use crate::io::simulated::planted::planted;
use crate::io::{SpillError, SpillFile};
use crate::lock::TreeName;
use crate::pool::borrowed::pages_borrowed;
use crate::txn::before_image::BeforeImage;
use crate::txn::commit_stamp::COMMITTING;
pub(crate) use crate::txn::commit_stamp::CommitStamp;
use crate::txn::error::TxnError;
use crate::txn::spilled::{Horizon, TreeVersions};

/// Bytes charged for a version besides key and value.
const VERSION_BYTES: usize = 160;
/// Growth since the last clean-up that is not worth another one.
const SLACK_BYTES: usize = 64 << 10;

/// What an entry was; `None`: it was not there.
pub(crate) type Before = Option<BeforeImage>;

/// What an entry was before a writer changed it.
pub(super) struct Version {
    pub(super) before: Before,
    pub(super) stamp: Arc<CommitStamp>,
}

impl Version {
    fn bytes(&self, key: &[u8]) -> usize {
        VERSION_BYTES + key.len() + self.before.as_ref().map_or(0, BeforeImage::bytes)
    }
}

/// Somebody who reads a snapshot.
#[derive(Debug)]
pub(crate) struct Reader {
    /// It sees the commits up to this place.
    place: u64,
    snapshot_epoch: u64,
    begun: Instant,
    caller: &'static Location<'static>,
    thread: Thread,
    lost: AtomicBool,
    over: AtomicBool,
}

impl Reader {
    fn lost(&self) -> TxnError {
        TxnError::SnapshotLost {
            caller: self.caller.to_string(),
            thread: name_of(&self.thread),
            age: self.begun.elapsed(),
        }
    }

    /// What it needs is spilled, and cannot be read.
    #[cold]
    pub(super) fn unreadable(&self, error: &SpillError) -> TxnError {
        tracing::warn!(%error, "a snapshot is lost");
        self.lost.store(true, Ordering::SeqCst);
        TxnError::SnapshotUnreadable { caller: self.caller.to_string(), what: error.to_string() }
    }
}

#[derive(Default)]
struct Readers {
    /// By age, so by place, too.
    all: Vec<Arc<Reader>>,
    /// Bytes that were left after the last clean-up.
    kept: usize,
}

/// A tree that is changed as a whole.
struct BulkModified {
    /// Snapshots of a place before this one do not see it as it was.
    until: u64,
    /// In this era what was there was put here before.
    snapshot_epoch: u64,
    /// There was nothing in it.
    was_empty: bool,
}

/// The versions of all trees.
pub(crate) struct Versions {
    /// Odd while there are snapshots.
    snapshot_epoch: AtomicU64,
    /// Commits that were given a place.
    clock: AtomicU64,
    /// The largest place of a snapshot.
    newest: AtomicU64,
    trees: RwLock<HashMap<u32, Arc<TreeVersions>>>,
    bulk_modified: RwLock<HashMap<u32, Vec<BulkModified>>>,
    bulk_modified_trees: AtomicUsize,
    readers: Mutex<Readers>,
    /// Places of the snapshots; a snapshot's is drawn while this is locked.
    places: Mutex<Vec<u64>>,
    bytes: AtomicUsize,
    limit: usize,
    /// Where versions go that do not fit.
    spill: Option<Arc<SpillFile>>,
    spilling: Mutex<()>,
    /// An era whose versions are not all here: something could not be read.
    lost_epoch: AtomicU64,
}

/// A version, and the place at which its writer ended.
pub(crate) type Seen = (Before, u64);

/// Versions of a range of keys, in order.
pub(crate) type Window = Vec<(Arc<[u8]>, Seen)>;

/// What counts of what is known of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counts {
    /// Its pages, and the versions in place of what changed since.
    All,
    /// Versions up to this place. The tree was empty then, and was filled as a whole at once: of
    /// what its pages say, and of later versions, nothing was there.
    VersionsTo(u64),
}

fn name_of(thread: &Thread) -> String {
    thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_string)
}

pub(super) fn unpoisoned<T>(result: Result<T, PoisonError<T>>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Whether no key can lie between the bounds.
fn is_empty(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower >= upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

impl Versions {
    /// No versions yet, and never more than `limit` bytes of them in memory, more or less.
    pub(crate) fn new(limit: usize, spill: Option<Arc<SpillFile>>) -> Versions {
        Versions {
            snapshot_epoch: AtomicU64::new(0),
            clock: AtomicU64::new(1),
            newest: AtomicU64::new(0),
            trees: RwLock::default(),
            bulk_modified: RwLock::default(),
            bulk_modified_trees: AtomicUsize::new(0),
            readers: Mutex::default(),
            places: Mutex::default(),
            bytes: AtomicUsize::new(0),
            limit,
            spill,
            spilling: Mutex::new(()),
            lost_epoch: AtomicU64::new(0),
        }
    }

    /// Not all versions of `snapshot_epoch` could be put.
    pub(super) fn lose_epoch(&self, snapshot_epoch: u64) {
        self.lost_epoch.store(snapshot_epoch, Ordering::SeqCst);
    }

    /// Fails once versions may be missing that `reader` needs.
    pub(super) fn is_whole(&self, reader: &Reader) -> Result<(), TxnError> {
        if self.lost_epoch.load(Ordering::SeqCst) == reader.snapshot_epoch {
            return Err(reader.lost());
        }
        if reader.lost.load(Ordering::SeqCst) { Err(reader.lost()) } else { Ok(()) }
    }

    /// The era, if there are snapshots: who is about to change an entry has to put what it is.
    #[inline]
    pub(crate) fn snapshot_epoch(&self) -> Option<u64> {
        let snapshot_epoch = self.snapshot_epoch.load(Ordering::SeqCst);
        (snapshot_epoch % 2 == 1).then_some(snapshot_epoch)
    }

    /// Bytes that they may take in memory, more or less.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that versions take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn lock_readers(&self) -> MutexGuard<'_, Readers> {
        unpoisoned(self.readers.lock())
    }

    fn tree(&self, tree: u32) -> Arc<TreeVersions> {
        if let Some(found) = unpoisoned(self.trees.read()).get(&tree) {
            return found.clone();
        }
        unpoisoned(self.trees.write()).entry(tree).or_default().clone()
    }

    fn tree_with_versions(&self, tree: u32) -> Option<Arc<TreeVersions>> {
        let trees = unpoisoned(self.trees.read());
        trees.get(&tree).filter(|tree| tree.len.load(Ordering::SeqCst) > 0).cloned()
    }

    /// Whether the writer with `stamp` has not put a version of `key` yet.
    pub(crate) fn wants(&self, tree: u32, key: &[u8], stamp: &Arc<CommitStamp>) -> bool {
        let Some(tree) = self.tree_with_versions(tree) else { return true };
        let chains = unpoisoned(tree.chains.read());
        let last = chains.map.get(key).and_then(|chain| chain.last());
        last.is_none_or(|last| !Arc::ptr_eq(&last.stamp, stamp))
    }

    /// Puts what `key`'s entry is, unless the writer with `stamp` has done so (rule 2).
    pub(crate) fn put(
        &self,
        tree: u32,
        key: &[u8],
        stamp: &Arc<CommitStamp>,
        before: Option<&[u8]>,
    ) {
        self.put_image(tree, key, stamp, before.map(|value| BeforeImage::Here(value.into())));
    }

    /// The spill file.
    pub(super) fn file(&self) -> Option<&Arc<SpillFile>> {
        self.spill.as_ref()
    }

    /// As [`Versions::put`], with what is in memory of its own, or in the spill file.
    pub(super) fn put_image(
        &self,
        tree: u32,
        key: &[u8],
        stamp: &Arc<CommitStamp>,
        before: Before,
    ) {
        let versions = self.tree(tree);
        let version = Version { before, stamp: stamp.clone() };
        let more = version.bytes(key);
        {
            // Bytes are charged while the latch is held: who finds the version, and drops it, finds
            // it charged.
            let mut chains = unpoisoned(versions.chains.write());
            let charge = |bytes| {
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                versions.bytes.fetch_add(bytes, Ordering::Relaxed);
            };
            match chains.map.get_mut(key) {
                Some(chain) if chain.last().is_some_and(|v| Arc::ptr_eq(&v.stamp, stamp)) => {}
                Some(chain) => {
                    charge(more);
                    if self.is_last_unneeded(chain)
                        && let Some(gone) = chain.pop()
                    {
                        self.bytes.fetch_sub(gone.bytes(key), Ordering::Relaxed);
                        versions.bytes.fetch_sub(gone.bytes(key), Ordering::Relaxed);
                    }
                    chain.push(version);
                }
                None => {
                    charge(more);
                    chains.map.insert(key.into(), vec![version]);
                    versions.len.store(chains.len(), Ordering::SeqCst);
                }
            }
        }
        if self.bytes() > self.limit && !self.spill() {
            self.make_room();
        }
    }

    /// Moves versions to the spill file until the rest fits; `false` if it cannot.
    #[cold]
    fn spill(&self) -> bool {
        let Some(file) = &self.spill else { return false };
        let _spilling = unpoisoned(self.spilling.lock());
        let mut is_merged = false;
        // Other writers add versions meanwhile, which may exceed the limit by themselves. These
        // are spilled, too: a writer that is over the limit waits for this mutex.
        while self.bytes() > self.limit {
            let moved = match self.spill_trees(file, is_merged) {
                // One run of a tree takes less memory than many.
                Ok(0) if !std::mem::replace(&mut is_merged, true) => continue,
                moved => moved,
            };
            if let Err(error) = &moved {
                tracing::warn!(%error, "versions for snapshots cannot be spilled");
            }
            if !moved.is_ok_and(|moved| moved > 0) {
                break;
            }
        }
        self.bytes() <= self.limit
    }

    /// Moves versions to the spill file, those of the trees first that have most, and merges runs
    /// where there are many, or all of them; answers how many bytes that gave.
    fn spill_trees(&self, file: &Arc<SpillFile>, all: bool) -> Result<usize, SpillError> {
        let mut trees: Vec<_> = unpoisoned(self.trees.read()).values().cloned().collect();
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.bytes.load(Ordering::Relaxed)));
        let mut moved = 0;
        for tree in trees {
            if self.bytes() <= self.limit / 2 {
                break;
            }
            let (given, taken) = tree.spill(file)?;
            self.charge((given, taken));
            self.charge(tree.merge(file, &self.horizon(), all)?);
            moved += given;
        }
        Ok(moved)
    }

    fn charge(&self, (given, taken): (usize, usize)) {
        self.bytes.fetch_add(taken, Ordering::Relaxed);
        self.bytes.fetch_sub(given, Ordering::Relaxed);
    }

    fn horizon(&self) -> Horizon {
        let places = unpoisoned(self.places.lock());
        Horizon { places: places.clone(), place: self.clock.load(Ordering::SeqCst) }
    }

    /// Drops from the spill file what no snapshot needs.
    fn squeeze(&self) {
        let Some(file) = &self.spill else { return };
        let _spilling = unpoisoned(self.spilling.lock());
        let (horizon, trees) = (self.horizon(), unpoisoned(self.trees.read()).clone());
        for tree in trees.values() {
            match tree.merge(file, &horizon, true) {
                Ok(changed) => self.charge(changed),
                Err(error) => tracing::debug!(%error, "the spill file keeps what is not needed"),
            }
        }
    }

    /// Whether no snapshot lies between the stamps of the last two versions of a chain: then none
    /// ever will, since what begins now gets a later place.
    fn is_last_unneeded(&self, chain: &[Version]) -> bool {
        let newest = self.newest.load(Ordering::SeqCst);
        match chain {
            [.., earlier, last] => {
                let is_older = newest < earlier.stamp.place();
                last.stamp.place() < COMMITTING && (is_older || planted!(VersionDroppedEarly))
            }
            _ => false,
        }
    }

    /// The writer with `stamp` is over: what it changed is so from now on.
    pub(crate) fn end_writer(&self, stamp: &CommitStamp) {
        stamp.end(&self.clock);
    }

    /// What `reader` sees of `key` instead of what the page said; `None`: that.
    ///
    /// # Errors
    /// It cannot be read; the snapshot is lost then, as by this call.
    pub(crate) fn seen(
        &self,
        reader: &Reader,
        tree: u32,
        key: &[u8],
    ) -> Result<Option<Seen>, TxnError> {
        let Some(tree) = self.tree_with_versions(tree) else { return Ok(None) };
        let chains = unpoisoned(tree.chains.read());
        chains.seen(key, reader.place).map_err(|error| reader.unreadable(&error))
    }

    /// Appends what `reader` sees of keys between the bounds, in the order that is asked for;
    /// answers whether there may be more of them than the `limit` that were looked at.
    ///
    /// # Errors
    /// As [`Versions::seen`].
    pub(crate) fn window(
        &self,
        reader: &Reader,
        tree: u32,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        (forward, limit): (bool, usize),
        out: &mut Window,
    ) -> Result<bool, TxnError> {
        if is_empty(lower, upper) {
            return Ok(false);
        }
        let Some(tree) = self.tree_with_versions(tree) else { return Ok(false) };
        let chains = unpoisoned(tree.chains.read());
        let found = chains.window(reader.place, (lower, upper), (forward, limit), out);
        found.map_err(|error| reader.unreadable(&error))
    }

    /// Begins a snapshot of what is committed now. If it is the first one, `capture_versions` goes
    /// to all writers (rule 4).
    ///
    /// # Errors
    /// What `capture_versions` fails with, or what writers under way have changed takes too much
    /// memory.
    pub(crate) fn begin(
        &self,
        caller: &'static Location<'static>,
        capture_versions: impl FnOnce(u64) -> Result<(), TxnError>,
    ) -> Result<Arc<Reader>, TxnError> {
        let mut readers = self.lock_readers();
        self.forget_over(&mut readers);
        let is_first = readers.all.is_empty();
        // Until its place is known nothing is taken for unneeded.
        self.newest.store(u64::MAX, Ordering::SeqCst);
        if is_first {
            self.clear();
            self.snapshot_epoch.fetch_add(1, Ordering::SeqCst);
        }
        let is_lost =
            self.lost_epoch.load(Ordering::SeqCst) == self.snapshot_epoch.load(Ordering::SeqCst);
        let place = {
            let mut places = unpoisoned(self.places.lock());
            let place = self.clock.load(Ordering::SeqCst);
            places.push(place);
            place
        };
        self.newest.store(place, Ordering::SeqCst);
        let snapshot_epoch = self.snapshot_epoch.load(Ordering::SeqCst);
        let (thread, begun) = (std::thread::current(), Instant::now());
        let (lost, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let reader = Arc::new(Reader { place, snapshot_epoch, begun, caller, thread, lost, over });
        if is_lost {
            // Whoever joined would miss the same versions.
            self.note_places(&readers);
            return Err(reader.lost());
        }
        readers.all.push(reader.clone());
        if is_first {
            self.forget_unsteady(place);
            if let Err(error) =
                capture_versions(snapshot_epoch).and_then(|()| self.fits(&mut readers))
            {
                readers.all.clear();
                self.note_places(&readers);
                self.end_era();
                return Err(error);
            }
        }
        Ok(reader)
    }

    fn fits(&self, readers: &mut Readers) -> Result<(), TxnError> {
        if self.bytes() > self.limit {
            self.collect(readers);
            // Another writer's versions may exceed the limit until it has spilled them.
            self.spill();
        }
        match self.bytes() {
            bytes if bytes > self.limit => {
                Err(TxnError::SnapshotTooLarge { bytes, limit: self.limit })
            }
            _ => Ok(()),
        }
    }

    /// Ends a snapshot.
    pub(crate) fn end(&self, reader: &Reader) {
        reader.over.store(true, Ordering::SeqCst);
        let mut readers = if pages_borrowed() == 0 {
            self.lock_readers()
        } else {
            // Whoever has them may wait for a page that this thread lends.
            match self.readers.try_lock() {
                Ok(readers) => readers,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            }
        };
        self.forget_over(&mut readers);
    }

    fn forget_over(&self, readers: &mut Readers) {
        let before = readers.all.len();
        readers.all.retain(|reader| !reader.over.load(Ordering::SeqCst));
        self.note_places(readers);
        if readers.all.is_empty() {
            if before > 0 {
                self.end_era();
            }
        } else if self.bytes() / 2 > readers.kept + SLACK_BYTES / 2 {
            self.collect(readers);
        }
    }

    fn note_places(&self, readers: &Readers) {
        let mut places = unpoisoned(self.places.lock());
        places.clear();
        places.extend(readers.all.iter().map(|reader| reader.place));
    }

    fn end_era(&self) {
        self.snapshot_epoch.fetch_add(1, Ordering::SeqCst);
        self.clear();
    }

    fn clear(&self) {
        for tree in unpoisoned(self.trees.write()).values() {
            self.bytes.fetch_sub(tree.clear(), Ordering::Relaxed);
        }
    }

    /// Drops the versions that no snapshot needs (rule 5).
    fn collect(&self, readers: &mut Readers) {
        let places: Vec<u64> = readers.all.iter().map(|reader| reader.place).collect();
        let trees: Vec<_> = unpoisoned(self.trees.read()).values().cloned().collect();
        for tree in trees {
            let (mut freed, mut chains) = (0, unpoisoned(tree.chains.write()));
            chains.map.retain(|key, chain| {
                let mut since = 0;
                chain.retain(|version| {
                    let place = version.stamp.place();
                    let first = places.partition_point(|reader| *reader < since);
                    let needed = place >= COMMITTING
                        || places.get(first).is_some_and(|reader| *reader < place);
                    since = place;
                    freed += if needed { 0 } else { version.bytes(key) };
                    needed
                });
                !chain.is_empty()
            });
            tree.len.store(chains.len(), Ordering::SeqCst);
            tree.bytes.fetch_sub(freed, Ordering::Relaxed);
            self.bytes.fetch_sub(freed, Ordering::Relaxed);
        }
        let oldest = places.first().copied().unwrap_or(u64::MAX);
        self.forget_unsteady(oldest);
        readers.kept = self.bytes();
    }

    /// Makes snapshots give way, the oldest first, until versions fit their memory.
    #[cold]
    fn make_room(&self) {
        // Whoever begins a snapshot looks at the memory itself afterwards.
        let Ok(mut readers) = self.readers.try_lock() else { return };
        self.forget_over(&mut readers);
        self.collect(&mut readers);
        while self.bytes() > self.limit && !readers.all.is_empty() {
            let oldest = readers.all.remove(0);
            self.note_places(&readers);
            oldest.lost.store(true, Ordering::SeqCst);
            let (caller, thread) = (oldest.caller, name_of(&oldest.thread));
            let (age, limit) = (oldest.begun.elapsed(), self.limit);
            tracing::warn!(
                "the snapshot that thread '{thread}' began at {caller} {age:.1?} ago is lost: what \
                 was changed since takes more than {limit} bytes of memory, and cannot be spilled. \
                 Was it forgotten?"
            );
            if readers.all.is_empty() {
                self.end_era();
            } else {
                self.collect(&mut readers);
                self.squeeze();
            }
        }
    }

    /// A tree is about to be changed as a whole. `put_all` puts what is there now, if there are
    /// snapshots and the tree is not empty.
    ///
    /// # Errors
    /// What `put_all` fails with.
    pub(crate) fn mark_bulk_modified(
        &self,
        tree: u32,
        was_empty: bool,
        put_all: impl FnOnce(&Arc<CommitStamp>) -> Result<(), TxnError>,
    ) -> Result<Unsettled<'_>, TxnError> {
        let stamp = CommitStamp::new();
        let mut snapshot_epoch = 0;
        if let (Some(now), false) = (self.snapshot_epoch(), was_empty) {
            snapshot_epoch = now;
            if let Err(error) = put_all(&stamp) {
                self.end_writer(&stamp);
                return Err(error);
            }
        }
        let mut bulk_modified = unpoisoned(self.bulk_modified.write());
        bulk_modified.entry(tree).or_default().push(BulkModified {
            until: u64::MAX,
            snapshot_epoch,
            was_empty,
        });
        self.bulk_modified_trees.store(bulk_modified.len(), Ordering::SeqCst);
        drop(bulk_modified);
        Ok(Unsettled { versions: self, tree, stamp })
    }

    /// What of `tree` counts for `reader`, who has looked already.
    ///
    /// # Errors
    /// [`TxnError::TreeBulkModified`].
    pub(crate) fn is_steady(&self, reader: &Reader, tree: u32) -> Result<Counts, TxnError> {
        let mut counts = Counts::All;
        if self.bulk_modified_trees.load(Ordering::SeqCst) == 0 {
            return Ok(counts);
        }
        let bulk_modified = unpoisoned(self.bulk_modified.read());
        for since in bulk_modified.get(&tree).into_iter().flatten() {
            if reader.place >= since.until {
                continue;
            }
            if since.was_empty {
                counts = match counts {
                    Counts::VersionsTo(earlier) if earlier < since.until => counts,
                    _ => Counts::VersionsTo(since.until),
                };
            } else if since.snapshot_epoch != reader.snapshot_epoch {
                return Err(TxnError::TreeBulkModified { tree: TreeName { id: tree, name: None } });
            }
        }
        Ok(counts)
    }

    /// Forgets what concerns only snapshots of a place before `oldest`.
    fn forget_unsteady(&self, oldest: u64) {
        let mut bulk_modified = unpoisoned(self.bulk_modified.write());
        bulk_modified.retain(|_, all| {
            all.retain(|since| since.until > oldest);
            !all.is_empty()
        });
        self.bulk_modified_trees.store(bulk_modified.len(), Ordering::SeqCst);
    }
}

/// A tree that is being changed as a whole, until this goes.
pub(crate) struct Unsettled<'v> {
    versions: &'v Versions,
    tree: u32,
    stamp: Arc<CommitStamp>,
}

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        self.versions.end_writer(&self.stamp);
        let place = self.versions.clock.load(Ordering::SeqCst);
        let mut bulk_modified = unpoisoned(self.versions.bulk_modified.write());
        // The tree is locked as a whole, so at most one is not over.
        let all = bulk_modified.entry(self.tree).or_default();
        if let Some(running) = all.iter_mut().find(|since| since.until == u64::MAX) {
            running.until = place;
        }
        if self.versions.snapshot_epoch().is_none() {
            all.retain(|since| since.until == u64::MAX);
        }
        bulk_modified.retain(|_, all| !all.is_empty());
        self.versions.bulk_modified_trees.store(bulk_modified.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Snapshots come and go while others put versions: what goes was charged before.
    #[test]
    fn the_bytes_of_versions_are_never_fewer_than_none() {
        const LIMIT: usize = 1 << 30;
        let versions = Versions::new(LIMIT, None);
        let (mut most, mut lost) = (0, 0);
        std::thread::scope(|scope| {
            let write = |writer: u8| {
                let versions = &versions;
                scope.spawn(move || {
                    for n in 0..20_000u32 {
                        let stamp = CommitStamp::new();
                        for key in 0..8u8 {
                            versions.put(7, &[writer, key], &stamp, Some(&n.to_le_bytes()));
                        }
                        versions.end_writer(&stamp);
                    }
                })
            };
            let writers = [write(0), write(1)];
            while writers.iter().any(|writer| !writer.is_finished()) {
                let reader = versions.begin(Location::caller(), |_| Ok(()));
                most = most.max(versions.bytes());
                match reader {
                    Ok(reader) => versions.end(&reader),
                    Err(_) => lost += 1,
                }
                most = most.max(versions.bytes());
            }
        });
        assert!(most < LIMIT, "{most} bytes");
        assert_eq!(lost, 0);
        versions.clear();
        assert_eq!(versions.bytes(), 0);
    }

    /// What is in memory of what was spilled does not grow with the keys: a snapshot was lost that
    /// way when the file had room for hundreds of times as much.
    #[test]
    fn a_snapshot_outlives_many_changes_of_entries_with_long_keys() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::beside(&folder.path().join("s"), 1 << 30);
        let versions = Versions::new(100 << 10, Some(spill));
        let reader = versions.begin(Location::caller(), |_| Ok(())).unwrap();
        let key = |n: u32| {
            let mut key = vec![b'k'; 1000];
            key[992..996].copy_from_slice(&n.wrapping_mul(2_654_435_761).to_be_bytes());
            key
        };
        for n in 0..40_000u32 {
            let stamp = CommitStamp::new();
            versions.put(7, &key(n), &stamp, Some(&n.to_le_bytes()));
            versions.end_writer(&stamp);
        }
        versions.is_whole(&reader).unwrap();
        for n in (0..40_000).step_by(501) {
            let seen = versions.seen(&reader, 7, &key(n)).unwrap();
            let Some((Some(BeforeImage::Here(value)), _)) = seen else { panic!("{n} is not seen") };
            assert_eq!(*value, n.to_le_bytes());
        }
        assert!(versions.seen(&reader, 7, &key(40_000)).unwrap().is_none());
        versions.end(&reader);
    }

    /// Of several that put long versions at once, one saw those of the others behind its own look.
    #[test]
    fn no_snapshot_is_lost_to_versions_that_are_put_while_others_are_spilled() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::beside(&folder.path().join("s"), 1 << 30);
        let versions = Versions::new(64 << 10, Some(spill));
        let reader = versions.begin(Location::caller(), |_| Ok(())).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                let versions = &versions;
                scope.spawn(move || {
                    for n in 0..400u32 {
                        let stamp = CommitStamp::new();
                        let key = [&[writer][..], &n.to_be_bytes()].concat();
                        versions.put(7, &key, &stamp, Some(&[writer; 100 << 10]));
                        versions.end_writer(&stamp);
                    }
                });
            }
        });
        versions.is_whole(&reader).unwrap();
        versions.end(&reader);
    }
}
