//! Comparison of policies, or builds, by the rows of runs: the better one, and how certain that is.
//!
//! Rows become a [`Contest`]: values of one metric for each *contestant*, in each *setting* (trace,
//! cache size, threads…) and each *replicate* of it. [`Outcome`] tests them pair by pair over the
//! replicates, with Holm's correction over the pairs and equivalence within a stated margin. It
//! adds Luan's joint method over the settings, and ranks over the replicates.

mod contest;
mod error;
mod metric;
mod outcome;
mod pair;
mod section;
mod sentence;
#[cfg(test)]
mod tests;

pub use contest::{Contest, Replicate, Run};
pub use error::CompareError;
pub use metric::Metric;
pub use outcome::{CompareOptions, Outcome};
pub use pair::{Pair, Verdict};
