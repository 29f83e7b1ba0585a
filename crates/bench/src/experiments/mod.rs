//! What is measured: contests between instances, the papers' live figures, two worlds.
//!
//! - [`contest`]: several instances against each other, in interleaved rounds, with intervals.
//! - [`table`]: results as rows.
//! - [`breakdown`]: CPU time of a workload by component (gilbert 2.1).
//! - [`commits`]: commits of one row, beside what the device does by itself.
//! - [`default_policy`]: which policy decides where nothing names one, by regret.
//! - [`evictors`]: how fast policies evict, while nothing else runs (watt 6.4).
//! - [`many`]: several keys looked up by one call, beside as many calls.
//! - [`opening`]: how long an empty store takes to open.
//! - [`overheads`]: what log, locks, pool and a second thread cost, against bars.
//! - [`pace`]: durable commits while pages are written in the background.
//! - [`phases`]: a store through its life, from one large transaction to a file that shrinks.
//! - [`hit_table`]: what policies make of the engine's own references (leanstore VI-B).
//! - [`recorded`]: traces of the engine for experiments that are simulated.
//! - [`recorded_storage`]: what live pools ask of storage, for the same.
//! - [`figure`]: how a live figure of a paper is written.
//! - [`papers`]: the live experiments of the papers.
//! - [`two_worlds`]: whether a policy does live what it does in the simulator.

pub mod breakdown;
pub mod commits;
pub mod contest;
pub mod default_policy;
pub mod evictors;
pub mod figure;
pub mod hit_table;
pub mod many;
pub mod opening;
pub mod overheads;
pub mod pace;
pub mod papers;
pub mod phases;
pub mod recorded;
pub mod recorded_storage;
pub mod table;
pub mod two_worlds;
