//! Reasons why runs cannot be compared.

use crate::parameters::{
    COLUMNS, EXPAND_SIZES, MAP_IDS, METRIC, PAGE_SIZE, SELECT, SELECT_OPTIONS,
};

/// Reason why runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A metric that cannot be read.
    #[error("'{metric}' is no metric: {reason}")]
    Metric {
        /// The metric as it was given.
        metric: String,
        /// The fault found in it.
        reason: String,
    },
    /// A level at which nothing, or everything, would be shown.
    #[error("level {0} is no probability: 0.05 or 0.01")]
    Level(String),
    /// A margin that is no share.
    #[error("margin {0} is no share: 0.01 is one per cent")]
    Margin(String),
    /// No column that is a metric.
    #[error("the rows have none of {tried}: name a column with {METRIC}; there are {columns}")]
    NoMetric {
        /// The columns that were tried.
        tried: String,
        /// The columns with numbers.
        columns: String,
    },
    /// Less than two things to compare.
    #[error("nothing to compare: {found}, and two policies or runs are needed at least")]
    Few {
        /// The contestants found.
        found: String,
    },
    /// A name that no row has.
    #[error("no row is of '{name}'; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Two different values where there should be one.
    #[error(
        "{contestant} has two values at {place}: {first} and {second}; rows that differ in \
         something else cannot be compared: {SELECT}"
    )]
    Twice {
        /// The contestant.
        contestant: String,
        /// Setting and replicate.
        place: String,
        /// One value.
        first: String,
        /// The other one.
        second: String,
    },
    /// Rows whose numbers depend on different options.
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
    /// One name for two traces.
    #[error(
        "{trace} is not the same references in all rows: the file was changed, or read with other \
         options ({EXPAND_SIZES}, {PAGE_SIZE}, {COLUMNS}, {MAP_IDS}); simulate all rows again"
    )]
    Contents {
        /// The trace.
        trace: String,
    },
    /// No setting in which two of them were run.
    #[error("{first} and {second} were never run in the same setting")]
    Apart {
        /// One of them.
        first: String,
        /// The other one.
        second: String,
    },
    /// Replicates that the rows do not have.
    #[error("there are fewer than two {replicate}s in which all were run: {hint}")]
    Replicates {
        /// The column.
        replicate: String,
        /// The advice.
        hint: String,
    },
}
