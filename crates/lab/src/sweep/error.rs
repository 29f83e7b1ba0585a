//! Why a sweep could not go on.

use millpond_workload::trace::TraceError;

use crate::registry::PolicyError;

/// Why a sweep could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Rows could not be handed out.
    #[error(transparent)]
    Output(crate::table::TableError),
    /// Something that the plan asks for and cannot be had.
    #[error("{0}")]
    Plan(String),
}
