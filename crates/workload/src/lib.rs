//! Workloads: page traces for the simulator, and drivers of live runs.
//!
//! A trace is a sequence of page references. A [`trace::Source`] delivers it in batches, so that
//! no reader needs the whole file in memory. A reader fills a [`trace::Batch`], and a simulator
//! consumes it.
//!
//! A live run is a driver, [`ycsb`], [`tpcc`] or [`inserts`], over any implementation of
//! [`live::Store`]. The drivers draw from the distributions in [`keys`]. This crate knows no
//! policy and no engine.

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
