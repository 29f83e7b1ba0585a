//! An engine that is loaded with a workload and can be run again and again.
//!
//! Each combination of strategies is compiled with its own drivers; an [`Instance`] hides which one
//! it is, at the price of one virtual call per run.
//!
//! - [`setup`]: which engine, on which device, with which options.
//! - [`prepare`](prepare()), [`prepare_on`]: load a workload into it, or put loaded data under it.
//! - [`image`]: data that were loaded once, for many runs.
//! - [`eviction`]: eviction while nothing else runs.
//! - [`probe`]: what the device below a store delivers by itself.

pub mod eviction;
pub mod image;
mod interface;
mod plan;
mod pool_instance;
mod prepare;
pub mod probe;
mod remote;
pub mod setup;
mod twin_instance;
mod txn_instance;
mod worker_threads;

pub use interface::{Instance, InstanceInfo, Recorders};
pub use prepare::{check, prepare, prepare_on};
