//! Live runs of the engine: workloads on the pool in each of its compiled combinations and on the
//! in-memory twin, measured.
//!
//! - [`store`]: the trees as the store that the drivers of `millpond-workload` speak to.
//! - [`db_store`]: a store as users open it, for the same drivers.
//! - [`txn_store`]: a store with transactions, in one combination, for the same drivers.
//! - [`runner`]: threads, phases, clocks, for any store: other engines run the very same loop.
//! - [`instance`]: an engine that is loaded and can be run again and again, whatever its
//!   combination.
//! - [`contest`]: several of them against each other, in interleaved rounds, with intervals.
//! - [`commits`]: commits of one row, beside what the device gives by itself.
//! - [`evictors`]: how fast policies evict, while nothing else runs (watt 6.4).
//! - [`opening`]: how long an empty store takes to open.
//! - [`figure`]: how a live figure of a paper is written.
//! - [`hit_table`]: what policies make of the engine's own references (leanstore VI-B).
//! - [`image`]: data that were loaded once, for many runs.
//! - [`memory_group`]: a memory limit for this process.
//! - [`papers`]: the live experiments of the papers.
//! - [`probe`]: what the device below a store gives by itself.
//! - [`record`]: the page references of a run as a trace.
//! - [`recorded`]: traces of the engine for experiments that are simulated.
//! - [`table`]: results as rows.
//! - [`two_worlds`]: whether a policy does live what it does in the simulator.
//!
//! Without the feature `runs`, [`store`] and [`turns`] are all that there is.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "runs"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "runs")]
pub mod client;
#[cfg(feature = "runs")]
pub mod commits;
#[cfg(feature = "runs")]
pub mod contest;
#[cfg(feature = "runs")]
pub mod counts;
#[cfg(feature = "runs")]
pub mod db_store;
#[cfg(feature = "runs")]
pub mod error;
#[cfg(feature = "runs")]
pub mod evictors;
#[cfg(feature = "runs")]
pub mod figure;
#[cfg(feature = "runs")]
pub mod hit_table;
#[cfg(feature = "runs")]
pub mod image;
#[cfg(feature = "runs")]
pub mod instance;
#[cfg(feature = "runs")]
mod instructions;
#[cfg(feature = "runs")]
pub mod memory_group;
#[cfg(feature = "runs")]
pub mod opening;
#[cfg(feature = "runs")]
pub mod papers;
#[cfg(feature = "runs")]
pub mod probe;
#[cfg(feature = "runs")]
pub mod record;
#[cfg(feature = "runs")]
pub mod recorded;
#[cfg(feature = "runs")]
pub mod runner;
#[cfg(feature = "runs")]
pub mod setup;
pub mod store;
#[cfg(feature = "runs")]
pub mod table;
pub mod turns;
#[cfg(feature = "runs")]
mod twin_instance;
#[cfg(feature = "runs")]
pub mod two_worlds;
#[cfg(feature = "runs")]
mod txn_instance;
#[cfg(feature = "runs")]
pub mod txn_store;
#[cfg(feature = "runs")]
mod worker_threads;

#[cfg(feature = "runs")]
pub use millpond_lab::interval;
