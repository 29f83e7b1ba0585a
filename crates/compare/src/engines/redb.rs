//! redb 4.
//!
//! * The cache has the given size. Beyond its cache, redb reads through the kernel's page cache.
//! * Asynchronous: `Durability::None`; every N writes are committed durably, because redb reuses no
//!   space before. Durable: `Durability::Immediate`.
//! * One transaction of the driver's is one of redb's: reads see a snapshot, writers queue up.
//!   A table is opened for every operation of a write transaction, as its borrow demands, and once
//!   for every read transaction that uses it.

use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_workload::live::{Access, Direction, Scan, Session, Store, TableId};
use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction,
};

use crate::engine::{Commits, Engine, Settings};
use millpond_bench::stores::names::Names;

/// Writes after which a commit is durable.
const WRITES_MAX: u64 = 100_000;

type Rows = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Error of redb.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedbError {
    /// The engine.
    #[error("redb: {0}")]
    Engine(Box<redb::Error>),
    /// The session does not know this table, or writes outside of a transaction.
    #[error("the session cannot do this: {what}")]
    Misuse {
        /// What is wrong.
        what: &'static str,
    },
}

impl<E: Into<redb::Error>> From<E> for RedbError {
    #[cold]
    fn from(error: E) -> RedbError {
        RedbError::Engine(Box::new(error.into()))
    }
}

/// redb.
pub struct Redb {
    database: Database,
    tables: Names<()>,
    /// Writes since the last durable commit.
    writes: AtomicU64,
    /// Every commit is durable.
    is_durable: bool,
}

/// One thread's way into redb.
pub struct RedbSession<'s> {
    store: &'s Redb,
    names: Vec<std::sync::Arc<str>>,
    transaction: Transaction,
    /// Tables that the open read transaction has used.
    open: Vec<Option<Rows>>,
    writes: u64,
    scratch: Vec<u8>,
}

enum Transaction {
    None,
    Read(ReadTransaction),
    Write(Box<WriteTransaction>),
}

fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

impl Redb {
    /// Commits; durably if it is time or `now`.
    fn commit(
        &self,
        mut transaction: WriteTransaction,
        writes: u64,
        now: bool,
    ) -> Result<(), RedbError> {
        let before = self.writes.fetch_add(writes, Ordering::Relaxed);
        let durability = if now || self.is_durable || before + writes >= WRITES_MAX {
            self.writes.store(0, Ordering::Relaxed);
            Durability::Immediate
        } else {
            Durability::None
        };
        transaction.set_durability(durability)?;
        Ok(transaction.commit()?)
    }
}

impl Store for Redb {
    type Error = RedbError;
    type Session<'s> = RedbSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, RedbError> {
        self.tables.find_or(name, |_| {
            let transaction = self.database.begin_write()?;
            transaction.open_table(definition(name))?;
            self.commit(transaction, 1, true)
        })
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, RedbError> {
        if let Some(found) = self.tables.find(name) {
            return Ok(Some(found));
        }
        match self.database.begin_read()?.open_table(definition(name)) {
            Ok(_) => self.tables.find_or(name, |_| Ok(())).map(Some),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn session(&self) -> Result<RedbSession<'_>, RedbError> {
        let names = self.tables.names();
        let open = names.iter().map(|_| None).collect();
        Ok(RedbSession {
            store: self,
            names,
            transaction: Transaction::None,
            open,
            writes: 0,
            scratch: Vec::new(),
        })
    }
}

const NO_TABLE: RedbError = RedbError::Misuse { what: "a table that was created later" };
const NO_TRANSACTION: RedbError = RedbError::Misuse { what: "no transaction is open that may" };

impl RedbSession<'_> {
    /// The table in the open read transaction.
    #[inline]
    fn rows(&mut self, table: TableId) -> Result<&Rows, RedbError> {
        let at = table.0 as usize;
        let (Some(name), Some(open)) = (self.names.get(at), self.open.get_mut(at)) else {
            return Err(NO_TABLE);
        };
        let Transaction::Read(transaction) = &self.transaction else { return Err(NO_TRANSACTION) };
        match open {
            Some(rows) => Ok(rows),
            None => Ok(open.insert(transaction.open_table(definition(name))?)),
        }
    }

