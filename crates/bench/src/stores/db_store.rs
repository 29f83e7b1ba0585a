//! A store as users open it, [`Db`], as the store that the drivers of live runs speak to.
//!
//! [`TreeStore`](super::tree_store::TreeStore) measures the trees and nothing above them. Here the
//! tables are named trees of a catalog, in a file that every command for stores can look into
//! afterwards: what a run leaves behind is the data of an application. It costs what it costs a
//! user: a `match` over the compiled combinations per call, and a copy of each value that is read.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond::internals::btree::BulkOptions;
use millpond::{Db, Error, Options, RawTree};
use millpond_workload::live::{Direction, Extent, Scan, Session, Store, TableId};

use crate::run::counts::Counts;

/// What an operation on a table failed with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbStoreError {
    /// The store failed.
    #[error(transparent)]
    Db(#[from] Error),
    /// The session does not know the table.
    #[error("there is no table {table}, or it was made after the session was opened")]
    NoTable {
        /// The number asked for.
        table: u32,
    },
}

/// A [`Db`] and the trees of it that were asked for.
pub struct DbStore {
    db: Db,
    trees: Mutex<Vec<RawTree>>,
}

impl DbStore {
    /// Opens the store at `path`, or creates it.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(path: &Path, options: Options) -> Result<DbStore, Error> {
        Ok(DbStore { db: Db::open(path, options)?, trees: Mutex::default() })
    }

    /// The store itself.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// What its pool has counted since it was opened.
    pub fn counts(&self) -> Counts {
        Counts::of_stats(&self.db.stats())
    }

    /// Closes the store: writes everything, so that it can be opened again.
    ///
    /// # Errors
    /// As [`Db::close`].
    pub fn close(self) -> Result<(), Error> {
        drop(self.trees);
        self.db.close()
    }

    fn trees(&self) -> MutexGuard<'_, Vec<RawTree>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_or(
        &self,
        name: &str,
        open: impl FnOnce(&Db) -> Result<RawTree, Error>,
    ) -> Result<TableId, Error> {
        let mut trees = self.trees();
        let at = match trees.iter().position(|tree| tree.name() == name) {
            Some(at) => at,
            None => {
                trees.push(open(&self.db)?);
                trees.len() - 1
            }
        };
        Ok(TableId(at as u32))
    }
}

impl Store for DbStore {
    type Error = DbStoreError;
    type Session<'s> = DbSession;

    fn create_table(&self, name: &str) -> Result<TableId, DbStoreError> {
        Ok(self.find_or(name, |db| db.raw_tree(name))?)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, DbStoreError> {
        match self.find_or(name, |db| db.open_tree(name)) {
            Ok(table) => Ok(Some(table)),
            Err(Error::NoTree { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn session(&self) -> Result<DbSession, DbStoreError> {
        Ok(DbSession { trees: self.trees().clone() })
    }
}

/// One thread's way into a [`DbStore`].
pub struct DbSession {
    trees: Vec<RawTree>,
}

impl DbSession {
    fn tree(&self, table: TableId) -> Result<&RawTree, DbStoreError> {
        let tree = self.trees.get(table.0 as usize);
        tree.ok_or(DbStoreError::NoTable { table: table.0 })
    }
}

impl Session for DbSession {
    type Error = DbStoreError;

    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, DbStoreError> {
        Ok(self.tree(table)?.get_with(key, read)?)
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, DbStoreError> {
        Ok(self.tree(table)?.insert_if_absent(key, value)?)
    }

    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), DbStoreError> {
        self.tree(table)?.put(key, value)?;
        Ok(())
    }

    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, DbStoreError> {
        Ok(self.tree(table)?.update_in_place(key, change)?)
    }

    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, DbStoreError> {
        Ok(self.tree(table)?.delete(key)?)
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DbStoreError> {
        let tree = self.tree(table)?;
        let is_up = scan.direction == Direction::Ascending;
        let mut rows = match is_up {
            true => tree.range((Bound::Included(scan.start), Bound::Unbounded)),
            false => tree.range((Bound::Unbounded, Bound::Included(scan.start))),
        };
        if scan.extent == Extent::Whole {
            rows = rows.as_scan();
        }
        loop {
            let row = if is_up { rows.next_entry()? } else { rows.next_entry_back()? };
            match row {
                Some((key, value)) if visit(key, value) => {}
                _ => return Ok(()),
            }
        }
    }

    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, DbStoreError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let rows = std::iter::from_fn(move || {
            next(&mut key, &mut value).then(|| (key.clone(), value.clone()))
        });
        Ok(self.tree(table)?.bulk_load(rows, BulkOptions::default())?)
    }
}
