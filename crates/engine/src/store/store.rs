//! A store in one compiled combination: the pool and its threads over a page store, and the
//! catalog. [`Db`](crate::Db) is one of these, whichever its options choose; measurements
//! use them directly.
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
//! Each named structure is opened once and shared by all its handles: its root hangs below one
//! anchor, or there would be two swips to one page.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::Location;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;
use std::time::{Duration, Instant, SystemTime};

use millpond_base::{FrameId, Lsn, PageId, Reason};
use millpond_policies::contract::Shape;

use crate::btree::Detached;
use crate::io::simulated::planted::{Bug, is_planted};
use crate::io::{CreateError, Device, FileDevice, OpenError, PageStore, SpillFile, real_path};
use crate::lock::{LockManager, LockOptions};
use crate::log::Log;
use crate::page::PageSize;
use crate::pool::mini_transaction::PageSpace;
use crate::pool::stats::counters::Timing;
use crate::pool::{
    Evictors, Latching, Pages, Pool, PoolError, PoolOptions, PoolStrategy, Reclamation, Workers,
    borrowed,
};
use crate::recovery::Recovery;
use crate::store::budget::Budget;
use crate::store::catalog::{Catalog, Entry, Structure, TypeNames};
use crate::store::checkpointer::{self, Checkpointer};
use crate::store::choices::{EvictionMode, ReclamationMode, TranslationMode};
use crate::store::combinations::host_for;
use crate::store::error::Error;
use crate::store::handle::{OpenTree, Opened, StoreHandle, StoreHashIndex, StoreHeap, StoreTree};
use crate::store::housekeeping::Housekeeping;
use crate::store::log_open::{self, Logged};
use crate::store::log_salvage::{Names, undo_failed};
use crate::store::memory_limit::SystemRoots;
use crate::store::merging::{Merging, references_of_others};
use crate::store::options::{Options, PAGE_SIZE_DEFAULT, Plan};
use crate::store::stat_file::{PUBLISH_PERIOD, Publisher};
use crate::store::undo;
use crate::txn::{Durability, Snapshot, TransactionManager, Trees, TxnError};
use crate::{btree, hash_index, heap};

/// How long a commit with `Durability::Group` waits for others at most.
const GROUP_DELAY: Duration = Duration::from_micros(200);

/// Time between two rounds of the housekeeping.
const PERIOD: Duration = Duration::from_secs(1);

/// Passes over the frames that [`Store::flush`] makes at most.
const FLUSH_PASSES: u32 = 4;

/// A page store and what its options come to: what does not depend on the combination.
pub(crate) struct Prepared {
    pages: Arc<PageStore>,
    logged: Option<Logged>,
    plan: Plan,
    publisher: Option<Arc<Publisher>>,
    spill: Option<Arc<SpillFile>>,
}

/// What is behind a name.
pub(crate) struct Named<M: PoolStrategy> {
    /// `None` only in a store that is open for reading and has never had one.
    catalog: Option<Catalog<Pool<M>>>,
    open: HashMap<String, Opened<M>>,
    /// Splits and merges of trees that were dropped.
    gone: (u64, u64),
}

impl<M: PoolStrategy> Named<M> {
    /// What has that name and is open.
    pub(crate) fn opened(&self, name: &str) -> Option<Opened<M>> {
        self.open.get(name).cloned()
    }

