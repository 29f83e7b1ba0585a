//! The laboratory: policies measured on traces.
//!
//! - [`sim`]: the first-tier simulator: one host, any policy, monomorphised.
//! - [`tier1`]: a simulated buffer pool that makes storage-level traces.
//! - [`tier2`]: the second-tier simulator, with its two models.
//! - [`registry`]: the policies that can be run, Millpond's and a user's own.
//! - [`compare`]: comparison of policies or runs: the better one, and how certain that is.
//! - [`advise`]: advice on the policy for a trace, in three lines.
//! - [`breakdowns`]: CPU time by component before and after a change, from written results.
//! - [`units`]: a sweep cut into parts for job arrays and clusters, each with a file of its own.
//! - [`verdict`]: from intervals to *yes*, *no* or *open*, for the claims of a figure.
//! - [`method`]: tests of significance for paired values, Luan's joint method, and regret.
//! - [`interval`]: means and ratios with their 95 % confidence intervals.

pub mod advise;
pub mod breakdowns;
pub mod compare;
pub mod curve;
pub mod interval;
pub mod method;
mod parameters;
pub mod registry;
pub mod report;
pub mod results;
pub mod sim;
pub mod sweep;
pub mod table;
pub mod tier1;
pub mod tier2;
pub mod units;
pub mod verdict;
