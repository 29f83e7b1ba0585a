//! The parameters of a TPC-C run.

use super::mix::Mix;
use super::scale::{Scale, ScaleError};

/// A TPC-C run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Amount of data loaded.
    pub scale: Scale,
    /// Shares of the transactions.
    pub mix: Mix,
    /// `true` if each worker keeps to one home warehouse (leanstore table I) instead of drawing one
    /// for every transaction. Remote payments and remote stock remain.
    pub has_affinity: bool,
    /// Payments by customers of another warehouse, in per cent; 15 (clause 2.5.1.2).
    pub remote_payments: u8,
    /// Order lines that another warehouse supplies, in per cent; 1 (clause 2.4.1.5).
    pub remote_lines: u8,
    /// Number of concurrent workers. With 1, the work that only protects against concurrent
    /// transactions is left out.
    pub threads: u32,
}

impl Config {
    /// Returns the specification's run.
    pub fn standard(scale: Scale, threads: u32) -> Config {
        Config {
            scale,
            mix: Mix::STANDARD,
            has_affinity: false,
            remote_payments: 15,
            remote_lines: 1,
            threads,
        }
    }

    /// Checks that the run is possible.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.scale.validate()?;
        if self.mix.borders()[4] == 0 {
            return Err(ConfigError::NoTransactions);
        }
        if self.threads == 0 {
            return Err(ConfigError::NoThreads);
        }
        Ok(())
    }
}

/// Reason that a run is impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no data to run on.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// All shares are 0.
    #[error("the mix has no transactions")]
    NoTransactions,
    /// No workers.
    #[error("a run needs at least one thread")]
    NoThreads,
    /// A worker's number is that of a loader.
    #[error("worker number {thread}: numbers go to 2^31 - 1")]
    Thread {
        /// The number.
        thread: u32,
    },
}
