//! fjall 3.
//!
//! * The cache has the given size; where memory is tight, memtables have an eighth of it.
//!   Beyond its cache, fjall reads through the kernel's page cache.
//! * Asynchronous as it is by default: a journal that is not synced by commits. Durable: the
//!   journal is persisted (`SyncData`) at each commit of a session that wrote, as its documentation
//!   has it.
//! * Nothing is compressed: the crate is built without its compression.
//! * Each operation is one of fjall's; updates, inserts and removes read and write under a lock
//!   that the key chooses, as fjall's cheapest keyspaces have no atomic update. Its sessions are
//!   thus no more isolated than Millpond's. An insert reads first, since the drivers' `insert`
//!   returns whether the row existed.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode};
use millpond_workload::live::{Access, Direction, Scan, Session, Store, TableId};

use crate::engine::{Commits, Engine, Settings};
use crate::stripes::Stripes;
use millpond_bench::stores::names::Names;

/// Error of fjall.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FjallError {
    /// The engine.
    #[error("fjall: {0}")]
    Engine(fjall::Error),
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

millpond_base::from_variants! { FjallError {
    Engine(fjall::Error),
} }

/// fjall.
pub struct Fjall {
    database: Database,
    tables: Names<Keyspace>,
    stripes: Stripes,
    memtable: u64,
    is_durable: bool,
}

/// One thread's way into fjall.
pub struct FjallSession<'s> {
    /// What to persist when a transaction ends; none where nothing is.
    database: Option<&'s Database>,
    writes: bool,
    stripes: &'s Stripes,
    tables: Vec<Keyspace>,
    scratch: Vec<u8>,
}

impl Fjall {
    fn options(&self) -> KeyspaceCreateOptions {
        KeyspaceCreateOptions::default().max_memtable_size(self.memtable)
    }
}

impl Store for Fjall {
    type Error = FjallError;
    type Session<'s> = FjallSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, FjallError> {
        self.tables.find_or(name, |_| Ok(self.database.keyspace(name, || self.options())?))
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, FjallError> {
        if self.tables.find(name).is_none() && !self.database.keyspace_exists(name) {
            return Ok(None);
        }
        self.create_table(name).map(Some)
    }

    fn session(&self) -> Result<FjallSession<'_>, FjallError> {
        let tables = self.tables.handles();
        Ok(FjallSession {
            database: self.is_durable.then_some(&self.database),
            writes: false,
            stripes: &self.stripes,
            tables,
            scratch: Vec::new(),
        })
    }
}

impl FjallSession<'_> {
    #[inline]
    fn at(&self, table: TableId) -> Result<&Keyspace, FjallError> {
        self.tables.get(table.0 as usize).ok_or(FjallError::UnknownTable { table })
    }
}

fn walk(
    rows: impl Iterator<Item = Guard>,
    mut visit: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), FjallError> {
    for row in rows {
        let (key, value) = row.into_inner()?;
        if !visit(&key, &value) {
            break;
        }
    }
    Ok(())
}

impl Session for FjallSession<'_> {
    type Error = FjallError;

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), FjallError> {
        self.writes = access == Access::Write;
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), FjallError> {
        match self.database {
            Some(database) if std::mem::take(&mut self.writes) => {
                Ok(database.persist(PersistMode::SyncData)?)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, FjallError> {
        Ok(self.at(table)?.get(key)?.map(|value| read(&value)))
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, FjallError> {
        let keyspace = self.at(table)?;
        let _row = self.stripes.lock(table, key);
        if keyspace.contains_key(key)? {
            return Ok(false);
        }
        keyspace.insert(key, value)?;
        Ok(true)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), FjallError> {
        Ok(self.at(table)?.insert(key, value)?)
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, FjallError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let keyspace = self.at(table)?;
        let row = self.stripes.lock(table, key);
        let Some(value) = keyspace.get(key)? else { return Ok(None) };
        scratch.clear();
        scratch.extend_from_slice(&value);
        let answer = change(&mut scratch);
        keyspace.insert(key, scratch.as_slice())?;
        drop(row);
        self.scratch = scratch;
        Ok(Some(answer))
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, FjallError> {
        let keyspace = self.at(table)?;
        let _row = self.stripes.lock(table, key);
        if !keyspace.contains_key(key)? {
            return Ok(false);
        }
        keyspace.remove(key)?;
        Ok(true)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), FjallError> {
        let keyspace = self.at(table)?;
        let start = Bound::Included(scan.start);
        match scan.direction {
            Direction::Ascending => {
                walk(keyspace.range::<&[u8], _>((start, Bound::Unbounded)), visit)
            }
            Direction::Descending => {
                walk(keyspace.range::<&[u8], _>((Bound::Unbounded, start)).rev(), visit)
            }
        }
    }

    /// Through fjall's ingestion, which writes tables past the journal.
    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, FjallError> {
        let mut ingestion = self.at(table)?.start_ingestion()?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = 0;
        while next(&mut key, &mut value) {
            ingestion.write(key.as_slice(), value.as_slice())?;
            rows += 1;
        }
        ingestion.finish()?;
        Ok(rows)
    }
}

impl Engine for Fjall {
    const NAME: &'static str = "fjall";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Fjall> {
        let memtable = if settings.is_tight { settings.cache / 8 } else { 64 << 20 };
        let database = Database::builder(folder)
            .cache_size(settings.cache)
            .worker_threads(settings.threads.clamp(1, 4) as usize)
            .open()?;
        let memtable = memtable.max(1 << 20);
        let is_durable = settings.commits == Commits::Sync;
        Ok(Fjall { database, tables: Names::new(), stripes: Stripes::new(), memtable, is_durable })
    }

    fn settle(&self) -> anyhow::Result<()> {
        for keyspace in self.tables.handles() {
            keyspace.rotate_memtable_and_wait()?;
        }
        while self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
