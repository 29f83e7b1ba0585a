//! WiredTiger 3.2, the system's library.
//!
//! * A cache of the given size, B⁺-trees with the default pages (leaves of 32 KiB, inner pages of
//!   4 KiB), which are checksummed. Where memory is tight, direct I/O for the data files;
//!   otherwise WiredTiger reads through the kernel's page cache beyond its own.
//! * Bare: without a log, its default, so what is written is on disk after a checkpoint. Otherwise
//!   with its log, synced by no commit or by each, and checkpoints every minute or 512 MiB of log.
//!   No compression.
//! * Each operation is one of WiredTiger's, committed by itself; operations that write hold a lock
//!   that the key chooses, which is cheaper than its transactions. Its sessions are thus no more
//!   isolated than Millpond's. leanstore IV-A runs it so, without transactions and log.
//! * A session keeps two cursors per table: one that overwrites for puts, one that does not for
//!   everything else. Sorted rows go through its bulk loader.

use std::path::Path;
use std::rc::Rc;

use millpond_workload::live::{Direction, Scan, Session, Store, TableId};

use crate::engine::{Commits, Engine, Settings};
use crate::native::wiredtiger::{self as native, Code, Connection, Cursor};
use crate::stripes::Stripes;
use millpond_bench::stores::names::Names;

/// Error of WiredTiger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WiredTigerError {
    /// The engine.
    #[error("WiredTiger: {0}")]
    Engine(Code),
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

millpond_base::from_variants! { WiredTigerError {
    Engine(Code),
} }

/// WiredTiger.
pub struct WiredTiger {
    connection: Connection,
    tables: Names<()>,
    stripes: Stripes,
}

/// A table as one thread uses it.
struct Open<'s> {
    uri: String,
    /// Tells of rows that are there or are not.
    strict: Option<Cursor<'s>>,
    /// Writes whatever is there.
    overwriting: Option<Cursor<'s>>,
}

/// One thread's way into WiredTiger.
pub struct WiredTigerSession<'s> {
    // Before the session, which they are of.
    tables: Vec<Open<'s>>,
    session: Rc<native::Session<'s>>,
    stripes: &'s Stripes,
    scratch: Vec<u8>,
}

fn uri(name: &str) -> String {
    format!("table:{name}")
}

impl Store for WiredTiger {
    type Error = WiredTigerError;
    type Session<'s> = WiredTigerSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, WiredTigerError> {
        self.tables.find_or(name, |_| {
            let session = self.connection.session()?;
            Ok(session.create(&uri(name), "key_format=u,value_format=u")?)
        })
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, WiredTigerError> {
        if let Some(found) = self.tables.find(name) {
            return Ok(Some(found));
        }
        match self.connection.session()?.cursor(&uri(name), "") {
            Ok(_) => self.tables.find_or(name, |_| Ok(())).map(Some),
            Err(code) if code.is_missing() => Ok(None),
            Err(code) => Err(code.into()),
        }
    }

    fn session(&self) -> Result<WiredTigerSession<'_>, WiredTigerError> {
        let open =
            |name: &std::sync::Arc<str>| Open { uri: uri(name), strict: None, overwriting: None };
        Ok(WiredTigerSession {
            tables: self.tables.names().iter().map(open).collect(),
            session: self.connection.session()?,
            stripes: &self.stripes,
            scratch: Vec::new(),
        })
    }
}

impl<'s> WiredTigerSession<'s> {
    /// The table's cursor that tells of rows, opened when it is first used: another cursor would
    /// be in the bulk loader's way.
    #[inline]
    fn strict(&mut self, table: TableId) -> Result<&mut Cursor<'s>, WiredTigerError> {
        let open = self.tables.get_mut(table.0 as usize);
        let open = open.ok_or(WiredTigerError::UnknownTable { table })?;
        Ok(match &mut open.strict {
            Some(cursor) => cursor,
            free => free.insert(self.session.cursor(&open.uri, "overwrite=false")?),
        })
    }

    #[inline]
    fn overwriting(&mut self, table: TableId) -> Result<&mut Cursor<'s>, WiredTigerError> {
        let open = self.tables.get_mut(table.0 as usize);
        let open = open.ok_or(WiredTigerError::UnknownTable { table })?;
        Ok(match &mut open.overwriting {
            Some(cursor) => cursor,
            free => free.insert(self.session.cursor(&open.uri, "overwrite=true")?),
        })
    }
}

