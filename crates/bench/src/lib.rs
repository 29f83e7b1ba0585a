//! Live runs of the engine: workloads on the pool in each of its compiled combinations and on the
//! in-memory twin, measured.
//!
//! - [`store`]: the trees as the store that the drivers of `millpond-workload` speak to.
//! - [`db_store`]: a store as users open it, for the same drivers.
//! - [`runner`]: threads, phases, clocks, for any store: other engines run the very same loop.
//! - [`bed`]: an engine that is loaded and can be run again and again, whatever its combination.
//! - [`contest`]: several of them against each other, in interleaved rounds, with intervals.
//! - [`hit_table`]: what policies make of the engine's own references (leanstore VI-B).
//! - [`probe`]: what the device below a store gives by itself.
//! - [`record`]: the page references of a run as a trace.
//! - [`table`]: results as rows.
#![deny(missing_docs)]

pub mod bed;
pub mod client;
pub mod contest;
pub mod counts;
pub mod db_store;
pub mod error;
pub mod hit_table;
pub mod interval;
pub mod probe;
pub mod record;
pub mod runner;
pub mod setup;
pub mod store;
pub mod table;
