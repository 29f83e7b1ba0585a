//! Millpond as it is by default: swizzled, optimistically latched, WATT, direct I/O.
//!
//! The adapter uses the trees and the pool directly, so that what is measured is the engine and not
//! a translation of names. When the store is closed, a tree of its tables is written, whose root is
//! the store's catalog:
//!
//! ```text
//! key    the table's number, 4 bytes, big-endian
//! value  page of the root, 8 bytes, little-endian; then the table's name
//! ```

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use millpond::Options;
use millpond::internals::btree::BTree;
use millpond::internals::io::{FileOptions, PageStore};
use millpond::internals::page::PageSize;
use millpond::internals::pool::{Pool, Workers};
use millpond::internals::store::Builder;
use millpond::internals::store::options::memory_limit::SystemRoots;
use millpond_base::{PageId, Reason};
use millpond_bench::stores::tree_store::{TreeSession, TreeStore, TreeStoreError};
use millpond_workload::live::{Store, TableId};

use crate::engine::{Engine, Settings};

/// Bytes of a page: the engine's default.
pub(super) const PAGE_SIZE: u32 = millpond::internals::store::options::PAGE_SIZE_DEFAULT;

/// The catalog carries this owner; tables count from 1.
const CATALOG: u32 = 0;

/// The default combination.
type PoolStrategy = millpond::internals::store::combinations::SwizzledWatt;

type Tree = BTree<Pool<PoolStrategy>>;

/// Millpond.
pub struct Millpond {
    // Before the pool, so that no thread works on it while the rest is dropped.
    workers: Workers<PoolStrategy>,
    store: Arc<PageStore>,
    tables: TreeStore<Pool<PoolStrategy>>,
}

impl Store for Millpond {
    type Error = TreeStoreError;
    type Session<'s> = TreeSession<'s, Pool<PoolStrategy>>;

    fn create_table(&self, name: &str) -> Result<TableId, TreeStoreError> {
        self.tables.create_table(name)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, TreeStoreError> {
        self.tables.table(name)
    }

    fn session(&self) -> Result<TreeSession<'_, Pool<PoolStrategy>>, TreeStoreError> {
        self.tables.session()
    }
}

/// Names and roots of all tables, in the order of their numbers.
fn read_catalog(catalog: &Tree) -> anyhow::Result<Vec<(String, PageId)>> {
    let mut found = Vec::new();
    catalog.scan(Bound::Unbounded, Bound::Unbounded, |_, value| {
        if let Some((root, name)) = value.split_first_chunk::<8>() {
            let name = String::from_utf8_lossy(name).into_owned();
            found.push((name, PageId(u64::from_le_bytes(*root))));
        }
        true
    })?;
    Ok(found)
}

fn write_catalog(catalog: &Tree, roots: &[(String, PageId)]) -> anyhow::Result<()> {
    for (at, (name, root)) in roots.iter().enumerate() {
        let value = [&root.0.to_le_bytes()[..], name.as_bytes()].concat();
        catalog.upsert(&(at as u32).to_be_bytes(), &value)?;
    }
    Ok(())
}

impl Engine for Millpond {
    const NAME: &'static str = "millpond";

    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Millpond> {
        let path = folder.join("millpond.db");
        let file = FileOptions::default();
        let store = if path.exists() {
            PageStore::open(&path, None, &file).context("opening the store")?
        } else {
            PageStore::create(&path, PageSize::new(u64::from(PAGE_SIZE))?, &file)?
        };
        let store = Arc::new(store);
        let pool = Arc::new(open_pool(store.clone(), settings)?);
        let workers = Workers::start(pool.clone())?;
        let roots = match store.catalog_root() {
            Some(root) => read_catalog(&Tree::open(pool.clone(), CATALOG, root)?)?,
            None => Vec::new(),
        };
        let tables = TreeStore::open(pool, &roots)?;
        Ok(Millpond { workers, store, tables })
    }

    /// The trees stand on the pool alone, without the `Db` that merges leaves in the background; so
    /// this does it.
    fn settle(&self) -> anyhow::Result<()> {
        self.tables.compact()?;
        self.tables.pages().flush(Reason::Synch)?;
        self.store.sync()?;
        Ok(())
    }

    /// Files grow in large steps ahead of need; what counts is pages that are taken.
    fn bytes(&self) -> Option<u64> {
        Some(self.store.allocated_pages() * self.store.page_size().bytes_u64())
    }

    fn close(self) -> anyhow::Result<()> {
        let Millpond { workers, store, tables } = self;
        let pool = tables.pages().clone();
        let catalog = match store.catalog_root() {
            Some(root) => Tree::open(pool.clone(), CATALOG, root)?,
            None => Tree::create(pool.clone(), CATALOG)?,
        };
        write_catalog(&catalog, &tables.roots())?;
        drop(workers);
        pool.flush(Reason::Synch)?;
        pool.ids().return_all()?;
        store.close(Some(catalog.root()))?;
        Ok(())
    }
}

/// A pool whose memory in all is the cache that every engine is given.
fn open_pool(store: Arc<PageStore>, settings: &Settings) -> anyhow::Result<Pool<PoolStrategy>> {
    let page_size = store.page_size().bytes() as u32;
    let options = Options::new().memory(settings.cache).page_size(page_size);
    let plan = options.plan(&SystemRoots::default(), Some(page_size))?;
    Ok(Builder::pool(&options, &plan, store)?)
}
