//! LMDB 0.9 through heed.
//!
//! * Its cache is the kernel's page cache: no size to set. The map is as large as the data may
//!   ever get. Read-ahead is off where data is larger than memory, as LMDB's documentation advises.
//! * Asynchronous: `MDB_NOSYNC`, no sync per commit. A crash of the machine may then corrupt the
//!   file; LMDB has no cheaper mode that does not. Durable: its default, `fdatasync`, then
//!   its last page through `O_DSYNC`, which the count of flushes leaves out.
//! * One transaction of the driver's is one of LMDB's: reads see a snapshot, writers queue up.

use std::convert::Infallible;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, RwTxn, WithTls,
};
use millpond_workload::live::{Access, Direction, Scan, Session, Store, TableId};

use crate::engine::{Commits, Engine, Settings};
use millpond_bench::stores::names::Names;

type Table = Database<'static, Bytes, Bytes>;

/// Error of LMDB.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LmdbError {
    /// The engine.
    #[error("LMDB: {0}")]
    Engine(heed::Error),
    /// The session does not know this table, or writes outside of a transaction.
    #[error("the session cannot do this: {what}")]
    Misuse {
        /// What is wrong.
        what: &'static str,
    },
}

millpond_base::from_variants! { LmdbError {
    Engine(heed::Error),
} }

/// LMDB.
pub struct Lmdb {
    env: Env,
    tables: Names<Table>,
}

/// One thread's way into LMDB.
pub struct LmdbSession<'s> {
    env: &'s Env,
    tables: Vec<Table>,
    transaction: Transaction<'s>,
    scratch: Vec<u8>,
}

enum Transaction<'s> {
    None,
    Read(RoTxn<'s, WithTls>),
    Write(RwTxn<'s>),
}

impl Store for Lmdb {
    type Error = LmdbError;
    type Session<'s> = LmdbSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, LmdbError> {
        self.tables.find_or(name, |_| {
            let transaction = self.env.write_txn()?;
            let created = self.env.create_databases_and_commit(transaction, |opener, txn| {
                opener.create_database(txn, Some(name)).map(CommitOrAbort::<_, Infallible>::Commit)
            });
            let CommitOrAbort::Commit(table) = created?;
            Ok(table)
        })
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, LmdbError> {
        if let Some(found) = self.tables.find(name) {
            return Ok(Some(found));
        }
        // A handle that a read transaction opens is good once that is committed.
        let transaction = self.env.read_txn()?;
        let opened = self.env.open_databases_and_commit(transaction, |opener, txn| {
            opener.open_database(txn, Some(name)).map(CommitOrAbort::<_, Infallible>::Commit)
        });
        let CommitOrAbort::Commit(Some(table)) = opened? else { return Ok(None) };
        self.tables.find_or(name, |_| Ok(table)).map(Some)
    }

    fn session(&self) -> Result<LmdbSession<'_>, LmdbError> {
        Ok(LmdbSession {
            env: &self.env,
            tables: self.tables.handles(),
            transaction: Transaction::None,
            scratch: Vec::new(),
        })
    }
}

impl LmdbSession<'_> {
    #[inline]
    fn at(&self, table: TableId) -> Result<Table, LmdbError> {
        let found = self.tables.get(table.0 as usize).copied();
        found.ok_or(LmdbError::Misuse { what: "a table that was created later" })
    }
}

/// The open transaction, for reading.
#[inline]
fn reader<'t>(transaction: &'t Transaction<'_>) -> Result<&'t RoTxn<'t>, LmdbError> {
    match transaction {
        Transaction::Read(reader) => Ok(reader),
        Transaction::Write(writer) => Ok(writer),
        Transaction::None => Err(LmdbError::Misuse { what: "no transaction is open" }),
    }
}

