//! Measured live runs of the engine: workloads on the pool, in each of its compiled combinations,
//! and on the in-memory twin.
//!
//! - [`run`]: threads, phases, clocks, for any store.
//! - [`stores`]: the engine as a store for the workloads' drivers.
//! - [`instance`]: a loaded engine of any combination, which can run repeatedly.
//! - [`experiments`]: the measurements.
//! - [`memory_group`]: a memory limit for this process.
//!
//! Each folder of this list uses only the ones above it.
//!
//! Without the feature `runs`, the crate has only [`stores::tree_store`], [`stores::db_store`] and
//! [`run::turns`].
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
