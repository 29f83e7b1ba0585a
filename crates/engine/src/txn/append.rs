//! Appends to a heap, where the place of a record decides its id.
//!
//! The id is locked before anybody else can see it. A place is chosen under the page's latch. The
//! id is then locked without the latch and without waiting, and the record is inserted if the place
//! is still free. If another owner was faster, another place is chosen. After several failures the
//! append waits for the lock: a transaction that has scanned the whole heap does not allow new
//! records.
//!
//! Outside transactions, and without snapshots, the place need not be locked, since the record is
//! committed when the latch is released. It suffices that no other owner has locked the id
//! ([`LockOwner::is_free`]): a transaction that has seen the id as free keeps it free.

use std::sync::Arc;

use crate::btree::{NewValue, WriteCondition, WriteRequest};
use crate::heap::{Heap, Placing, RecordId};
use crate::lock::{LockManager, LockMode, LockOwner};
use crate::pool::Pages;
use crate::txn::autocommit::{lock, lock_again};
use crate::txn::error::{TxnError, failed};
use crate::txn::manager::TransactionManager;
use crate::txn::structure::Structure;
use crate::txn::transaction::Transaction;

/// Number of ids whose locks are tried before the append waits for one.
const TRIES: usize = 8;

impl Transaction {
    /// Appends a record to a heap and returns its id.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was changed.
    pub fn append(&mut self, heap: &dyn Structure, record: &[u8]) -> Result<RecordId, TxnError> {
        self.running()?;
        self.enter();
        let (tx, has_locks) = (self.tx, self.scratch.owner.is_some());
        let mut refused = Vec::new();
        loop {
            // Places of records that this transaction removed stay reserved until its end. Without
            // locks, nobody knows which transaction removed a record.
            let id = heap.place_for(record, &mut |id, removed| {
                !refused.contains(&id) && removed.is_none_or(|by| has_locks && by != tx)
            })?;
            let key = id.to_key();
            if let Some(owner) = &mut self.scratch.owner {
                if refused.len() >= TRIES {
                    owner.lock_key(heap.owner(), &key, LockMode::X).map_err(failed)?;
                } else if !owner.try_lock_key(heap.owner(), &key).map_err(failed)? {
                    refused.push(id);
                    continue;
                }
            }
            if self.write(heap, &key, Some(record), WriteCondition::Absent)?.applied {
                return Ok(id);
            }
            refused.push(id);
        }
    }
}

impl TransactionManager {
    /// Appends a record to a heap outside transactions and returns its id.
    ///
    /// # Errors
    /// The record is too long, a lock is unavailable, or the store failed.
    pub fn append_alone<P: Pages>(
        &self,
        heap: &Heap<P>,
        record: &[u8],
    ) -> Result<RecordId, TxnError> {
        self.may_write()?;
        self.await_room();
        let Some(locks) = &self.locks else { return Ok(heap.append(record)?) };
        self.with_owner(locks, |owner| self.append_by(locks, owner, heap, record))
    }

    fn append_by<P: Pages>(
        &self,
        locks: &Arc<LockManager>,
        owner: &mut LockOwner,
        heap: &Heap<P>,
        record: &[u8],
    ) -> Result<RecordId, TxnError> {
        let announced = owner.announce_write(heap.owner());
        lock_again(locks, owner, announced, |owner| owner.announce_write(heap.owner()))?;
        {
            let _call = self.calls.enter();
            self.may_call()?;
            if self.versions.snapshot_epoch().is_none() {
                let (owner, id) = (&*owner, heap.owner());
                let (mut refused, mut is_inserted) = (0, false);
                let appended = heap.place_record(record, &mut |record, _| {
                    is_inserted = owner.is_free(id, &record.to_key());
                    refused += 1;
                    match is_inserted {
                        true => Placing::Insert,
                        false if refused < TRIES => Placing::Refuse,
                        false => Placing::Choose,
                    }
                })?;
                if is_inserted {
                    return Ok(appended);
                }
            }
        }
        self.append_slowly(locks, owner, heap, record)
    }

    /// Appends a record whose id has to be locked: because snapshots have a version for it, or the
    /// append has to wait for it.
    #[cold]
    fn append_slowly(
        &self,
        locks: &LockManager,
        owner: &mut LockOwner,
        heap: &dyn Structure,
        record: &[u8],
    ) -> Result<RecordId, TxnError> {
        let mut refused = Vec::new();
        loop {
            let id = heap.place_for(record, &mut |id, _| !refused.contains(&id))?;
            let key = id.to_key();
            if refused.len() >= TRIES {
                lock(locks, owner, heap.owner(), &key, LockMode::X)?;
            }
            if owner.try_lock_key(heap.owner(), &key)? {
                let value = NewValue::Bytes(record);
                let request = WriteRequest::new(&key, value, WriteCondition::Absent);
                let write = || heap.write(request);
                let written = self.call(heap.owner(), &key, |_| Ok(None), write)?;
                if written.applied {
                    return Ok(id);
                }
            }
            refused.push(id);
        }
    }
}
