//! Workloads: page traces for the simulator, and drivers of live runs.
//!
//! A trace is a sequence of page references. [`trace::Source`] hands it out in batches, so that
//! no reader needs the whole file in memory; [`trace::Batch`] is what a reader fills and a
//! simulator consumes.
//!
//! A live run is a driver, [`ycsb`], [`tpcc`] or [`inserts`], over anything that implements
//! [`live::Store`]; [`keys`] has the distributions that they draw from. This crate knows no policy
//! and no engine.

pub mod formats;
pub mod generate;
pub mod inserts;
pub mod keys;
pub mod live;
pub mod stat;
pub mod tpcc;
pub mod trace;
pub mod write;
pub mod ycsb;
