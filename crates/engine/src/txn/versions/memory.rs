//! Memory of the versions. Versions that do not fit are spilled, and those that no snapshot needs
//! are dropped. If neither suffices, the oldest snapshot is lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::io::{SpillError, SpillFile};
use crate::txn::commit_stamp::COMMITTING;
use crate::txn::error::{TxnError, why_not_spilled};
use crate::txn::versions::spilled::Horizon;
use crate::txn::versions::version_store::{Readers, VersionStore};
use millpond_base::PastPoison;

/// Sorts the trees by their bytes of versions, largest first. The bytes are read once: writers
/// change them, and a sort needs a fixed order.
fn largest_first<T>(trees: &mut [T], bytes: impl Fn(&T) -> usize) {
    trees.sort_by_cached_key(|tree| std::cmp::Reverse(bytes(tree)));
}

impl VersionStore {
    /// Moves versions to the spill file until the rest fits.
    ///
    /// Versions that others put after the rest fitted are not a failure: their writers wait for the
    /// mutex to spill them.
    ///
    /// # Errors
    /// They do not fit. The reason is `None` if there is no file, or if the rest has to be in
    /// memory.
    #[cold]
    pub(in crate::txn) fn spill(&self) -> Result<(), Option<Arc<SpillError>>> {
        let Some(file) = &self.spill else { return Err(None) };
        let _spilling = self.spilling.lock().past_poison();
        let mut is_merged = false;
        // Other writers add versions in the meantime, and may exceed the limit on their own. Those
        // are spilled, too: a writer over the limit waits for this mutex.
        while self.bytes() > self.limit {
            match self.spill_trees(file, is_merged) {
                // Others dropped versions after the memory was checked.
                Ok(None) => return Ok(()),
                // One run of a tree takes less memory than many.
                Ok(Some(0)) if !std::mem::replace(&mut is_merged, true) => {}
                Ok(Some(0)) => return Err(None),
                Ok(Some(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, "versions for snapshots cannot be spilled");
                    return Err(Some(Arc::new(error)));
                }
            }
        }
        Ok(())
    }

    /// Moves versions to the spill file, those of the largest trees first, and merges runs where
    /// there are many, or `all` of them. Returns the bytes of memory that this freed, or `None` if
    /// half of the limit was free already.
    fn spill_trees(&self, file: &Arc<SpillFile>, all: bool) -> Result<Option<usize>, SpillError> {
        debug_assert!(self.spilling.try_lock().is_err(), "the caller holds the mutex of spilling");
        let mut trees: Vec<_> = self.trees.read().past_poison().values().cloned().collect();
        largest_first(&mut trees, |tree| tree.bytes.load(Ordering::Relaxed));
        let mut moved = None;
        for tree in trees {
            if self.bytes() <= self.limit / 2 {
                break;
            }
            let (given, taken) = tree.spill(file)?;
            self.charge(given, taken);
            let (dropped, merged) = tree.merge(file, &self.horizon(), all)?;
            self.charge(dropped, merged);
            moved = Some(moved.unwrap_or(0) + given);
        }
        Ok(moved)
    }

    /// Charges `taken` bytes, and returns `given` ones.
    fn charge(&self, given: usize, taken: usize) {
        self.bytes.fetch_add(taken, Ordering::Relaxed);
        let before = self.bytes.fetch_sub(given, Ordering::Relaxed);
        debug_assert!(before >= given, "versions are charged before they are dropped");
    }

    /// Returns the read timestamps of the present snapshots.
    fn horizon(&self) -> Horizon {
        let timestamps = self.read_timestamps.lock().past_poison();
        let now = self.clock.load(Ordering::SeqCst);
        Horizon { read_timestamps: timestamps.each(), now }
    }

    /// Drops versions that no snapshot needs from the spill file.
    fn merge_all_runs(&self) {
        let Some(file) = &self.spill else { return };
        let _spilling = self.spilling.lock().past_poison();
        let (horizon, trees) = (self.horizon(), self.trees.read().past_poison().clone());
        for tree in trees.values() {
            match tree.merge(file, &horizon, true) {
                Ok((given, taken)) => self.charge(given, taken),
                Err(error) => tracing::debug!(%error, "the spill file keeps what is not needed"),
            }
        }
    }

