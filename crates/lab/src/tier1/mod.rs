//! A simulated first tier: turns a trace of page references into the requests that a buffer pool
//! sends to storage.

mod options;
mod pool;
mod source;

pub use options::{SyncRule, Tier1Counts, Tier1Options};
pub use source::Tier1;
