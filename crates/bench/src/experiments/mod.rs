//! Experiments: contests between instances, breakdowns, a store's life, two worlds.
//!
//! - [`contest`]: several instances against each other, in interleaved rounds, with intervals.
//! - [`table`]: results as rows.
//! - [`breakdown`]: CPU time of a workload by component (gilbert 2.1).
//! - [`commits`]: commits of one row, beside the device's own synced writes.
//! - [`evictors`]: speed of eviction by policy, while nothing else runs (watt 6.4).
//! - [`many`]: lookups of several keys by one call, compared with one call per key.
//! - [`opening`]: time to open an empty store.
//! - [`overheads`]: costs of log, locks, pool and a second thread, judged against bars.
//! - [`pace`]: durable commits while pages are written in the background.
//! - [`phases`]: a store through its life, from one large transaction to a file that shrinks.
//! - [`two_worlds`]: a policy's behaviour live and in the simulator, compared.

pub mod breakdown;
pub mod commits;
pub mod contest;
pub mod evictors;
pub mod many;
pub mod opening;
pub mod overheads;
pub mod pace;
pub mod phases;
pub mod table;
pub mod two_worlds;
