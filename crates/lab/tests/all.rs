//! All tests of the laboratory from outside but `goldens`, in one program.

mod bounds;
mod common;
mod compare;
mod curves;
mod equivalences;
mod report;
mod simulator;
mod statistics;
mod tier1_pool;
mod tier2_bound;
mod tier2_models;
mod tier2_optimum;
mod tier2_twins;
mod tier2_util;
mod units;
mod watt;
