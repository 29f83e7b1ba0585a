//! Errors of a phase.

use std::io;
use std::path::PathBuf;

use millpond::Error;

use super::plan::Phase;
use crate::error::BenchError;

/// Reason that a phase failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PhaseError {
    /// The store failed.
    #[error("phase {phase}, after {rows} rows of a transaction: {error}")]
    Store {
        /// The phase.
        phase: Phase,
        /// Rows that the transaction, or the read, had completed.
        rows: u64,
        /// Error of the store.
        error: Box<Error>,
    },
    /// A row is missing.
    #[error("phase {phase}: the row with key {key:02x?} was committed, and is not there")]
    Missing {
        /// The phase.
        phase: Phase,
        /// The key.
        key: Box<[u8]>,
    },
    /// A row exists that nobody has inserted so far.
    #[error("phase {phase}: there is a row with key {key:02x?}, and nobody has inserted it")]
    Stray {
        /// The phase.
        phase: Phase,
        /// The key.
        key: Box<[u8]>,
    },
    /// A value differs from the written one.
    #[error("phase {phase}: the value of key {key:02x?} is not the one that was written")]
    Value {
        /// The phase.
        phase: Phase,
        /// The key.
        key: Box<[u8]>,
    },
    /// Keys of a range do not ascend.
    #[error("phase {phase}: key {key:02x?} comes behind a greater one, or twice")]
    Order {
        /// The phase.
        phase: Phase,
        /// The key.
        key: Box<[u8]>,
    },
    /// The rows differ from the committed ones, in number or in identity.
    #[error("phase {phase}: there are {found} rows, and not the {expected} that were committed")]
    Rows {
        /// The phase.
        phase: Phase,
        /// Rows that were found.
        found: u64,
        /// Rows that must exist.
        expected: u64,
    },
    /// The folder of the store cannot be read.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl From<PhaseError> for BenchError {
    fn from(error: PhaseError) -> BenchError {
        BenchError::Drive(Box::new(error))
    }
}

/// Returns a conversion of a store's error that adds the phase and the rows completed by
/// then.
pub(super) fn failed(phase: Phase, rows: u64) -> impl Fn(Error) -> PhaseError {
    move |error| PhaseError::Store { phase, rows, error: Box::new(error) }
}
