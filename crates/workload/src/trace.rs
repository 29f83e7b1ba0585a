//! The stream of references, from readers and generators to simulators.

use std::path::PathBuf;

use millpond_base::{Lsn, Mark};

/// Usual number of references per batch.
pub const BATCH_LEN: usize = 1 << 16;

/// A run of consecutive references, as columns of equal length.
///
/// `lsns` is empty if the trace carries none; otherwise it has one entry per reference.
#[derive(Default, Debug, Clone)]
pub struct Batch {
    /// The page of each reference.
    pub pages: Vec<u64>,
    /// Marks of the references.
    pub marks: Vec<Mark>,
    /// Log position of each reference, or empty.
    pub lsns: Vec<Lsn>,
}

impl Batch {
    /// Creates an empty batch with room for `len` references.
    pub fn with_capacity(len: usize) -> Batch {
        Batch { pages: Vec::with_capacity(len), marks: Vec::with_capacity(len), lsns: Vec::new() }
    }

    /// Returns the number of references.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Returns `true` if the batch holds no reference.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.marks.clear();
        self.lsns.clear();
    }

    /// Removes requests for durability, which are no page references.
    pub fn drop_dsyncs(&mut self) {
        if !self.marks.iter().any(|m| m.is_dsync()) {
            return;
        }
        let keep: Vec<bool> = self.marks.iter().map(|m| !m.is_dsync()).collect();
        let mut at = keep.iter();
        self.pages.retain(|_| at.next().copied().unwrap_or(true));
        let mut at = keep.iter();
        self.lsns.retain(|_| at.next().copied().unwrap_or(true));
        self.marks.retain(|m| !m.is_dsync());
    }

    /// Appends a reference without a log position.
    pub fn push(&mut self, page: u64, mark: Mark) {
        self.pages.push(page);
        self.marks.push(mark);
    }
}

/// An error of a trace, with the file, the place and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file could not be opened or read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// A record violates its format, or the file ends in the middle of a record.
    #[error("{path}: record {record}: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The record's number, from 1 (a line number in text formats).
        record: u64,
        /// The fault.
        reason: String,
    },
    /// No known format fits the file.
    #[error("{path}: format not recognised: {reason}")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Finding of the detection, and the option that names a format.
        reason: String,
    },
    /// The trace holds no reference.
    #[error("{path}: the trace is empty")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// An option that does not fit the file or the generator.
    #[error("{0}")]
    Options(String),
}

/// A trace, read from its beginning in batches.
pub trait Source: Send {
    /// Appends at most `limit` further references to `batch` and returns their number; 0 is
    /// the end.
    ///
    /// # Errors
    /// Any fault of the file, with the record where it occurs.
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError>;

    /// Returns notes for the user about the data read so far: ignored object sizes, mapped
    /// non-numeric ids. They are complete once `fill` has returned 0.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the share of the trace read so far, 0 to 1, if known.
    fn progress(&self) -> Option<f64> {
        None
    }
}
