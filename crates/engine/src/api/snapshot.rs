//! Snapshots in the public API.

use std::panic::Location;
use std::sync::Arc;

use crate::api::db::Db;
use crate::api::hash_index::HashIndex;
use crate::api::heap::Heap;
use crate::api::strategy::*;
use crate::api::tree::Tree;
use crate::encoding::key::Key;
use crate::encoding::value::Value;
use crate::page::Batch;
use crate::pool::PoolStrategy;
use crate::store::counted::GET;
use crate::store::error::Error;
use crate::store::member::{Member, address_of};
use crate::store::store::Store;
use crate::txn;

/// A read-only view of the entries committed at one moment: all its reads agree, whatever others
/// write in the meantime. It waits for no writer, and no writer waits for it. Threads may share it.
///
/// Changes made while a snapshot is open are kept for it: in a 32nd of the store's memory, and
/// beyond that in a file beside the store
/// ([`Options::spill_max`](crate::Options#structfield.spill_max)). If that is full, the oldest
/// snapshot is lost. Its next read fails with
/// [`TxnError::SnapshotLost`](crate::error::TxnError::SnapshotLost), which names the place in the
/// program where it was begun. So drop a snapshot when it is no longer needed.
///
/// A snapshot also ignores entries that [`Tree::bulk_load`] adds, or that [`Tree::clear`] and
/// [`Tree::remove_range`] remove. A snapshot that begins during one of these calls cannot read that
/// tree.
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
    engine: Arc<txn::Snapshot>,
    store: DbStore,
    caller: &'static Location<'static>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("begun_at", &self.caller.to_string()).finish()
    }
}

impl Db {
    /// Begins a snapshot of the committed state. The call waits for the single calls that other
    /// threads are in, but not for transactions.
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
    /// The store runs without locks, because it is open for reading only or uses strategies without
    /// transactions. Or the changes of open transactions do not fit the memory for snapshots.
    #[track_caller]
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let caller = Location::caller();
        let (engine, store) = (self.store().begin_snapshot(caller)?, self.store().clone());
        Ok(Snapshot { engine, store, caller })
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
    pub fn tree<'t, K: Key, V: Value>(&'t self, tree: &'t Tree<K, V>) -> Tree<K, V, &'t Snapshot> {
        Tree::new(tree.handle(), self)
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
        index: &'t HashIndex<K, V>,
    ) -> HashIndex<K, V, &'t Snapshot> {
        HashIndex::new(index.handle(), self)
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
    pub fn heap<'t, V: Value>(&'t self, heap: &'t Heap<V>) -> Heap<V, &'t Snapshot> {
        Heap::new(heap.handle(), self)
    }

    /// Returns the engine's snapshot.
    pub(crate) fn engine(&self) -> &Arc<txn::Snapshot> {
        &self.engine
    }

    /// Returns the store of the snapshot.
    pub(crate) fn store(&self) -> &DbStore {
        &self.store
    }

    /// Fails if `tree` belongs to another store, or if the store was closed or belongs to another
    /// process.
    pub(crate) fn check(&self, tree: &DbTree) -> Result<(), Error> {
        fn is_same<M: PoolStrategy>(store: &Arc<Store<M>>, other: &Arc<Store<M>>) -> bool {
            Arc::ptr_eq(store, other)
        }
        self.store.may_read()?;
        if is_same(&self.store, tree.store()) {
            return Ok(());
        }
        Err(Error::OtherStore { name: tree.name().to_string() })
    }

    /// Fails if a hash index or a heap belongs to another store, or if the store was closed.
    fn check_member(&self, member: &dyn Member) -> Result<(), Error> {
        self.store.may_read()?;
        if address_of(&self.store) == member.store_address() {
            return Ok(());
        }
        Err(Error::OtherStore { name: member.name().to_string() })
    }

    /// Hands the value of an entry of a hash index or a heap to `f`; returns `true` if the entry
    /// exists.
    pub(crate) fn look_in(
        &self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.check_member(member)?;
        let look = || self.engine.look(member.as_structure(), key, f);
        Ok(self.store.counted(GET, look)?.is_some())
    }

    /// Reads a batch of entries of a hash index or a heap, starting at `from`; returns the position
    /// of the next batch.
    pub(crate) fn batch_of(
        &self,
        member: &dyn Member,
        from: u64,
        forward: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>, Error> {
        self.check_member(member)?;
        Ok(self.engine.batch(member.as_structure(), from, forward, batch)?)
    }
}
