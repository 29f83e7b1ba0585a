//! The builder of a store, the one way to open it for users and measurements alike.
//!
//! ```text
//! Builder       what to open, and with which options
//! Prepared      files and log are open, pages are redone; no combination yet
//! Store<M>      pool, catalog, undo, threads (`assemble.rs`)
//! ```
//! Opening checks the options before it touches a file. If a later step fails, it closes the file
//! unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_device::{Device, FileDevice, FileOptions, OpenFileError, real_path};
use millpond_policies::contract::Shape;
use millpond_tier::AnyTier;

use crate::io::{CreateError, OpenError, PageStore, SpillFile, is_probe, store_file};
use crate::log::LogOptions;
use crate::page::PageSize;
use crate::pool::{Pool, PoolOptions, PoolStrategy};
use crate::recovery::{LogSettings, OpenLogError, OpenedLog, StructureNames, log_open};
use crate::store::combinations::host_for;
use crate::store::error::Error;
use crate::store::error::lab::LabError;
use crate::store::opening::remains::{self, Created};
use crate::store::opening::second_tier::{Tiered, tiered};
use crate::store::options::memory_limit::SystemRoots;
use crate::store::options::{Options, PAGE_SIZE_DEFAULT, Plan};
use crate::store::stats::stat_file::{PUBLISH_PERIOD, Publisher};
use crate::store::store::Store;
use crate::{btree, hash_index, heap};

/// Location of a store.
enum StoreLocation {
    /// In a file, with its log beside it.
    File(PathBuf),
    /// On a device, without a log.
    Device(Arc<dyn Device>),
    /// On two devices.
    Devices { data: Arc<dyn Device>, log: Arc<dyn Device> },
}

/// Opens a store, or creates it if it does not exist and the options allow that.
pub struct Builder<'o> {
    location: StoreLocation,
    options: &'o Options,
    names: StructureNames,
    /// Device for the cache of a second tier, instead of the file in the options.
    fast: Option<Arc<dyn Device>>,
}

impl<'o> Builder<'o> {
    fn new(location: StoreLocation, options: &'o Options) -> Builder<'o> {
        // Errors show ids instead of names, unless `admin` provides names.
        Builder { location, options, names: |_| BTreeMap::new(), fast: None }
    }

    /// Returns a builder for the store in the file at `path`, with its log beside it if the options
    /// ask for one.
    pub fn file(path: &Path, options: &'o Options) -> Builder<'o> {
        Builder::new(StoreLocation::File(path.to_path_buf()), options)
    }

    /// Returns a builder for a store on any device: memory, a faulty or a slow one. It has no log,
    /// and its statistics are not published.
    pub fn device(device: Arc<dyn Device>, options: &'o Options) -> Builder<'o> {
        Builder::new(StoreLocation::Device(device), options)
    }

    /// Returns a builder for a store on one device for the data and one for the log.
    pub fn devices(
        data: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: &'o Options,
    ) -> Builder<'o> {
        Builder::new(StoreLocation::Devices { data, log }, options)
    }

    /// Puts the cache of the second tier in the options on `fast`, instead of a file; for a store
    /// on devices.
    pub fn second_tier_on(self, fast: Arc<dyn Device>) -> Builder<'o> {
        Builder { fast: Some(fast), ..self }
    }

    /// Names structures by `names` in errors of a damaged log.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn naming(self, names: StructureNames) -> Builder<'o> {
        Builder { names, ..self }
    }

    /// Opens the store in the combination `M`, whatever translation, latching and recording the
    /// options name. A store that was not closed is recovered.
    ///
    /// # Errors
    /// [`Error`]: an option, the file, the policy or the memory is unsuitable; or `M` has no log,
    /// and a device for one was given.
    pub fn open<M: PoolStrategy>(self) -> Result<Arc<Store<M>>, Error> {
        let path = match &self.location {
            StoreLocation::File(path) => path.to_path_buf(),
            StoreLocation::Device(data) | StoreLocation::Devices { data, .. } => {
                data.path().to_path_buf()
            }
        };
        let _span = tracing::info_span!("open", store = %path.display()).entered();
        let options = Store::<M>::adapted(self.options);
        let fast = self.fast;
        let created = Created::default();
        let prepared = match self.location {
            StoreLocation::File(path) => {
                let opening = Opening { options: &options, names: self.names, created: &created };
                opening.file(&path, !M::TREES_ONLY)?
            }
            StoreLocation::Device(device) => Prepared::device(device, fast, &options)?,
            StoreLocation::Devices { .. } if M::TREES_ONLY => {
                return Err(LabError::NoTransactions.into());
            }
            StoreLocation::Devices { data, log } => {
                Prepared::devices(data, log, fast, &options, self.names)?
            }
        };
        let store = Store::start(prepared, &options)?;
        created.keep();
        Ok(store)
    }

