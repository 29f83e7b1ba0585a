//! Reasons why a sweep could not continue.

use millpond_workload::trace::TraceError;

use crate::registry::PolicyError;

/// Reason why a sweep could not continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A policy does not exist, or cannot run as asked.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Rows could not be written.
    #[error(transparent)]
    Output(crate::table::TableError),
    /// A part of the plan is impossible.
    #[error("{0}")]
    Plan(String),
}
