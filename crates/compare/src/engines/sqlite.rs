//! SQLite 3, built in.
//!
//! * Tables are `WITHOUT ROWID`, so that a row is in the tree of its key; pages have 4096 bytes.
//! * The cache belongs to a connection, so each session gets its share of the given size. A
//!   connection outlives its session and serves the next one, which finds the cache warm.
//!   Beyond its cache, SQLite reads through the kernel's page cache.
//! * Asynchronous: a write-ahead log and `synchronous = OFF`, no sync per commit. Durable: the same
//!   log and `synchronous = FULL`.
//! * A write transaction is `BEGIN IMMEDIATE`: writers queue up. Reads are statements on their own,
//!   which is faster than a transaction around each; so sessions are not isolated.
//! * Statements are prepared once per session, and found again by their text.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use millpond_base::PastPoison;
use millpond_workload::live::{Access, Direction, Scan, Session, Store, TableId};
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params};

use crate::engine::{Commits, Engine, Settings};
use millpond_bench::stores::names::Names;

/// Error of SQLite.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// The engine.
    #[error("SQLite: {0}")]
    Engine(rusqlite::Error),
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

millpond_base::from_variants! { SqliteError {
    Engine(rusqlite::Error),
} }

/// The statements of one table.
struct Statements {
    get: String,
    insert: String,
    put: String,
    update: String,
    remove: String,
    up: String,
    down: String,
}

impl Statements {
    fn of(name: &str) -> Statements {
        let name = format!("\"{}\"", name.replace('"', "\"\""));
        Statements {
            get: format!("SELECT v FROM {name} WHERE k = ?1"),
            insert: format!("INSERT OR IGNORE INTO {name} (k, v) VALUES (?1, ?2)"),
            put: format!("REPLACE INTO {name} (k, v) VALUES (?1, ?2)"),
            update: format!("UPDATE {name} SET v = ?2 WHERE k = ?1"),
            remove: format!("DELETE FROM {name} WHERE k = ?1"),
            up: format!("SELECT k, v FROM {name} WHERE k >= ?1 ORDER BY k"),
            down: format!("SELECT k, v FROM {name} WHERE k <= ?1 ORDER BY k DESC"),
        }
    }
}

/// SQLite.
pub struct Sqlite {
    path: PathBuf,
    cache_kib: u64,
    synchronous: &'static str,
    tables: Names<Arc<Statements>>,
    idle: Mutex<Vec<Connection>>,
}

/// A connection that is given back.
struct Lent<'s> {
    connection: Option<Connection>,
    idle: &'s Mutex<Vec<Connection>>,
}

/// One thread's connection.
pub struct SqliteSession<'s> {
    connection: Lent<'s>,
    tables: Vec<Arc<Statements>>,
    scratch: Vec<u8>,
    writes: bool,
}

impl Sqlite {
    fn connect(&self) -> Result<Connection, rusqlite::Error> {
        let connection = Connection::open(&self.path)?;
        connection.set_prepared_statement_cache_capacity(256);
        connection.busy_timeout(std::time::Duration::from_secs(60))?;
        connection.execute_batch(&format!(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = {}; \
             PRAGMA cache_size = -{}; PRAGMA temp_store = MEMORY;",
            self.synchronous, self.cache_kib
        ))?;
        Ok(connection)
    }
}

impl Store for Sqlite {
    type Error = SqliteError;
    type Session<'s> = SqliteSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, SqliteError> {
        self.tables.find_or(name, |_| {
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            self.connect()?.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS {quoted} \
                 (k BLOB PRIMARY KEY NOT NULL, v BLOB NOT NULL) WITHOUT ROWID"
            ))?;
            Ok(Arc::new(Statements::of(name)))
        })
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, SqliteError> {
        if let Some(found) = self.tables.find(name) {
            return Ok(Some(found));
        }
        let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        let found = self.connect()?.query_row(sql, [name], |_| Ok(())).optional()?;
        match found {
            Some(()) => self.tables.find_or(name, |_| Ok(Arc::new(Statements::of(name)))).map(Some),
            None => Ok(None),
        }
    }

    fn session(&self) -> Result<SqliteSession<'_>, SqliteError> {
        let warm = locked(&self.idle).pop();
        let connection = Some(warm.map_or_else(|| self.connect(), Ok)?);
        Ok(SqliteSession {
            connection: Lent { connection, idle: &self.idle },
            tables: self.tables.handles(),
            scratch: Vec::new(),
            writes: false,
        })
    }
}