    /// Owners' ids and names of trees that are open.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (u32, String)> {
        self.open.iter().filter_map(|(name, opened)| match opened {
            Opened::Tree(tree) => Some((tree.structure().owner(), name.clone())),
            Opened::Hash(_) | Opened::Heap(_) => None,
        })
    }

    /// The tree whose pages carry the id `owner`; it stays open.
    fn tree_of(&mut self, pool: &Arc<Pool<M>>, owner: u32) -> Result<Option<OpenTree<M>>, Error> {
        let is_it = |opened: &Opened<M>| match opened {
            Opened::Tree(tree) if tree.structure().owner() == owner => Some(tree.clone()),
            _ => None,
        };
        if let Some(open) = self.open.values().find_map(is_it) {
            return Ok(Some(open));
        }
        let all = self.catalog.as_ref().map_or(Ok(Vec::new()), Catalog::list)?;
        let Some((name, entry)) = all.into_iter().find(|(_, entry)| entry.owner == owner) else {
            return Ok(None);
        };
        let opened = Opened::open(pool, &name, &entry)?;
        let tree = is_it(&opened);
        self.open.insert(name, opened);
        Ok(tree)
    }

    /// What has that name, if anything has.
    fn entry(&self, name: &str) -> Result<Option<Entry>, Error> {
        self.catalog.as_ref().map_or(Ok(None), |catalog| catalog.get(name))
    }

    /// What has that name, is open from now on, and its entry.
    pub(crate) fn open_to_move(
        &mut self,
        pool: &Arc<Pool<M>>,
        name: &str,
    ) -> Result<Option<(Opened<M>, Entry)>, Error> {
        let Some(entry) = self.entry(name)? else { return Ok(None) };
        if let Some(opened) = self.open.get(name) {
            return Ok(Some((opened.clone(), entry)));
        }
        let opened = Opened::open(pool, name, &entry)?;
        self.open.insert(name.to_string(), opened.clone());
        Ok(Some((opened, entry)))
    }

    /// The catalog, if there is one.
    pub(crate) fn catalog(&self) -> Option<&Catalog<Pool<M>>> {
        self.catalog.as_ref()
    }

    /// Makes a structure and enters it into the catalog.
    fn create(
        &mut self,
        pool: &Arc<Pool<M>>,
        name: &str,
        structure: Structure,
        types: &TypeNames,
    ) -> Result<Opened<M>, Error> {
        let Some(catalog) = &mut self.catalog else { return Err(Error::ReadOnly) };
        if catalog.get(name)?.is_some() {
            return Err(Error::Exists { name: name.to_string() });
        }
        let owner = catalog.new_owner();
        let made = Opened::create(pool, name, owner, structure)?;
        let created = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let created_ms = u64::try_from(created.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry { owner, structure, root: made.root(), created_ms };
        if let Err(error) = catalog.insert(name, &entry, types) {
            // Nobody will ever know of its pages.
            if let Err(error) = made.destroy() {
                tracing::warn!(%error, "the first pages of '{name}' are lost: `check` finds them");
            }
            return Err(error);
        }
        self.open.insert(name.to_string(), made.clone());
        Ok(made)
    }
}

/// A store in the combination `M`.
pub struct Store<M: PoolStrategy> {
    pool: Arc<Pool<M>>,
    pages: Arc<PageStore>,
    named: Arc<Mutex<Named<M>>>,
    /// Held by whoever moves pages, so that one thread does.
    pub(crate) shrinking: Mutex<()>,
    /// Held by whoever drops a structure, and by the housekeeping while it works on a tree.
    gate: Arc<Mutex<()>>,
    house: Option<Housekeeping>,
    checkpointing: Option<Housekeeping>,
    checkpointer: Option<Arc<Checkpointer<M>>>,
    txns: Arc<TransactionManager>,
    recovery: Option<Recovery>,
    workers: Option<Workers<M>>,
    publisher: Option<Arc<Publisher>>,
    durability: Durability,
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
    /// Opens or creates the store in the file at `path`, with its log beside it if `may_log`.
    pub(crate) fn file(
        path: &Path,
        options: &Options,
        may_log: bool,
        names: Names,
    ) -> Result<Prepared, Error> {
        options.check()?;
        let path = &real_path(path);
        if may_log && options.log && !options.read_only {
            return Prepared::logged_file(path, options, names);
        }
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
            let opened =
                PageStore::open_on(Arc::new(device), page_size_of(options), options.read_only);
            opened.map_err(needs_log)?
        };
        let publisher = || Arc::new(Publisher::new(path, PUBLISH_PERIOD));
        let publisher = (!options.read_only).then(publisher);
        Ok(Prepared::over(pages, None, options, publisher)?.spill_beside(path, options))
    }

    /// Lets what does not fit into memory go to a file beside the store, which is locked by now.
    fn spill_beside(self, path: &Path, options: &Options) -> Prepared {
        if options.read_only {
            return self;
        }
        Prepared { spill: Some(SpillFile::beside(path, options.spill_max)), ..self }
    }

    fn logged_file(path: &Path, options: &Options, names: Names) -> Result<Prepared, Error> {
        let file = options.file_options();
        let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
        if length == 0 && !options.may_create() {
            return Err(Error::NoStore { path: path.to_path_buf() });
        }
        let device = if length == 0 {
            FileDevice::create(path, &file)?
        } else {
            FileDevice::open(path, &file)?
        };
        options.check_device(&device)?;
        device.sync_directory()?;
        let log = |empty| log_open::log_file(path, empty, options);
        let (pages, logged) = open_or_create(Arc::new(device), log, options, names)?;
        let publisher = Arc::new(Publisher::new(path, PUBLISH_PERIOD));
        let prepared = Prepared::over(pages, Some(logged), options, Some(publisher))?;
        Ok(prepared.spill_beside(path, options))
    }

    /// Opens or creates the store on `device`, with its log on another one.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn devices(
        device: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
        names: Names,
    ) -> Result<Prepared, Error> {
        options.check()?;
        let (pages, logged) = open_or_create(device, |_| Ok(log.clone()), options, names)?;
        Prepared::over(pages, Some(logged), options, None)
    }

    /// Opens or creates the store on `device`.
    pub(crate) fn device(device: Arc<dyn Device>, options: &Options) -> Result<Prepared, Error> {
        options.check()?;
        let pages = if device.length() > 0 {
            PageStore::open_on(device, page_size_of(options), options.read_only)
                .map_err(needs_log)?
        } else if options.may_create() {
            PageStore::create_on(device, new_page_size(options)?)?
        } else {
            return Err(Error::NoStore { path: device.path().to_path_buf() });
        };
        Prepared::over(pages, None, options, None)
    }

    fn over(
        pages: PageStore,
        logged: Option<Logged>,
        options: &Options,
        publisher: Option<Arc<Publisher>>,
    ) -> Result<Prepared, Error> {
        let page_size = pages.page_size().bytes() as u32;
        // Nothing is set aside for a log that is not there.
        let options = options.clone().log(logged.is_some());
        match options.plan(&SystemRoots::default(), Some(page_size)) {
            Ok(plan) => {
                let (pages, spill) = (Arc::new(pages), None);
                Ok(Prepared { pages, logged, plan, publisher, spill })
            }
            Err(error) => {
                if logged.is_none() {
                    leave_as_found(&pages);
                }
                Err(error.into())
            }
        }
    }
}

