//! A test bed: an engine that is loaded with a workload and can be run again and again.
//!
//! Each combination of strategies is compiled with its own drivers; a [`Instance`] hides which one
//! it is, at the price of one virtual call per run.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::btree;
use millpond::internals::io::{Device, FileDevice, MemoryDevice, PageStore, SlowDevice};
use millpond::internals::page::PageSize;
use millpond::internals::pool::recording::recorder::Recorder;
use millpond::internals::pool::{
    Evictors, Optimistic, Pool, PoolOptions, PoolStrategy, Reclamation, StorageRecorder, Unlatched,
    Workers,
};
use millpond::internals::store::combinations::{Combination, Visit, host_for};
use millpond::internals::store::options::memory_limit::SystemRoots;
use millpond::internals::store::{LatchingMode, Plan, ReclamationMode};
use millpond::{EvictionMode, Options};
use millpond_base::{PageId, Reason, Size};
use millpond_policies::contract::Shape;
use millpond_workload::tpcc;

use crate::client::Workload;
use crate::counts::Counts;
use crate::error::BenchError;
use crate::evictors::{Evict, Out, evict, fill};
use crate::image::Image;
use crate::probe::reads_per_second;
use crate::runner::{Length, Observer, Outcome, RunSpec};
use crate::setup::{DeviceSpec, Engine, Setup};
use crate::store::TreeStore;
use crate::twin_instance::TwinInstance;
use crate::txn_instance::TxnInstance;
use crate::worker_threads::{WorkerThreads, check_threads};

/// What is known of a bed beside its runs.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceInfo {
    /// Which engine.
    pub engine: Engine,
    /// The policy, translation and latching; empty where there is none.
    pub policy: String,
    /// How page ids become frames.
    pub translation: String,
    /// How threads keep out of each other's way.
    pub latching: String,
    /// Bytes of a page.
    pub page_size: u32,
    /// Frames of the pool; `None` for the twin.
    pub frames: Option<u32>,
    /// Pages of the data after loading.
    pub pages: u64,
    /// Rows that were loaded.
    pub rows: u64,
    /// Seconds that loading took.
    pub load_s: f64,
    /// Whether transactions are logged.
    pub log: bool,
    /// Whether they lock.
    pub locks: bool,
    /// When they are durable; empty without a log.
    pub durability: String,
}

/// What of an engine can record; a twin has neither.
#[derive(Clone, Copy, Default)]
pub struct Recorders<'a> {
    /// Of page references, where it was compiled with one.
    pub pages: Option<&'a Recorder>,
    /// Of what is asked of storage.
    pub storage: Option<&'a StorageRecorder>,
}

/// An engine, loaded.
pub trait Instance: Send {
    /// What is known of it.
    fn info(&self) -> &InstanceInfo;

