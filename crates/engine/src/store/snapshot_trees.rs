//! The trees of a store, for snapshots.

use std::sync::{Arc, Mutex, PoisonError};

use crate::btree::Detached;
use crate::pool::{Pool, PoolStrategy};
use crate::store::error::Error;
use crate::store::named::Named;
use crate::store::opened::OpenTree;
use crate::txn::{Trees, TxnError};

/// The trees of a store, for snapshots.
pub(crate) struct TreesOf<'s, M: PoolStrategy> {
    pub(in crate::store) named: &'s Mutex<Named<M>>,
    pub(in crate::store) pool: &'s Arc<Pool<M>>,
}

impl<M: PoolStrategy> TreesOf<'_, M> {
    fn tree(&self, owner: u32) -> Result<OpenTree<M>, TxnError> {
        let missing = || TxnError::NoTree { tx: 0, owner };
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        match named.tree_of(self.pool, owner) {
            Ok(tree) => tree.ok_or_else(missing),
            Err(Error::Pool(error)) => Err(error.into()),
            Err(_) => Err(missing()),
        }
    }
}

impl<M: PoolStrategy> Trees for TreesOf<'_, M> {
    fn value(&mut self, owner: u32, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        Ok(self.tree(owner)?.structure().get_owned(key)?)
    }

    fn large(&mut self, owner: u32, value: &Detached) -> Result<Vec<u8>, TxnError> {
        Ok(self.tree(owner)?.structure().read_detached(value)?)
    }

    fn large_from(
        &mut self,
        owner: u32,
        value: &Detached,
        (offset, max): (u64, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), TxnError> {
        Ok(self.tree(owner)?.structure().read_detached_from(value, offset, max, out)?)
    }
}