    /// The table's name, and the open write transaction.
    #[inline]
    fn writer(&self, table: TableId) -> Result<(&str, &WriteTransaction), RedbError> {
        let name = self.names.get(table.0 as usize).ok_or(NO_TABLE)?;
        let Transaction::Write(transaction) = &self.transaction else { return Err(NO_TRANSACTION) };
        Ok((&**name, &**transaction))
    }
}

fn walk(
    rows: &impl ReadableTable<&'static [u8], &'static [u8]>,
    scan: Scan<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), RedbError> {
    let start = Bound::Included(scan.start);
    match scan.direction {
        Direction::Ascending => {
            for row in rows.range::<&[u8]>((start, Bound::Unbounded))? {
                let (key, value) = row?;
                if !visit(key.value(), value.value()) {
                    break;
                }
            }
        }
        Direction::Descending => {
            for row in rows.range::<&[u8]>((Bound::Unbounded, start))?.rev() {
                let (key, value) = row?;
                if !visit(key.value(), value.value()) {
                    break;
                }
            }
        }
    }
    Ok(())
}

impl Session for RedbSession<'_> {
    type Error = RedbError;
    const ISOLATED: bool = true;

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), RedbError> {
        self.transaction = match access {
            Access::Read => Transaction::Read(self.store.database.begin_read()?),
            Access::Write => Transaction::Write(Box::new(self.store.database.begin_write()?)),
        };
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), RedbError> {
        let transaction = std::mem::replace(&mut self.transaction, Transaction::None);
        self.open.iter_mut().for_each(|open| *open = None);
        if let Transaction::Write(transaction) = transaction {
            let writes = std::mem::take(&mut self.writes);
            self.store.commit(*transaction, writes, false)?;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), RedbError> {
        let transaction = std::mem::replace(&mut self.transaction, Transaction::None);
        self.open.iter_mut().for_each(|open| *open = None);
        self.writes = 0;
        if let Transaction::Write(transaction) = transaction {
            transaction.abort()?;
        }
        Ok(())
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, RedbError> {
        if let Transaction::Write(_) = self.transaction {
            let (name, transaction) = self.writer(table)?;
            let rows = transaction.open_table(definition(name))?;
            return Ok(rows.get(key)?.map(|value| read(value.value())));
        }
        Ok(self.rows(table)?.get(key)?.map(|value| read(value.value())))
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, RedbError> {
        let (name, transaction) = self.writer(table)?;
        let mut rows = transaction.open_table(definition(name))?;
        if rows.get(key)?.is_some() {
            return Ok(false);
        }
        rows.insert(key, value)?;
        drop(rows);
        self.writes += 1;
        Ok(true)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), RedbError> {
        let (name, transaction) = self.writer(table)?;
        transaction.open_table(definition(name))?.insert(key, value)?;
        self.writes += 1;
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, RedbError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (name, transaction) = self.writer(table)?;
        let mut rows = transaction.open_table(definition(name))?;
        scratch.clear();
        match rows.get(key)? {
            Some(value) => scratch.extend_from_slice(value.value()),
            None => return Ok(None),
        }
        let answer = change(&mut scratch);
        rows.insert(key, scratch.as_slice())?;
        drop(rows);
        self.scratch = scratch;
        self.writes += 1;
        Ok(Some(answer))
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, RedbError> {
        let (name, transaction) = self.writer(table)?;
        let removed = transaction.open_table(definition(name))?.remove(key)?.is_some();
        self.writes += 1;
        Ok(removed)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), RedbError> {
        if let Transaction::Write(_) = self.transaction {
            let (name, transaction) = self.writer(table)?;
            return walk(&transaction.open_table(definition(name))?, scan, visit);
        }
        walk(self.rows(table)?, scan, visit)
    }
}

impl Engine for Redb {
    const NAME: &'static str = "redb";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Redb> {
        let mut builder = Database::builder();
        builder.set_cache_size(settings.cache as usize);
        let database = builder.create(folder.join("redb.db"))?;
        let is_durable = settings.commits == Commits::Sync;
        Ok(Redb { database, tables: Names::new(), writes: AtomicU64::new(0), is_durable })
    }

    fn settle(&self) -> anyhow::Result<()> {
        let transaction = self.database.begin_write()?;
        Ok(self.commit(transaction, 0, true)?)
    }

    fn close(self) -> anyhow::Result<()> {
        self.settle()
    }
}
