//! Traces of the engine for simulated experiments.
//!
//! - [`pages`]: the page references of one thread.
//! - [`storage`]: the requests of live pools to storage.

pub mod pages;
pub mod storage;
