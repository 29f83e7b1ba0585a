//! BerkeleyDB 5.3, the system's library.
//!
//! * A cache of the given size (below 500 MiB a fifth smaller, because BerkeleyDB takes a quarter
//!   more than configured there), B⁺-trees with pages of the file system's blocks (4 KiB), which is
//!   its default. Where memory is tight, direct I/O if the library was built with it; Debian's
//!   was not. Otherwise BerkeleyDB reads through the kernel's page cache beyond its own.
//! * Bare: without transactions and log, as leanstore IV-A runs it: a "concurrent data store",
//!   whose databases have many readers or one writer. What is written is on disk after a sync. Each
//!   operation is one of BerkeleyDB's; updates read and write through a cursor that keeps other
//!   writers out. Its sessions are thus no more isolated than Millpond's.
//! * Otherwise with log and transactions: `DB_TXN_NOSYNC`, or each commit synced. Writers have a
//!   transaction each, locked page by page; reads outside are operations by themselves. Only
//!   `settle` takes checkpoints, which favours it: recovery is its users' job.
//! * No compression.
//! * A table is a file. Values are copied out, as BerkeleyDB asks of programs with threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_workload::live::{Access, Direction, Scan, Session, Store, TableId};

use crate::engine::{Commits, Engine, Settings};
use crate::native::berkeleydb::{Code, Database, Environment, Txn};
use millpond_bench::stores::names::Names;

/// Error of BerkeleyDB.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BerkeleyDbError {
    /// The engine.
    #[error("BerkeleyDB: {0}")]
    Engine(Code),
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

millpond_base::from_variants! { BerkeleyDbError {
    Engine(Code),
} }

/// BerkeleyDB.
pub struct BerkeleyDb {
    folder: PathBuf,
    // Databases keep their environment open, so what is closed first does not matter.
    tables: Names<Arc<Database>>,
    environment: Arc<Environment>,
}

/// One thread's way into BerkeleyDB.
pub struct BerkeleyDbSession {
    txn: Option<Txn>,
    environment: Arc<Environment>,
    tables: Vec<Arc<Database>>,
    scratch: Vec<u8>,
}

fn file(name: &str) -> String {
    format!("{name}.bdb")
}

impl Store for BerkeleyDb {
    type Error = BerkeleyDbError;
    type Session<'s> = BerkeleyDbSession;

    fn create_table(&self, name: &str) -> Result<TableId, BerkeleyDbError> {
        self.tables.find_or(name, |_| Ok(self.environment.database(&file(name), true)?))
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, BerkeleyDbError> {
        if let Some(found) = self.tables.find(name) {
            return Ok(Some(found));
        }
        if !self.folder.join(file(name)).is_file() {
            return Ok(None);
        }
        let open = |_| Ok(self.environment.database(&file(name), false)?);
        self.tables.find_or(name, open).map(Some)
    }

    fn session(&self) -> Result<BerkeleyDbSession, BerkeleyDbError> {
        Ok(BerkeleyDbSession {
            txn: None,
            environment: self.environment.clone(),
            tables: self.tables.handles(),
            scratch: Vec::new(),
        })
    }
}

#[inline]
fn at(tables: &[Arc<Database>], table: TableId) -> Result<&Database, BerkeleyDbError> {
    let found = tables.get(table.0 as usize);
    Ok(found.ok_or(BerkeleyDbError::UnknownTable { table })?)
}

impl Session for BerkeleyDbSession {
    type Error = BerkeleyDbError;

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), BerkeleyDbError> {
        if access == Access::Write && self.environment.is_transactional() {
            self.txn = Some(self.environment.begin()?);
        }
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), BerkeleyDbError> {
        match self.txn.take() {
            Some(txn) => Ok(txn.commit()?),
            None => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), BerkeleyDbError> {
        self.txn = None;
        Ok(())
    }

    fn is_retriable(error: &BerkeleyDbError) -> bool {
        matches!(error, BerkeleyDbError::Engine(code) if code.is_deadlock())
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, BerkeleyDbError> {
        let is_there = at(&self.tables, table)?.get(self.txn.as_ref(), key, &mut self.scratch)?;
        Ok(is_there.then(|| read(&self.scratch)))
    }

    #[inline]
    fn insert(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, BerkeleyDbError> {
        Ok(at(&self.tables, table)?.put(self.txn.as_ref(), key, value, true)?)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), BerkeleyDbError> {
        at(&self.tables, table)?.put(self.txn.as_ref(), key, value, false)?;
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, BerkeleyDbError> {
        let (txn, scratch) = (self.txn.as_ref(), &mut self.scratch);
        Ok(at(&self.tables, table)?.update(txn, key, scratch, change)?)
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, BerkeleyDbError> {
        Ok(at(&self.tables, table)?.delete(self.txn.as_ref(), key)?)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), BerkeleyDbError> {
        let upwards = scan.direction == Direction::Ascending;
        Ok(at(&self.tables, table)?.scan(self.txn.as_ref(), scan.start, upwards, visit)?)
    }
}

/// Below this, BerkeleyDB takes a quarter more than the configured size, for its own records.
const CACHE_AS_TOLD: u64 = 500 << 20;

impl Engine for BerkeleyDb {
    const NAME: &'static str = "berkeleydb";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<BerkeleyDb> {
        let cache = match settings.cache {
            cache if cache < CACHE_AS_TOLD => cache / 5 * 4,
            cache => cache,
        };
        let environment = Environment::open(
            folder,
            cache,
            settings.is_tight,
            match settings.commits {
                Commits::Bare => None,
                Commits::Async => Some(false),
                Commits::Sync => Some(true),
            },
        )?;
        Ok(BerkeleyDb { folder: folder.to_path_buf(), tables: Names::new(), environment })
    }

    fn settle(&self) -> anyhow::Result<()> {
        if self.environment.is_transactional() {
            return Ok(self.environment.checkpoint()?);
        }
        for database in self.tables.handles() {
            database.sync()?;
        }
        Ok(())
    }

    fn close(self) -> anyhow::Result<()> {
        self.settle()
    }
}
