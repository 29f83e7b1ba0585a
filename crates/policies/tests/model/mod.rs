//! A model of a buffer pool that is as unkind to a policy as the contract allows.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part of the model")]

mod bytes;
mod host;
mod plain;
mod settings;
mod subject;
mod world;

pub use bytes::{Case, Op, RECORD, case_of_bytes, decode, random_records, shrink};
pub use host::ModelHost;
pub use plain::{Outcome, mixed_trace, run_plain};
pub use settings::settings;
pub use subject::{Kind, Subject, kinds};
pub use world::{World, drive};
