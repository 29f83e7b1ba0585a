//! Gilbert's thesis (2020), its first chapter live: page replacement.
//!
//! - [`experiment`]: throughput and miss rate of every live policy over pool sizes (gilbert 1.2,
//!   1.3), and pointer swizzling (2.4.1).
//! - [`factors`]: his three factors of every live policy in one table (gilbert 1.3, 1.4).
//! - [`stated`]: his policies that stalled, as he states them.
//! - `studies`: his studies of parameters (gilbert 1.2).
//! - `claims`: his sentences, judged.
//! - `course`: set-up of his TPC-C at a scale.
//! - `bounds`: his pool sizes, and numeric bounds for his words.

mod bounds;
mod claims;
mod course;
pub mod experiment;
pub mod factors;
pub mod stated;
mod studies;
