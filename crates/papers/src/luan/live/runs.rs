//! The policies, and the number of pages of which pool sizes are shares.

use crate::luan::fifteen;
use crate::luan::policies::{LAMBDA, thirteen};

/// Pages of the paper's data, of which its pool sizes are shares: 900 MB in pages of 8 KiB.
pub const HIS_PAGES: f64 = fifteen::HIS_PAGES;

/// Returns the paper's policies: its name, and ours with its parameters.
pub fn policies() -> Vec<(&'static str, String)> {
    thirteen(LAMBDA).into_iter().map(|policy| (policy.name, policy.by)).collect()
}