    /// Creates a pool in the combination `M` over `pages`, according to the options, with all kinds
    /// of pages registered. [`Builder::open`] uses it, and so do measurements of trees without a
    /// catalog.
    ///
    /// # Errors
    /// [`Error`]: the policy, or its memory, is unsuitable.
    pub fn pool<M: PoolStrategy>(
        options: &Options,
        plan: &Plan,
        pages: Arc<PageStore>,
    ) -> Result<Pool<M>, Error> {
        let shape = Shape { frames: plan.budget.frames, pages_dense: None, seed: plan.seed.0 };
        let hosted = host_for::<M::Hook>(&plan.policy, &shape, options.lab.hit_delivery)?;
        let pool = Pool::<M>::open(pool_options(options, plan), pages, hosted)?;
        register_kinds(&pool);
        Ok(pool)
    }
}

/// Registers every kind of page that structures have.
pub fn register_kinds<M: PoolStrategy>(pool: &Pool<M>) {
    let kinds = btree::KINDS.into_iter().chain(hash_index::KINDS).chain(heap::KINDS);
    for (page_type, kind) in kinds {
        pool.register(page_type, kind);
    }
}

/// A page store and its plan: the parts that do not depend on the combination.
pub(crate) struct Prepared {
    pub(in crate::store) pages: Arc<PageStore>,
    pub(in crate::store) tier: Option<AnyTier>,
    pub(in crate::store) logged: Option<OpenedLog>,
    pub(in crate::store) plan: Plan,
    pub(in crate::store) publisher: Option<Arc<Publisher>>,
    pub(in crate::store) spill: Option<Arc<SpillFile>>,
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

/// A store in a file, during its opening.
struct Opening<'o> {
    options: &'o Options,
    names: StructureNames,
    created: &'o Created,
}

