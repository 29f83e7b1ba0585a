//! Interface of every loaded engine, whatever its combination of strategies.

use std::time::Duration;

use crate::parameters::{LOCKS, LOG};
use millpond::internals::pool::recording::recorder::Recorder;
use millpond::internals::pool::{Pool, PoolStrategy, StorageRecorder};
use millpond_base::Size;
use millpond_workload::tpcc;

use super::eviction::{Evict, Out};
use super::image::Image;
use super::setup::Engine;
use crate::error::BenchError;
use crate::run::client::Workload;
use crate::run::on_this_thread::{Executed, Steps};
use crate::run::runner::{Observer, Outcome, RunSpec};

/// Facts about an instance beside its runs.
#[derive(Clone, PartialEq, Debug)]
pub struct InstanceInfo {
    /// Kind of the engine.
    pub engine: Engine,
    /// The policy, translation and latching; empty where there is none.
    pub policy: String,
    /// Translation of page ids to frames.
    pub translation: String,
    /// Latching: the way to keep threads apart.
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
    /// `true` if transactions are logged.
    pub log: bool,
    /// `true` if transactions lock.
    pub locks: bool,
    /// Point at which commits are durable; empty without a log.
    pub durability: String,
}

/// Parts of an engine that can record; a twin has neither.
#[derive(Clone, Copy, Default)]
pub struct Recorders<'a> {
    /// Of page references, where it was compiled with one.
    pub pages: Option<&'a Recorder>,
    /// Of what is asked of storage.
    pub storage: Option<&'a StorageRecorder>,
}

/// An engine, loaded.
pub trait Instance: Send {
    /// Returns the facts about the instance.
    fn info(&self) -> &InstanceInfo;

    /// Runs the workload. `at_start` is called between warm-up and measurement.
    ///
    /// # Errors
    /// Any error of the client, or that the observer ended it too early.
    fn run(
        &mut self,
        spec: &RunSpec,
        at_start: &mut dyn FnMut(Recorders<'_>) -> Result<(), BenchError>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, BenchError>;

    /// Runs the workload's only client on this thread. `at_start` is called between warm-up and
    /// measurement.
    ///
    /// # Errors
    /// Any error of the client, or that there are others.
    fn run_on_this_thread(
        &mut self,
        steps: Steps,
        at_start: &mut dyn FnMut(),
    ) -> Result<Executed, BenchError>;

    /// The workload, and with it the number of threads, that the next run has.
    fn set_workload(&mut self, workload: Workload);

    /// Bytes of a row of each class that a scan has seen.
    fn row_bytes(&self) -> Vec<f64>;

    /// TPC-C's consistency conditions; `None` for other workloads.
    ///
    /// # Errors
    /// Any error of the store.
    fn check(&self) -> Result<Option<tpcc::Report>, BenchError>;

    /// Pages that the data have now.
    ///
    /// # Errors
    /// The store is closed.
    fn data_pages(&self) -> Result<u64, BenchError>;

    /// Returns the parts that record.
    fn recorders(&self) -> Recorders<'_>;

    /// Closes the store and opens it again with a pool of another size, empty: a cold start.
    /// Nothing happens to a twin.
    ///
    /// # Errors
    /// The store could not be closed or opened.
    fn reopen(&mut self, pool: Option<Size>) -> Result<(), BenchError>;

    /// Closes the store, opens it again in a pool that has room for everything, and checks its
    /// content on the device, which is not slowed down. For the last check of a run that had a
    /// small pool or a slow device.
    ///
    /// # Errors
    /// Any error of the store.
    fn check_at_rest(&mut self) -> Result<Option<tpcc::Report>, BenchError> {
        self.check()
    }

    /// Closes the store, and copies what is on its device, for others to begin with
    /// ([`prepare_on`](crate::instance::prepare::prepare_on)).
    ///
    /// # Errors
    /// It could not be closed, or this kind of instance has no images: only pools without
    /// transactions have.
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
    /// The instance has no pool that can be used exclusively, or the run failed.
    fn evict(&mut self, _what: &Evict, _observer: &mut dyn Observer) -> Result<Out, BenchError> {
        let text = format!("evictors are measured on the pool, without {LOG} and {LOCKS}");
        Err(BenchError::Usage(text))
    }
}

/// Returns the parts of `pool` that record.
pub(crate) fn recorders<M: PoolStrategy>(pool: &Pool<M>) -> Recorders<'_> {
    let pages = M::RECORDS.then(|| pool.recorder());
    Recorders { pages, storage: Some(pool.storage_recorder()) }
}
