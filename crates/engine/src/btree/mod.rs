//! The B⁺-tree: ordered maps of byte strings on pages (leanstore IV-I).
//!
//! Written once, over [`crate::pool::Pages`], so that it runs on the buffer pool and on the
//! in-memory twin alike.

mod change;
mod descend;
mod error;
mod lookup;
mod merge;
mod node;
mod overflow;
mod range_delete;
mod split;
mod stats;
mod stream;
mod tree;

pub use error::{BulkError, StreamError, WriteError};
pub use stats::{Counters, LevelStats, TreeStats};
pub use stream::ValueReader;
pub use tree::{BTree, Limits};
