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
    /// Replacement policy; empty without a pool.
    pub policy: String,
    /// Translation of page ids to frames; empty without a pool.
    pub translation: String,
    /// Latching mode; empty without a pool.
    pub latching: String,
    /// Bytes of a page.
    pub page_size: u32,
    /// Frames of the pool; `None` for the twin.
    pub frames: Option<u32>,
    /// Pages of the data after loading.
    pub pages: u64,
    /// Rows that were loaded.
    pub rows: u64,
    /// Seconds of loading.
    pub load_s: f64,
    /// `true` if transactions are logged.
    pub log: bool,
    /// `true` if transactions lock.
    pub locks: bool,
    /// Point at which commits are durable; empty without a log.
    pub durability: String,
}

/// Recorders of an engine; a twin has none.
#[derive(Clone, Copy, Default)]
pub struct Recorders<'a> {
    /// Recorder of page references, if compiled in.
    pub pages: Option<&'a Recorder>,
    /// Recorder of storage requests.
    pub storage: Option<&'a StorageRecorder>,
}

/// A loaded engine.
pub trait Instance: Send {
    /// Returns the facts about the instance.
    fn info(&self) -> &InstanceInfo;

    /// Runs the workload. `at_start` is called between warm-up and measurement.
    ///
    /// # Errors
    /// Any error of the client, or an error if the observer ended the run too early.
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
    /// Any error of the client, or an error if there are other clients.
    fn run_on_this_thread(
        &mut self,
        steps: Steps,
        at_start: &mut dyn FnMut(),
    ) -> Result<Executed, BenchError>;

    /// Sets the workload of the next run, and with it the number of threads.
    fn set_workload(&mut self, workload: Workload);

    /// Returns the mean bytes per row of each class that scans have read.
    fn row_bytes(&self) -> Vec<f64>;

    /// Checks TPC-C's consistency conditions; returns `None` for other workloads.
    ///
    /// # Errors
    /// Any error of the store.
    fn check(&self) -> Result<Option<tpcc::Report>, BenchError>;

    /// Returns the present number of data pages.
    ///
    /// # Errors
    /// The store is closed.
    fn data_pages(&self) -> Result<u64, BenchError>;

    /// Returns the recorders.
    fn recorders(&self) -> Recorders<'_>;

    /// Closes the store and opens it again with an empty pool of another size: a cold start. A
    /// twin does nothing.
    ///
    /// # Errors
    /// The store could not be closed or opened.
    fn reopen(&mut self, pool: Option<Size>) -> Result<(), BenchError>;

    /// Closes the store, opens it again in a pool with room for everything, and checks its content
    /// on the device without the slowdown. It is the last check of a run with a small pool or a
    /// slow device.
    ///
    /// # Errors
    /// Any error of the store.
    fn check_at_rest(&mut self) -> Result<Option<tpcc::Report>, BenchError> {
        self.check()
    }

    /// Closes the store and copies its device, for other instances to start with
    /// ([`prepare_on`](crate::instance::prepare::prepare_on)).
    ///
    /// # Errors
    /// The store could not be closed, or this kind of instance has no images. Only pools without
    /// transactions have images.
    fn image(&mut self) -> Result<Image, BenchError> {
        Err(BenchError::Usage("only a pool without transactions has an image".to_string()))
    }

    /// Returns the pages per second that the device delivers to `depth` threads. Each thread reads
    /// random pages of the data, one at a time, bypassing the pool. Returns `None` without a
    /// device.
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

/// Returns the recorders of `pool`.
pub(crate) fn recorders<M: PoolStrategy>(pool: &Pool<M>) -> Recorders<'_> {
    let pages = M::RECORDS.then(|| pool.recorder());
    Recorders { pages, storage: Some(pool.storage_recorder()) }
}
