//! Traces of the engine for experiments that are simulated.
//!
//! - [`pages`]: the page references of one thread.
//! - [`storage`]: the requests of live pools to storage.

pub mod pages;
pub mod storage;