/// Who opens a store of one combination finds ids in errors, not names.
fn unnamed(_: &PageStore) -> BTreeMap<u32, String> {
    BTreeMap::new()
}

fn open_or_create(
    device: Arc<dyn Device>,
    log: impl Fn(bool) -> Result<Arc<dyn Device>, Error>,
    options: &Options,
    names: Names,
) -> Result<(PageStore, Logged), Error> {
    // A small store whose superblock is lost looks like one that was never made. Its log knows.
    let is_lost = || {
        let may_be = device.length() > 0 && !is_planted(Bug::LostStoreMadeAnew);
        may_be && log(false).is_ok_and(log_open::was_in_use)
    };
    if !PageStore::is_unmarked(&*device)? || is_lost() {
        return log_open::open(device, log, page_size_of(options), options, names);
    }
    if !options.may_create() {
        return Err(Error::NoStore { path: device.path().to_path_buf() });
    }
    log_open::create(device, log(true)?, new_page_size(options)?, options)
}

/// A store that only its log makes whole was opened without it.
fn needs_log(error: OpenError) -> Error {
    match error {
        OpenError::NeedsRecovery { path } => Error::MustRecover { path },
        other => other.into(),
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
            EvictionMode::Adaptive(most) => Evictors::Adaptive { most: most.get() },
        },
        batch: lab.batch.unwrap_or(defaults.batch),
        background_writer: lab.background_writer && !options.read_only,
        prefault: options.prefault,
        nodes: options.numa_nodes,
        sample_period: lab.latency_sample_period,
        references_per_tick: lab.references_per_tick,
        attempts_max: lab.attempts_max,
        seed: plan.seed.0,
        ..defaults
    }
}

impl<M: PoolStrategy> Store<M> {
    /// Opens or creates the store in the file at `path`. Translation, latching and recording are
    /// those of `M`, whatever the options say.
    ///
    /// # Errors
    /// [`Error`]: options, file, policy or memory will not do.
    pub fn open(path: &Path, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let options = Self::adapted(options);
        Self::start(Prepared::file(path, &options, !M::TREES_ONLY, unnamed)?, &options)
    }

