//! One policy's run at one size: the input of the advice.

use crate::sim::Counts;

/// One policy at one size.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// The policy with its parameters.
    pub policy: String,
    /// Frames.
    pub size: u32,
    /// Counters at the end of the trace, of the first seed if there are several.
    pub counts: Counts,
    /// Page reads and page writes of each part of the trace, as means over the seeds.
    pub parts: Vec<[f64; 2]>,
}