impl Opening<'_> {
    /// Opens or creates the store in the file at `path`, with its log beside it if `may_log`.
    fn file(&self, path: &Path, may_log: bool) -> Result<Prepared, Error> {
        let options = self.options;
        options.check()?;
        let path = &real_path(path);
        if may_log && options.lab.log && !options.read_only {
            return self.logged_file(path);
        }
        let file = options.file_options();
        let (device, is_empty) = self.data_file(path)?;
        let page_size = page_size_of(options);
        let Tiered { device, tier } =
            tiered(device, Some(self.created), None, options, new_page_size(options)?)?;
        let pages = if is_empty {
            PageStore::create_on(device, new_page_size(options)?)?
        } else {
            let opened = match options.read_only {
                true => log_open::open_to_read(device, page_size, &file),
                false => PageStore::open_on(device, page_size, false).map_err(OpenLogError::from),
            };
            opened.map_err(needs_log)?
        };
        let publisher = || Arc::new(Publisher::new(path, PUBLISH_PERIOD));
        let publisher = (!options.read_only).then(publisher);
        let prepared = Prepared::over(pages, None, options, publisher)?;
        Ok(Prepared { tier, ..prepared }.spill_beside(path, options))
    }

    /// Opens the data file, or creates it. Returns `true` if the store is to be created there.
    fn data_file(&self, path: &Path) -> Result<(Arc<FileDevice>, bool), Error> {
        let (options, file) = (self.options, self.options.file_options());
        let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
        let created = if length > 0 { None } else { self.created_data_file(path, &file)? };
        let device = match created {
            Some(device) => device,
            None => Arc::new(PageStore::open_file(path, &file)?),
        };
        options.check_device(&device)?;
        if !options.read_only {
            device.sync_directory()?;
        }
        let is_empty = options.may_create() && is_probe(&*device, device.length())?;
        Ok((device, is_empty))
    }

    /// Creates the data file; `None` if another process has created a store there in the meantime.
    fn created_data_file(
        &self,
        path: &Path,
        file: &FileOptions,
    ) -> Result<Option<Arc<FileDevice>>, Error> {
        if !path.exists() || !self.options.may_create() {
            remains::check(path)?;
        }
        if !self.options.may_create() {
            return Err(Error::NoStore { path: path.to_path_buf() });
        }
        let device = match FileDevice::create(path, &store_file(file)) {
            Ok(device) => Arc::new(device),
            Err(OpenFileError::Exists { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if device.is_new() {
            self.created.add_data(path, device.clone());
        } else {
            // Nobody else can create it now: this process has locked it.
            remains::check(path)?;
        }
        Ok(Some(device))
    }

    fn logged_file(&self, path: &Path) -> Result<Prepared, Error> {
        let (options, file) = (self.options, self.options.file_options());
        let (device, _) = self.data_file(path)?;
        let log = |is_new| {
            let log = log_open::log_file(path, is_new, &file)?;
            if is_new {
                self.created.add(&real_path(&log_open::log_path(path)));
            }
            Ok(log)
        };
        let Tiered { device, tier } =
            tiered(device, Some(self.created), None, options, new_page_size(options)?)?;
        let (pages, logged) = open_or_create(device, log, options, self.names)?;
        let publisher = Arc::new(Publisher::new(path, PUBLISH_PERIOD));
        let prepared = Prepared::over(pages, Some(logged), options, Some(publisher))?;
        Ok(Prepared { tier, ..prepared }.spill_beside(path, options))
    }
}

impl Prepared {
    /// Spills data that does not fit into memory to a file beside the store, which is locked by
    /// now.
    fn spill_beside(self, path: &Path, options: &Options) -> Prepared {
        if options.read_only {
            return self;
        }
        Prepared { spill: Some(SpillFile::beside(path, options.spill_max)), ..self }
    }

    /// Spills data that does not fit into its share to more memory, like the file of the store,
    /// which is in memory. `SPILLED` times the memory number is enough for the changes of
    /// transactions.
    fn spill_to_memory(self, options: &Options) -> Prepared {
        const SPILLED: u64 = 4;
        if options.read_only {
            return self;
        }
        let most = self.plan.budget.total().saturating_mul(SPILLED);
        Prepared { spill: Some(SpillFile::in_memory(options.spill_max.min(most))), ..self }
    }

    /// Opens or creates the store on `device`, with its log on another one.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn devices(
        device: Arc<dyn Device>,
        log: Arc<dyn Device>,
        fast: Option<Arc<dyn Device>>,
        options: &Options,
        names: StructureNames,
    ) -> Result<Prepared, Error> {
        options.check()?;
        if device.length() == 0 {
            remains::check_log(device.path(), &log)?;
        }
        let Tiered { device, tier } = tiered(device, None, fast, options, new_page_size(options)?)?;
        let (pages, logged) = open_or_create(device, |_| Ok(log.clone()), options, names)?;
        let prepared = Prepared::over(pages, Some(logged), options, None)?;
        Ok(Prepared { tier, ..prepared }.spill_to_memory(options))
    }

    /// Opens or creates the store on `device`.
    pub(crate) fn device(
        device: Arc<dyn Device>,
        fast: Option<Arc<dyn Device>>,
        options: &Options,
    ) -> Result<Prepared, Error> {
        options.check()?;
        let Tiered { device, tier } = tiered(device, None, fast, options, new_page_size(options)?)?;
        let pages = if device.length() > 0 {
            PageStore::open_on(device, page_size_of(options), options.read_only)
                .map_err(|error| needs_log(error.into()))?
        } else if options.may_create() {
            PageStore::create_on(device, new_page_size(options)?)?
        } else {
            return Err(Error::NoStore { path: device.path().to_path_buf() });
        };
        let prepared = Prepared::over(pages, None, options, None)?;
        Ok(Prepared { tier, ..prepared }.spill_to_memory(options))
    }

    fn over(
        pages: PageStore,
        logged: Option<OpenedLog>,
        options: &Options,
        publisher: Option<Arc<Publisher>>,
    ) -> Result<Prepared, Error> {
        let page_size = pages.page_size().bytes() as u32;
        // Nothing is set aside for a missing log.
        let options = options.clone().with_lab(|lab| lab.log = logged.is_some());
        match options.plan_beside(&SystemRoots::default(), Some(page_size), pages.map_bytes()) {
            Ok(plan) => {
                let (pages, tier, spill) = (Arc::new(pages), None, None);
                Ok(Prepared { pages, tier, logged, plan, publisher, spill })
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

fn open_or_create(
    device: Arc<dyn Device>,
    log: impl Fn(bool) -> Result<Arc<dyn Device>, OpenLogError>,
    options: &Options,
    names: StructureNames,
) -> Result<(PageStore, OpenedLog), Error> {
    let is_unmarked = PageStore::is_unmarked(&*device)?;
    if !is_unmarked || is_lost(&*device, &log)? {
        let store = log_open::open_pages(device, page_size_of(options), || log(false))?;
        let (log_options, memory) = log_options(options, store.pages.page_size())?;
        let settings = LogSettings {
            log: log_options,
            memory,
            salvage: options.lab.salvage_log,
            names,
            progress: &|progress| options.recovery_watch.tell(progress),
        };
        return Ok(log_open::open(store, log, &settings)?);
    }
    if !options.may_create() {
        return Err(Error::NoStore { path: device.path().to_path_buf() });
    }
    let page_size = new_page_size(options)?;
    let (log_options, _) = log_options(options, page_size)?;
    let (placement, compression) = (options.lab.placement, options.compression);
    let log = log(true)?;
    Ok(log_open::create(device, log, page_size, placement, compression, &log_options)?)
}

/// Returns `true` if the log belongs to a store on `device`, which shows no sign of one: a small
/// store with a lost superblock looks like one that was never created.
///
/// # Errors
/// The log cannot be opened or read, or a new store must not overwrite it.
fn is_lost(
    device: &dyn Device,
    log: impl Fn(bool) -> Result<Arc<dyn Device>, OpenLogError>,
) -> Result<bool, Error> {
    let log = match log(false) {
        Ok(log) => log,
        Err(OpenLogError::Missing { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match remains::check_log(device.path(), &log) {
        Err(Error::Remains { .. }) if device.length() > 0 && log_open::was_in_use(log) => Ok(true),
        checked => checked.map(|()| false),
    }
}

/// Returns the sizes of a log's parts, and the bytes of memory of the pool.
fn log_options(options: &Options, page_size: PageSize) -> Result<(LogOptions, usize), Error> {
    let (page_size, defaults) = (page_size.bytes() as u32, LogOptions::default());
    let plan = options.plan(&SystemRoots::default(), Some(page_size))?;
    let buffer_bytes = plan.budget.log_bytes as usize;
    let segment_bytes = options.lab.log_segment.unwrap_or(defaults.segment_bytes);
    let pool_bytes = usize::try_from(plan.budget.pool_bytes).unwrap_or(usize::MAX);
    Ok((LogOptions { segment_bytes, buffer_bytes, ..defaults }, pool_bytes))
}

/// Converts the error of opening a store without its log, which it needs.
fn needs_log(error: OpenLogError) -> Error {
    match error {
        OpenLogError::Open(OpenError::NeedsRecovery { path }) => Error::MustRecover { path },
        other => other.into(),
    }
}

/// Closes a store to which nothing was written.
pub(crate) fn leave_as_found(pages: &PageStore) {
    if let Err(error) = pages.close(pages.catalog_root()) {
        tracing::warn!(%error, "a store that could not be opened could not be closed either");
    }
}

pub(crate) fn pool_options(options: &Options, plan: &Plan) -> PoolOptions {
    let (lab, defaults) = (&options.lab, PoolOptions::new(plan.budget.frames));
    PoolOptions {
        reclamation: lab.reclamation,
        evictors: lab.eviction,
        batch: lab.batch.unwrap_or(defaults.batch),
        background_writer: lab.background_writer,
        cleaning: lab.cleaning,
        read_ahead: lab.read_ahead,
        sync_mode: lab.sync_mode,
        prefault: options.lab.prefault,
        nodes: options.lab.numa_nodes,
        sample_period: lab.latency_sample_period,
        references_per_tick: lab.references_per_tick,
        attempts_max: lab.attempts_max,
        seed: plan.seed.0,
        ..defaults
    }
}
