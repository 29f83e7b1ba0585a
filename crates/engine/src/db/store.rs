//! A store in one compiled combination: the pool and its threads over a page store, and the
//! catalog. [`Db`](super::Db) is one of these, whichever its options choose; measurements use them
//! directly.
//!
//! # Life
//!
//! Opening checks the options before it touches a file, and gives the file back closed as it was
//! if anything behind it fails. Everything that uses a store holds an [`Arc`] of it, so the last
//! one to go closes it, and nothing can run meanwhile: no operation has to look whether the store
//! is still open. Closing stops the threads, writes every dirty page, gives page ids back that
//! were taken ahead, and marks the file as clean, in this order; only then is the file opened
//! again without a log.
//!
//! Each named tree is opened once and shared by all its handles: its root hangs below one anchor,
//! or there would be two swips to one page.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Instant, SystemTime};

use millpond_base::{FrameId, PageId, Reason};
use millpond_policies::contract::Shape;

use super::catalog::{Catalog, Entry, Structure};
use super::choices::{EvictionMode, ReclamationMode, TranslationMode};
use super::error::Error;
use super::housekeeping::Housekeeping;
use super::memory_limit::SystemRoots;
use super::modes::seat_for;
use super::options::{Options, PAGE_SIZE_DEFAULT, Plan};
use super::stat_file::{PUBLISH_PERIOD, Publisher};
use super::store_tree::{OpenTree, StoreTree};
use crate::btree::{BTree, InnerKind, LeafKind, OverflowKind};
use crate::io::{CreateError, Device, FileDevice, PageStore};
use crate::page::{PageSize, PageType};
use crate::pool::counters::{Counter, Timing};
use crate::pool::{Evictors, Latching, Mode, Pool, PoolOptions, Reclamation, Workers};

/// Passes over the frames that [`Store::flush`] makes at most.
const FLUSH_PASSES: u32 = 4;

/// A page store and what its options come to: what does not depend on the combination.
pub(super) struct Prepared {
    pages: Arc<PageStore>,
    plan: Plan,
    publisher: Option<Arc<Publisher>>,
}

/// What is behind a name.
struct Named<M: Mode> {
    /// `None` only in a store that is open for reading and has never had one.
    catalog: Option<Catalog<Pool<M>>>,
    open: HashMap<String, Arc<OpenTree<M>>>,
    /// Splits and merges of trees that were dropped.
    gone: (u64, u64),
}

impl<M: Mode> Named<M> {
    fn create(
        &mut self,
        name: &str,
        structure: Structure,
        make: impl FnOnce(u32) -> Result<PageId, Error>,
    ) -> Result<Entry, Error> {
        let Some(catalog) = &mut self.catalog else { return Err(Error::ReadOnly) };
        if catalog.get(name)?.is_some() {
            return Err(Error::Exists { name: name.to_string() });
        }
        let owner = catalog.new_owner();
        let root = make(owner)?;
        let created = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let created_ms = u64::try_from(created.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry { owner, structure, root, created_ms };
        // Should this fail, the structure's first pages are lost: `check` finds them.
        catalog.insert(name, &entry)?;
        Ok(entry)
    }
}

/// A store in the combination `M`.
pub struct Store<M: Mode> {
    pool: Arc<Pool<M>>,
    pages: Arc<PageStore>,
    named: Mutex<Named<M>>,
    house: Option<Housekeeping>,
    workers: Option<Workers<M>>,
    publisher: Option<Arc<Publisher>>,
    plan: Plan,
    opened: Instant,
    /// The only thread that may use it, without latches.
    alone: Option<ThreadId>,
    is_open: bool,
}

fn page_size_of(options: &Options) -> Option<PageSize> {
    options.page_size.and_then(PageSize::of_store)
}

fn new_page_size(options: &Options) -> Result<PageSize, Error> {
    let bytes = u64::from(PAGE_SIZE_DEFAULT);
    match page_size_of(options) {
        Some(size) => Ok(size),
        None => Ok(PageSize::new(bytes).map_err(CreateError::from)?),
    }
}

impl Prepared {
    /// Opens or creates the store in the file at `path`.
    pub(super) fn file(path: &Path, options: &Options) -> Result<Prepared, Error> {
        options.check()?;
        let file = options.file_options();
        let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
        if length == 0 && !options.may_create() {
            return Err(Error::NoStore { path: path.to_path_buf() });
        }
        let pages = if length == 0 {
            let device = FileDevice::create(path, &file)?;
            options.check_device(&device)?;
            device.sync_directory()?;
            PageStore::create_on(Arc::new(device), new_page_size(options)?)?
        } else {
            let device = FileDevice::open(path, &file)?;
            options.check_device(&device)?;
            PageStore::open_on(Arc::new(device), page_size_of(options), options.read_only)?
        };
        let publisher = || Arc::new(Publisher::new(path, PUBLISH_PERIOD));
        let publisher = (!options.read_only).then(publisher);
        Prepared::over(pages, options, publisher)
    }

