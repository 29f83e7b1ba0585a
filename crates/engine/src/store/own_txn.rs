//! Calls outside transactions that take several steps: each runs in its own transaction.

use std::time::{Duration, Instant};

use crate::btree::WriteCondition;
use crate::pool::PoolStrategy;
use crate::store::counted::DELETE;
use crate::store::error::Error;
use crate::store::handle::StoreTree;
use crate::store::store_txn::StoreTxn;
use crate::txn::{Durability, OwnedEntry, TxnOptions};

/// Time for which such a call retries after it lost in a deadlock.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Computes an entry's new value from the old one.
pub(crate) type Make<'f> = dyn FnMut(Option<&[u8]>) -> Result<Option<Vec<u8>>, Error> + 'f;

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy> StoreTree<M> {
    fn in_own_transaction<R>(
        &self,
        mut work: impl FnMut(&mut StoreTxn<M>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let begun = Instant::now();
        loop {
            let options = TxnOptions::default().durability(Durability::Async);
            let mut tx = StoreTxn::begin(self.store(), options)?;
            let error = match work(&mut tx) {
                Ok(done) => return tx.finish().map(|()| done),
                Err(error) => error,
            };
            tx.undo()?;
            if !error.is_deadlock() || begun.elapsed() >= RETRY_TIME {
                return Err(error);
            }
            millpond_base::sync::thread::yield_now();
        }
    }

    /// Removes the first entry, or the last, and returns it.
    pub(crate) fn pop(&self, first: bool) -> Result<Option<OwnedEntry>, Error> {
        self.write(DELETE, |_| self.in_own_transaction(|tx| tx.pop_uncounted(self, first)))
    }

    /// Returns `true` if keys can be locked.
    pub(crate) fn has_locks(&self) -> bool {
        !M::TREES_ONLY && self.store().txns.locks().is_some()
    }

    /// Locks `key`, and sets its entry to the result of `make`.
    pub(crate) fn update_locked(&self, key: &[u8], make: &mut Make<'_>) -> Result<(), Error> {
        self.in_own_transaction(|tx| {
            // `make` is the user's closure.
            tx.claim_thread();
            tx.lock(self, key)?;
            let old = tx.peek(self, key, <[u8]>::to_vec)?;
            let new = make(old.as_deref())?;
            if old.is_some() || new.is_some() {
                tx.write(self, key, new.as_deref(), WriteCondition::Always)?;
            }
            Ok(())
        })
    }
}
