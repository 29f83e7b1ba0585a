//! The interface of every writer, and the function that writes a source to one.

use millpond_base::Lsn;

use crate::trace::{BATCH_LEN, Batch, Source, TraceError};

/// Writer of a trace.
pub trait Sink: Send {
    /// Appends the references of `batch`.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the file cannot be written, for instance on a full disk.
    fn write(&mut self, batch: &Batch) -> Result<(), TraceError>;

    /// Appends the requests of `batch`, with two positions for each page: the end of the last log
    /// record about it, and, for a write, its recLSN. 0 is unknown. A format without these columns,
    /// or a trace created without [`WriteOptions::page_lsns`](super::WriteOptions::page_lsns),
    /// omits them.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn write_with_lsns(&mut self, batch: &Batch, page_lsns: &[[Lsn; 2]]) -> Result<(), TraceError> {
        let _ = page_lsns;
        self.write(batch)
    }

    /// Completes the trace and gives the file its name. Without this, nothing appears.
    ///
    /// # Errors
    /// As [`Sink::write`]; the file then does not appear.
    fn finish(&mut self) -> Result<(), TraceError>;

    /// Returns remarks on the data that the format could not hold.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Writes all of `source` to `sink` and completes it; returns the number of references.
///
/// # Errors
/// Any error of source or sink. The target then does not appear under its name.
pub fn convert(source: &mut dyn Source, sink: &mut dyn Sink) -> Result<u64, TraceError> {
    let mut batch = Batch::with_capacity(BATCH_LEN);
    let mut references = 0;
    loop {
        match source.fill(&mut batch, BATCH_LEN)? {
            0 => break,
            n => references += n as u64,
        }
        sink.write(&batch)?;
        batch.clear();
    }
    sink.finish()?;
    Ok(references)
}

/// Returns the error of a sink used after its end, which is a mistake of the caller.
pub(crate) fn finished() -> TraceError {
    TraceError::Options("the trace is complete: nothing can be written to it any more".into())
}

/// Counts of data that a format cannot hold.
#[derive(Default)]
pub(crate) struct Losses {
    pub writes: u64,
    pub marks: u64,
    pub lsns: u64,
    pub dsyncs: u64,
}

impl Losses {
    pub(crate) fn notes(&self, format: &str) -> Vec<String> {
        let lost = [
            (self.writes, "writes became plain references"),
            (self.marks, "references lost their reason, kind, depth or scan mark"),
            (self.lsns, "log positions were dropped"),
            (self.dsyncs, "dsync records were dropped"),
        ];
        let some = lost.iter().filter(|(n, _)| *n > 0);
        some.map(|(n, what)| format!("{n} {what}: {format} has no place for them")).collect()
    }
}