    /// Runs the workload. `at_start` is called between warm-up and measurement.
    ///
    /// # Errors
    /// What a client reports, or that the observer ended it too early.
    fn run(
        &mut self,
        spec: &RunSpec,
        at_start: &mut dyn FnMut(Recorders<'_>) -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError>;

    /// The workload, and with it the number of threads, that the next run has.
    fn set_workload(&mut self, workload: Workload);

    /// Bytes of a row of each class that a scan has seen.
    fn row_bytes(&self) -> Vec<f64>;

    /// TPC-C's consistency conditions; `None` for other workloads.
    ///
    /// # Errors
    /// What the store reports.
    fn check(&self) -> Result<Option<tpcc::Report>, BenchError>;

    /// Pages that the data have now.
    ///
    /// # Errors
    /// The store is closed.
    fn data_pages(&self) -> Result<u64, BenchError>;

    /// What records.
    fn recorders(&self) -> Recorders<'_>;

    /// Closes the store and opens it again with a pool of another size, empty: a cold start.
    /// Nothing happens to a twin.
    ///
    /// # Errors
    /// The store could not be closed or opened.
    fn reopen(&mut self, pool: Option<Size>) -> Result<(), BenchError>;

    /// The same in a pool that has room for everything, from what is on the device, which is not
    /// slowed down: closes the store, and opens it again. For the last check of a run that had a
    /// small pool or a slow device.
    ///
    /// # Errors
    /// What the store reports.
    fn check_at_rest(&mut self) -> Result<Option<tpcc::Report>, BenchError> {
        self.check()
    }

    /// Closes the store, and copies what is on its device, for others to begin with
    /// ([`prepare_on`]).
    ///
    /// # Errors
    /// It could not be closed, or this kind of bed has no images: only pools without transactions
    /// have.
    fn image(&mut self) -> Result<Image, BenchError> {
        Err(BenchError::Usage("only a pool without transactions has an image".to_string()))
    }

    /// Pages per second that the device delivers to `depth` threads which read the data at random,
    /// one page at a time each, bypassing the pool; `None` where there is no device.
    ///
    /// # Errors
    /// A page could not be read.
    fn probe(&self, depth: u32, time: Duration) -> Result<Option<f64>, BenchError>;

    /// Lets the workload fill the pool, then evicts while nothing else runs.
    ///
    /// # Errors
    /// The bed has no pool that can be had for itself, or the run failed.
    fn evict(&mut self, _what: &Evict, _observer: &mut dyn Observer) -> Result<Out, BenchError> {
        let text = "evictors are measured on the pool, without --log and --locks";
        Err(BenchError::Usage(text.to_string()))
    }
}

/// Loads `workload` into an engine.
///
/// # Errors
/// Options that cannot be, or what loading reports.
pub fn prepare(
    setup: &Setup,
    workload: &Workload,
    observer: &mut dyn Observer,
) -> Result<Box<dyn Instance>, BenchError> {
    observer.begin(&format!("loading {} into {}", workload.name(), setup.engine));
    let latching = setup.options.lab.latching;
    let has_transactions = setup.options.lab.log || setup.options.lab.locks;
    let is_slow = matches!(setup.device, DeviceSpec::Slow(_)) && setup.engine == Engine::Pool;
    if setup.warms_up_fast && (!is_slow || has_transactions) {
        return Err(BenchError::Usage(
            "a fast warm-up is for pools without log and locks on a slow device: --fast-warm-up \
             goes with --device slow:nvme, for instance"
                .to_string(),
        ));
    }
    if setup.engine == Engine::Twin {
        if has_transactions {
            return Err(BenchError::Usage("the twin has neither log nor locks".to_string()));
        }
        return match latching {
            LatchingMode::Optimistic => {
                Ok(Box::new(TwinInstance::<Optimistic>::new(setup, workload)?))
            }
            LatchingMode::None => Ok(Box::new(TwinInstance::<Unlatched>::new(setup, workload)?)),
            LatchingMode::Latched => Err(BenchError::Usage(
                "the twin is compiled with latching = optimistic or none".to_string(),
            )),
        };
    }
    let plan = plan(setup, Some(64))?;
    let translation = setup.options.lab.translation;
    let combination = Combination::choose(translation, latching, &plan.policy, setup.records)?;
    if has_transactions {
        return combination.visit(PrepareTxn { setup, workload });
    }
    combination.visit(Prepare { setup, workload })
}

/// Whether an engine so set up can run at all, but for what only loading finds out.
///
/// # Errors
/// Why not.
pub fn check(setup: &Setup) -> Result<(), BenchError> {
    let (plan, lab) = (plan(setup, Some(64))?, &setup.options.lab);
    Combination::choose(lab.translation, lab.latching, &plan.policy, setup.records)?;
    Ok(())
}

/// Puts a copy of data that were loaded once under an engine, with an empty pool: the same data for
/// every policy, in a fraction of the time that loading takes.
///
/// # Errors
/// Impossible options: an image is for a pool without transactions, with pages as large as when it
/// was created, on memory that may be slowed down.
pub fn prepare_on(
    image: &Image,
    setup: &Setup,
    workload: &Workload,
) -> Result<Box<dyn Instance>, BenchError> {
    let is_file = matches!(setup.device, DeviceSpec::File(_));
    if setup.engine == Engine::Twin || setup.options.lab.log || setup.options.lab.locks || is_file {
        return Err(BenchError::Usage(
            "an image is for a pool in memory, without log and locks".to_string(),
        ));
    }
    let plan = plan(setup, Some(64))?;
    let lab = &setup.options.lab;
    let combination =
        Combination::choose(lab.translation, lab.latching, &plan.policy, setup.records)?;
    combination.visit(PrepareOn { image, setup, workload })
}

struct PrepareOn<'a> {
    image: &'a Image,
    setup: &'a Setup,
    workload: &'a Workload,
}

impl Visit for PrepareOn<'_> {
    type Output = Result<Box<dyn Instance>, BenchError>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        Ok(Box::new(PoolInstance::<M>::on_image(self.image, self.setup, self.workload)?))
    }
}