    /// The same over any device: memory, a faulty or a slow one. Nothing is published.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(device: Arc<dyn Device>, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let options = Self::adapted(options);
        Self::start(Prepared::device(device, &options)?, &options)
    }

    /// The same over a device for the data and one for the log; recovered if it was not closed.
    ///
    /// # Errors
    /// As [`Store::open`], or the combination has no log.
    pub fn open_on_devices(
        device: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &Options,
    ) -> Result<Arc<Store<M>>, Error> {
        if M::TREES_ONLY {
            return Err(Error::NoTransactions);
        }
        let options = Self::adapted(options);
        Self::start(Prepared::devices(device, log, &options, unnamed)?, &options)
    }

    /// Options whose budget has a page table if, and only if, there is one.
    fn adapted(options: &Options) -> Options {
        let translation =
            if M::SWIZZLES { TranslationMode::Swizzled } else { TranslationMode::Hashed };
        options.clone().lab(|lab| lab.translation = translation)
    }

    pub(crate) fn start(prepared: Prepared, options: &Options) -> Result<Arc<Store<M>>, Error> {
        let pages = prepared.pages.clone();
        let is_logged = prepared.logged.is_some();
        let started = Self::assemble(prepared, options);
        if started.is_err() && !is_logged {
            leave_as_found(&pages);
        }
        started.map(Arc::new)
    }

    fn assemble(prepared: Prepared, options: &Options) -> Result<Store<M>, Error> {
        let Prepared { pages, mut logged, plan, publisher, spill } = prepared;
        let log = logged.as_ref().map(|logged| logged.log.clone());
        let shape = Shape { frames: plan.budget.frames, pages_dense: None, seed: plan.seed.0 };
        let hosted = host_for::<M::Hook>(&plan.policy, &shape, options.lab.hit_delivery)?;
        let mut pool = Pool::<M>::open(pool_options(options, &plan), pages.clone(), hosted)?;
        if let Some(logged) = &logged {
            pool = pool.logged(logged.log.clone());
            let orphans = logged.orphans.iter().copied().collect();
            pool.set_space(PageSpace::new(pages.taken_words(), orphans));
        }
        let kinds = btree::KINDS.into_iter().chain(hash_index::KINDS).chain(heap::KINDS);
        for (page_type, kind) in kinds {
            pool.register(page_type, kind);
        }
        let pool = Arc::new(pool);
        let workers = Workers::start(pool.clone())?;
        let catalog = match pages.catalog_root() {
            Some(root) => Some(Catalog::open(pool.clone(), root)?),
            None if pages.is_read_only() => None,
            None => Some(Catalog::create(pool.clone())?),
        };
        let mut named = Named { catalog, open: HashMap::new(), gone: (0, 0) };
        let next_tx = logged.as_ref().map_or(1, |logged| logged.next_tx);
        let has_locks = options.locks && !options.read_only && !M::TREES_ONLY;
        let txns = transaction_manager(&plan.budget, log, has_locks, next_tx, spill);
        let checkpointer = match &mut logged {
            Some(logged) => {
                let root = named.catalog.as_ref().map(Catalog::root);
                Some(Self::begin_log(&pool, &pages, logged, &txns, &mut named, root, options)?)
            }
            None => None,
        };
        let named = Arc::new(Mutex::new(named));
        name_trees(&txns, &named);
        let mut store = Store {
            pool,
            pages,
            named,
            shrinking: Mutex::default(),
            gate: Arc::default(),
            house: None,
            checkpointing: None,
            checkpointer,
            txns,
            recovery: logged.and_then(|logged| logged.recovery),
            workers: Some(workers),
            publisher,
            durability: options.durability,
            plan,
            opened: Instant::now(),
            alone: (!M::Latching::THREADS).then(|| std::thread::current().id()),
            is_open: true,
        };
        if let Some(publisher) = &store.publisher {
            // From now on others can look at it.
            publisher.maybe_publish(|| store.stats());
        }
        if let Some(checkpointer) = &store.checkpointer {
            store.checkpointing = Some(checkpointer::start(checkpointer.clone())?);
        }
        if !options.read_only {
            store.house = Some(store.keep_house(options.background_merge)?);
        }
        Ok(store)
    }

    /// Ends a recovery, if there was one, and takes the first checkpoint: from then on the store is
    /// what its log makes of it.
    fn begin_log(
        pool: &Arc<Pool<M>>,
        pages: &Arc<PageStore>,
        logged: &mut Logged,
        txns: &Arc<TransactionManager>,
        named: &mut Named<M>,
        catalog_root: Option<PageId>,
        options: &Options,
    ) -> Result<Arc<Checkpointer<M>>, Error> {
        if let Some(recovery) = &mut logged.recovery {
            let started = Instant::now();
            let mut tree_of = |owner| named.tree_of(pool, owner);
            let watch = &options.recovery_watch;
            let undone = undo::undo(&logged.log, &logged.losers, &mut tree_of, watch)
                .map_err(|error| undo_failed(error, &logged.log, pages.log_position()))?;
            recovery.undone = undone.records;
            recovery.freed = undo::free_orphan(pool, pages, &undone.kept)?;
            recovery.elapsed += started.elapsed();
        } else if !logged.orphans.is_empty() {
            // When they were to be freed, before the store was closed, a page could not be read.
            undo::free_orphan(pool, pages, &HashSet::new())?;
        }
        if logged.recovery.is_none()
            && let (Some(root), None) = (catalog_root, pages.catalog_root())
        {
            // The superblock will say where it is.
            pool.run(|mtr| {
                mtr.attached(root);
                Ok(())
            })?;
        }
        let checkpointer = Arc::new(Checkpointer {
            pool: pool.clone(),
            pages: pages.clone(),
            log: logged.log.clone(),
            txns: txns.clone(),
            catalog_root,
            gap_bytes: options.log_gap,
            redo: Mutex::default(),
            pins: Mutex::default(),
        });
        checkpointer.take()?;
        Ok(checkpointer)
    }

    fn keep_house(&self, merge: bool) -> Result<Housekeeping, Error> {
        let (pool, pages) = (self.pool.clone(), self.pages.clone());
        let (publisher, opened) = (self.publisher.clone(), self.opened);
        let mut merging = (merge && M::Latching::THREADS).then(|| self.merging());
        let (mut seen, mut is_published) = (0, false);
        let house = Housekeeping::start("millpond-house", PERIOD, move |is_over| {
            // A store that nobody uses rests, and its statistics stay right.
            let references = references_of_others(pool.counters());
            let since = references.saturating_sub(std::mem::replace(&mut seen, references));
            let has_work = merging.as_ref().is_some_and(Merging::has_work);
            if since == 0 && is_published && !has_work {
                return;
            }
            if !pool.is_packing()
                && let Err(error) = pages.grow_ahead()
            {
                tracing::debug!(%error, "the store could not grow ahead of need");
            }
            if let Some(merging) = &mut merging {
                merging.round(since, is_over);
            }
            is_published = publisher.as_ref().is_none_or(|publisher| {
                publisher.maybe_publish(|| crate::store::census::stats(&pool, &pages, opened))
            });
        })?;
        Ok(house)
    }

    /// What merges leaves in the background, at its beginning.
    pub(crate) fn merging(&self) -> Merging<M> {
        Merging::new(self.pool.clone(), self.named.clone(), self.gate.clone())
    }

    /// The background merge changes nothing until the guard goes.
    ///
    /// # Errors
    /// [`PoolError::Held`]: it may be waiting for a page that a closure of this thread looks at.
    pub(crate) fn keep_from_merging(&self) -> Result<MutexGuard<'_, ()>, PoolError> {
        if borrowed::pages_borrowed() == 0 {
            return Ok(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        }
        borrowed::until(|| match self.gate.try_lock() {
            Ok(gate) => Some(gate),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// The buffer pool.
    pub fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }

    /// The page store below the pool.
    pub fn pages(&self) -> &Arc<PageStore> {
        &self.pages
    }

    /// What takes checkpoints, if there is a log.
    pub(crate) fn checkpointer(&self) -> Option<&Checkpointer<M>> {
        self.checkpointer.as_deref()
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
    pub(crate) fn may_read(&self) -> Result<(), Error> {
        if !M::Latching::THREADS && self.alone != Some(std::thread::current().id()) {
            return Err(Error::WrongThread);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn may_write(&self) -> Result<(), Error> {
        if self.pages.is_read_only() {
            return Err(Error::ReadOnly);
        }
        self.may_read()
    }

    pub(crate) fn named(&self) -> MutexGuard<'_, Named<M>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has that name, which must be a `kind`; `None` if nothing has it.
    fn find(&self, name: &str, kind: Structure) -> Result<Option<Opened<M>>, Error> {
        self.may_read()?;
        self.find_in(&mut self.named(), name, kind)
    }

    fn find_in(
        &self,
        named: &mut Named<M>,
        name: &str,
        kind: Structure,
    ) -> Result<Option<Opened<M>>, Error> {
        if let Some(open) = named.open.get(name) {
            expect(name, open.kind(), kind)?;
            return Ok(Some(open.clone()));
        }
        let Some(entry) = named.entry(name)? else { return Ok(None) };
        expect(name, entry.structure, kind)?;
        let opened = Opened::open(&self.pool, name, &entry)?;
        named.open.insert(name.to_string(), opened.clone());
        Ok(Some(opened))
    }

    /// What has that name, which must exist.
    fn existing(&self, name: &str, kind: Structure) -> Result<Opened<M>, Error> {
        self.find(name, kind)?.ok_or_else(|| missing(name, kind))
    }

    /// A new structure of that name.
    fn create(&self, name: &str, kind: Structure) -> Result<Opened<M>, Error> {
        self.may_write()?;
        self.named().create(&self.pool, name, kind, &TypeNames::default())
    }

    /// What has that name, with keys and values of these types as far as either is known; it is
    /// made if nothing has.
    fn found_or_new(
        &self,
        name: &str,
        kind: Structure,
        types: &TypeNames,
    ) -> Result<Opened<M>, Error> {
        self.may_read()?;
        // Found or made under one lock: another thread may make or drop the same name.
        let mut named = self.named();
        if let Some(opened) = self.find_in(&mut named, name, kind)? {
            if *types != TypeNames::default()
                && let Some(catalog) = &named.catalog
            {
                expect_types(name, catalog.types(name)?, types)?;
            }
            return Ok(opened);
        }
        if self.is_read_only() {
            return Err(missing(name, kind));
        }
        named.create(&self.pool, name, kind, types)
    }

    fn as_tree(self: &Arc<Self>, name: &str, opened: Opened<M>) -> Result<StoreTree<M>, Error> {
        match opened {
            Opened::Tree(tree) => Ok(StoreHandle::new(self.clone(), tree)),
            other => Err(other_kind(name, other.kind(), Structure::Tree)),
        }
    }

    fn as_hash_index(
        self: &Arc<Self>,
        name: &str,
        opened: Opened<M>,
    ) -> Result<StoreHashIndex<M>, Error> {
        match opened {
            Opened::Hash(index) => Ok(StoreHandle::new(self.clone(), index)),
            other => Err(other_kind(name, other.kind(), Structure::Hash)),
        }
    }

    fn as_heap(self: &Arc<Self>, name: &str, opened: Opened<M>) -> Result<StoreHeap<M>, Error> {
        match opened {
            Opened::Heap(heap) => Ok(StoreHandle::new(self.clone(), heap)),
            other => Err(other_kind(name, other.kind(), Structure::Heap)),
        }
    }

    /// The tree of that name; it is made if there is none.
    ///
    /// # Errors
    /// [`Error`]: the name cannot be or is another structure's, or the store failed.
    pub fn tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.tree_of(name, &TypeNames::default())
    }

    /// The tree of that name, with keys and values of these types; it is made if there is none.
    ///
    /// # Errors
    /// [`Error::OtherType`], or as [`Store::tree`].
    pub fn tree_of(self: &Arc<Self>, name: &str, types: &TypeNames) -> Result<StoreTree<M>, Error> {
        self.as_tree(name, self.found_or_new(name, Structure::Tree, types)?)
    }

    /// The tree of that name.
    ///
    /// # Errors
    /// [`Error::NoTree`], or as [`Store::tree`].
    pub fn open_tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.as_tree(name, self.existing(name, Structure::Tree)?)
    }

    /// A new, empty tree.
    ///
    /// # Errors
    /// [`Error::Exists`], or as [`Store::tree`].
    pub fn create_tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.as_tree(name, self.create(name, Structure::Tree)?)
    }

    /// The hash index of that name; it is made if there is none.
    ///
    /// # Errors
    /// As [`Store::tree`].
    pub fn hash_index(self: &Arc<Self>, name: &str) -> Result<StoreHashIndex<M>, Error> {
        self.hash_index_of(name, &TypeNames::default())
    }

    /// The hash index of that name, with keys and values of these types; it is made if there is
    /// none.
    ///
    /// # Errors
    /// As [`Store::tree_of`].
    pub fn hash_index_of(
        self: &Arc<Self>,
        name: &str,
        types: &TypeNames,
    ) -> Result<StoreHashIndex<M>, Error> {
        self.as_hash_index(name, self.found_or_new(name, Structure::Hash, types)?)
    }

    /// The hash index of that name.
    ///
    /// # Errors
    /// [`Error::NoStructure`], or as [`Store::tree`].
    pub fn open_hash_index(self: &Arc<Self>, name: &str) -> Result<StoreHashIndex<M>, Error> {
        self.as_hash_index(name, self.existing(name, Structure::Hash)?)
    }

    /// A new, empty hash index.
    ///
    /// # Errors
    /// [`Error::Exists`], or as [`Store::tree`].
    pub fn create_hash_index(self: &Arc<Self>, name: &str) -> Result<StoreHashIndex<M>, Error> {
        self.as_hash_index(name, self.create(name, Structure::Hash)?)
    }

    /// The heap of that name; it is made if there is none.
    ///
    /// # Errors
    /// As [`Store::tree`].
    pub fn heap(self: &Arc<Self>, name: &str) -> Result<StoreHeap<M>, Error> {
        self.heap_of(name, &TypeNames::default())
    }

    /// The heap of that name, with records of this type; it is made if there is none.
    ///
    /// # Errors
    /// As [`Store::tree_of`].
    pub fn heap_of(self: &Arc<Self>, name: &str, types: &TypeNames) -> Result<StoreHeap<M>, Error> {
        self.as_heap(name, self.found_or_new(name, Structure::Heap, types)?)
    }

    /// The heap of that name.
    ///
    /// # Errors
    /// [`Error::NoStructure`], or as [`Store::tree`].
    pub fn open_heap(self: &Arc<Self>, name: &str) -> Result<StoreHeap<M>, Error> {
        self.as_heap(name, self.existing(name, Structure::Heap)?)
    }

    /// A new, empty heap.
    ///
    /// # Errors
    /// [`Error::Exists`], or as [`Store::tree`].
    pub fn create_heap(self: &Arc<Self>, name: &str) -> Result<StoreHeap<M>, Error> {
        self.as_heap(name, self.create(name, Structure::Heap)?)
    }

    /// What the keys and values of a name are, as far as that is known.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn types(&self, name: &str) -> Result<TypeNames, Error> {
        self.may_read()?;
        let named = self.named();
        named.catalog.as_ref().map_or(Ok(TypeNames::default()), |catalog| catalog.types(name))
    }

    /// What the catalog knows of a name.
    ///
    /// # Errors
    /// [`Error::NoTree`], or the catalog cannot be read.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        self.may_read()?;
        self.named().entry(name)?.ok_or_else(|| missing(name, Structure::Tree))
    }

    /// Removes a structure, which must be a `kind`, and gives all its pages back. Nobody may have
    /// a handle of it; transactions that have read it are waited for, since they would find another
    /// tree of its name otherwise.
    ///
    /// # Errors
    /// [`Error::NoTree`] or [`Error::NoStructure`], [`Error::OtherKind`], [`Error::TreeInUse`], a
    /// lock was not to be had, or the store failed.
    pub fn drop_structure(&self, name: &str, kind: Structure) -> Result<(), Error> {
        self.may_write()?;
        loop {
            let owner = self.owner_to_drop(name, kind)?;
            let drop = || self.drop_now(name, kind, owner);
            let dropped = if M::TREES_ONLY || kind != Structure::Tree {
                drop()
            } else {
                // Not with the names locked: those that are waited for may look for one.
                self.txns.alone_with(owner, drop).map_err(Error::from).flatten()
            };
            if dropped? {
                if let Some(locks) = self.txns.locks() {
                    locks.forget_tree(owner);
                }
                return Ok(());
            }
        }
    }

    /// The owner's id of what has that name, which must be a `kind` without handles.
    fn owner_to_drop(&self, name: &str, kind: Structure) -> Result<u32, Error> {
        // The background merge shall not be taken for a handle.
        let _gate = self.keep_from_merging()?;
        let named = self.named();
        let entry = named.entry(name)?.ok_or_else(|| missing(name, kind))?;
        expect(name, entry.structure, kind)?;
        match named.open.get(name).map_or(0, |opened| opened.others()) {
            0 => Ok(entry.owner),
            handles => Err(Error::TreeInUse { name: name.to_string(), handles }),
        }
    }

    /// Removes what has that name; `false`, and nothing changed, if it is no more that of `owner`.
    fn drop_now(&self, name: &str, kind: Structure, owner: u32) -> Result<bool, Error> {
        let _gate = self.keep_from_merging()?;
        let mut named = self.named();
        let entry = named.entry(name)?.ok_or_else(|| missing(name, kind))?;
        if entry.owner != owner {
            return Ok(false);
        }
        let opened = match named.open.remove(name) {
            None => Opened::open(&self.pool, name, &entry)?,
            Some(opened) if opened.others() > 0 => {
                let handles = opened.others();
                named.open.insert(name.to_string(), opened);
                return Err(Error::TreeInUse { name: name.to_string(), handles });
            }
            Some(opened) => opened,
        };
        let removed =
            named.catalog.as_ref().map_or(Ok(false), |catalog| catalog.remove(name, &entry));
        if let Err(error) = removed {
            // It keeps its anchor: a second one would make a second swip to its root.
            named.open.insert(name.to_string(), opened);
            return Err(error);
        }
        let (splits, merges) = opened.tally();
        named.gone = (named.gone.0 + splits, named.gone.1 + merges);
        opened.destroy()?;
        Ok(true)
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
    /// [`Db::flush`](crate::Db::flush) for what that is worth.
    ///
    /// # Errors
    /// A page could not be written, or the device did not confirm.
    pub fn flush(&self) -> Result<(), Error> {
        self.may_read()?;
        if self.is_read_only() {
            return Ok(());
        }
        if let Some(log) = self.txns.log() {
            return Ok(log.wait_durable(log.tail())?);
        }
        let frames: Vec<FrameId> = (0..self.pool.frames()).map(FrameId).collect();
        for _ in 0..FLUSH_PASSES {
            self.pool.write_frames(&frames, Reason::Recov)?;
            if self.pool.frames_dirty() == 0 {
                break;
            }
        }
        let started = self.pool.latencies().start(Timing::SyncTime);
        self.pool.storage_recorder().note_dsync(Lsn(0));
        let synced = self.pages.sync();
        self.pool.latencies().stop(Timing::SyncTime, started);
        Ok(synced?)
    }

    /// Takes a checkpoint: a recovery would begin about here.
    ///
    /// # Errors
    /// Log or data could not be made durable. Without a log it is a [`Store::flush`].
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.may_write()?;
        match &self.checkpointer {
            Some(checkpointer) => checkpointer.take_here().map(drop),
            None => self.flush(),
        }
    }

    /// What a transaction's commit promises unless it says so itself.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// What was done to make the store whole when it was opened; `None` if it had been closed.
    pub fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }

    /// What all transactions share.
    pub fn transactions(&self) -> &Arc<TransactionManager> {
        &self.txns
    }

    /// Begins a snapshot of what is committed, on behalf of `caller`.
    ///
    /// # Errors
    /// There are no locks, or what transactions under way have changed cannot be kept.
    pub fn begin_snapshot(
        &self,
        caller: &'static Location<'static>,
    ) -> Result<Arc<Snapshot>, Error> {
        if M::TREES_ONLY {
            return Err(Error::NoTransactions);
        }
        self.may_read()?;
        Ok(Snapshot::begin(&self.txns, caller, &mut TreesOf(self))?)
    }

    /// What the store did since it was opened, and its state now.
    pub fn stats(&self) -> crate::store::stats::Stats {
        let mut stats = crate::store::census::stats(&self.pool, &self.pages, self.opened);
        let named = self.named();
        (stats.splits, stats.merges) = named.gone;
        for (splits, merges) in named.open.values().map(Opened::tally) {
            stats.splits += splits;
            stats.merges += merges;
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
        self.checkpointing = None;
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
            let transactions = self.txns.active().len();
            if transactions > 0 {
                self.txns.log().map_or(Ok(()), |log| log.wait_durable(log.tail()))?;
                return Err(Error::Unfinished { transactions });
            }
            self.pool.flush(Reason::Recov)?;
            self.pool.return_ids()?;
            if let (Some(checkpointer), Some(log)) = (&self.checkpointer, self.txns.log()) {
                checkpointer.take()?;
                log.close()?;
                if let Err(error) = log.cut_back() {
                    tracing::debug!(%error, "the log keeps its length");
                }
            }
        }
        let root = self.named().catalog.as_ref().map(Catalog::root);
        Ok(self.pages.close(root)?)
    }
}

