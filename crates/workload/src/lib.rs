//! Page traces: reading, writing, generating and describing them.
//!
//! A trace is a sequence of page references. [`trace::Source`] hands it out in batches, so that
//! no reader needs the whole file in memory; [`trace::Batch`] is what a reader fills and a
//! simulator consumes. This crate knows no policy and no engine.

pub mod formats;
pub mod generate;
pub mod stat;
pub mod trace;
pub mod write;