    /// Opens or creates the store on `device`.
    pub(super) fn device(device: Arc<dyn Device>, options: &Options) -> Result<Prepared, Error> {
        options.check()?;
        let pages = if device.length() > 0 {
            PageStore::open_on(device, page_size_of(options), options.read_only)?
        } else if options.may_create() {
            PageStore::create_on(device, new_page_size(options)?)?
        } else {
            return Err(Error::NoStore { path: device.path().to_path_buf() });
        };
        Prepared::over(pages, options, None)
    }

    fn over(
        pages: PageStore,
        options: &Options,
        publisher: Option<Arc<Publisher>>,
    ) -> Result<Prepared, Error> {
        let page_size = pages.page_size().bytes() as u32;
        match options.plan(&SystemRoots::default(), Some(page_size)) {
            Ok(plan) => Ok(Prepared { pages: Arc::new(pages), plan, publisher }),
            Err(error) => {
                leave_as_found(&pages);
                Err(error.into())
            }
        }
    }
}

/// Closes a store to which nothing was written.
fn leave_as_found(pages: &PageStore) {
    if let Err(error) = pages.close(pages.catalog_root()) {
        tracing::warn!(%error, "a store that could not be opened could not be closed either");
    }
}

fn pool_options(options: &Options, plan: &Plan) -> PoolOptions {
    let (lab, defaults) = (&options.lab, PoolOptions::new(plan.budget.frames));
    PoolOptions {
        reclamation: match lab.reclamation {
            ReclamationMode::Epoch => Reclamation::Epoch,
            ReclamationMode::Version => Reclamation::Version,
        },
        evictors: match options.eviction {
            EvictionMode::Worker => Evictors::Workers,
            EvictionMode::Threads(threads) => Evictors::Threads(threads.get()),
        },
        batch: lab.batch.unwrap_or(defaults.batch),
        background_writer: lab.background_writer && !options.read_only,
        prefault: options.prefault,
        nodes: options.numa_nodes,
        sample_period: lab.latency_sample_period,
        seed: plan.seed.0,
        ..defaults
    }
}

impl<M: Mode> Store<M> {
    /// Opens or creates the store in the file at `path`. Translation, latching and recording are
    /// those of `M`, whatever the options say.
    ///
    /// # Errors
    /// [`Error`]: options, file, policy or memory will not do.
    pub fn open(path: &Path, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let options = Self::adapted(options);
        Self::start(Prepared::file(path, &options)?, &options)
    }

    /// The same over any device: memory, a faulty or a slow one. Nothing is published.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(device: Arc<dyn Device>, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let options = Self::adapted(options);
        Self::start(Prepared::device(device, &options)?, &options)
    }

    /// Options whose budget has a page table if, and only if, there is one.
    fn adapted(options: &Options) -> Options {
        let translation =
            if M::SWIZZLES { TranslationMode::Swizzled } else { TranslationMode::Hashed };
        options.clone().lab(|lab| lab.translation = translation)
    }

    pub(super) fn start(prepared: Prepared, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let pages = prepared.pages.clone();
        let started = Self::assemble(prepared, options);
        if started.is_err() {
            leave_as_found(&pages);
        }
        started.map(Arc::new)
    }

    fn assemble(prepared: Prepared, options: &Options) -> Result<Store<M>, Error> {
        let Prepared { pages, plan, publisher } = prepared;
        let shape = Shape { frames: plan.budget.frames, pages_dense: None, seed: plan.seed.0 };
        let seated = seat_for::<M::Touch>(&plan.policy, &shape)?;
        let pool = Pool::<M>::open(pool_options(options, &plan), pages.clone(), seated)?;
        pool.register(PageType::BTREE_INNER, &InnerKind);
        pool.register(PageType::BTREE_LEAF, &LeafKind);
        pool.register(PageType::OVERFLOW, &OverflowKind);
        let pool = Arc::new(pool);
        let workers = Workers::start(pool.clone())?;
        let catalog = match pages.catalog_root() {
            Some(root) => Some(Catalog::open(pool.clone(), root)?),
            None if pages.is_read_only() => None,
            None => Some(Catalog::create(pool.clone())?),
        };
        let named = Named { catalog, open: HashMap::new(), gone: (0, 0) };
        let mut store = Store {
            pool,
            pages,
            named: Mutex::new(named),
            house: None,
            workers: Some(workers),
            publisher,
            plan,
            opened: Instant::now(),
            alone: (!M::Latching::THREADS).then(|| std::thread::current().id()),
            is_open: true,
        };
        if !options.read_only {
            store.house = Some(store.keep_house()?);
        }
        Ok(store)
    }