fn transaction_manager(
    budget: &Budget,
    log: Option<Arc<Log>>,
    has_locks: bool,
    next: u64,
    spill: Option<Arc<SpillFile>>,
) -> Arc<TransactionManager> {
    let options = LockOptions::default().memory_bytes(budget.lock_bytes as usize);
    let locks = has_locks.then(|| Arc::new(LockManager::new(options)));
    let both = budget.version_bytes as usize;
    // What is taken back is read once, from the newest to the oldest: little of it is worth memory.
    // Without a file it is in memory or nowhere, as the store's pages are.
    let undo_bytes = if spill.is_some() { both / 4 } else { budget.total() as usize };
    let versions = (both - both / 4, undo_bytes, spill);
    Arc::new(TransactionManager::new(log, locks, next, GROUP_DELAY, versions))
}

/// Errors of locks name trees as users do. Nobody who has the names waits for a lock.
fn name_trees<M: PoolStrategy>(txns: &TransactionManager, named: &Arc<Mutex<Named<M>>>) {
    let Some(locks) = txns.locks() else { return };
    let named = Arc::downgrade(named);
    locks.name_trees_by(Box::new(move |owner| {
        let named = named.upgrade()?;
        let named = named.lock().unwrap_or_else(PoisonError::into_inner);
        named.trees().find(|(tree, _)| *tree == owner).map(|(_, name)| name)
    }));
}

