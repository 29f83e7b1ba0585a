//! Settings for opening a log, in a form that does not depend on the store's options.

use std::collections::BTreeMap;

use super::progress::Progress;
use crate::io::PageStore;
use crate::log::LogOptions;

/// Finds the names of a store's structures by owner id, for errors, as far as its catalog can be
/// read. `admin` has one that can read a damaged store.
pub(crate) type StructureNames = fn(&PageStore) -> BTreeMap<u32, String>;

/// Settings for opening a log.
pub(crate) struct LogSettings<'s> {
    /// Sizes of the log's buffer and of its segments.
    pub(crate) log: LogOptions,
    /// Memory for pages that recovery rebuilds, in bytes. The pool takes it over afterwards.
    pub(crate) memory: usize,
    /// True if a damaged log is cut off at its damage, if that leaves a consistent store.
    pub(crate) salvage: bool,
    /// Finds names for the error of a damaged log.
    pub(crate) names: StructureNames,
    /// Receives the progress of recovery.
    pub(crate) progress: &'s dyn Fn(Progress),
}
