//! Adapter of [`Db`], the store that users open, for the drivers of live runs.
//!
//! [`TreeStore`](super::tree_store::TreeStore) measures the trees and nothing above them. Here the
//! tables are named trees of a catalog, in a file that every command for stores can read
//! afterwards, like an application's data. The costs are a user's costs: a `match` over the
//! compiled combinations per call, a copy of each value that is read, a log and locks.
//! [`Transactions`] selects the driver's transactions that become transactions of the engine.

use std::path::Path;

use millpond::{BulkOptions, Db, Error, Options, RawTree, Reads, Txn, TxnOptions};
use millpond_workload::live::{Access, Direction, Extent, Scan, Session, Store, TableId};

use super::names::Names;
#[cfg(feature = "runs")]
use crate::run::counts::Counts;

/// Errors of an operation on a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbStoreError {
    /// The store failed.
    #[error(transparent)]
    Db(#[from] Error),
    /// The session does not know the table.
    #[error("there is no table {table}, or it was made after the session was opened")]
    NoTable {
        /// Number of the unknown table.
        table: u32,
    },
}

/// Selects the driver's transactions that become transactions of the engine.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Transactions {
    /// None: each call is its own transaction.
    #[default]
    Calls,
    /// Transactions that may write. Each read outside them is a call, which sees committed data.
    Writes(TxnOptions),
    /// All transactions.
    All(TxnOptions),
}

impl Transactions {
    fn of(self, access: Access) -> Option<TxnOptions> {
        match self {
            Transactions::Writes(options) if access == Access::Write => Some(options),
            Transactions::All(options) => Some(options),
            _ => None,
        }
    }
}

/// A [`Db`] and its opened trees.
pub struct DbStore {
    db: Db,
    trees: Names<RawTree>,
    transactions: Transactions,
}

impl DbStore {
    /// Opens the store at `path`, or creates it. Each call of a driver is its own transaction.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(path: &Path, options: Options) -> Result<DbStore, Error> {
        let (trees, transactions) = (Names::new(), Transactions::Calls);
        Ok(DbStore { db: Db::open(path, options)?, trees, transactions })
    }

    /// Selects the transactions that the store's sessions begin in the engine.
    #[must_use]
    pub fn with_transactions(self, transactions: Transactions) -> DbStore {
        DbStore { transactions, ..self }
    }

    /// Returns the store itself.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns the opened trees.
    pub fn trees(&self) -> Vec<RawTree> {
        self.trees.handles()
    }

    /// Returns the counts of the store's pool since it was opened.
    #[cfg(feature = "runs")]
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
}

impl Store for DbStore {
    type Error = DbStoreError;
    type Session<'s> = DbSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, DbStoreError> {
        Ok(self.trees.find_or(name, |_| self.db.raw_tree(name))?)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, DbStoreError> {
        match self.trees.find_or(name, |_| self.db.open_tree(name)) {
            Ok(table) => Ok(Some(table)),
            Err(Error::NoTree { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn session(&self) -> Result<DbSession<'_>, DbStoreError> {
        let (trees, transactions) = (self.trees.handles(), self.transactions);
        Ok(DbSession { db: &self.db, trees, transactions, tx: None })
    }
}

/// One thread's session with a [`DbStore`]. Dropping it aborts an open transaction.
pub struct DbSession<'s> {
    db: &'s Db,
    trees: Vec<RawTree>,
    transactions: Transactions,
    tx: Option<Txn>,
}

fn tree_of(trees: &[RawTree], table: TableId) -> Result<&RawTree, DbStoreError> {
    trees.get(table.0 as usize).ok_or(DbStoreError::NoTable { table: table.0 })
}

/// Calls `$call` on the tree of `$table`, inside the session's transaction if one is open.
macro_rules! on_tree {
    ($session:ident, $table:expr, $tree:ident => $call:expr) => {{
        let tree = tree_of(&$session.trees, $table)?;
        match &$session.tx {
            Some(tx) => {
                let $tree = &tx.tree(tree);
                $call
            }
            None => {
                let $tree = tree;
                $call
            }
        }
    }};
}

/// Passes the rows of a scan to `visit` until it returns `false`.
fn show_rows<At: Reads>(
    tree: &RawTree<At>,
    scan: Scan<'_>,
    visit: &mut impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), Error> {
    let is_up = scan.direction == Direction::Ascending;
    let mut rows = match is_up {
        true => tree.range(scan.start..),
        false => tree.range(..=scan.start),
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

impl Session for DbSession<'_> {
    type Error = DbStoreError;

    #[inline]
    fn is_isolated(&self) -> bool {
        matches!(self.transactions, Transactions::All(_))
    }

    #[inline]
    fn undoes(&self) -> bool {
        self.transactions != Transactions::Calls
    }

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), DbStoreError> {
        if let Some(options) = self.transactions.of(access) {
            self.tx = Some(self.db.begin_with(options)?);
        }
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), DbStoreError> {
        match self.tx.take() {
            Some(tx) => Ok(tx.commit()?),
            None => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), DbStoreError> {
        match self.tx.take() {
            Some(tx) => Ok(tx.abort()?),
            None => Ok(()),
        }
    }

    fn is_retriable(error: &DbStoreError) -> bool {
        matches!(error, DbStoreError::Db(error) if error.is_retriable())
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, DbStoreError> {
        Ok(on_tree!(self, table, tree => tree.get_with(key, read)?))
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, DbStoreError> {
        Ok(on_tree!(self, table, tree => tree.insert_if_absent(key, value)?))
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), DbStoreError> {
        on_tree!(self, table, tree => tree.put(key, value)?);
        Ok(())
    }

    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, DbStoreError> {
        Ok(on_tree!(self, table, tree => tree.update_in_place(key, change)?))
    }

    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, DbStoreError> {
        Ok(on_tree!(self, table, tree => tree.delete(key)?))
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DbStoreError> {
        on_tree!(self, table, tree => show_rows(tree, scan, &mut visit)?);
        Ok(())
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
        Ok(tree_of(&self.trees, table)?.bulk_load(rows, BulkOptions::default())?)
    }
}
