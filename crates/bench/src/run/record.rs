//! Recording the page references of a run as a trace, or what it asks of storage.
//!
//! Encoding a trace costs ten times as much as recording its references, and takes processor time
//! from the run. So a run writes references as they are, eight bytes each, to a file without a name
//! beside the trace, and the trace is encoded when the run is over. If the process dies, the system
//! takes that file away with it.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use millpond::internals::pool::recording::recorder::{Recorder, Reference, Sink};
use millpond::internals::pool::{StorageRecorder, StorageRequest, StorageSink};
use millpond_base::PastPoison;
use millpond_workload::trace::{BATCH_LEN, Batch};
use millpond_workload::write::{self, WriteOptions};

use crate::error::BenchError;
use crate::run::runner::Observer;

/// Bytes of a reference in the spool.
const BYTES: usize = 8;

/// A trace that is being recorded.
pub struct Recording {
    sink: Box<dyn write::Sink>,
    spool: Arc<Mutex<Spool>>,
    all_attempts: bool,
}

/// References as they are.
struct Spool {
    file: File,
    bytes: Vec<u8>,
    /// References that still fit.
    left: u64,
    written: u64,
}

fn locked(spool: &Mutex<Spool>) -> MutexGuard<'_, Spool> {
    spool.lock().past_poison()
}

/// Hands references on to the spool.
struct Through(Arc<Mutex<Spool>>);

impl Sink for Through {
    fn take(&mut self, references: &[Reference]) -> Result<(), String> {
        let mut spool = locked(&self.0);
        let Spool { file, bytes, left, written } = &mut *spool;
        let count = references.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        bytes.clear();
        bytes.extend(references[..count].iter().flat_map(|reference| reference.to_bytes()));
        *left -= count as u64;
        *written += count as u64;
        file.write_all(bytes).map_err(|error| error.to_string())
    }
}

/// A hidden file beside `path`.
fn spool_beside(path: &Path) -> Result<File, BenchError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    tempfile::tempfile_in(folder.unwrap_or(Path::new("."))).map_err(failed)
}

fn failed(error: impl ToString) -> BenchError {
    BenchError::Record(error.to_string())
}

/// A trace that is kept in memory.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Batch>>);

impl Kept {
    /// The references so far; later ones are collected separately.
    pub fn take(&self) -> Batch {
        std::mem::take(&mut *self.0.lock().past_poison())
    }
}

impl Sink for Kept {
    fn take(&mut self, references: &[Reference]) -> Result<(), String> {
        let mut batch = self.0.lock().past_poison();
        references.iter().for_each(|r| batch.push(r.page().0, r.mark()));
        Ok(())
    }
}

impl Recording {
    /// Makes a trace at `path`, whose name says the format; it appears when it is finished. Only
    /// the first `most` references are kept. With `all_attempts`, the references of operations that
    /// had to restart are written, too.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, most: u64, all_attempts: bool) -> Result<Recording, BenchError> {
        let sink = write::create(path, &WriteOptions::default()).map_err(failed)?;
        let file = spool_beside(path)?;
        let spool = Spool { file, bytes: Vec::new(), left: most, written: 0 };
        Ok(Recording { sink, spool: Arc::new(Mutex::new(spool)), all_attempts })
    }

    /// Begins to record.
    pub fn start(&self, recorder: &Recorder) {
        recorder.start(Box::new(Through(self.spool.clone())), self.all_attempts);
    }

    /// Ends the recording, and encodes and completes the trace; returns how many references it
    /// holds. The observer hears how far it is.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(
        mut self,
        recorder: &Recorder,
        observer: &mut dyn Observer,
    ) -> Result<u64, BenchError> {
        recorder.stop().map_err(BenchError::Record)?;
        let mut spool = locked(&self.spool);
        spool.file.rewind().map_err(failed)?;
        let mut batch = Batch::with_capacity(BATCH_LEN);
        let (mut done, mut said) = (0, None);
        while spool.fill(&mut batch).map_err(failed)? {
            self.sink.write(&batch).map_err(failed)?;
            done += batch.len() as u64;
            let percent = done * 100 / spool.written.max(1);
            if said.replace(percent) != Some(percent) {
                observer.begin(&format!("writing the trace, {percent} %"));
            }
        }
        self.sink.finish().map_err(failed)?;
        Ok(spool.written)
    }
}

impl Spool {
    /// Reads the next references into `batch`; false at the end.
    fn fill(&mut self, batch: &mut Batch) -> io::Result<bool> {
        self.bytes.clear();
        (&self.file).take((BATCH_LEN * BYTES) as u64).read_to_end(&mut self.bytes)?;
        batch.clear();
        for bytes in self.bytes.as_chunks::<BYTES>().0 {
            let reference = Reference::from_bytes(*bytes);
            batch.push(reference.page().0, reference.mark());
        }
        Ok(!batch.is_empty())
    }
}

/// A trace of what a run asks of storage, being recorded.
pub struct StorageRecording {
    sink: Box<dyn write::Sink>,
    spool: Arc<Mutex<File>>,
}

/// Hands requests on to the spool.
struct ThroughFile(Arc<Mutex<File>>, Vec<u8>);

impl StorageSink for ThroughFile {
    fn take(&mut self, requests: &[StorageRequest]) -> Result<(), String> {
        let ThroughFile(file, bytes) = self;
        bytes.clear();
        bytes.extend(requests.iter().flat_map(|request| request.to_bytes()));
        let mut file = file.lock().past_poison();
        file.write_all(bytes).map_err(|error| error.to_string())
    }
}

impl StorageRecording {
    /// Makes a trace at `path`, whose name says the format; it appears when it is finished.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> Result<StorageRecording, BenchError> {
        let options = WriteOptions { page_lsns: true, ..WriteOptions::default() };
        let sink = write::create(path, &options).map_err(failed)?;
        let spool = Arc::new(Mutex::new(spool_beside(path)?));
        Ok(StorageRecording { sink, spool })
    }

    /// Begins to record.
    pub fn start(&self, recorder: &StorageRecorder) {
        recorder.start(Box::new(ThroughFile(self.spool.clone(), Vec::new())));
    }

    /// Ends the recording, and encodes and completes the trace; returns how many requests it holds.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(mut self, recorder: &StorageRecorder) -> Result<u64, BenchError> {
        let recorded = recorder.stop().map_err(BenchError::Record)?;
        let mut file = self.spool.lock().past_poison();
        file.rewind().map_err(failed)?;
        let (mut batch, mut lsns) = (Batch::with_capacity(BATCH_LEN), Vec::new());
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let most = (BATCH_LEN * StorageRequest::BYTES) as u64;
            (&*file).take(most).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.is_empty() {
                break;
            }
            batch.clear();
            lsns.clear();
            for bytes in bytes.as_chunks::<{ StorageRequest::BYTES }>().0 {
                let request = StorageRequest::from_bytes(bytes);
                batch.push(request.page.0, request.mark);
                batch.lsns.push(request.lsn);
                lsns.push([request.page_lsn, request.rec_lsn]);
            }
            self.sink.write_with_lsns(&batch, &lsns).map_err(failed)?;
        }
        self.sink.finish().map_err(failed)?;
        Ok(recorded)
    }
}
