//! Worker threads and their workload, shared by all kinds of instances.

use std::time::Instant;

use millpond::internals::store::LatchingMode;
use millpond_base::Seed;
use millpond_workload::live::{DriveError, Store};
use millpond_workload::tpcc::{self, Tables};

use super::interface::InstanceInfo;
use super::setup::Setup;
use crate::error::BenchError;
use crate::run::client::{Clients, Workload};
use crate::run::counts::Counts;
use crate::run::on_this_thread::{self, Executed, Steps};
use crate::run::runner::{self, Observer, Outcome, RunSpec};

/// Fails if an unlatched store would have more than one thread.
pub(crate) fn check_threads(latching: LatchingMode, workload: &Workload) -> Result<(), BenchError> {
    if latching == LatchingMode::None && workload.threads() > 1 {
        return Err(BenchError::Usage("latching = none is for one thread".to_string()));
    }
    Ok(())
}

/// Common part of all kinds of instances: the workload and the threads that run it.
pub(crate) struct WorkerThreads {
    pub(crate) workload: Workload,
    clients: Option<Clients>,
    pub(crate) seed: Seed,
    pub(crate) info: InstanceInfo,
    pub(crate) latching: LatchingMode,
}

impl WorkerThreads {
    pub(crate) fn new(setup: &Setup, workload: &Workload) -> WorkerThreads {
        let options = &setup.options;
        let info = InstanceInfo {
            engine: setup.engine,
            policy: String::new(),
            translation: String::new(),
            latching: options.lab.latching.to_string(),
            page_size: options
                .page_size
                .unwrap_or(millpond::internals::store::options::PAGE_SIZE_DEFAULT),
            frames: None,
            pages: 0,
            rows: 0,
            load_s: 0.0,
            log: options.lab.log,
            locks: options.lab.locks,
            durability: match options.lab.log {
                true => format!("{:?}", options.durability).to_lowercase(),
                false => String::new(),
            },
        };
        let (workload, seed) = (*workload, Seed(options.lab.seed));
        WorkerThreads { workload, clients: None, seed, info, latching: options.lab.latching }
    }

    pub(crate) fn load<S: Store>(&mut self, store: &S, threads: u32) -> Result<(), BenchError> {
        let start = Instant::now();
        let threads = if self.latching == LatchingMode::None { 1 } else { threads };
        self.info.rows = self.workload.load(store, self.seed, threads)?;
        self.info.load_s = start.elapsed().as_secs_f64();
        Ok(())
    }

    pub(crate) fn run<S: Store>(
        &mut self,
        store: &S,
        spec: &RunSpec,
        counts: &dyn Fn() -> Option<Counts>,
        at_start: &mut dyn FnMut() -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError> {
        check_threads(self.latching, &self.workload)?;
        let workload = self.workload;
        runner::run(store, &workload, self.clients(store)?, spec, counts, at_start, observer)
    }

    pub(crate) fn run_on_this_thread<S: Store>(
        &mut self,
        store: &S,
        steps: Steps,
        at_start: &mut dyn FnMut(),
    ) -> Result<Executed, BenchError> {
        on_this_thread::run(store, self.clients(store)?, steps, at_start)
    }

    fn clients<S: Store>(&mut self, store: &S) -> Result<&mut Clients, BenchError> {
        Ok(match &mut self.clients {
            Some(clients) => clients,
            none => none.insert(self.workload.clients(store, self.seed)?),
        })
    }

    pub(crate) fn set_workload(&mut self, workload: Workload) {
        if workload != self.workload {
            (self.workload, self.clients) = (workload, None);
        }
    }

    pub(crate) fn row_bytes(&self) -> Vec<f64> {
        match &self.clients {
            Some(Clients::Scan(all)) => all.iter().take(2).map(|s| s.row_bytes()).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn check<S: Store>(&self, store: &S) -> Result<Option<tpcc::Report>, BenchError> {
        let Workload::Tpcc(_) = self.workload else { return Ok(None) };
        let tables = Tables::open(store)?;
        let mut session = store.session().map_err(DriveError::Store)?;
        Ok(Some(tpcc::check(&mut session, &tables)?))
    }
}
