//! An instance whose store has transactions: what `--log on` and `--locks on` run on.

use std::sync::Arc;
use std::time::Duration;

use crate::parameters::LOG;
use millpond::internals::pool::PoolStrategy;
use millpond::internals::recovery::log_open::log_path;
use millpond::internals::store::stats::stat_file::stat_path;
use millpond_base::Size;
use millpond_device::{Device, MemoryDevice, SlowDevice};
use millpond_workload::tpcc;

use super::interface::{Instance, InstanceInfo, Recorders, recorders};
use super::plan::{frames_for, plan};
use super::probe::reads_per_second;
use super::remote::remote;
use super::setup::{DeviceSpec, Setup};
use super::worker_threads::{WorkerThreads, check_threads};
use crate::error::BenchError;
use crate::run::client::Workload;
use crate::run::on_this_thread::{Executed, Steps};
use crate::run::runner::{Observer, Outcome, RunSpec};
use crate::stores::txn_store::TxnStore;

pub(crate) struct TxnInstance<M: PoolStrategy> {
    store: Option<TxnStore<M>>,
    /// Data and log, unless they are files; without what slows them down.
    memory: [Arc<dyn Device>; 2],
    setup: Setup,
    worker_threads: WorkerThreads,
}

impl<M: PoolStrategy> TxnInstance<M> {
    pub(crate) fn new(setup: &Setup, workload: &Workload) -> Result<TxnInstance<M>, BenchError> {
        let worker_threads = WorkerThreads::new(setup, workload);
        check_threads(worker_threads.latching, workload)?;
        let data: Arc<dyn Device> = match &setup.device {
            DeviceSpec::Nbd(uri) => remote(uri)?,
            _ => Arc::new(MemoryDevice::new()),
        };
        let memory = [data, Arc::new(MemoryDevice::new())];
        let mut instance =
            TxnInstance { store: None, memory, setup: setup.clone(), worker_threads };
        instance.remove_files();
        let to_load = setup.pool.filter(|size| !matches!(size, Size::Share(_)));
        let store = instance.open(to_load, false)?;
        let worker_threads = &mut instance.worker_threads;
        store.load_with(|store| worker_threads.load(store, setup.load_threads))?;
        let pages = store.store().pages();
        instance.worker_threads.info.pages = pages.allocated_pages();
        instance.store = Some(store);
        let is_slow = matches!(setup.device, DeviceSpec::Slow(_));
        if setup.cold || is_slow || matches!(setup.pool, Some(Size::Share(_))) {
            instance.reopen(setup.pool)?;
        }
        Ok(instance)
    }

    /// Opens the store with a pool of this size.
    fn open(&mut self, pool: Option<Size>, slowed: bool) -> Result<TxnStore<M>, BenchError> {
        let frames = frames_for(&self.setup, &self.worker_threads, pool)?;
        let spec = plan(&self.setup, Some(frames))?.policy.chosen.spec.to_string();
        let mut options = self.setup.options.clone();
        options.lab.frames = Some(frames);
        options.lab.tiny_pages = true;
        let info = &mut self.worker_threads.info;
        info.frames = Some(frames);
        info.policy = spec;
        info.translation = options.lab.translation.to_string();
        if let DeviceSpec::File(path) = &self.setup.device {
            return Ok(TxnStore::open(path, &options)?);
        }
        let [data, log] = [0, 1].map(|at| self.device(at, slowed));
        let log = options.lab.log.then_some(log);
        Ok(TxnStore::open_on(data, log, &options)?)
    }

    fn device(&self, at: usize, slowed: bool) -> Arc<dyn Device> {
        let device = self.memory[at].clone();
        match self.setup.device {
            DeviceSpec::Slow(profile) if slowed => {
                Arc::new(SlowDevice::new(device, profile, self.setup.options.lab.seed))
            }
            _ => device,
        }
    }

    /// Files of the run's name are its own: those that an earlier run left are removed.
    fn remove_files(&self) {
        if let DeviceSpec::File(path) = &self.setup.device {
            // That there is none is as it should be.
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_file(log_path(path));
            let _ = std::fs::remove_file(stat_path(path));
        }
    }

    fn store(&self) -> Result<&TxnStore<M>, BenchError> {
        self.store.as_ref().ok_or(BenchError::Closed)
    }
}

impl<M: PoolStrategy> Instance for TxnInstance<M> {
    fn info(&self) -> &InstanceInfo {
        &self.worker_threads.info
    }

    fn run(
        &mut self,
        spec: &RunSpec,
        at_start: &mut dyn FnMut(Recorders<'_>) -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError> {
        let store = self.store.as_ref().ok_or(BenchError::Closed)?;
        let counts = || Some(store.counts());
        let recorders = recorders(store.store().pool());
        self.worker_threads.run(store, spec, &counts, &mut || at_start(recorders), observer)
    }

    fn run_on_this_thread(
        &mut self,
        steps: Steps,
        at_start: &mut dyn FnMut(),
    ) -> Result<Executed, BenchError> {
        let store = self.store.as_ref().ok_or(BenchError::Closed)?;
        self.worker_threads.run_on_this_thread(store, steps, at_start)
    }

    fn set_workload(&mut self, workload: Workload) {
        self.worker_threads.set_workload(workload);
    }

    fn row_bytes(&self) -> Vec<f64> {
        self.worker_threads.row_bytes()
    }

    fn check(&self) -> Result<Option<tpcc::Report>, BenchError> {
        self.worker_threads.check(self.store()?)
    }

    fn data_pages(&self) -> Result<u64, BenchError> {
        Ok(self.store()?.store().pages().allocated_pages())
    }

    fn recorders(&self) -> Recorders<'_> {
        let store = self.store.as_ref();
        store.map_or(Recorders::default(), |store| recorders(store.store().pool()))
    }

    fn reopen(&mut self, pool: Option<Size>) -> Result<(), BenchError> {
        self.store.take().ok_or(BenchError::Closed)?.close()?;
        self.store = Some(self.open(pool, true)?);
        Ok(())
    }

    fn probe(&self, depth: u32, time: Duration) -> Result<Option<f64>, BenchError> {
        let DeviceSpec::Slow(_) = self.setup.device else {
            return match self.setup.device {
                DeviceSpec::Memory => Ok(None),
                _ => Err(BenchError::Usage(format!(
                    "a device is not read beside the store that has it open: probe without {LOG}"
                ))),
            };
        };
        let (page_size, seed) =
            (self.worker_threads.info.page_size as usize, self.worker_threads.seed);
        let (device, pages) = (self.device(0, true), self.worker_threads.info.pages);
        Ok(Some(reads_per_second(device.as_ref(), page_size, pages, depth, time, seed)?))
    }
}

impl<M: PoolStrategy> Drop for TxnInstance<M> {
    fn drop(&mut self) {
        // The file of a second tier that could be opened is the run's own, too.
        let was_open = self.store.take().is_some();
        if let Some(tier) = self.setup.options.second_tier.as_ref().filter(|_| was_open) {
            let _ = std::fs::remove_file(&tier.path);
        }
        self.remove_files();
    }
}
