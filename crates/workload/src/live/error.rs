//! Errors of a driver's run.

use std::error::Error;

/// Reason that a step of a driver, a load or a check failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError<E: Error + 'static> {
    /// The store reported an error.
    #[error("the store failed: {0}")]
    Store(#[from] E),
    /// A row is missing that must exist by the workload's own rules.
    #[error("table {table} has no row with key {key:02x?}: was it loaded at this scale?")]
    Missing {
        /// The table.
        table: &'static str,
        /// The key, as the store sees it.
        key: Box<[u8]>,
    },
    /// A new row exists already, although its key is new by the workload's own rules.
    #[error("table {table} has a row with key {key:02x?} already: do two workers share a number?")]
    Duplicate {
        /// The table.
        table: &'static str,
        /// The key, as the store sees it.
        key: Box<[u8]>,
    },
    /// A value does not have the length of its table's rows.
    #[error("table {table}: a value of {found} bytes where rows have {expected}: another layout?")]
    Length {
        /// The table.
        table: &'static str,
        /// The length found, in bytes.
        found: usize,
        /// The length of the table's rows, in bytes.
        expected: usize,
    },
    /// A value does not follow from its key and version.
    #[error("table {table}, row {row}: the value is not one that was ever written there")]
    Content {
        /// The table.
        table: &'static str,
        /// The row's number.
        row: u64,
    },
    /// A table is missing.
    #[error("there is no table {table}: load the data first")]
    NoTable {
        /// The table.
        table: &'static str,
    },
}
