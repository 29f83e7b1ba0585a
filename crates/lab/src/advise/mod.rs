//! Which policy for a trace: a shortlist, run and judged.
//!
//! One number per policy and size, and a winner by half a per mille, would say less than it
//! seems to: another hour of the same workload gives another order. So the trace is cut into parts,
//! which are the blocks of a comparison ([`crate::compare`]): each policy beside the default, by a
//! block bootstrap, corrected by Holm over the candidates. Another policy is advised only where it
//! is better after that; who is shown to be alike within the margin, and who is open, is named.

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
pub use verdict::{Advice, Beside, Standing};