struct PrepareTxn<'a> {
    setup: &'a Setup,
    workload: &'a Workload,
}

impl Visit for PrepareTxn<'_> {
    type Output = Result<Box<dyn Instance>, BenchError>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        // Here, so that none is compiled where there are no transactions.
        if M::TREES_ONLY {
            return Err(BenchError::Usage(
                "there are no transactions with these strategies: --log and --locks are for \
                 translation swizzled, latching optimistic, without --record"
                    .to_string(),
            ));
        }
        Ok(Box::new(TxnInstance::<M>::new(self.setup, self.workload)?))
    }
}

struct Prepare<'a> {
    setup: &'a Setup,
    workload: &'a Workload,
}

impl Visit for Prepare<'_> {
    type Output = Result<Box<dyn Instance>, BenchError>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        Ok(Box::new(PoolInstance::<M>::new(self.setup, self.workload)?))
    }
}

/// Resolves the options with this number of frames, or with the pool's own size in bytes.
pub(crate) fn plan(setup: &Setup, frames: Option<u32>) -> Result<Plan, BenchError> {
    let mut options: Options = setup.options.clone();
    options.lab.frames = frames;
    options.lab.tiny_pages = true;
    if let (None, Some(Size::Bytes(bytes))) = (frames, setup.pool) {
        options.memory = Some(bytes);
    }
    Ok(options.plan(&SystemRoots::default(), None)?)
}

/// A store that is open: trees, pool, its threads, and the pages below.
struct OpenPool<M: PoolStrategy> {
    store: TreeStore<Pool<M>>,
    workers: Workers<M>,
    pages: Arc<PageStore>,
}

struct PoolInstance<M: PoolStrategy> {
    open_pool: Option<OpenPool<M>>,
    /// The device without what slows it down.
    device: Arc<dyn Device>,
    /// What slows it down for the run, if anything does.
    slow: Option<Arc<SlowDevice>>,
    setup: Setup,
    worker_threads: WorkerThreads,
}

/// The device that a run writes to, before it is slowed down.
fn make_device(setup: &Setup) -> Result<Arc<dyn Device>, BenchError> {
    match &setup.device {
        DeviceSpec::Memory | DeviceSpec::Slow(_) => Ok(Arc::new(MemoryDevice::new())),
        DeviceSpec::File(path) => {
            let device = FileDevice::create(path, &setup.options.file_options())?;
            setup.options.check_device(&device)?;
            Ok(Arc::new(device))
        }
    }
}

fn pool_options(setup: &Setup, frames: u32) -> PoolOptions {
    let (options, lab) = (&setup.options, &setup.options.lab);
    let mut pool = PoolOptions::new(frames);
    pool.reclamation = match lab.reclamation {
        ReclamationMode::Epoch => Reclamation::Epoch,
        ReclamationMode::Version => Reclamation::Version,
    };
    pool.evictors = match options.lab.eviction {
        EvictionMode::Worker => Evictors::Workers,
        EvictionMode::Threads(threads) => Evictors::Threads(threads.get()),
        EvictionMode::Adaptive(most) => Evictors::Adaptive { most: most.get() },
    };
    pool.batch = lab.batch.unwrap_or(pool.batch);
    pool.background_writer = lab.background_writer;
    pool.prefault = options.lab.prefault;
    pool.nodes = options.lab.numa_nodes;
    pool.sample_period = lab.latency_sample_period;
    pool.references_per_tick = lab.references_per_tick;
    pool.attempts_max = lab.attempts_max;
    pool.seed = lab.seed;
    pool
}