fn locked(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    idle.lock().past_poison()
}

impl Deref for Lent<'_> {
    type Target = Connection;

    #[inline]
    fn deref(&self) -> &Connection {
        // Cannot fail: it is taken when this is dropped.
        self.connection.as_ref().expect("a connection")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // One in the middle of a transaction is closed, which rolls back.
        let whole = self.connection.take().filter(Connection::is_autocommit);
        locked(self.idle).extend(whole);
    }
}

/// The statement that `pick` picks, prepared.
#[inline]
fn prepared<'c>(
    connection: &'c Connection,
    tables: &[Arc<Statements>],
    table: TableId,
    pick: impl FnOnce(&Statements) -> &String,
) -> Result<CachedStatement<'c>, SqliteError> {
    match tables.get(table.0 as usize) {
        Some(statements) => Ok(connection.prepare_cached(pick(statements))?),
        None => Err(SqliteError::UnknownTable { table }),
    }
}

impl SqliteSession<'_> {
    #[inline]
    fn statement(
        &self,
        table: TableId,
        pick: impl FnOnce(&Statements) -> &String,
    ) -> Result<CachedStatement<'_>, SqliteError> {
        prepared(&self.connection, &self.tables, table, pick)
    }

    fn run(&self, sql: &str) -> Result<(), SqliteError> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

impl Session for SqliteSession<'_> {
    type Error = SqliteError;

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), SqliteError> {
        self.writes = access == Access::Write;
        if self.writes { self.run("BEGIN IMMEDIATE") } else { Ok(()) }
    }

    #[inline]
    fn commit(&mut self) -> Result<(), SqliteError> {
        if std::mem::take(&mut self.writes) { self.run("COMMIT") } else { Ok(()) }
    }

    fn rollback(&mut self) -> Result<(), SqliteError> {
        let is_open = std::mem::take(&mut self.writes) && !self.connection.is_autocommit();
        if is_open { self.run("ROLLBACK") } else { Ok(()) }
    }

    fn is_retriable(error: &SqliteError) -> bool {
        match error {
            SqliteError::Engine(rusqlite::Error::SqliteFailure(error, _)) => {
                matches!(error.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            }
            _ => false,
        }
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, SqliteError> {
        let mut statement = self.statement(table, |s| &s.get)?;
        let mut rows = statement.query(params![key])?;
        match rows.next()? {
            Some(row) => Ok(Some(read(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?))),
            None => Ok(None),
        }
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, SqliteError> {
        Ok(self.statement(table, |s| &s.insert)?.execute(params![key, value])? > 0)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), SqliteError> {
        self.statement(table, |s| &s.put)?.execute(params![key, value])?;
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, SqliteError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let found = self.get(table, key, |value| {
            scratch.clear();
            scratch.extend_from_slice(value);
        })?;
        let answer = match found {
            Some(()) => {
                let answer = change(&mut scratch);
                self.statement(table, |s| &s.update)?.execute(params![key, scratch])?;
                Some(answer)
            }
            None => None,
        };
        self.scratch = scratch;
        Ok(answer)
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, SqliteError> {
        Ok(self.statement(table, |s| &s.remove)?.execute(params![key])? > 0)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), SqliteError> {
        let mut statement = self.statement(table, |s| match scan.direction {
            Direction::Ascending => &s.up,
            Direction::Descending => &s.down,
        })?;
        let mut rows = statement.query(params![scan.start])?;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            let value = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

impl Engine for Sqlite {
    const NAME: &'static str = "sqlite";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Sqlite> {
        let cache_kib = settings.cache / 1024 / u64::from(settings.threads.max(1));
        let is_durable = settings.commits == Commits::Sync;
        let synchronous = if is_durable { "FULL" } else { "OFF" };
        Ok(Sqlite {
            path: folder.join("sqlite.db"),
            cache_kib,
            synchronous,
            tables: Names::new(),
            idle: Mutex::default(),
        })
    }

    fn settle(&self) -> anyhow::Result<()> {
        let connection = self.connect()?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn close(self) -> anyhow::Result<()> {
        self.settle()
    }
}
