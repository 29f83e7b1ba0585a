//! The live experiments of the papers: what is run, and what is made of it.
//!
//! - [`gilbert`]: throughput and miss rate of every live policy over pool sizes (gilbert 1.2, 1.3).
//! - [`gilbert_factors`]: his three factors of every live policy in one table (gilbert 1.3, 1.4).
//! - [`gilbert_stated`]: those of his policies that stalled, as he states them.
//! - [`leanstore`]: LeanStore's evaluation in memory and beyond.
//! - [`looking_glass`]: where a transaction's CPU time goes (gilbert 2).
//! - [`live`]: a figure whose cells are runs of the engine.
//! - [`luan_live`]: Luan's live figures (luan 5.7).
//! - [`stall`]: when a policy counts as stalled.
//! - [`watt_counted`]: a worker alone on one thread, to count instructions and misses of.
//! - [`watt_live`]: WATT's live figures (watt 6).

pub mod gilbert;
mod gilbert_bounds;
mod gilbert_claims;
mod gilbert_course;
pub mod gilbert_factors;
pub mod gilbert_stated;
mod gilbert_studies;
pub mod leanstore;
mod leanstore_course;
mod leanstore_hits;
mod leanstore_memory;
mod leanstore_outgrow;
mod leanstore_outside;
pub mod live;
pub mod looking_glass;
pub mod luan_live;
mod sizes;
pub mod stall;
mod threads;
pub mod watt_counted;
mod watt_evictors;
pub mod watt_live;
mod watt_modes;
mod watt_pages;
mod watt_runs;
mod watt_worker;
