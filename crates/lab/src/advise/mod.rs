//! Advice on the policy for a trace: a shortlist, run and judged.
//!
//! A single number per policy and size, with a winner by half a per mille, would promise too much:
//! another hour of the same workload gives another order. The trace is therefore cut into parts,
//! the blocks of a comparison ([`crate::compare`]). A block bootstrap compares each policy with the
//! default, and Holm's correction covers all candidates. Another policy is advised only if it is
//! better after that. The advice also names the policies that are shown to be alike within the
//! margin, and the policies that stay open.

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
