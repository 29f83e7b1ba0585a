//! Adapter of a store with transactions for the drivers of live runs. Each transaction of a driver
//! is a transaction of the engine, locked and logged according to the store's options.
//!
//! [`TreeStore`](super::tree_store::TreeStore) has the same trees without locks and log, and is
//! the baseline for the cost of transactions. Both are compiled for one combination of strategies.
//!
//! * **Calls outside a transaction** are one transaction each.
//! * **Updates** lock for writing before they read, so two updates of one row do not deadlock.
//! * **Scans** lock only the rows that they show. If the driver states the end of its scan, that
//!   is one range. If not, the length of the scan is unknown. Then the keys of the expected number
//!   of rows are read without a lock, the range up to the last of them is locked and scanned, and
//!   the scan continues from there in the same way. Rows inserted or removed between read and lock
//!   are handled correctly, since the scan shows the content of the locked range.
//! * **Loading** needs no transactions: see [`TxnStore::load_with`].

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::internals::btree::{BulkOptions, WriteCondition};
use millpond::internals::pool::PoolStrategy;
use millpond::internals::store::Store as EngineStore;
use millpond::internals::store::{Builder, StoreTree, StoreTxn};
use millpond::internals::txn::Bounds;
use millpond::{Error, Options, TxnOptions};
use millpond_device::Device;
use millpond_workload::live::{Access, Direction, Extent, Scan, Session, Store, TableId};

use crate::run::counts::Counts;
use crate::stores::db_store::DbStoreError;
use crate::stores::names::Names;

/// A store with transactions, and its opened trees.
pub struct TxnStore<M: PoolStrategy> {
    trees: Names<StoreTree<M>>,
    is_loading: AtomicBool,
    is_isolated: bool,
    store: Arc<EngineStore<M>>,
}

impl<M: PoolStrategy> TxnStore<M> {
    /// Opens the store at `path`, or creates it. Its log, if it has one, is in a file beside it.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(path: &Path, options: &Options) -> Result<TxnStore<M>, Error> {
        Ok(TxnStore::of(Builder::file(path, options).open()?, options))
    }

    /// Opens or creates the store over devices. Without a log device, the store has no log.
    ///
    /// # Errors
    /// The errors of [`Builder::open`].
    pub fn open_on(
        data: Arc<dyn Device>,
        log: Option<Arc<dyn Device>>,
        options: &Options,
    ) -> Result<TxnStore<M>, Error> {
        let store = match log {
            Some(log) => Builder::devices(data, log, options).open()?,
            None => Builder::device(data, options).open()?,
        };
        Ok(TxnStore::of(store, options))
    }

    fn of(store: Arc<EngineStore<M>>, options: &Options) -> TxnStore<M> {
        let (trees, is_loading) = (Names::new(), AtomicBool::new(false));
        TxnStore { trees, is_loading, is_isolated: options.lab.locks, store }
    }

    /// Returns the store itself.
    pub fn store(&self) -> &Arc<EngineStore<M>> {
        &self.store
    }

    /// Returns the counts since the store was opened.
    pub fn counts(&self) -> Counts {
        let log = self.store.transactions().log().map(|log| log.counts());
        let tier = self.store.second_tier();
        Counts::of(self.store.pool().counters()).with_log(log).with_tier(tier)
    }

    /// Lets `load` fill the store. Its sessions write without locks and transactions, and the
    /// written rows become durable at the end.
    ///
    /// # Errors
    /// As `load`, or the store could not be written.
    pub fn load_with<R, E: From<Error>>(
        &self,
        load: impl FnOnce(&Self) -> Result<R, E>,
    ) -> Result<R, E> {
        self.is_loading.store(true, Ordering::Release);
        let loaded = load(self);
        self.is_loading.store(false, Ordering::Release);
        let loaded = loaded?;
        self.store.checkpoint()?;
        Ok(loaded)
    }

    /// Closes the store: writes everything, so that it can be opened again.
    ///
    /// # Errors
    /// As [`EngineStore::close`].
    pub fn close(self) -> Result<(), Error> {
        let TxnStore { trees, store, .. } = self;
        drop(trees);
        store.close()
    }
}

