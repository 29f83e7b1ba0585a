//! Live runs of the engine: workloads on the pool in each of its compiled combinations and on the
//! in-memory twin, measured.
//!
//! - [`run`]: threads, phases, clocks, for any store.
//! - [`stores`]: the engine as a store of those drivers.
//! - [`instance`]: an engine that is loaded and can be run again and again, whatever its
//!   combination.
//! - [`experiments`]: what is measured with them.
//! - [`memory_group`]: a memory limit for this process.
//!
//! A lower folder of this list uses the ones above it, never the reverse.
//!
//! Without the feature `runs`, [`stores::tree_store`], [`stores::db_store`] and [`run::turns`] are
//! all that there is.
#![deny(missing_docs)]
#![cfg_attr(not(feature = "runs"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "runs")]
pub mod error;
#[cfg(feature = "runs")]
pub mod experiments;
#[cfg(feature = "runs")]
pub mod instance;
#[cfg(feature = "runs")]
pub mod memory_group;
mod parameters;
pub mod run;
pub mod stores;

#[cfg(feature = "runs")]
pub use millpond_lab::interval;
