//! Snapshots as users see them.

use std::ops::RangeBounds;
use std::panic::Location;

use crate::api::db::Db;
use crate::api::place::Place;
use crate::api::place::at::InSnapshot;
use crate::api::place::range::RawRange;
use crate::api::place::snapshot_view::SnapshotView;
use crate::api::raw::hash_index::RawHashIndex;
use crate::api::raw::heap::RawHeap;
use crate::api::raw::tree::RawTree;
use crate::api::raw::tree_in::RawSnapshotTree;
use crate::api::typed::hash_index::HashIndex;
use crate::api::typed::heap::Heap;
use crate::api::typed::tree::Tree;
use crate::api::typed::tree_in::SnapshotTree;
use crate::encoding::key::Key;
use crate::encoding::key_range::KeyRange;
use crate::encoding::value::Value;
use crate::store::error::Error;

/// What was committed at the moment when it was begun, for reading: all its reads agree, whatever
/// others write meanwhile. It waits for no writer, and no writer waits for it. Threads may share
/// it.
///
/// What is changed while a snapshot is open is kept for it: in memory, a 32nd of the store's, and
/// beyond that in a file beside the store
/// ([`Options::spill_max`](crate::Options#structfield.spill_max)). If that is full,
/// the oldest snapshot is lost, and its next read fails with
/// [`TxnError::SnapshotLost`](crate::TxnError::SnapshotLost), which says where in the program
/// it was begun. So drop it when it is no longer needed.
///
/// Entries that [`RawTree::bulk_load`] adds, and [`RawTree::clear`] and
/// [`RawTree::remove_range`] remove, are not seen to come or go either; but a snapshot that begins
/// while one of these is under way cannot read that tree.
///
/// ```
/// use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.tree::<String, String>("ponds")?;
/// ponds.put("mill", "deep")?;
/// let snapshot = db.snapshot()?;
/// ponds.put("mill", "dry")?;
/// ponds.put("weir", "wide")?;
/// let then = snapshot.tree(&ponds);
/// assert_eq!((then.get("mill")?.as_deref(), then.len()?), (Some("deep"), 1));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    view: SnapshotView,
    caller: &'static Location<'static>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("begun_at", &self.caller.to_string()).finish()
    }
}

impl Db {
    /// Begins a snapshot of what is committed now. It waits for the single calls that other threads
    /// are in, not for transactions.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let snapshot = db.snapshot()?;
    /// ponds.put("mill", &7)?;
    /// assert!(snapshot.tree(&ponds).is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store runs without locks, as one does that is open for reading only, or with strategies
    /// without transactions; or what transactions under way have changed does not fit the memory
    /// for snapshots.
    #[track_caller]
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let caller = Location::caller();
        Ok(Snapshot { view: SnapshotView::begin(self.store(), caller)?, caller })
    }
}

impl Snapshot {
    /// Returns `tree` as it was when the snapshot began.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// ponds.put("mill", &7)?;
    /// let snapshot = db.snapshot()?;
    /// ponds.put("mill", &8)?;
    /// assert_eq!(snapshot.tree(&ponds).get("mill")?, Some(7));
    /// # Ok(()) }
    /// ```
    pub fn tree<'t, K: Key, V: Value>(&'t self, tree: &'t Tree<K, V>) -> SnapshotTree<'t, K, V> {
        SnapshotTree::new(self.raw_tree(tree.raw()))
    }

    /// Returns `index` as it was when the snapshot began.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// let snapshot = db.snapshot()?;
    /// sessions.delete("4f1c")?;
    /// assert_eq!(snapshot.hash_index(&sessions).get("4f1c")?, Some(17));
    /// # Ok(()) }
    /// ```
    pub fn hash_index<'t, K: Key, V: Value>(
        &'t self,
        index: &HashIndex<K, V>,
    ) -> HashIndex<K, V, InSnapshot<'t>> {
        HashIndex::new(self.raw_hash_index(index.raw()))
    }

    /// Returns `heap` as it was when the snapshot began.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let snapshot = db.snapshot()?;
    /// notes.append("quiet")?;
    /// assert!(snapshot.heap(&notes).is_empty()?);
    /// # Ok(()) }
    /// ```
    pub fn heap<'t, V: Value>(&'t self, heap: &Heap<V>) -> Heap<V, InSnapshot<'t>> {
        Heap::new(self.raw_heap(heap.raw()))
    }

    /// Returns a hash index of byte strings as it was when the snapshot began.
    #[doc(hidden)]
    pub fn raw_hash_index<'t>(&'t self, index: &RawHashIndex) -> RawHashIndex<InSnapshot<'t>> {
        index.at(InSnapshot(&self.view))
    }

    /// Returns a heap of byte strings as it was when the snapshot began.
    #[doc(hidden)]
    pub fn raw_heap<'t>(&'t self, heap: &RawHeap) -> RawHeap<InSnapshot<'t>> {
        heap.at(InSnapshot(&self.view))
    }

    /// Returns a tree of byte strings as it was when the snapshot began.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.raw_tree("ponds")?;
    /// let snapshot = db.snapshot()?;
    /// ponds.put(b"mill", b"deep")?;
    /// assert_eq!(snapshot.raw_tree(&ponds).get(b"mill")?, None);
    /// # Ok(()) }
    /// ```
    pub fn raw_tree<'t>(&'t self, tree: &'t RawTree) -> RawSnapshotTree<'t> {
        RawSnapshotTree::new(Place::Snapshot(&self.view, tree.handle()))
    }
}

/// The same calls without the handle of a tree in between, for tests and measurements.
#[doc(hidden)]
#[allow(missing_docs, clippy::missing_errors_doc, reason = "RawSnapshotTree documents them")]
impl Snapshot {
    pub fn get(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.raw_tree(tree).get(key)
    }

    pub fn get_with<R>(
        &self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.raw_tree(tree).look_with(key, f)
    }

    pub fn range<'t, 'k>(
        &self,
        tree: &'t RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<RawRange<'t>, Error> {
        self.key_range(tree, &KeyRange::of_bytes(range))
    }

    pub fn iter<'t>(&self, tree: &'t RawTree) -> Result<RawRange<'t>, Error> {
        self.key_range(tree, &KeyRange::ALL)
    }

    pub fn key_range<'t>(
        &self,
        tree: &'t RawTree,
        range: &KeyRange,
    ) -> Result<RawRange<'t>, Error> {
        self.view.check(tree.handle())?;
        Ok(self.view.key_range(tree.handle(), range))
    }
}
