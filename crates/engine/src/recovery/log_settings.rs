//! Settings for opening a log that do not depend on the store's options.

use std::collections::BTreeMap;

use super::progress::Progress;
use crate::io::PageStore;
use crate::log::LogOptions;

/// Finds the names of a store's structures by their owner ids, as far as its catalog can be read:
/// for errors. `admin` has one, which can read a damaged store.
pub(crate) type StructureNames = fn(&PageStore) -> BTreeMap<u32, String>;

/// Settings for opening a log.
pub(crate) struct LogSettings<'s> {
    /// Sizes of its buffer and of its segments.
    pub(crate) log: LogOptions,
    /// Memory for pages that recovery rebuilds, in bytes: that of the pool, which comes afterwards.
    pub(crate) memory: usize,
    /// True if a damaged log is cut off at its damage, if that leaves a consistent store.
    pub(crate) salvage: bool,
    /// Finds names for the error of a damaged log.
    pub(crate) names: StructureNames,
    /// Receives how far recovery is.
    pub(crate) progress: &'s dyn Fn(Progress),
}