/// The open transaction, for writing.
#[inline]
fn writer<'t, 's>(transaction: &'t mut Transaction<'s>) -> Result<&'t mut RwTxn<'s>, LmdbError> {
    match transaction {
        Transaction::Write(writer) => Ok(writer),
        _ => Err(LmdbError::Misuse { what: "no transaction is open that may write" }),
    }
}

impl Session for LmdbSession<'_> {
    type Error = LmdbError;
    const ISOLATED: bool = true;

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), LmdbError> {
        self.transaction = match access {
            Access::Read => Transaction::Read(self.env.read_txn()?),
            Access::Write => Transaction::Write(self.env.write_txn()?),
        };
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), LmdbError> {
        if let Transaction::Write(writer) =
            std::mem::replace(&mut self.transaction, Transaction::None)
        {
            writer.commit()?;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), LmdbError> {
        self.transaction = Transaction::None;
        Ok(())
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, LmdbError> {
        let table = self.at(table)?;
        Ok(table.get(reader(&self.transaction)?, key)?.map(read))
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, LmdbError> {
        let table = self.at(table)?;
        Ok(table.get_or_put(writer(&mut self.transaction)?, key, value)?.is_none())
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), LmdbError> {
        let table = self.at(table)?;
        Ok(table.put(writer(&mut self.transaction)?, key, value)?)
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, LmdbError> {
        let table = self.at(table)?;
        let writer = writer(&mut self.transaction)?;
        let Some(value) = table.get(writer, key)? else { return Ok(None) };
        self.scratch.clear();
        self.scratch.extend_from_slice(value);
        let answer = change(&mut self.scratch);
        table.put(writer, key, &self.scratch)?;
        Ok(Some(answer))
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, LmdbError> {
        let table = self.at(table)?;
        Ok(table.delete(writer(&mut self.transaction)?, key)?)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), LmdbError> {
        let table = self.at(table)?;
        let reader = reader(&self.transaction)?;
        // LMDB has no empty keys, and takes none as a bound.
        let start = match scan.start {
            [] => Bound::Unbounded,
            start => Bound::Included(start),
        };
        match scan.direction {
            Direction::Ascending => {
                for row in table.range(reader, &(start, Bound::<&[u8]>::Unbounded))? {
                    let (key, value) = row?;
                    if !visit(key, value) {
                        break;
                    }
                }
            }
            Direction::Descending => {
                for row in table.rev_range(reader, &(Bound::<&[u8]>::Unbounded, start))? {
                    let (key, value) = row?;
                    if !visit(key, value) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends: LMDB then fills its pages whole.
    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, LmdbError> {
        let at = self.at(table)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = 0u64;
        self.begin(Access::Write)?;
        while next(&mut key, &mut value) {
            let writer = writer(&mut self.transaction)?;
            at.put_with_flags(writer, PutFlags::APPEND, &key, &value)?;
            rows += 1;
            if rows.is_multiple_of(1000) {
                self.commit()?;
                self.begin(Access::Write)?;
            }
        }
        self.commit()?;
        Ok(rows)
    }
}

impl Engine for Lmdb {
    const NAME: &'static str = "lmdb";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Lmdb> {
        let mut options = EnvOpenOptions::new();
        options.map_size(settings.disk_max.next_multiple_of(1 << 20) as usize).max_dbs(32);
        let mut flags = EnvFlags::empty();
        if settings.commits != Commits::Sync {
            flags |= EnvFlags::NO_SYNC;
        }
        if settings.is_tight {
            flags |= EnvFlags::NO_READ_AHEAD;
        }
        // SAFETY: NO_SYNC weakens only what survives a crash of the machine. The files are in a
        // folder of this run's own, which no other process opens or changes while it is open.
        let env = unsafe { options.flags(flags).open(folder)? };
        Ok(Lmdb { env, tables: Names::new() })
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// The file is as long as the last page in use, which it does not shrink from.
    fn bytes(&self) -> Option<u64> {
        self.env.real_disk_size().ok()
    }

    fn close(self) -> anyhow::Result<()> {
        self.env.force_sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}