impl<M: PoolStrategy> PoolInstance<M> {
    fn new(setup: &Setup, workload: &Workload) -> Result<PoolInstance<M>, BenchError> {
        let worker_threads = WorkerThreads::new(setup, workload);
        check_threads(worker_threads.latching, workload)?;
        let device = make_device(setup)?;
        let mut instance = PoolInstance {
            open_pool: None,
            device,
            slow: None,
            setup: setup.clone(),
            worker_threads,
        };
        let page_size = u64::from(instance.worker_threads.info.page_size);
        let size = match page_size {
            512 => PageSize::TINY,
            _ => PageSize::new(page_size).map_err(|error| BenchError::Usage(error.to_string()))?,
        };
        let pages = Arc::new(PageStore::create_on(instance.device.clone(), size)?);
        let frames = instance.frames_to_load()?;
        let open_pool = instance.open(pages, frames, &[])?;
        instance.worker_threads.load(&open_pool.store, setup.load_threads)?;
        instance.worker_threads.info.pages = open_pool.pages.allocated_pages();
        instance.open_pool = Some(open_pool);
        let is_slow = matches!(setup.device, DeviceSpec::Slow(_));
        if setup.cold || is_slow || matches!(setup.pool, Some(Size::Share(_))) {
            instance.reopen(setup.pool)?;
        }
        Ok(instance)
    }

    fn on_image(
        image: &Image,
        setup: &Setup,
        workload: &Workload,
    ) -> Result<PoolInstance<M>, BenchError> {
        let mut worker_threads = WorkerThreads::new(setup, workload);
        check_threads(worker_threads.latching, workload)?;
        if image.page_size != worker_threads.info.page_size {
            return Err(BenchError::Usage(format!(
                "the image has pages of {} bytes, not {}",
                image.page_size, worker_threads.info.page_size
            )));
        }
        (worker_threads.info.pages, worker_threads.info.rows) = (image.pages, image.rows);
        let device: Arc<dyn Device> = Arc::new(image.device());
        let mut instance = PoolInstance {
            open_pool: None,
            device,
            slow: None,
            setup: setup.clone(),
            worker_threads,
        };
        let pages = Arc::new(PageStore::open_on(instance.device_for_run()?, None, false)?);
        let frames = instance.frames(setup.pool)?;
        instance.open_pool = Some(instance.open(pages, frames, &image.roots)?);
        Ok(instance)
    }

    /// Frames while loading: the run's own, or enough for the data if the size is not known yet.
    fn frames_to_load(&self) -> Result<u32, BenchError> {
        match self.setup.pool {
            Some(Size::Frames(_) | Size::Bytes(_)) => self.frames(self.setup.pool),
            Some(Size::Share(_)) => self.frames(None),
            None => self.frames(None),
        }
    }

    /// Frames of a pool of some size.
    fn frames(&self, size: Option<Size>) -> Result<u32, BenchError> {
        frames_for(&self.setup, &self.worker_threads, size)
    }

    /// Opens trees on a pool of `frames` frames over `pages`.
    fn open(
        &mut self,
        pages: Arc<PageStore>,
        frames: u32,
        roots: &[(String, PageId)],
    ) -> Result<OpenPool<M>, BenchError> {
        let plan = plan(&self.setup, Some(frames))?;
        let shape = Shape { frames, pages_dense: None, seed: plan.seed.0 };
        let delivered =
            host_for::<M::Hook>(&plan.policy, &shape, self.setup.options.lab.hit_delivery)?;
        let options = pool_options(&self.setup, frames);
        let pool = Arc::new(Pool::<M>::open(options, pages.clone(), delivered)?);
        for (page_type, kind) in btree::KINDS {
            pool.register(page_type, kind);
        }
        let workers = Workers::start(pool.clone())?;
        let store = match TreeStore::open(pool, roots) {
            Ok(store) => store.with_scan_hints(self.setup.scan_hints),
            Err(error) => return Err(BenchError::Drive(Box::new(error))),
        };
        self.worker_threads.info.frames = Some(frames);
        self.worker_threads.info.policy = plan.policy.spec.to_string();
        self.worker_threads.info.translation = self.setup.options.lab.translation.to_string();
        Ok(OpenPool { store, workers, pages })
    }

