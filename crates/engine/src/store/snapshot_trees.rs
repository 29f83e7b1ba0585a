//! The structures of a store, for snapshots.

use std::sync::Arc;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::btree::Detached;
use crate::pool::{Pool, PoolError, PoolStrategy};
use crate::recovery::HoldsStructure;
use crate::store::error::Error;
use crate::store::named::Named;
use crate::txn::{LargeValues, Structure, Trees, TxnError};

/// The structures of a store, for snapshots.
pub(crate) struct TreesOf<'s, M: PoolStrategy> {
    pub(in crate::store) named: &'s Mutex<Named<M>>,
    pub(in crate::store) pool: &'s Arc<Pool<M>>,
}

impl<M: PoolStrategy> TreesOf<'_, M> {
    /// Calls `read` with the structure whose pages carry the id `owner`.
    fn with<R>(
        &self,
        owner: u32,
        read: impl FnOnce(&dyn Structure) -> Result<R, TxnError>,
    ) -> Result<R, TxnError> {
        let missing = || TxnError::NoTree { tx: 0, owner };
        let mut named = self.named.lock().past_poison();
        let found = named.owned_by(self.pool, owner);
        drop(named);
        match found {
            Ok(opened) => {
                let opened = opened.ok_or_else(missing)?;
                read(opened.as_structure().ok_or_else(missing)?)
            }
            Err(Error::Pool(error)) => Err(error.into()),
            Err(_) => Err(missing()),
        }
    }

    fn with_tree<R>(
        &self,
        owner: u32,
        read: impl FnOnce(&dyn LargeValues) -> Result<R, PoolError>,
    ) -> Result<R, TxnError> {
        self.with(owner, |structure| match structure.large_values() {
            Some(tree) => Ok(read(tree)?),
            None => Err(TxnError::NoTree { tx: 0, owner }),
        })
    }
}

impl<M: PoolStrategy> Trees for TreesOf<'_, M> {
    fn value(&mut self, owner: u32, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.with(owner, |structure| Ok(structure.value(key)?))
    }

    fn large(&mut self, owner: u32, value: &Detached) -> Result<Vec<u8>, TxnError> {
        self.with_tree(owner, |tree| tree.read_detached(value))
    }

    fn large_from(
        &mut self,
        owner: u32,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), TxnError> {
        self.with_tree(owner, |tree| tree.read_detached_from(value, offset, max, out))
    }
}