    fn keep_house(&self) -> Result<Housekeeping, Error> {
        let (pool, pages) = (self.pool.clone(), self.pages.clone());
        let (publisher, opened) = (self.publisher.clone(), self.opened);
        let last = std::sync::atomic::AtomicU64::new(u64::MAX);
        let house = Housekeeping::start(move || {
            // A store that nobody uses rests, and its statistics stay right.
            let references = pool.counters().get(Counter::References);
            if last.swap(references, std::sync::atomic::Ordering::Relaxed) == references {
                return;
            }
            if let Err(error) = pages.grow_ahead() {
                tracing::debug!(%error, "the store could not grow ahead of need");
            }
            if let Some(publisher) = &publisher {
                publisher.maybe_publish(|| super::census::stats(&pool, &pages, opened));
            }
        })?;
        Ok(house)
    }

    /// The buffer pool.
    pub fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    /// The page store below the pool.
    pub fn pages(&self) -> &Arc<PageStore> {
        &self.pages
    }

    /// What the options came to: page size, policy, memory.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.pages.is_read_only()
    }

    /// Fails on a thread that must not use the store.
    #[inline(always)]
    pub(super) fn may_read(&self) -> Result<(), Error> {
        if !M::Latching::THREADS && self.alone != Some(std::thread::current().id()) {
            return Err(Error::WrongThread);
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn may_write(&self) -> Result<(), Error> {
        if self.pages.is_read_only() {
            return Err(Error::ReadOnly);
        }
        self.may_read()
    }

    fn named(&self) -> MutexGuard<'_, Named<M>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree of that name; it is made if there is none.
    ///
    /// # Errors
    /// [`Error`]: the name cannot be or is another structure's, or the store failed.
    pub fn tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        match self.open_tree(name) {
            Err(Error::NoTree { .. }) if !self.is_read_only() => match self.create_tree(name) {
                // Another thread was faster.
                Err(Error::Exists { .. }) => self.open_tree(name),
                other => other,
            },
            other => other,
        }
    }

    /// The tree of that name.
    ///
    /// # Errors
    /// [`Error::NoTree`], or as [`Store::tree`].
    pub fn open_tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.may_read()?;
        let mut named = self.named();
        if let Some(tree) = named.open.get(name) {
            return Ok(StoreTree::new(self.clone(), tree.clone()));
        }
        let entry = match &named.catalog {
            Some(catalog) => catalog.get(name)?,
            None => None,
        };
        let entry = entry.ok_or_else(|| Error::NoTree { name: name.to_string() })?;
        expect_tree(name, &entry)?;
        let tree = BTree::open(self.pool.clone(), entry.owner, entry.root)?;
        let tree = Arc::new(OpenTree::new(name, tree));
        named.open.insert(name.to_string(), tree.clone());
        Ok(StoreTree::new(self.clone(), tree))
    }

    /// A new, empty tree.
    ///
    /// # Errors
    /// [`Error::Exists`], or as [`Store::tree`].
    pub fn create_tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.may_write()?;
        let mut named = self.named();
        let mut made = None;
        named.create(name, Structure::Tree, |owner| {
            let tree = BTree::create(self.pool.clone(), owner)?;
            let root = tree.root();
            made = Some(tree);
            Ok(root)
        })?;
        let made = made.ok_or_else(|| Error::NoTree { name: name.to_string() })?;
        let tree = Arc::new(OpenTree::new(name, made));
        named.open.insert(name.to_string(), tree.clone());
        Ok(StoreTree::new(self.clone(), tree))
    }

    /// Enters a structure that is no tree: `make` makes it, for the owner whose id it is given,
    /// and answers with its root. Its pages' kinds must have been registered with the pool.
    ///
    /// # Errors
    /// [`Error::Exists`], what `make` answers, or as [`Store::tree`].
    pub fn create_structure(
        &self,
        name: &str,
        kind: Structure,
        make: impl FnOnce(u32) -> Result<PageId, Error>,
    ) -> Result<Entry, Error> {
        self.may_write()?;
        self.named().create(name, kind, make)
    }

    /// What the catalog knows of a name.
    ///
    /// # Errors
    /// [`Error::NoTree`], or the catalog cannot be read.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        self.may_read()?;
        let entry = self.named().catalog.as_ref().map_or(Ok(None), |catalog| catalog.get(name))?;
        entry.ok_or_else(|| Error::NoTree { name: name.to_string() })
    }

    /// Strikes the name of a structure that is no tree, whose pages the caller has freed.
    ///
    /// # Errors
    /// [`Error::NoTree`], [`Error::OtherKind`] for a tree, or the store failed.
    pub fn forget_structure(&self, name: &str, kind: Structure) -> Result<(), Error> {
        self.may_write()?;
        let found = self.entry(name)?.structure;
        if found != kind || kind == Structure::Tree {
            return Err(Error::OtherKind { name: name.to_string(), found, wanted: kind });
        }
        if let Some(catalog) = &self.named().catalog {
            catalog.remove(name)?;
        }
        Ok(())
    }

    /// Removes a tree and gives all its pages back. Nobody may have a handle of it.
    ///
    /// # Errors
    /// [`Error::NoTree`], [`Error::TreeInUse`], or the store failed.
    pub fn drop_tree(&self, name: &str) -> Result<(), Error> {
        self.may_write()?;
        let mut named = self.named();
        let Named { catalog: Some(catalog), open, gone } = &mut *named else {
            return Err(Error::ReadOnly);
        };
        let entry = catalog.get(name)?;
        let entry = entry.ok_or_else(|| Error::NoTree { name: name.to_string() })?;
        expect_tree(name, &entry)?;
        let tree = match open.remove(name).map(Arc::try_unwrap) {
            None => BTree::open(self.pool.clone(), entry.owner, entry.root)?,
            Some(Ok(tree)) => tree.into_tree(),
            Some(Err(tree)) => {
                let handles = Arc::strong_count(&tree) - 1;
                open.insert(name.to_string(), tree);
                return Err(Error::TreeInUse { name: name.to_string(), handles });
            }
        };
        let counters = tree.counters();
        gone.0 += counters.leaf_splits + counters.inner_splits;
        gone.1 += counters.leaf_merges + counters.inner_merges;
        catalog.remove(name)?;
        Ok(tree.destroy()?)
    }

    /// All names and what they stand for, in order.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn catalog(&self) -> Result<Vec<(String, Entry)>, Error> {
        self.may_read()?;
        self.named().catalog.as_ref().map_or(Ok(Vec::new()), Catalog::list)
    }

    /// Writes what is dirty and makes it durable; operations may run meanwhile. See
    /// [`Db::flush`](super::Db::flush) for what that is worth.
    ///
    /// # Errors
    /// A page could not be written, or the device did not confirm.
    pub fn flush(&self) -> Result<(), Error> {
        self.may_read()?;
        if self.is_read_only() {
            return Ok(());
        }
        let frames: Vec<FrameId> = (0..self.pool.frames()).map(FrameId).collect();
        for _ in 0..FLUSH_PASSES {
            self.pool.write_frames(&frames, Reason::Recov)?;
            if self.pool.frames_dirty() == 0 {
                break;
            }
        }
        let started = self.pool.latencies().start(Timing::SyncTime);
        let synced = self.pages.sync();
        self.pool.latencies().stop(Timing::SyncTime, started);
        Ok(synced?)
    }

    /// What the store did since it was opened, and its state now.
    pub fn stats(&self) -> super::Stats {
        let mut stats = super::census::stats(&self.pool, &self.pages, self.opened);
        let named = self.named();
        (stats.splits, stats.merges) = named.gone;
        for tree in named.open.values() {
            let counters = tree.tree().counters();
            stats.splits += counters.leaf_splits + counters.inner_splits;
            stats.merges += counters.leaf_merges + counters.inner_merges;
        }
        stats
    }

    /// Closes the store, if this is the last handle.
    ///
    /// # Errors
    /// [`Error::InUse`]: the store stays open until the last handle goes. Or something could not
    /// be written: the file stays marked as open.
    pub fn close(self: Arc<Self>) -> Result<(), Error> {
        match Arc::try_unwrap(self) {
            Ok(mut store) => store.shut(),
            Err(other) => Err(Error::InUse { handles: Arc::strong_count(&other) - 1 }),
        }
    }

    fn shut(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_open, false) {
            return Ok(());
        }
        // Both wait for their threads.
        self.house = None;
        self.workers = None;
        let written = self.write_all();
        if written.is_ok()
            && let Some(publisher) = &self.publisher
        {
            publisher.close(self.stats());
        }
        written
    }

    fn write_all(&self) -> Result<(), Error> {
        if !self.is_read_only() {
            self.pool.flush(Reason::Recov)?;
            self.pool.return_ids()?;
        }
        let root = self.named().catalog.as_ref().map(Catalog::root);
        Ok(self.pages.close(root)?)
    }
}

fn expect_tree(name: &str, entry: &Entry) -> Result<(), Error> {
    if entry.structure == Structure::Tree {
        return Ok(());
    }
    let (found, wanted) = (entry.structure, Structure::Tree);
    Err(Error::OtherKind { name: name.to_string(), found, wanted })
}

impl<M: Mode> Drop for Store<M> {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            let path = self.pages.path().display();
            tracing::error!(%error, "{path} was not closed cleanly");
        }
    }
}