impl Session for WiredTigerSession<'_> {
    type Error = WiredTigerError;

    fn is_retriable(error: &WiredTigerError) -> bool {
        matches!(error, WiredTigerError::Engine(code) if code.is_rollback())
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, WiredTigerError> {
        Ok(self.strict(table)?.get(key, read)?)
    }

    #[inline]
    fn insert(
        &mut self,
        table: TableId,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, WiredTigerError> {
        let stripes = self.stripes;
        let cursor = self.strict(table)?;
        // Of two threads that insert the same row at once, WiredTiger tells both that it was new.
        let _row = stripes.lock(table, key);
        Ok(cursor.insert(key, value)?)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), WiredTigerError> {
        let stripes = self.stripes;
        let cursor = self.overwriting(table)?;
        let _row = stripes.lock(table, key);
        cursor.insert(key, value)?;
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, WiredTigerError> {
        let (stripes, mut scratch) = (self.stripes, std::mem::take(&mut self.scratch));
        let cursor = self.strict(table)?;
        let _row = stripes.lock(table, key);
        let found = cursor.get(key, |value| {
            scratch.clear();
            scratch.extend_from_slice(value);
        })?;
        let answer = match found {
            Some(()) => {
                let answer = change(&mut scratch);
                // False if another thread has removed it meanwhile, which then counts as later.
                cursor.update(key, &scratch)?;
                Some(answer)
            }
            None => None,
        };
        self.scratch = scratch;
        Ok(answer)
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, WiredTigerError> {
        let stripes = self.stripes;
        let cursor = self.strict(table)?;
        let _row = stripes.lock(table, key);
        Ok(cursor.remove(key)?)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), WiredTigerError> {
        let upwards = scan.direction == Direction::Ascending;
        Ok(self.strict(table)?.scan(scan.start, upwards, visit)?)
    }

    /// By the bulk loader, or row by row if the table is open elsewhere.
    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, WiredTigerError> {
        let open = self.tables.get_mut(table.0 as usize);
        let open = open.ok_or(WiredTigerError::UnknownTable { table })?;
        (open.strict, open.overwriting) = (None, None);
        let mut cursor = match self.session.cursor(&open.uri, "bulk") {
            Err(code) if code.is_busy() => self.session.cursor(&open.uri, "overwrite=true")?,
            other => other?,
        };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = 0u64;
        while next(&mut key, &mut value) {
            cursor.insert(&key, &value)?;
            rows += 1;
        }
        cursor.close()?;
        Ok(rows)
    }
}

impl Engine for WiredTiger {
    const NAME: &'static str = "wiredtiger";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<WiredTiger> {
        // Not fewer than a mebibyte, the least that it takes.
        let cache = settings.cache.max(1 << 20);
        // Each session has a place of its own, as has each of the engine's threads.
        let sessions = settings.threads + 100;
        let direct = if settings.is_tight { ",direct_io=[data]" } else { "" };
        let log = match settings.commits {
            Commits::Bare => "",
            Commits::Async => ",log=(enabled),checkpoint=(wait=60,log_size=512MB)",
            Commits::Sync => {
                ",log=(enabled),checkpoint=(wait=60,log_size=512MB),\
                 transaction_sync=(enabled,method=fsync)"
            }
        };
        let config = format!("create,cache_size={cache}B,session_max={sessions}{direct}{log}");
        let connection = Connection::open(folder, &config)?;
        Ok(WiredTiger { connection, tables: Names::new(), stripes: Stripes::new() })
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.connection.session()?.checkpoint()?)
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(self.connection.close()?)
    }
}
