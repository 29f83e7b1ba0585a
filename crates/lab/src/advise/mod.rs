//! Advice on the policy for a trace: a shortlist, run and judged.
//!
//! One number per policy and size, and a winner by half a per mille, would promise too much:
//! another hour of the same workload gives another order. The trace is therefore cut into parts,
//! the blocks of a comparison ([`crate::compare`]). Each policy is compared with the default by a
//! block bootstrap, corrected by Holm over the candidates. Another policy is advised only if it is
//! better after that. The advice also names the policies that are shown to be alike within the
//! margin, and those that stay open.

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
