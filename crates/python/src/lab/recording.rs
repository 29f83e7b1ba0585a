//! A store's requests to its storage, as a trace.

use std::sync::{Arc, Mutex, MutexGuard};

use millpond::internals::pool::{StorageRequest, StorageSink};
use millpond_base::PastPoison;
use millpond_workload::trace::Batch;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::trace::Trace;
use crate::core::Core;
use crate::error::{Exists, Failure};
use crate::store::Store;

/// The requests recorded so far.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Batch>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Batch> {
        // Its columns are pushed to one after the other, by a call that does not panic.
        self.0.lock().past_poison()
    }
}

impl StorageSink for Kept {
    fn take(&mut self, requests: &[StorageRequest]) -> Result<(), String> {
        let mut batch = self.lock();
        for request in requests {
            batch.push(request.page.0, request.mark);
        }
        Ok(())
    }
}

/// A recording of the pages that a store reads from storage and writes to it.
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Recording {
    core: Arc<Core>,
    kept: Kept,
}

#[pymethods]
impl Recording {
    /// Begins one; a store has one at a time.
    #[new]
    fn new(py: Python<'_>, store: &Bound<'_, Store>) -> PyResult<Recording> {
        let recording = Recording { core: store.get().core().clone(), kept: Kept::default() };
        let is_new = py.detach(|| {
            recording.core.with(|db| {
                let recorder = db.storage_recorder();
                let is_new = !recorder.is_on();
                if is_new {
                    recorder.start(Box::new(recording.kept.clone()));
                }
                Ok(is_new)
            })
        })?;
        match is_new {
            true => Ok(recording),
            false => Err(Exists::new_err("the store is recorded already: stop that first")),
        }
    }

    /// Ends it; returns the trace.
    fn stop(&self, py: Python<'_>) -> PyResult<Trace> {
        let stopped =
            py.detach(|| self.core.with(|db| Ok::<_, Failure>(db.storage_recorder().stop())))?;
        stopped.map_err(PyOSError::new_err)?;
        let mut batch = std::mem::take(&mut *self.kept.lock());
        batch.drop_dsyncs();
        Ok(Trace::of(batch, "recorded"))
    }
}
