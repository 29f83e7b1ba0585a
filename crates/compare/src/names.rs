//! Tables by name and number, for engines that have handles for them.

use std::sync::{Arc, PoisonError, RwLock};

use millpond_workload::live::TableId;

/// Handles in the order of their numbers.
pub(crate) struct Names<T>(RwLock<Vec<(Arc<str>, T)>>);

impl<T: Clone> Names<T> {
    pub(crate) fn new() -> Names<T> {
        Names(RwLock::default())
    }

    /// The table called `name`, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<TableId> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables.iter().position(|table| &*table.0 == name).map(|at| TableId(at as u32))
    }

    /// The table called `name`; made by `make` if it is not known.
    pub(crate) fn find_or<E>(
        &self,
        name: &str,
        make: impl FnOnce(usize) -> Result<T, E>,
    ) -> Result<TableId, E> {
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let at = match tables.iter().position(|table| &*table.0 == name) {
            Some(at) => at,
            None => {
                let made = make(tables.len())?;
                tables.push((name.into(), made));
                tables.len() - 1
            }
        };
        Ok(TableId(at as u32))
    }

    /// All handles, for a session.
    #[cfg(any(feature = "berkeleydb", feature = "fjall", feature = "lmdb", feature = "sqlite"))]
    pub(crate) fn handles(&self) -> Vec<T> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(|table| table.1.clone()).collect()
    }

    /// All names.
    #[cfg(any(feature = "redb", feature = "rocksdb", feature = "wiredtiger"))]
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(|table| table.0.clone()).collect()
    }
}
