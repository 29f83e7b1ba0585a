//! Millpond as users open it: a [`Db`](millpond::Db) in a file, with its defaults except for the
//! memory: the default policy, direct I/O, a log beside the file, locks. `Options::memory` holds
//! the pool and its tables.
//!
//! * Asynchronous, and where commits promise nothing: each call on a tree is a transaction of its
//!   own, logged and locked; the log is flushed every ten milliseconds.
//! * Durable: `begin_with`, the writes, `commit`, with [`Durability::Sync`], or with
//!   [`Durability::Group`] for the engine that is called `millpond-group`. Single reads are calls
//!   on the tree, which see what is committed.
//! * Transactions of several calls (TPC-C) are transactions of the `Db` with `Async` commits, also
//!   those that only read.

use std::path::Path;

use millpond::{Durability, Options, TxnOptions};
use millpond_bench::stores::db_store::{DbSession, DbStore, DbStoreError, Transactions};
use millpond_workload::live::{Store, TableId};

use crate::engine::{Commits, Engine, Settings};

/// Leaves of a step that merges what is badly filled.
const COMPACTED: u32 = 1024;

/// Millpond; with `GROUP`, durable commits wait a moment for a group-commit batch.
pub struct Millpond<const GROUP: bool>(DbStore);

impl<const GROUP: bool> Store for Millpond<GROUP> {
    type Error = DbStoreError;
    type Session<'s> = DbSession<'s>;

    fn create_table(&self, name: &str) -> Result<TableId, DbStoreError> {
        self.0.create_table(name)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, DbStoreError> {
        self.0.table(name)
    }

    fn session(&self) -> Result<DbSession<'_>, DbStoreError> {
        self.0.session()
    }
}

/// What the driver's transactions are.
fn transactions(settings: &Settings, is_grouped: bool) -> Transactions {
    let options = |durability| TxnOptions::default().durability(durability);
    match settings.commits {
        Commits::Sync if is_grouped => Transactions::Writes(options(Durability::Group)),
        Commits::Sync => Transactions::Writes(options(Durability::Sync)),
        _ if settings.many_calls => Transactions::All(options(Durability::Async)),
        _ => Transactions::Calls,
    }
}

impl<const GROUP: bool> Engine for Millpond<GROUP> {
    const NAME: &'static str = if GROUP { "millpond-group" } else { "millpond" };

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Millpond<GROUP>> {
        let options = Options::new().memory(settings.cache);
        let store = DbStore::open(&folder.join("pond.mp"), options)?;
        Ok(Millpond(store.with_transactions(transactions(settings, GROUP))))
    }

    /// Does at once what the store's background merge does when there is little else to do.
    fn settle(&self) -> anyhow::Result<()> {
        for tree in self.0.trees() {
            while !tree.compact(COMPACTED)? {}
        }
        Ok(self.0.db().checkpoint()?)
    }

    /// Files grow in large steps ahead of need; what counts is pages that are taken. The log is not
    /// among them: its length is bounded by [`Options::log_gap`], whatever the data is.
    fn bytes(&self) -> Option<u64> {
        let stats = self.0.db().stats();
        Some((stats.store_pages - stats.free_pages) * stats.page_size)
    }

    fn close(self) -> anyhow::Result<()> {
        Ok(self.0.close()?)
    }
}