    /// Writes everything and closes the pages; says where the trees are.
    fn close(&mut self) -> Result<Vec<(String, PageId)>, BenchError> {
        let OpenPool { store, workers, pages } = self.open_pool.take().ok_or(BenchError::Closed)?;
        let pool = store.pages().clone();
        drop(workers);
        pool.flush(Reason::Recov)?;
        pool.return_ids()?;
        let roots = store.roots();
        drop((store, pool));
        pages.close(None)?;
        Ok(roots)
    }

    /// The device as the run shall see it.
    fn device_for_run(&mut self) -> Result<Arc<dyn Device>, BenchError> {
        if let DeviceSpec::File(path) = &self.setup.device {
            self.device = Arc::new(FileDevice::open(path, &self.setup.options.file_options())?);
        }
        self.slow = self.slowed();
        let device = self.device.clone();
        Ok(self.slow.clone().map_or(device, |slow| slow as Arc<dyn Device>))
    }

    /// The device slowed down, if it shall be.
    fn slowed(&self) -> Option<Arc<SlowDevice>> {
        let DeviceSpec::Slow(profile) = self.setup.device else { return None };
        let seed = self.setup.options.lab.seed;
        Some(Arc::new(SlowDevice::new(self.device.clone(), profile, seed)))
    }

    fn open_pool(&self) -> Result<&OpenPool<M>, BenchError> {
        self.open_pool.as_ref().ok_or(BenchError::Closed)
    }
}

/// Frames that an operation needs at least.
const FRAMES_MIN: u64 = 8;

/// Frames of a pool of some size.
pub(crate) fn frames_for(
    setup: &Setup,
    worker_threads: &WorkerThreads,
    size: Option<Size>,
) -> Result<u32, BenchError> {
    let page_size = u64::from(worker_threads.info.page_size);
    let narrow = |frames: u64| frames.clamp(FRAMES_MIN, u64::from(u32::MAX)) as u32;
    let enough = |frames: u64, of: &str| {
        if frames >= FRAMES_MIN {
            return Ok(narrow(frames));
        }
        Err(BenchError::Usage(format!(
            "a pool of {frames} frames{of} is too small: it takes at least {FRAMES_MIN}"
        )))
    };
    Ok(match size {
        Some(Size::Frames(frames)) => enough(frames, "")?,
        Some(Size::Bytes(bytes)) => {
            let setup = Setup { pool: Some(Size::Bytes(bytes)), ..setup.clone() };
            plan(&setup, None)?.budget.frames
        }
        Some(Size::Share(share)) => {
            let pages = worker_threads.info.pages;
            let of = format!(", {} % of the data's {pages} pages,", share * 100.0);
            enough((share * pages as f64) as u64, &of)?
        }
        None => {
            let known = worker_threads.info.pages * page_size;
            let data = known.max(worker_threads.workload.bytes_loaded());
            let bytes = data * 5 / 4 + setup.growth + (8 << 20);
            narrow(bytes.min(memory_available()) / page_size)
        }
    })
}

/// Three quarters of the memory that may still be used.
fn memory_available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    let limit = SystemRoots::default().default_memory().saturating_mul(3);
    kib.map_or(limit, |kib| limit.min((kib << 10) / 4 * 3))
}

/// What records in `pool`.
pub(crate) fn recorders<M: PoolStrategy>(pool: &Pool<M>) -> Recorders<'_> {
    let pages = M::RECORDS.then(|| pool.recorder());
    Recorders { pages, storage: Some(pool.storage_recorder()) }
}

impl<M: PoolStrategy> Instance for PoolInstance<M> {
    fn info(&self) -> &InstanceInfo {
        &self.worker_threads.info
    }

