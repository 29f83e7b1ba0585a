//! Trees on a pool, in one combination of strategies, without transactions.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond::internals::pool::{Pool, PoolStrategy, Workers};
use millpond::internals::store::Builder;
use millpond_base::{PageId, Reason, Size};
use millpond_device::{Device, FileDevice, MemoryDevice, SlowDevice};
use millpond_workload::tpcc;

use super::eviction::{Evict, Out, evict, fill};
use super::image::Image;
use super::interface::{Instance, InstanceInfo, Recorders, recorders};
use super::plan::{frames_for, plan};
use super::probe::reads_per_second;
use super::remote::remote;
use super::setup::{DeviceSpec, Setup};
use super::worker_threads::{WorkerThreads, check_threads};
use crate::error::BenchError;
use crate::run::client::Workload;
use crate::run::counts::Counts;
use crate::run::on_this_thread::{Executed, Steps};
use crate::run::runner::{Length, Observer, Outcome, RunSpec};
use crate::stores::tree_store::TreeStore;

/// An open store: trees, pool, its threads, and the pages below.
struct OpenPool<M: PoolStrategy> {
    store: TreeStore<Pool<M>>,
    workers: Workers<M>,
    pages: Arc<PageStore>,
}

pub(crate) struct PoolInstance<M: PoolStrategy> {
    open_pool: Option<OpenPool<M>>,
    /// The device without its slowdown.
    device: Arc<dyn Device>,
    /// The slow device of the run, if there is one.
    slow: Option<Arc<SlowDevice>>,
    setup: Setup,
    worker_threads: WorkerThreads,
}

/// Creates the device of a run, without its slowdown.
fn make_device(setup: &Setup) -> Result<Arc<dyn Device>, BenchError> {
    match &setup.device {
        DeviceSpec::Memory | DeviceSpec::Slow(_) => Ok(Arc::new(MemoryDevice::new())),
        DeviceSpec::File(path) => {
            let device = FileDevice::create(path, &setup.options.file_options())?;
            setup.options.check_device(&device)?;
            Ok(Arc::new(device))
        }
        DeviceSpec::Nbd(uri) => remote(uri),
    }
}

impl<M: PoolStrategy> PoolInstance<M> {
    pub(crate) fn new(setup: &Setup, workload: &Workload) -> Result<PoolInstance<M>, BenchError> {
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
        // A share of the data is unknown before they are loaded, so the pool holds all of
        // them.
        let to_load = setup.pool.filter(|size| !matches!(size, Size::Share(_)));
        let frames = frames_for(setup, &instance.worker_threads, to_load)?;
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

    pub(crate) fn on_image(
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
        let frames = frames_for(setup, &instance.worker_threads, setup.pool)?;
        instance.open_pool = Some(instance.open(pages, frames, &image.roots)?);
        Ok(instance)
    }

    /// Opens trees on a pool of `frames` frames over `pages`.
    fn open(
        &mut self,
        pages: Arc<PageStore>,
        frames: u32,
        roots: &[(String, PageId)],
    ) -> Result<OpenPool<M>, BenchError> {
        let plan = plan(&self.setup, Some(frames))?;
        let pool = Arc::new(Builder::pool::<M>(&self.setup.options, &plan, pages.clone())?);
        let workers = Workers::start(pool.clone())?;
        let store = match TreeStore::open(pool, roots) {
            Ok(store) => store.with_scan_hints(self.setup.scan_hints),
            Err(error) => return Err(BenchError::Drive(Box::new(error))),
        };
        self.worker_threads.info.frames = Some(frames);
        self.worker_threads.info.policy = plan.policy.chosen.spec.to_string();
        self.worker_threads.info.translation = self.setup.options.lab.translation.to_string();
        Ok(OpenPool { store, workers, pages })
    }

    /// Writes everything and closes the pages; returns the names and root pages of the
    /// trees.
    fn close(&mut self) -> Result<Vec<(String, PageId)>, BenchError> {
        let OpenPool { store, workers, pages } = self.open_pool.take().ok_or(BenchError::Closed)?;
        let pool = store.pages().clone();
        drop(workers);
        pool.flush(Reason::Recov)?;
        pool.ids().return_all()?;
        let roots = store.roots();
        drop((store, pool));
        pages.close(None)?;
        Ok(roots)
    }

    /// Opens the file again, which the closed pool has released.
    fn reopen_device(&mut self) -> Result<(), BenchError> {
        if let DeviceSpec::File(path) = &self.setup.device {
            self.device = Arc::new(FileDevice::open(path, &self.setup.options.file_options())?);
        }
        Ok(())
    }

    /// Returns the device that the run uses.
    fn device_for_run(&mut self) -> Result<Arc<dyn Device>, BenchError> {
        self.reopen_device()?;
        self.slow = self.slowed();
        let device = self.device.clone();
        Ok(self.slow.clone().map_or(device, |slow| slow as Arc<dyn Device>))
    }

    /// Returns the slow device, if the setup has one.
    fn slowed(&self) -> Option<Arc<SlowDevice>> {
        let DeviceSpec::Slow(profile) = self.setup.device else { return None };
        let seed = self.setup.options.lab.seed;
        Some(Arc::new(SlowDevice::new(self.device.clone(), profile, seed)))
    }

    fn open_pool(&self) -> Result<&OpenPool<M>, BenchError> {
        self.open_pool.as_ref().ok_or(BenchError::Closed)
    }
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
        let counts = || Some(Counts::of(pool.counters()).with_times(pool.latencies()));
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

    fn run_on_this_thread(
        &mut self,
        steps: Steps,
        at_start: &mut dyn FnMut(),
    ) -> Result<Executed, BenchError> {
        let open_pool = self.open_pool.as_ref().ok_or(BenchError::Closed)?;
        let counters = open_pool.store.pages().counters();
        let mut before = 0;
        let mut start = || {
            before = Counts::of(counters).references;
            at_start();
        };
        let all = &mut self.worker_threads;
        let executed = all.run_on_this_thread(&open_pool.store, steps, &mut start)?;
        let references = Counts::of(counters).references.saturating_sub(before);
        Ok(Executed { references: Some(references), ..executed })
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
        self.reopen_device()?;
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
        self.reopen_device()?;
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
        let frames = frames_for(&self.setup, &self.worker_threads, pool)?;
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
            // The file was ours alone; a leftover only takes space.
            let _ = std::fs::remove_file(path);
        }
    }
}
