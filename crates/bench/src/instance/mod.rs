//! An engine that is loaded with a workload and can run it repeatedly.
//!
//! Each combination of strategies is compiled with its own drivers. An [`Instance`] hides the
//! combination at the cost of one virtual call per run.
//!
//! - [`setup`]: the engine, its device and its options.
//! - [`prepare`](prepare()), [`prepare_on`]: load a workload into it, or put loaded data under it.
//! - [`image`]: data loaded once, for many runs.
//! - [`eviction`]: eviction while nothing else runs.
//! - [`probe`]: read rate of the device below a store.

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