impl<M: PoolStrategy> Store for TxnStore<M> {
    type Error = DbStoreError;
    type Session<'s> = TxnSession<M>;

    fn create_table(&self, name: &str) -> Result<TableId, DbStoreError> {
        Ok(self.trees.find_or(name, |_| self.store.tree(name))?)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, DbStoreError> {
        match self.trees.find_or(name, |_| self.store.open_tree(name)) {
            Ok(table) => Ok(Some(table)),
            Err(Error::NoTree { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn session(&self) -> Result<TxnSession<M>, DbStoreError> {
        Ok(TxnSession {
            tx: None,
            trees: self.trees.handles(),
            is_direct: self.is_loading.load(Ordering::Acquire),
            is_isolated: self.is_isolated,
            keys: (Vec::new(), Vec::new()),
            options: TxnOptions::default().durability(self.store.durability()),
            store: self.store.clone(),
        })
    }
}

/// One thread's session with a [`TxnStore`]. Dropping it aborts an open transaction.
pub struct TxnSession<M: PoolStrategy> {
    tx: Option<StoreTxn<M>>,
    trees: Vec<StoreTree<M>>,
    /// Set to write without transactions, for loading.
    is_direct: bool,
    is_isolated: bool,
    /// Buffers for the ends of a scan's range.
    keys: (Vec<u8>, Vec<u8>),
    options: TxnOptions,
    store: Arc<EngineStore<M>>,
}

fn tree_of<M: PoolStrategy>(
    trees: &[StoreTree<M>],
    table: TableId,
) -> Result<&StoreTree<M>, DbStoreError> {
    trees.get(table.0 as usize).ok_or(DbStoreError::NoTable { table: table.0 })
}

impl<M: PoolStrategy> TxnSession<M> {
    /// Does `work` in the open transaction, or in a new one.
    #[inline]
    fn within<R>(
        &mut self,
        table: TableId,
        work: impl FnOnce(&mut StoreTxn<M>, &StoreTree<M>) -> Result<R, Error>,
    ) -> Result<R, DbStoreError> {
        let tree = tree_of(&self.trees, table)?;
        if let Some(tx) = &mut self.tx {
            return work(tx, tree).map_err(failed);
        }
        let mut tx = StoreTxn::begin(&self.store, self.options)?;
        let done = work(&mut tx, tree)?;
        tx.commit()?;
        Ok(done)
    }

    fn write(
        &mut self,
        table: TableId,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<bool, DbStoreError> {
        let written = self.within(table, |tx, tree| tx.write(tree, key, value, condition))?;
        Ok(written.applied)
    }
}

/// Kept out of the success path.
#[cold]
#[inline(never)]
fn failed(error: Error) -> DbStoreError {
    error.into()
}

/// Converts a key to a bound of a range.
fn from(key: &[u8], is_included: bool) -> Bound<&[u8]> {
    if is_included { Bound::Included(key) } else { Bound::Excluded(key) }
}

/// Finds the end of the next `rows` rows from `start`; returns `false` if the table ends before.
fn look_ahead<M: PoolStrategy>(
    tree: &StoreTree<M>,
    start: Bound<&[u8]>,
    is_up: bool,
    rows: u32,
    end: &mut Vec<u8>,
) -> Result<bool, Error> {
    let (lower, upper) = if is_up { (start, Bound::Unbounded) } else { (Bound::Unbounded, start) };
    let mut cursor = tree.btree().cursor_in(lower, upper).keys_only();
    let mut more = if is_up { cursor.first()? } else { cursor.last()? };
    for _ in 1..rows {
        if !more {
            break;
        }
        more = if is_up { cursor.next()? } else { cursor.prev()? };
    }
    end.clear();
    end.extend_from_slice(cursor.key());
    Ok(more)
}

/// Scans in parts that are locked one after the other.
fn scan_parts<M: PoolStrategy>(
    tx: &mut StoreTxn<M>,
    tree: &StoreTree<M>,
    scan: Scan<'_>,
    start: &mut Vec<u8>,
    end: &mut Vec<u8>,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), Error> {
    let is_up = scan.direction == Direction::Ascending;
    if let (Some(end), true) = (scan.end, is_up) {
        let bounds = Bounds { lower: Bound::Included(scan.start), upper: Bound::Excluded(end) };
        return tx.scan(tree, bounds, visit);
    }
    start.clear();
    start.extend_from_slice(scan.start);
    let (mut is_first, mut wants_more) = (true, true);
    loop {
        let from_start = from(start, is_first);
        let has_end = match scan.extent {
            Extent::Rows(rows) => look_ahead(tree, from_start, is_up, rows, end)?,
            Extent::Whole => false,
        };
        let to = if has_end { Bound::Included(&end[..]) } else { Bound::Unbounded };
        let mut show = |key: &[u8], value: &[u8]| {
            wants_more = visit(key, value);
            wants_more
        };
        if is_up {
            tx.scan(tree, Bounds { lower: from_start, upper: to }, &mut show)?;
        } else {
            tx.scan_back(tree, Bounds { lower: to, upper: from_start }, &mut show)?;
        }
        if !wants_more || !has_end {
            return Ok(());
        }
        std::mem::swap(start, end);
        is_first = false;
    }
}

impl<M: PoolStrategy> Session for TxnSession<M> {
    type Error = DbStoreError;

    fn is_isolated(&self) -> bool {
        self.is_isolated && !self.is_direct
    }

    /// Rollback needs locks: without them it would undo the changes of others too.
    fn undoes(&self) -> bool {
        self.is_isolated()
    }

    fn begin(&mut self, _: Access) -> Result<(), DbStoreError> {
        if !self.is_direct {
            self.tx = Some(StoreTxn::begin(&self.store, self.options)?);
        }
        Ok(())
    }

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
        if self.is_direct {
            let tree = tree_of(&self.trees, table)?;
            return Ok(tree.btree().get(key, read).map_err(Error::from)?);
        }
        self.within(table, |tx, tree| tx.get(tree, key, read))
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, DbStoreError> {
        if self.is_direct {
            let tree = tree_of(&self.trees, table)?;
            return Ok(tree.btree().insert(key, value).map_err(Error::from)?);
        }
        self.write(table, key, Some(value), WriteCondition::Absent)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), DbStoreError> {
        if self.is_direct {
            let tree = tree_of(&self.trees, table)?;
            tree.btree().upsert(key, value).map_err(Error::from)?;
            return Ok(());
        }
        self.write(table, key, Some(value), WriteCondition::Always).map(drop)
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, DbStoreError> {
        if self.is_direct {
            let tree = tree_of(&self.trees, table)?;
            return Ok(tree.btree().update_in_place(key, change).map_err(Error::from)?);
        }
        self.within(table, |tx, tree| tx.update(tree, key, change))
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, DbStoreError> {
        if self.is_direct {
            let tree = tree_of(&self.trees, table)?;
            return Ok(tree.btree().remove(key).map_err(Error::from)?);
        }
        self.write(table, key, None, WriteCondition::Present)
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DbStoreError> {
        let (mut start, mut end) = std::mem::take(&mut self.keys);
        let scanned = self
            .within(table, |tx, tree| scan_parts(tx, tree, scan, &mut start, &mut end, &mut visit));
        self.keys = (start, end);
        scanned
    }

    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, DbStoreError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = std::iter::from_fn(move || {
            next(&mut key, &mut value).then(|| (key.clone(), value.clone()))
        });
        let rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)> = &mut rows;
        let tree = tree_of(&self.trees, table)?;
        Ok(tree.btree().bulk_load(rows, BulkOptions::default()).map_err(Error::from)?)
    }
}
