//! The in-memory twin as an instance, in plain memory or in a mapped file that is paged in
//! and out.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::pool::{Latching, Twin};
use millpond_base::Size;
use millpond_workload::tpcc;

use super::interface::{Instance, InstanceInfo, Recorders};
use super::setup::Setup;
use super::worker_threads::{WorkerThreads, check_threads};
use crate::error::BenchError;
use crate::memory_group::MemoryGroup;
use crate::run::client::Workload;
use crate::run::on_this_thread::{Executed, Steps};
use crate::run::runner::{Observer, Outcome, RunSpec};
use crate::stores::tree_store::TreeStore;

/// Trees on plain memory.
pub(crate) struct TwinInstance<L: Latching> {
    store: TreeStore<Twin<L>>,
    worker_threads: WorkerThreads,
    /// The control group comes after the memory that it limits, so that it is dropped
    /// last.
    group: Option<MemoryGroup>,
}

impl<L: Latching> TwinInstance<L> {
    pub(crate) fn new(setup: &Setup, workload: &Workload) -> Result<TwinInstance<L>, BenchError> {
        let mut worker_threads = WorkerThreads::new(setup, workload);
        check_threads(worker_threads.latching, workload)?;
        let page_size = worker_threads.info.page_size as usize;
        let (twin, group) = match &setup.paged {
            None => (Twin::<L>::new(page_size)?, None),
            Some(paged) => {
                // Memory touched before this point counts for another group.
                let group = MemoryGroup::enter(paged.limit)?;
                (Twin::<L>::in_file(page_size, &paged.folder)?, Some(group))
            }
        };
        let store = TreeStore::new(Arc::new(twin));
        worker_threads.load(&store, setup.load_threads)?;
        worker_threads.info.pages = store.pages().len();
        Ok(TwinInstance { store, worker_threads, group })
    }
}

impl<L: Latching> Instance for TwinInstance<L> {
    fn info(&self) -> &InstanceInfo {
        &self.worker_threads.info
    }

    fn run(
        &mut self,
        spec: &RunSpec,
        at_start: &mut dyn FnMut(Recorders<'_>) -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError> {
        self.worker_threads.run(
            &self.store,
            spec,
            &|| None,
            &mut || at_start(Recorders::default()),
            observer,
        )
    }

    fn run_on_this_thread(
        &mut self,
        steps: Steps,
        at_start: &mut dyn FnMut(),
    ) -> Result<Executed, BenchError> {
        self.worker_threads.run_on_this_thread(&self.store, steps, at_start)
    }

    fn set_workload(&mut self, workload: Workload) {
        self.worker_threads.set_workload(workload);
    }

    fn row_bytes(&self) -> Vec<f64> {
        self.worker_threads.row_bytes()
    }

    fn check(&self) -> Result<Option<tpcc::Report>, BenchError> {
        self.worker_threads.check(&self.store)
    }

    fn check_at_rest(&mut self) -> Result<Option<tpcc::Report>, BenchError> {
        self.group = None;
        self.check()
    }

    fn data_pages(&self) -> Result<u64, BenchError> {
        Ok(self.store.pages().len())
    }

    fn recorders(&self) -> Recorders<'_> {
        Recorders::default()
    }

    fn reopen(&mut self, _: Option<Size>) -> Result<(), BenchError> {
        Ok(())
    }

    fn probe(&self, _: u32, _: Duration) -> Result<Option<f64>, BenchError> {
        Ok(None)
    }
}
