//! Luan, Du, Feng and Wang (2008) by simulation: figures 1 to 11, table 8, and figure 15 with
//! tables 1, 3, 4 and 5.
//!
//! Access patterns follow the paper's description. Parameters that it does not print (the workload
//! before, the sizes of some workloads) are ours, and each figure names them. TPC-C is recorded
//! from our own engine. The live figures 16 to 20, with tables 2, 6 and 7, are in [`live`]. TPC-H
//! (figures 12 to 14) is not run.

mod correlated;
mod experiment;
mod fifteen;
mod fifteen_claims;
mod figure;
pub mod live;
mod loop_claims;
mod looping;
mod policies;
mod probabilistic;
mod rounds;
mod said;
mod score;
mod sequential;
mod space;
#[cfg(test)]
mod statements;
#[cfg(test)]
mod statements_6_7;
mod temporal;
mod tpcc;
mod work;

pub use experiment::experiment;
pub use tpcc::{RecordTpcc, Tpcc, references, warehouses};
