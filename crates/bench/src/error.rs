//! Errors of a run.

use std::error::Error;

use millpond::error::OptionsError;
use millpond::internals::io::{CloseError, CreateError, OpenError};
use millpond::internals::pool::PoolError;
use millpond::internals::store::CombinationError;
use millpond::internals::store::combinations::PolicyFitError;
use millpond_device::{DeviceError, OpenFileError};
use millpond_lab::registry::PolicyError;
use millpond_lab::sim::Stalled;
use millpond_policies::config::ParamError;
use millpond_server::client::NbdError;
use millpond_workload::live::DriveError;
use millpond_workload::{tpcc, ycsb};

/// Reason that a run failed or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The run asks for something impossible.
    #[error("{0}")]
    Usage(String),
    /// Impossible options of the store.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Strategies of the pool that are not compiled together.
    #[error(transparent)]
    Combination(#[from] CombinationError),
    /// A policy that the pool cannot host.
    #[error(transparent)]
    PolicyFit(#[from] PolicyFitError),
    /// An impossible key-value run.
    #[error(transparent)]
    Ycsb(#[from] ycsb::ConfigError),
    /// An impossible TPC-C run.
    #[error(transparent)]
    Tpcc(#[from] tpcc::ConfigError),
    /// The pool failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The process could not sample itself.
    #[error(transparent)]
    Profile(#[from] millpond_profile::ProfileError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The file could not be opened.
    #[error(transparent)]
    File(#[from] OpenFileError),
    /// The export of an NBD server cannot be used.
    #[error(transparent)]
    Nbd(#[from] NbdError),
    /// The store could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The store could not be opened again.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store could not be closed.
    #[error(transparent)]
    Close(#[from] CloseError),
    /// A store with transactions failed.
    #[error(transparent)]
    Store(#[from] millpond::Error),
    /// No memory limit is possible here.
    #[error("no memory limit can be set here: {0}")]
    Limit(crate::memory_group::LimitError),
    /// An operation of the workload failed.
    #[error("the run failed: {0}")]
    Drive(Box<dyn Error + Send + Sync>),
    /// The recording of references failed.
    #[error("the trace could not be recorded: {0}")]
    Record(String),
    /// The store is closed, because an earlier reopen failed.
    #[error("the store of this run is closed after an earlier failure: restart the run")]
    Closed,
    /// The run was stopped before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

millpond_base::from_variants! { BenchError {
    Limit(crate::memory_group::LimitError),
} }

impl BenchError {
    /// Returns `true` if the command line is at fault, not the run.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            BenchError::Usage(_)
                | BenchError::Options(_)
                | BenchError::Combination(_)
                | BenchError::PolicyFit(_)
                | BenchError::Ycsb(_)
                | BenchError::Tpcc(_)
        )
    }
}

impl<E: Error + Send + Sync + 'static> From<DriveError<E>> for BenchError {
    fn from(error: DriveError<E>) -> BenchError {
        BenchError::Drive(Box::new(error))
    }
}

/// Reason that a live run and the simulator could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BesideError {
    /// The live run.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A policy that cannot be built.
    #[error(transparent)]
    Policy(Box<PolicyError>),
    /// A malformed policy text.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A policy found no victim in the simulator.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl From<PolicyError> for BesideError {
    fn from(error: PolicyError) -> BesideError {
        BesideError::Policy(Box::new(error))
    }
}
