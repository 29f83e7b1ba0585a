//! Aborts for which there was no room, which the store finishes.
//!
//! Undo may have to split a leaf: what a transaction removed may have left room that others have
//! used. A full data file has a few pages for that. When they are used up, a checkpoint is taken,
//! which makes places free. If that does not help, the transaction comes here, with its locks. The
//! thread that takes checkpoints tries again, round after round, and so does the closing of the
//! store. Others may make room in the meantime, by removing what they added, say. A log that keeps
//! what undo needs is left as it is: nothing is lost if the process ends before.

use std::sync::{MutexGuard, PoisonError};

use millpond_base::sync::unmodelled::Mutex;

use crate::pool::PoolStrategy;
use crate::store::error::Error;
use crate::store::error::kind::is_disk_full;
use crate::store::store_txn::{Known, StoreTxn};
use crate::txn::{Transaction, TxnError};

/// Transactions that are to be aborted when there is room.
pub(crate) struct Unfinished<M: PoolStrategy>(Mutex<Vec<(Known<M>, Transaction)>>);

impl<M: PoolStrategy> Unfinished<M> {
    /// None yet.
    pub(in crate::store) fn new() -> Unfinished<M> {
        Unfinished(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Known<M>, Transaction)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to abort each of them. Returns whether some are left.
    pub(in crate::store) fn retry(&self) -> bool {
        let mut all = self.lock();
        all.retain_mut(|(trees, tx)| match tx.abort(&|owner| trees.find(owner)) {
            Ok(()) => false,
            Err(error) if is_disk_full(&error) => true,
            Err(error) => {
                strand(tx, &error);
                false
            }
        });
        !all.is_empty()
    }

    /// Leaves them to the next opening of the store.
    pub(in crate::store) fn strand(&self) {
        for (_, mut tx) in self.lock().drain(..) {
            tx.strand();
        }
    }
}

fn strand(tx: &mut Transaction, error: &TxnError) {
    tx.strand();
    let tx = tx.id();
    tracing::error!(%error, "transaction {tx} could not be undone: open the store again");
}

impl<M: PoolStrategy> StoreTxn<M> {
    /// Undoes all changes and ends the transaction. If there is no room for that, a checkpoint
    /// makes some, or the store goes on with it.
    ///
    /// # Errors
    /// As [`Transaction::abort`]; [`TxnError::UndoPending`].
    pub(in crate::store) fn undo(&mut self) -> Result<(), Error> {
        let Err(error) = self.try_undo() else { return Ok(()) };
        let (Some(checkpointer), Some(log)) = (self.store.checkpointer(), self.store.txns.log())
        else {
            return Err(error.into());
        };
        if !is_disk_full(&error) || log.poisoned().is_some() {
            return Err(error.into());
        }
        if let Err(error) = checkpointer.take_here() {
            tracing::debug!(%error, "no checkpoint makes room for undo");
        }
        let error = match self.try_undo() {
            Err(error) if is_disk_full(&error) => error,
            done => return Ok(done?),
        };
        let trees = std::mem::replace(&mut self.trees, Known::none());
        self.store.unfinished.lock().push((trees, self.tx.hand_over()));
        Err(TxnError::UndoPending(Box::new(error)).into())
    }

    fn try_undo(&mut self) -> Result<(), TxnError> {
        let trees = &self.trees;
        self.tx.abort(&|owner| trees.find(owner))
    }
}

impl<M: PoolStrategy> Drop for StoreTxn<M> {
    fn drop(&mut self) {
        if self.tx.is_over() {
            return;
        }
        self.count_abort();
        match self.undo() {
            Ok(()) => {}
            Err(Error::Txn(error @ TxnError::UndoPending(_))) => {
                tracing::warn!(%error, "transaction {} is aborted later", self.tx.id());
            }
            Err(error) => {
                self.tx.strand();
                let tx = self.tx.id();
                tracing::error!(%error, "transaction {tx} could not be undone: open the store again");
            }
        }
    }
}
