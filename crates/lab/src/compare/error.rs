//! Reasons why runs cannot be compared.

use millpond_workload::formats::parameters::{COLUMNS, EXPAND_SIZES, MAP_IDS};

use crate::parameters::{METRIC, PAGE_SIZE, SELECT, SELECT_OPTIONS};

/// Reason why runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The metric cannot be parsed.
    #[error("'{metric}' is no metric: {reason}")]
    Metric {
        /// The metric as it was given.
        metric: String,
        /// The fault found in it.
        reason: String,
    },
    /// The level would show nothing, or everything.
    #[error("level {0} is no probability: 0.05 or 0.01")]
    Level(String),
    /// The margin is not a share.
    #[error("margin {0} is no share: 0.01 is one per cent")]
    Margin(String),
    /// No column is a metric.
    #[error("the rows have none of {tried}: name a column with {METRIC}; there are {columns}")]
    NoMetric {
        /// The columns that were tried.
        tried: String,
        /// The columns with numbers.
        columns: String,
    },
    /// Fewer than two contestants were found.
    #[error("nothing to compare: {found}, and two policies or runs are needed at least")]
    Few {
        /// The contestants found.
        found: String,
    },
    /// No row has the given name.
    #[error("no row is of '{name}'; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Two different values have the same place.
    #[error(
        "{contestant} has two values at {place}: {first} and {second}; rows that differ in \
         something else cannot be compared: {SELECT}"
    )]
    Twice {
        /// The contestant.
        contestant: String,
        /// Setting and replicate.
        place: String,
        /// The first value.
        first: String,
        /// The second value.
        second: String,
    },
    /// The rows were made with different options, on which numbers depend.
    #[error(
        "the rows have different options, '{first}' and '{second}': their numbers cannot be \
         compared; {SELECT_OPTIONS}{first}', or simulate all with the same options"
    )]
    Options {
        /// Options of the first row.
        first: String,
        /// Options of the other row.
        second: String,
    },
    /// One name stands for two traces.
    #[error(
        "{trace} is not the same references in all rows: the file was changed, or read with other \
         options ({EXPAND_SIZES}, {PAGE_SIZE}, {COLUMNS}, {MAP_IDS}); simulate all rows again"
    )]
    Contents {
        /// Name of the trace.
        trace: String,
    },
    /// Two contestants have no setting in common.
    #[error("{first} and {second} were never run in the same setting")]
    Apart {
        /// The first contestant.
        first: String,
        /// The second contestant.
        second: String,
    },
    /// The rows have too few units of the replicate.
    #[error("there are fewer than two {replicate}s in which all were run: {hint}")]
    Replicates {
        /// Column of the replicate.
        replicate: String,
        /// The advice.
        hint: String,
    },
}
