//! The errors of a command, and the exit code of each.

use millpond_bench::error::{BenchError, BesideError};
use millpond_lab::breakdowns::BreakdownError;
use millpond_lab::compare::CompareError;
use millpond_lab::curve::CurveError;
use millpond_lab::method::RegretError;
use millpond_lab::registry::PolicyError;
use millpond_lab::report::ReportError;
use millpond_lab::results::ResultError;
use millpond_lab::sweep::SweepError;
use millpond_lab::table::TableError;
use millpond_policies::config::ParamError;
use millpond_workload::trace::TraceError;

/// Failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line asks for something impossible: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A policy that cannot be built: exit code 2.
    #[error(transparent)]
    Policy(Box<PolicyError>),
    /// A policy's text: exit code 2.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A trace: exit code 1.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A sweep: exit code 1.
    #[error(transparent)]
    Sweep(Box<SweepError>),
    /// A miss-ratio curve: exit code 1, or 2 for a policy.
    #[error(transparent)]
    Curve(Box<CurveError>),
    /// A result directory: exit code 1.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// Rows that cannot be compared: exit code 1, or 2 for an unknown metric or policy.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A report: exit code 1.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Two breakdowns that cannot be put side by side: exit code 1.
    #[error(transparent)]
    Breakdown(#[from] BreakdownError),
    /// A store, or a problem that a command found in it: exit code 1.
    #[error("{0}")]
    Store(String),
    /// A storage server: exit code 1.
    #[error("{0}")]
    Serve(String),
    /// Costs that cannot be compared: exit code 1.
    #[error(transparent)]
    Regret(#[from] RegretError),
    /// A live run: exit code 1, 2 for impossible options, or 130 if it was stopped.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Writing results: exit code 1, or 0 where a reader closed its pipe.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Writing to a stream: exit code 1, or 0 where a reader closed its pipe.
    #[error("cannot write: {0}")]
    Write(std::io::Error),
    /// Some runs failed; the results of the others are written: exit code 1.
    #[error("{0}")]
    Partly(String),
    /// Ctrl-C: exit code 130.
    #[error("interrupted")]
    Interrupted,
}

millpond_base::from_variants! { Failure {
    Write(std::io::Error),
} }

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Failure {
        Failure::Policy(Box::new(error))
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Failure {
        Failure::Sweep(Box::new(error))
    }
}

impl From<CurveError> for Failure {
    fn from(error: CurveError) -> Failure {
        Failure::Curve(Box::new(error))
    }
}

impl From<BesideError> for Failure {
    fn from(error: BesideError) -> Failure {
        match error {
            BesideError::Bench(error) => Failure::Bench(error),
            BesideError::Policy(error) => Failure::Policy(error),
            BesideError::Param(error) => Failure::Param(error),
            other => Failure::Partly(other.to_string()),
        }
    }
}

impl Failure {
    /// Returns the exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Policy(_) | Failure::Param(_) => 2,
            Failure::Sweep(error) => match **error {
                SweepError::Policy(_) | SweepError::Plan(_) => 2,
                _ => 1,
            },
            Failure::Curve(error) => match **error {
                CurveError::Policy(_) | CurveError::Offline(_) | CurveError::Size { .. } => 2,
                _ => 1,
            },
            Failure::Trace(TraceError::Options(_)) => 2,
            Failure::Compare(CompareError::Metric { .. } | CompareError::Unknown { .. }) => 2,
            Failure::Report(ReportError::Reference { .. }) => 2,
            Failure::Bench(error) if error.is_usage() => 2,
            Failure::Interrupted | Failure::Bench(BenchError::Stopped) => 130,
            _ => 1,
        }
    }

    /// Returns `true` if the reader of our output went away, as `head` does. That is no error
    /// of ours.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
        match self {
            Failure::Write(e) | Failure::Table(TableError::Write(e)) => closed(e),
            Failure::Sweep(error) => match &**error {
                SweepError::Output(TableError::Write(e)) => closed(e),
                _ => false,
            },
            _ => false,
        }
    }
}
