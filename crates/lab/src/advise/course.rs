//! One policy's run at one size: what the advice is computed from.

use crate::sim::Counts;

/// One policy at one size.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// The policy with its parameters.
    pub policy: String,
    /// Frames.
    pub size: u32,
    /// What was counted at the end of the trace; of several seeds the first one's.
    pub counts: Counts,
    /// Page reads and page writes of each part of the trace, the means over the seeds.
    pub parts: Vec<[f64; 2]>,
}
