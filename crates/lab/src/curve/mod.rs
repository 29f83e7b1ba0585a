//! Miss-ratio curves: every cache size at once.
//!
//! A *stack algorithm* keeps, at every moment, the pages of a small cache inside those of a larger
//! one. One pass over a trace therefore gives the exact miss ratio of all sizes. [`exact`] does
//! that for LRU by its stack distances, and for MIN and MRU by Mattson's priority stack.
//! [`sampled`] serves every other policy: it simulates a spatially hashed sample of the pages in a
//! cache that is scaled down alike, at a separate rate for each size.

pub mod exact;
mod fenwick;
mod pass;
pub mod priority;
pub mod run;
pub mod sampled;

pub use pass::{CurveRow, CurveTask, Curves};
pub use run::{Curve, CurveError, Method, Point, curve_sizes};