    /// Fails if versions exceed their memory and cannot be spilled: then the first snapshot cannot
    /// begin.
    pub(super) fn fits(&self, readers: &mut Readers) -> Result<(), TxnError> {
        if self.bytes() > self.limit {
            self.collect(readers);
            // Another writer's versions may exceed the limit until it has spilled them.
            if let Err(error) = self.spill()
                && self.bytes() > self.limit
            {
                let (bytes, limit) = (self.bytes(), self.limit);
                return Err(TxnError::SnapshotTooLarge { bytes, limit, error });
            }
        }
        Ok(())
    }

    /// Drops all versions.
    pub(in crate::txn) fn clear(&self) {
        let trees: Vec<_> = self.trees.read().past_poison().values().cloned().collect();
        for tree in trees {
            self.bytes.fetch_sub(tree.clear(), Ordering::Relaxed);
        }
    }

    /// Drops the versions that no snapshot needs (rule 5).
    pub(super) fn collect(&self, readers: &mut Readers) {
        let timestamps = self.read_timestamps.lock().past_poison().each();
        let trees: Vec<_> = self.trees.read().past_poison().values().cloned().collect();
        for tree in trees {
            let is_needed = |since, ended| {
                let first = timestamps.partition_point(|reader| *reader < since);
                let is_seen = timestamps.get(first).is_some_and(|reader| *reader < ended);
                ended >= COMMITTING || is_seen
            };
            tree.retain(is_needed, &self.bytes);
        }
        let oldest = timestamps.first().copied().unwrap_or(u64::MAX);
        self.bulk_modified.forget_before(oldest);
        readers.kept = self.bytes();
    }

    /// Loses snapshots, the oldest first, until versions fit into their memory (rule 8). `error` is
    /// the reason that they cannot be spilled.
    #[cold]
    pub(in crate::txn) fn make_room(&self, error: &Option<Arc<SpillError>>) {
        // The thread that begins a snapshot checks the memory itself afterwards.
        let Some(mut readers) = self.try_readers() else { return };
        self.forget_over(&mut readers);
        self.collect(&mut readers);
        while self.bytes() > self.limit && !readers.all.is_empty() {
            let Some(oldest) = readers.all.values().next().cloned() else { break };
            self.forget(&mut readers, oldest.key());
            oldest.lose(error.clone());
            let (caller, thread) = (oldest.caller, oldest.thread_name());
            let (age, limit) = (oldest.begun.elapsed(), self.limit);
            tracing::warn!(
                "the snapshot that thread '{thread}' began at {caller} {age:.1?} ago is lost: what \
                 was changed since takes more than {limit} bytes of memory, and {}. Was it \
                 forgotten?",
                why_not_spilled(error)
            );
            if readers.all.is_empty() {
                self.end_epoch();
            } else {
                self.collect(&mut readers);
                self.merge_all_runs();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::Location;

    use super::*;
    use crate::pool::borrowed::BorrowedPage;
    use crate::txn::before_image::BeforeImage;
    use crate::txn::commit_stamp::CommitStamp;
    use crate::txn::versions::version::Image;
    use crate::txn::versions::window::Window;

    /// The sort compared numbers that writers change, and std's sort panics on an inconsistent
    /// order. Here they change each time they are read.
    #[test]
    fn trees_are_put_in_order_while_writers_change_how_many_versions_they_have() {
        let random = RefCell::new(fastrand::Rng::with_seed(7));
        for _ in 0..200 {
            let mut trees: Vec<u32> = (0..500).collect();
            largest_first(&mut trees, |_| random.borrow_mut().usize(..));
        }
        let mut trees: Vec<u32> = (0..500).collect();
        largest_first(&mut trees, |tree| *tree as usize);
        assert!(trees.iter().copied().eq((0..500).rev()));
    }

    /// Writers exceed the limit while the first snapshot begins: nobody can make room then.
    #[test]
    fn a_snapshot_begins_beside_calls_that_change_more_than_fits_meanwhile() {
        let versions = VersionStore::new(64 << 10, None);
        let mut times = 0;
        let begun = versions.begin(Location::caller(), |_| {
            times += 1;
            for n in 0..if times == 1 { 1000u32 } else { 0 } {
                let stamp = CommitStamp::new();
                versions.put(7, &n.to_be_bytes(), &stamp, Some(Image::Bytes(&[7; 100])));
                versions.end_writer(&stamp);
            }
            Ok(())
        });
        let reader = begun.unwrap();
        versions.check_lost(&reader).unwrap();
        versions.end(&reader);
        assert_eq!((versions.snapshots(), versions.bytes()), (0, 0));
    }

    /// A thread that lends a page must not wait for the list of snapshots.
    #[test]
    fn a_snapshot_that_is_dropped_while_a_page_is_lent_is_over() {
        let versions = VersionStore::new(64 << 10, None);
        let [first, second] = [(); 2].map(|()| versions.begin(Location::caller(), |_| Ok(())));
        let (first, second) = (first.unwrap(), second.unwrap());
        let held = versions.lock_readers();
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| {
                let _lent = BorrowedPage::begin();
                versions.end(&first);
            });
            dropping.join().unwrap();
        });
        drop(held);
        assert_eq!(versions.snapshots(), 1);
        versions.end(&second);
        assert_eq!(versions.snapshots(), 0);
    }

