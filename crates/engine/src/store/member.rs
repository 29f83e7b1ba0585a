//! Hash indexes and heaps as members of transactions and snapshots: code that is compiled once for
//! all combinations, and needs no key or value type.

use std::panic::Location;
use std::sync::Arc;

use crate::hash_index::HashIndex;
use crate::heap::{Heap, RecordId};
use crate::page::{Batch, BatchEntry};
use crate::pool::{Pool, PoolStrategy};
use crate::stats::Statistics;
use crate::store::counted::Meters;
use crate::store::error::Error;
use crate::store::handle::{StoreHandle, StoreHashIndex, StoreHeap};
use crate::store::opened::Holds;
use crate::store::store::Store;
use crate::txn::{Each, Found, Snapshot, Structure, TransactionManager, TxnError};

/// A hash index or a heap of a store, by a handle.
#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
pub(crate) trait Member: Send + Sync {
    fn as_structure(&self) -> &dyn Structure;
    fn hold(&self) -> Arc<dyn Holds>;
    fn name(&self) -> &str;
    /// Returns the address of its store, which distinguishes stores.
    fn store_address(&self) -> usize;
    fn transactions(&self) -> &TransactionManager;
    fn may_read(&self) -> Result<(), Error>;
    fn begin_snapshot(&self, caller: &'static Location<'static>) -> Result<Arc<Snapshot>, Error>;
    /// Returns the statistics that count the structure's calls.
    fn statistics(&self) -> &Statistics;
}

/// Returns the address of a store.
pub(crate) fn address_of<M: PoolStrategy>(store: &Arc<Store<M>>) -> usize {
    Arc::as_ptr(store).addr()
}

impl<M: PoolStrategy, S: Structure + 'static> Member for StoreHandle<M, S> {
    fn as_structure(&self) -> &dyn Structure {
        self.structure()
    }

    fn hold(&self) -> Arc<dyn Holds> {
        self.holds()
    }

    fn name(&self) -> &str {
        StoreHandle::name(self)
    }

    fn store_address(&self) -> usize {
        address_of(self.store())
    }

    fn transactions(&self) -> &TransactionManager {
        self.store().transactions()
    }

    fn may_read(&self) -> Result<(), Error> {
        self.store().may_read()
    }

    fn begin_snapshot(&self, caller: &'static Location<'static>) -> Result<Arc<Snapshot>, Error> {
        self.store().begin_snapshot(caller)
    }

    fn statistics(&self) -> &Statistics {
        self.store().pool().statistics()
    }
}

/// Passes all entries of a hash index or a heap to `put`, batch by batch, with their keys.
fn each_entry(structure: &dyn Structure, put: &mut Each<'_>) -> Result<(), crate::pool::PoolError> {
    let (mut batch, mut from, mut name) = (Batch::default(), Some(0), Vec::new());
    while let Some(position) = from {
        from = structure.batch(position, true, &mut batch)?;
        for BatchEntry { position, key, value } in batch.entries.drain(..) {
            name.clear();
            name.extend_from_slice(&position.to_be_bytes());
            name.extend_from_slice(&key);
            let mut value = Some(value);
            put(&name, &mut |_| Ok(value.take().map(Found::Whole)))?;
        }
    }
    Ok(())
}

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy, S: Structure + 'static> StoreHandle<M, S> {
    /// Writes the entry of `key` outside a transaction.
    pub(crate) fn write_entry<R, E: Into<Error>>(
        &self,
        meters: Meters,
        key: &[u8],
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        let structure = self.structure();
        let look = |is_whole| structure.find(key, is_whole);
        let transactions = self.store().transactions();
        transactions.alone(structure.owner(), key, look, || self.write(meters, work))
    }

    /// Removes everything; no other owner may have an entry locked.
    pub(crate) fn clear_with<R, E: Into<Error>>(
        &self,
        meters: Meters,
        work: impl FnOnce(&S) -> Result<R, E>,
    ) -> Result<R, Error> {
        let structure = self.structure();
        let each = |put: &mut Each<'_>| each_entry(structure, put);
        let work = || self.write(meters, work);
        let transactions = self.store().transactions();
        transactions.alone_in(structure.owner(), || Ok(false), each, work)
    }
}

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy> StoreHashIndex<M> {
    /// Reads the committed value of `key` with a closure.
    #[inline]
    pub(crate) fn read_key<'t, R, E: Into<Error>>(
        &'t self,
        meters: Meters,
        key: &[u8],
        mut work: impl FnMut(&'t HashIndex<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        let transactions = self.store().transactions();
        if let Some(seen) = transactions.quietly(&mut || self.read(meters, &mut work)) {
            return seen;
        }
        let mut name = Vec::new();
        self.structure().name_entry(key, &mut name);
        let owner = self.structure().owner();
        transactions.committed(owner, &name, || self.read(meters, &mut work))
    }

    /// Writes the entry of `key` outside a transaction.
    pub(crate) fn write_key<R, E: Into<Error>>(
        &self,
        meters: Meters,
        key: &[u8],
        work: impl FnOnce(&HashIndex<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        let mut name = Vec::new();
        self.structure().name_entry(key, &mut name);
        self.write_entry(meters, &name, work)
    }
}

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy> StoreHeap<M> {
    /// Reads the committed value of a record with a closure.
    #[inline]
    pub(crate) fn read_record<'t, R, E: Into<Error>>(
        &'t self,
        meters: Meters,
        id: RecordId,
        mut work: impl FnMut(&'t Heap<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        let (owner, transactions) = (self.structure().owner(), self.store().transactions());
        let look = || self.read(meters, &mut work);
        transactions.committed(owner, &id.to_key(), look)
    }

    /// Writes a record outside a transaction.
    pub(crate) fn write_record<R, E: Into<Error>>(
        &self,
        meters: Meters,
        id: RecordId,
        work: impl FnOnce(&Heap<Pool<M>>) -> Result<R, E>,
    ) -> Result<R, Error> {
        self.write_entry(meters, &id.to_key(), work)
    }

    /// Appends a record outside a transaction.
    pub(crate) fn append(&self, meters: Meters, record: &[u8]) -> Result<RecordId, Error> {
        self.write(meters, |heap| self.store().transactions().append_alone(heap, record))
    }
}

/// Returns the owner id if `error` means that a structure was being emptied when a reader's
/// snapshot began: the reader has to wait, and begin another snapshot.
#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
pub(crate) fn bulk_modified(error: &TxnError) -> Option<u32> {
    match error {
        TxnError::TreeBulkModified { tree } => Some(tree.id),
        _ => None,
    }
}
