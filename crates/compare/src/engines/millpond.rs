//! Millpond as it is by default: swizzled, optimistically latched, lean eviction, direct I/O.
//!
//! The adapter stands on the trees and the pool, so that what is measured is the engine and not a
//! translation of names. Tables are found again by a tree that maps their names to their roots;
//! its own root is what the store calls its catalog.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use millpond::btree::{BTree, register};
use millpond::db::memory_limit::SystemRoots;
use millpond::db::{Lab, Options};
use millpond::io::{FileOptions, PageStore};
use millpond::page::PageSize;
use millpond::pool::{Kind, Mode, Optimistic, Pool, PoolOptions, Seated, Workers};
use millpond_base::Reason;
use millpond_policies::contract::{Rules, Shape};
use millpond_policies::policy::LeanEvict;
use millpond_workload::live::{Store, TableId};

use super::tree::{Entry, Tables, TreeError, TreeSession, entries};
use crate::engine::{Engine, Settings};

/// Bytes of a page: the engine's default.
pub(super) const PAGE_SIZE: u32 = millpond::db::options::PAGE_SIZE_DEFAULT;

/// The tree of names carries this owner; tables count from 1.
const CATALOG: u32 = 0;

/// The default combination.
pub struct Lean;

impl Mode for Lean {
    type Latching = Optimistic;
    type Touch = <LeanEvict as Rules>::Touch;
    const SWIZZLES: bool = true;
}

type Tree = BTree<Pool<Lean>>;

/// Millpond.
pub struct Millpond {
    // Before the pool, so that no thread works on it while the rest is dropped.
    workers: Workers<Lean>,
    store: Arc<PageStore>,
    catalog: Tree,
    tables: Tables<Pool<Lean>>,
}

impl Millpond {
    fn pool(&self) -> &Arc<Pool<Lean>> {
        self.workers.pool()
    }
}

impl Store for Millpond {
    type Error = TreeError;
    type Session<'s> = TreeSession<'s, Pool<Lean>>;

    fn create_table(&self, name: &str) -> Result<TableId, TreeError> {
        self.tables.find_or(name, |owner| {
            let tree = Tree::create(self.pool().clone(), owner)?;
            let entry = Entry { owner, root: tree.root() };
            self.catalog.upsert(name.as_bytes(), &entry.to_bytes())?;
            Ok(tree)
        })
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, TreeError> {
        Ok(self.tables.find(name))
    }

    fn session(&self) -> Result<TreeSession<'_, Pool<Lean>>, TreeError> {
        Ok(self.tables.session())
    }
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
        for (page_type, kind) in register() {
            // A handful of empty structs, for the life of the program.
            let kind: &'static Arc<dyn Kind> = Box::leak(Box::new(kind));
            pool.register(page_type, &**kind);
        }
        let workers = Workers::start(pool.clone())?;
        let tables = Tables::new();
        let catalog = match store.catalog_root() {
            Some(root) => Tree::open(pool.clone(), CATALOG, root)?,
            None => Tree::create(pool.clone(), CATALOG)?,
        };
        for (name, Entry { owner, root }) in entries(&catalog)? {
            tables.find_or(&name, |_| Ok(Tree::open(pool.clone(), owner, root)?))?;
        }
        Ok(Millpond { workers, store, catalog, tables })
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.pool().flush(Reason::Synch)?;
        self.store.sync()?;
        Ok(())
    }

    /// Files grow in large steps ahead of need; what counts is pages that are taken.
    fn bytes(&self) -> Option<u64> {
        Some(self.store.allocated_pages() * self.store.page_size().bytes_u64())
    }

    fn close(self) -> anyhow::Result<()> {
        let Millpond { workers, store, catalog, .. } = self;
        let pool = workers.pool().clone();
        drop(workers);
        pool.flush(Reason::Synch)?;
        pool.return_ids()?;
        store.close(Some(catalog.root()))?;
        Ok(())
    }
}

/// A pool whose memory in all is the cache that every engine is given.
fn open_pool(store: Arc<PageStore>, settings: &Settings) -> anyhow::Result<Pool<Lean>> {
    let page_size = store.page_size().bytes() as u32;
    let options = Options::new().memory(settings.cache).page_size(page_size);
    let plan = options.plan(&SystemRoots::default(), Some(page_size))?;
    let pool = PoolOptions {
        sample_period: Lab::default().latency_sample_period,
        seed: plan.seed.0,
        ..PoolOptions::new(plan.budget.frames)
    };
    let shape =
        Shape { frames: plan.budget.frames, pages_dense: Some(store.pages()), seed: plan.seed.0 };
    let seated = Seated::exact::<LeanEvict>(&plan.policy.spec, &shape)?;
    Ok(Pool::open(pool, store, seated)?)
}