    fn run(
        &mut self,
        spec: &RunSpec,
        at_start: &mut dyn FnMut(Recorders<'_>) -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError> {
        let OpenPool { store, .. } = self.open_pool.as_ref().ok_or(BenchError::Closed)?;
        let pool = store.pages();
        let counts = || Some(Counts::of(pool.counters()));
        let recorders = recorders(pool);
        let slow = self.slow.as_ref().filter(|_| self.setup.warms_up_fast);
        if let Some(slow) = slow {
            slow.set_slow(false);
        }
        let mut start = || {
            if let Some(slow) = slow {
                slow.set_slow(true);
            }
            at_start(recorders)
        };
        self.worker_threads.run(store, spec, &counts, &mut start, observer)
    }

    fn set_workload(&mut self, workload: Workload) {
        self.worker_threads.set_workload(workload);
    }

    fn row_bytes(&self) -> Vec<f64> {
        self.worker_threads.row_bytes()
    }

    fn check(&self) -> Result<Option<tpcc::Report>, BenchError> {
        self.worker_threads.check(&self.open_pool()?.store)
    }

    fn check_at_rest(&mut self) -> Result<Option<tpcc::Report>, BenchError> {
        let pages = self.open_pool()?.pages.allocated_pages();
        let roots = self.close()?;
        if let DeviceSpec::File(path) = &self.setup.device {
            self.device = Arc::new(FileDevice::open(path, &self.setup.options.file_options())?);
        }
        let store = Arc::new(PageStore::open_on(self.device.clone(), None, false)?);
        let frames = u32::try_from(pages + pages / 8 + 256).unwrap_or(u32::MAX);
        self.open_pool = Some(self.open(store, frames, &roots)?);
        self.check()
    }

    fn data_pages(&self) -> Result<u64, BenchError> {
        Ok(self.open_pool()?.pages.allocated_pages())
    }

    fn image(&mut self) -> Result<Image, BenchError> {
        let (pages, rows) = (self.worker_threads.info.pages, self.worker_threads.info.rows);
        let (page_size, roots) = (self.worker_threads.info.page_size, self.close()?);
        let mut bytes = vec![0; self.device.length() as usize];
        self.device.read(0, &mut bytes)?;
        Ok(Image { bytes, roots, page_size, pages, rows })
    }

    fn recorders(&self) -> Recorders<'_> {
        self.open_pool
            .as_ref()
            .map_or(Recorders::default(), |open_pool| recorders(open_pool.store.pages()))
    }

    fn evict(&mut self, what: &Evict, observer: &mut dyn Observer) -> Result<Out, BenchError> {
        let OpenPool { store, .. } = self.open_pool.as_ref().ok_or(BenchError::Closed)?;
        fill(store.pages(), |operations| {
            let spec = RunSpec {
                warm_up: Length::NONE,
                measure: Length::Operations(operations),
                interval: Duration::from_secs(1),
            };
            self.worker_threads.run(store, &spec, &|| None, &mut || Ok(()), observer).map(drop)
        })?;
        evict(store.pages(), what)
    }

    fn reopen(&mut self, pool: Option<Size>) -> Result<(), BenchError> {
        let roots = self.close()?;
        let device = self.device_for_run()?;
        let pages = Arc::new(PageStore::open_on(device, None, false)?);
        let frames = self.frames(pool)?;
        self.open_pool = Some(self.open(pages, frames, &roots)?);
        Ok(())
    }

    fn probe(&self, depth: u32, time: Duration) -> Result<Option<f64>, BenchError> {
        if self.setup.device == DeviceSpec::Memory {
            return Ok(None);
        }
        let slow = self.slowed().map(|slow| slow as Arc<dyn Device>);
        let device = slow.unwrap_or_else(|| self.device.clone());
        let (page_size, seed) =
            (self.worker_threads.info.page_size as usize, self.worker_threads.seed);
        let pages = self.worker_threads.info.pages;
        Ok(Some(reads_per_second(device.as_ref(), page_size, pages, depth, time, seed)?))
    }
}

impl<M: PoolStrategy> Drop for PoolInstance<M> {
    fn drop(&mut self) {
        self.open_pool = None;
        if let DeviceSpec::File(path) = &self.setup.device {
            // The file was ours alone; a leftover does no harm but for its room.
            let _ = std::fs::remove_file(path);
        }
    }
}
