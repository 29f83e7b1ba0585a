//! Millpond's drivers over the engines that users would pick instead.
//!
//! Each engine has an adapter in [`engines`] to the drivers' store trait, whose first test is the
//! drivers' own contract check. [`run`] measures all of them interleaved, [`ratio`] says by how
//! much they differ and how sure that is, [`report`] and [`plot`] show it. `docs/compare.md` tells
//! how to run it, and how each engine is configured.

pub mod cgroup;
pub mod device;
pub mod engine;
pub mod engines;
pub mod flushes;
pub mod larger;
#[cfg(any(feature = "berkeleydb", feature = "wiredtiger"))]
mod native;
pub mod plot;
pub mod ratio;
pub mod report;
pub mod roster;
pub mod run;
pub mod stand;
#[cfg(any(feature = "fjall", feature = "rocksdb", feature = "wiredtiger"))]
mod stripes;
pub mod timed;
pub mod workload;
