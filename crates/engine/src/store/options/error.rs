//! Errors of options.

use millpond_tier::TierError;

use crate::pool::{EvictionMode, SyncMode};
use crate::store::options::budget::BudgetError;
use crate::store::options::choices::TranslationMode;
use crate::store::options::policy_choice::PolicyError;

use crate::store::options::limits::*;

/// Invalid options.
///
/// ```
/// use millpond::{Options, error::OptionsError};
/// assert!(matches!(Options::new().policy("lur").check(), Err(OptionsError::Policy(_))));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The page size is invalid.
    #[error(
        "page_size cannot be {page_size}: choose a power of two from {least} to {PAGE_SIZE_MAX}"
    )]
    PageSize {
        /// The requested size, in bytes.
        page_size: u32,
        /// Smallest allowed size, in bytes.
        least: u32,
    },
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy of the second tier is invalid.
    #[error("in second_tier: {0}")]
    TierPolicy(PolicyError),
    /// The second tier is too small, or unsuitable.
    #[error("in second_tier: {0}")]
    Tier(TierError),
    /// The memory is not enough.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A number is out of its range.
    #[error("{knob} cannot be {value}: choose a number from {least} to {most}")]
    OutOfRange {
        /// Name of the option.
        knob: &'static str,
        /// The requested number.
        value: u32,
        /// Smallest allowed number.
        least: u32,
        /// Largest allowed number.
        most: u32,
    },
    /// Without latches only one thread is allowed, and eviction would add threads.
    #[error(
        "latching = none is for one thread, and eviction = {eviction} starts more: set eviction \
         = worker"
    )]
    NotAlone {
        /// The requested eviction.
        eviction: EvictionMode,
    },
    /// Pages are to be cleaned by the dirty share, and there is no thread for it.
    #[error(
        "lab.cleaning makes page cleaners of eviction threads, and eviction = {eviction}: set \
         eviction = threads(N)"
    )]
    NoCleaners {
        /// The requested eviction.
        eviction: EvictionMode,
    },
    /// Neighbours of a page are to be written with it, and cannot be found.
    #[error(
        "lab.cleaning writes neighbours, which are found by their ids, and translation = \
         {translation}: set translation = hashed"
    )]
    NoNeighbours {
        /// The requested translation.
        translation: TranslationMode,
    },
    /// Misses are to read ahead, and there is no thread for it.
    #[error(
        "lab.read_ahead reads pages on the thread that writes in the background, beside all \
         others: set lab.background_writer = true, and latching = optimistic or latched"
    )]
    NoReader,
    /// A sync mode was requested for a store that is out of place or has no log.
    #[error(
        "lab.sync_mode = {sync_mode} is for stores in place that have a log: set \
         lab.placement = InPlace and lab.log = true"
    )]
    NotInPlace {
        /// The requested sync mode.
        sync_mode: SyncMode,
    },
    /// `direct_io = on`, and the file system does not support it.
    #[error(
        "the file system cannot bypass the page cache, and direct_io = on asks for it: set \
         direct_io = auto, or move the store"
    )]
    NoDirectIo,
    /// `submission = uring`, and the kernel does not allow it.
    #[error(
        "the kernel does not allow io_uring, and submission = uring asks for it: set submission \
         = auto, or allow it (sysctl kernel.io_uring_disabled, or the container's seccomp rules)"
    )]
    NoUring,
}

millpond_base::from_variants! { OptionsError {
    Tier(TierError),
} }
