//! WATT's evaluation by simulation (watt 4): figures 1 to 8 and its tables, on traces of our own.
//!
//! The paper's traces are not to be had. TPC-C and key-value operations are recorded from our own
//! engine, Zipf and dynamic Zipf are made by the paper's description, and TPC-E is imitated.

mod claims;
mod comparison;
mod experiment;
mod pairs;
mod parameters;
mod tables;
mod workloads;

pub use experiment::experiment;
pub use tables::{AGGREGATIONS, BYTES, Bytes};
pub use workloads::{RECORDED, TPCC, YCSB};