/// The trees of a store, for snapshots.
struct TreesOf<'s, M: PoolStrategy>(&'s Store<M>);

impl<M: PoolStrategy> TreesOf<'_, M> {
    fn tree(&self, owner: u32) -> Result<OpenTree<M>, TxnError> {
        let missing = || TxnError::NoTree { tx: 0, owner };
        match self.0.named().tree_of(&self.0.pool, owner) {
            Ok(tree) => tree.ok_or_else(missing),
            Err(Error::Pool(error)) => Err(error.into()),
            Err(_) => Err(missing()),
        }
    }
}

impl<M: PoolStrategy> Trees for TreesOf<'_, M> {
    fn value(&mut self, owner: u32, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        Ok(self.tree(owner)?.structure().get_owned(key)?)
    }

    fn large(&mut self, owner: u32, value: &Detached) -> Result<Vec<u8>, TxnError> {
        Ok(self.tree(owner)?.structure().read_detached(value)?)
    }

    fn large_from(
        &mut self,
        owner: u32,
        value: &Detached,
        (offset, max): (u64, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), TxnError> {
        Ok(self.tree(owner)?.structure().read_detached_from(value, offset, max, out)?)
    }
}

fn other_kind(name: &str, found: Structure, wanted: Structure) -> Error {
    Error::OtherKind { name: name.to_string(), found, wanted }
}

fn expect(name: &str, found: Structure, wanted: Structure) -> Result<(), Error> {
    if found == wanted { Ok(()) } else { Err(other_kind(name, found, wanted)) }
}

/// What is known of both must be the same.
fn expect_types(name: &str, found: TypeNames, wanted: &TypeNames) -> Result<(), Error> {
    let pairs = [("keys", found.key, &wanted.key), ("values", found.value, &wanted.value)];
    for (what, found, wanted) in pairs {
        if let (Some(found), Some(wanted)) = (found, wanted)
            && found != *wanted
        {
            let (name, wanted) = (name.to_string(), wanted.clone());
            return Err(Error::OtherType { name, what, found, wanted });
        }
    }
    Ok(())
}

fn missing(name: &str, wanted: Structure) -> Error {
    let name = name.to_string();
    match wanted {
        Structure::Tree => Error::NoTree { name },
        Structure::Hash | Structure::Heap => Error::NoStructure { name, wanted },
    }
}

impl<M: PoolStrategy> Drop for Store<M> {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            let path = self.pages.path().display();
            tracing::error!(%error, "{path} was not closed cleanly");
        }
    }
}
