//! Millpond's trees and pool without what a [`Db`](millpond::Db) does beside them: no log, no
//! locks, no `match` over the compiled combinations, no copy of a value that is only looked at.
//!
//! Pages are written when they are evicted and at the end. Operations are atomic; there are no
//! transactions. Reads and writes are direct, with the memory of `millpond`.
//!
//! Beside `millpond`, it shows what of a figure is the data structure's and the pool's, and what
//! transactions cost. Users cannot open a store like this.

use std::path::Path;
use std::sync::Arc;

use millpond::Options;
use millpond::internals::pool::Pool;
use millpond::internals::store::Builder;
use millpond::internals::store::Store as EngineStore;
use millpond::internals::store::combinations::SwizzledAny;
use millpond_bench::stores::tree_store::{TreeSession, TreeStore, TreeStoreError};
use millpond_workload::live::{Store, TableId};

use crate::engine::{Engine, Settings};

/// Bytes of a page: the engine's default.
pub(super) const PAGE_SIZE: u32 = millpond::internals::store::options::PAGE_SIZE_DEFAULT;

type Pages = Pool<SwizzledAny>;

/// The trees of a store in the default combination.
pub struct MillpondTree {
    // Before the store: who closes it is its only user.
    tables: TreeStore<Pages>,
    store: Arc<EngineStore<SwizzledAny>>,
}

impl Store for MillpondTree {
    type Error = TreeStoreError;
    type Session<'s> = TreeSession<'s, Pages>;

    fn create_table(&self, name: &str) -> Result<TableId, TreeStoreError> {
        self.tables.add(name, |_, _| self.store.tree(name))
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, TreeStoreError> {
        match self.tables.add(name, |_, _| self.store.open_tree(name)) {
            Ok(table) => Ok(Some(table)),
            Err(TreeStoreError::Store(millpond::Error::NoTree { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn session(&self) -> Result<TreeSession<'_, Pages>, TreeStoreError> {
        self.tables.session()
    }
}

impl Engine for MillpondTree {
    const NAME: &'static str = "millpond-tree";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<MillpondTree> {
        let options = Options::new().memory(settings.cache).lab(|lab| {
            lab.log = false;
            lab.locks = false;
        });
        let store = Builder::file(&folder.join("pond.mp"), &options).open::<SwizzledAny>()?;
        Ok(MillpondTree { tables: TreeStore::new(store.pool().clone()), store })
    }

    /// Does at once what the store's background merge does when there is little else to do.
    fn settle(&self) -> anyhow::Result<()> {
        self.tables.compact()?;
        Ok(self.store.flush()?)
    }

    /// Files grow in large steps ahead of need; what counts is pages that are taken.
    fn bytes(&self) -> Option<u64> {
        let pages = self.store.pages();
        Some(pages.allocated_pages() * pages.page_size().bytes_u64())
    }

    fn close(self) -> anyhow::Result<()> {
        let MillpondTree { tables, store } = self;
        drop(tables);
        Ok(store.close()?)
    }
}
