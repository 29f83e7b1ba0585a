//! All tests of the crate from outside, in one program.

mod bounds;
mod contract;
mod foreign;
mod formats;
mod generators;
mod mutations;
mod parquet_types;
mod pipes;
mod shared_traces;
mod stat;
mod tpcc;
mod tpcc_check;
mod write;
mod ycsb;
