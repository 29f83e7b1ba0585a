//! Errors of stored results.

use std::path::PathBuf;

use crate::table::TableError;

/// Reason why a result directory could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// A file or folder could not be created, written or read.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file `rows.parquet` could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file of a unit of a sweep is damaged.
    #[error("{0}; delete the file, and the same sweep runs its unit again")]
    Unit(TableError),
    /// The folder belongs to a sweep with other settings, or of another build.
    #[error("{path} has results of another sweep: {reason}; name another folder")]
    OtherSweep {
        /// The folder.
        path: PathBuf,
        /// The difference between the sweeps.
        reason: String,
    },
    /// The path is not a result directory, or the directory is damaged.
    #[error("{path} is no result directory: {reason}")]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// The missing or wrong part.
        reason: String,
    },
}