    /// Each begin and each end went through all of them: this took minutes.
    #[test]
    fn a_quarter_of_a_million_snapshots_begin_and_end_in_any_order() {
        let versions = VersionStore::new(64 << 10, None);
        let begin = |_| versions.begin(Location::caller(), |_| Ok(())).unwrap();
        let mut readers: Vec<_> = (0..250_000).map(begin).collect();
        assert_eq!(versions.snapshots(), 250_000);
        fastrand::Rng::with_seed(3).shuffle(&mut readers);
        for reader in readers {
            versions.end(&reader);
        }
        assert_eq!(versions.snapshots(), 0);
    }

    /// Snapshots begin and end while others put versions: dropped versions were charged before.
    #[test]
    fn the_bytes_of_versions_are_never_fewer_than_none() {
        const LIMIT: usize = 1 << 30;
        let versions = VersionStore::new(LIMIT, None);
        let (mut most, mut lost) = (0, 0);
        std::thread::scope(|scope| {
            let write = |writer: u8| {
                let versions = &versions;
                scope.spawn(move || {
                    for n in 0..20_000u32 {
                        let stamp = CommitStamp::new();
                        for key in 0..8u8 {
                            let value = n.to_le_bytes();
                            let before = Image::Bytes(&value);
                            versions.put(7, &[writer, key], &stamp, Some(before));
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

    /// The memory for spilled versions does not grow with the keys. A snapshot was once lost to
    /// that, when the file had room for hundreds of times as much.
    #[test]
    fn a_snapshot_outlives_many_changes_of_entries_with_long_keys() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::beside(&folder.path().join("s"), 1 << 30);
        let versions = VersionStore::new(100 << 10, Some(spill));
        let reader = versions.begin(Location::caller(), |_| Ok(())).unwrap();
        let key = |n: u32| {
            let mut key = vec![b'k'; 1000];
            key[992..996].copy_from_slice(&n.wrapping_mul(2_654_435_761).to_be_bytes());
            key
        };
        for n in 0..40_000u32 {
            let stamp = CommitStamp::new();
            versions.put(7, &key(n), &stamp, Some(Image::Bytes(&n.to_le_bytes())));
            versions.end_writer(&stamp);
        }
        versions.check_lost(&reader).unwrap();
        for n in (0..40_000).step_by(501) {
            let mut seen = Window::default();
            versions.seen(&reader, 7, &key(n), &mut seen).unwrap();
            let value = match seen.before(0) {
                Some(Image::Bytes(value)) => value,
                Some(Image::Apart(BeforeImage::Here(value))) => value,
                _ => panic!("{n} is not seen"),
            };
            assert_eq!(*value, n.to_le_bytes());
        }
        let mut seen = Window::default();
        versions.seen(&reader, 7, &key(40_000), &mut seen).unwrap();
        assert_eq!(seen.len(), 0);
        versions.end(&reader);
    }

    /// A thread that had spilled found the memory exceeded again, by long versions of the others.
    #[test]
    fn no_snapshot_is_lost_to_versions_that_are_put_while_others_are_spilled() {
        let folder = tempfile::tempdir().unwrap();
        let spill = SpillFile::beside(&folder.path().join("s"), 1 << 30);
        let versions = VersionStore::new(64 << 10, Some(spill));
        let reader = versions.begin(Location::caller(), |_| Ok(())).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                let versions = &versions;
                scope.spawn(move || {
                    for n in 0..400u32 {
                        let stamp = CommitStamp::new();
                        let key = [&[writer][..], &n.to_be_bytes()].concat();
                        versions.put(7, &key, &stamp, Some(Image::Bytes(&[writer; 100 << 10])));
                        versions.end_writer(&stamp);
                    }
                });
            }
        });
        versions.check_lost(&reader).unwrap();
        versions.end(&reader);
    }
}
