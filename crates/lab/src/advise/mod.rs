//! Which policy for a trace: a shortlist, run and judged.
//!
//! One number per policy and size, and a winner by half a per mille, would say less than it
//! seems to: another hour of the same workload gives another order. So the trace is cut into parts,
//! policies are compared part by part, and who is not better in most of them is called a tie.

mod course;
mod judge;
mod measure;
mod options;
mod shortlist;
mod verdict;

pub use course::Course;
pub use measure::{AdviseError, advise};
pub use options::AdviseOptions;
pub use shortlist::{Candidate, SHORTLIST};
pub use verdict::{Advice, Standing};
