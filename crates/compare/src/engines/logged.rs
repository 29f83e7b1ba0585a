//! Millpond as users open it: a [`Db`] in a file with its log beside it, and with locks.
//!
//! * Asynchronous: each write is a call on its tree, which is a transaction of its own, logged and
//!   locked; the log is flushed every ten milliseconds.
//! * Durable: `begin_with`, the writes, `commit`, with [`Durability::Sync`], or with
//!   [`Durability::Group`] for the engine that is called `millpond-group`.
//! * Single reads are calls on the tree, which see what is committed.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond::internals::btree::BulkOptions;
use millpond::{Db, Durability, Error, Options, RawTree, Txn, TxnOptions};
use millpond_workload::live::{Access, Direction, Scan, Session, Store, TableId};

use crate::engine::{Commits, Engine, Settings};

/// What went wrong in Millpond.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoggedError {
    /// The engine.
    #[error("Millpond: {0}")]
    Db(Error),
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

millpond_base::from_variants! { LoggedError {
    Db(Error),
} }

/// Millpond with its log; with `GROUP`, durable commits wait a moment for a group-commit batch.
pub struct Logged<const GROUP: bool> {
    db: Db,
    commits: Commits,
    trees: Mutex<Vec<RawTree>>,
}

/// One thread's way into it.
pub struct LoggedSession<'s> {
    db: &'s Db,
    /// How transactions are; none where each call is one.
    options: Option<TxnOptions>,
    trees: Vec<RawTree>,
    tx: Option<Txn>,
    scratch: Vec<u8>,
}

impl<const GROUP: bool> Logged<GROUP> {
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

impl<const GROUP: bool> Store for Logged<GROUP> {
    type Error = LoggedError;
    type Session<'s> = LoggedSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, LoggedError> {
        Ok(self.find_or(name, |db| db.raw_tree(name))?)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, LoggedError> {
        match self.find_or(name, |db| db.open_tree(name)) {
            Ok(table) => Ok(Some(table)),
            Err(Error::NoTree { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn session(&self) -> Result<LoggedSession<'_>, LoggedError> {
        let durability = if GROUP { Durability::Group } else { Durability::Sync };
        let options = TxnOptions::default().durability(durability);
        Ok(LoggedSession {
            db: &self.db,
            options: (self.commits == Commits::Sync).then_some(options),
            trees: self.trees().clone(),
            tx: None,
            scratch: Vec::new(),
        })
    }
}

fn tree_of(trees: &[RawTree], table: TableId) -> Result<&RawTree, LoggedError> {
    trees.get(table.0 as usize).ok_or(LoggedError::UnknownTable { table })
}

impl Session for LoggedSession<'_> {
    type Error = LoggedError;

    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), LoggedError> {
        if let (Access::Write, Some(options)) = (access, self.options) {
            self.tx = Some(self.db.begin_with(options)?);
        }
        Ok(())
    }

    #[inline]
    fn commit(&mut self) -> Result<(), LoggedError> {
        match self.tx.take() {
            Some(tx) => Ok(tx.commit()?),
            None => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), LoggedError> {
        match self.tx.take() {
            Some(tx) => Ok(tx.abort()?),
            None => Ok(()),
        }
    }

    fn is_retriable(error: &LoggedError) -> bool {
        matches!(error, LoggedError::Db(error) if error.is_retriable())
    }

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, LoggedError> {
        let tree = tree_of(&self.trees, table)?;
        Ok(match &mut self.tx {
            Some(tx) => tx.get_with(tree, key, read)?,
            None => tree.get_with(key, read)?,
        })
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, LoggedError> {
        let tree = tree_of(&self.trees, table)?;
        Ok(match &mut self.tx {
            Some(tx) => tx.insert_if_absent(tree, key, value)?,
            None => tree.insert_if_absent(key, value)?,
        })
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), LoggedError> {
        let tree = tree_of(&self.trees, table)?;
        match &mut self.tx {
            Some(tx) => tx.put(tree, key, value)?,
            None => tree.put(key, value)?,
        };
        Ok(())
    }

    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, LoggedError> {
        let tree = tree_of(&self.trees, table)?;
        let Some(tx) = &mut self.tx else { return Ok(tree.update_in_place(key, change)?) };
        let Some(value) = tx.get_for_update(tree, key)? else { return Ok(None) };
        self.scratch = value;
        let answer = change(&mut self.scratch);
        tx.replace(tree, key, &self.scratch)?;
        Ok(Some(answer))
    }

    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, LoggedError> {
        let tree = tree_of(&self.trees, table)?;
        Ok(match &mut self.tx {
            Some(tx) => tx.delete(tree, key)?,
            None => tree.delete(key)?,
        })
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), LoggedError> {
        let tree = tree_of(&self.trees, table)?;
        let is_up = scan.direction == Direction::Ascending;
        let mut rows = if is_up { tree.range(scan.start..) } else { tree.range(..=scan.start) };
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
    ) -> Result<u64, LoggedError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let rows = std::iter::from_fn(move || {
            next(&mut key, &mut value).then(|| (key.clone(), value.clone()))
        });
        Ok(tree_of(&self.trees, table)?.bulk_load(rows, BulkOptions::default())?)
    }
}

impl<const GROUP: bool> Engine for Logged<GROUP> {
    const NAME: &'static str = if GROUP { "millpond-group" } else { "millpond" };

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Logged<GROUP>> {
        let options = Options::new().memory(settings.cache);
        let db = Db::open(folder.join("pond.mp"), options)?;
        Ok(Logged { db, commits: settings.commits, trees: Mutex::default() })
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.db.checkpoint()?)
    }

    fn close(self) -> anyhow::Result<()> {
        let Logged { db, trees, .. } = self;
        drop(trees);
        Ok(db.close()?)
    }
}
