//! Reasons why a sweep could not continue.

use millpond_workload::trace::TraceError;

use crate::registry::PolicyError;

/// Reason why a sweep could not continue.
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
    /// Part of the plan that is impossible.
    #[error("{0}")]
    Plan(String),
}
