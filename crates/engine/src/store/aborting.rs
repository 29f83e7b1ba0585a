//! Aborts of transactions in a store.

use std::sync::Arc;

use crate::pool::PoolStrategy;
use crate::store::error::Error;
use crate::store::error::kind::is_disk_full;
use crate::store::housekeeping::Abort;
use crate::store::store_txn::{Known, StoreTxn};
use crate::txn::{Transaction, TxnError};

/// A transaction that its holder has left, with the structures that it changed.
struct Left<M: PoolStrategy>(Known<M>, Transaction);

impl<M: PoolStrategy> Abort for Left<M> {
    fn abort(&mut self) -> Result<(), TxnError> {
        let Left(trees, tx) = self;
        tx.abort(&|owner| trees.find(owner))
    }

    fn strand(&mut self, error: &TxnError) {
        strand(&mut self.1, error);
    }
}

fn strand(tx: &mut Transaction, error: &dyn std::fmt::Display) {
    tx.strand();
    let tx = tx.id();
    tracing::error!(%error, "transaction {tx} could not be undone: open the store again");
}

impl<M: PoolStrategy> StoreTxn<M> {
    /// Undoes all changes and ends the transaction. If there is no room for the undo, it takes a
    /// checkpoint to make some; if that does not help, the store continues the undo.
    ///
    /// # Errors
    /// [`TxnError::UndoPending`], or any error of [`Transaction::abort`].
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
        let error = Arc::new(error);
        let left = Left(trees, self.tx.hand_over());
        self.store.unfinished.push(Box::new(left), TxnError::UndoPending(error.clone()));
        Err(TxnError::UndoPending(error).into())
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
            Err(error) => strand(&mut self.tx, &error),
        }
    }
}
