//! Recording the page references of a run as a trace.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millpond::pool::recorder::{Recorder, Reference, Sink};
use millpond_workload::trace::Batch;
use millpond_workload::write::{self, WriteOptions};

use crate::error::BenchError;

/// A trace that is being recorded.
pub struct Recording {
    file: Arc<Mutex<Trace>>,
    all_attempts: bool,
}

struct Trace {
    sink: Box<dyn write::Sink>,
    batch: Batch,
    /// References that still fit.
    left: u64,
    written: u64,
}

fn locked(trace: &Mutex<Trace>) -> MutexGuard<'_, Trace> {
    trace.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands references on to the trace's file.
struct Through(Arc<Mutex<Trace>>);

impl Sink for Through {
    fn take(&mut self, references: &[Reference]) -> Result<(), String> {
        let mut trace = locked(&self.0);
        let Trace { sink, batch, left, written } = &mut *trace;
        let count = references.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        batch.clear();
        for (page, mark) in &references[..count] {
            batch.push(page.0, *mark);
        }
        *left -= count as u64;
        *written += count as u64;
        sink.write(batch).map_err(|error| error.to_string())
    }
}

impl Recording {
    /// Makes a trace at `path`, whose name says the format; it appears when it is finished. Only
    /// the first `most` references are kept. With `all_attempts`, what operations referenced that
    /// had to begin anew is written, too.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, most: u64, all_attempts: bool) -> Result<Recording, BenchError> {
        let sink = write::create(path, &WriteOptions::default())
            .map_err(|error| BenchError::Record(error.to_string()))?;
        let trace = Trace { sink, batch: Batch::default(), left: most, written: 0 };
        Ok(Recording { file: Arc::new(Mutex::new(trace)), all_attempts })
    }

    /// Begins to record.
    pub fn start(&self, recorder: &Recorder) {
        recorder.start(Box::new(Through(self.file.clone())), self.all_attempts);
    }

    /// Ends the recording and completes the file; says how many references it holds.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(self, recorder: &Recorder) -> Result<u64, BenchError> {
        recorder.stop().map_err(BenchError::Record)?;
        let mut trace = locked(&self.file);
        trace.sink.finish().map_err(|error| BenchError::Record(error.to_string()))?;
        Ok(trace.written)
    }
}
