//! Experiments: contests between instances, breakdowns, a store's life, two worlds.
//!
//! - [`contest`]: several instances against each other, in interleaved rounds, with intervals.
//! - [`table`]: results as rows.
//! - [`breakdown`]: CPU time of a workload by component (gilbert 2.1).
//! - [`commits`]: commits of one row, beside what the device does by itself.
//! - [`evictors`]: how fast policies evict, while nothing else runs (watt 6.4).
//! - [`many`]: several keys looked up by one call, beside as many calls.
//! - [`opening`]: how long an empty store takes to open.
//! - [`overheads`]: what log, locks, pool and a second thread cost, against bars.
//! - [`pace`]: durable commits while pages are written in the background.
//! - [`phases`]: a store through its life, from one large transaction to a file that shrinks.
//! - [`two_worlds`]: whether a policy does live what it does in the simulator.

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
