//! The B⁺-tree: ordered maps of byte strings on pages (leanstore IV-I).
//!
//! Written once, over [`crate::pool::Pages`], so that it runs on the buffer pool and on the
//! in-memory twin alike.

mod bulk;
mod change;
mod check;
mod compact;
mod cursor;
mod descend;
mod error;
mod fetch;
mod kind;
mod lookup;
mod merge;
mod node;
mod note;
mod overflow;
mod patch;
mod range;
mod range_delete;
mod shift;
mod split;
mod stats;
mod stored;
mod stream;
mod tree;
mod undo;
mod write_as;

pub use bulk::BulkOptions;
pub use change::Updated;
pub use check::{Report, Violation, check_page};
pub use cursor::Cursor;
pub use error::{BulkError, StreamError, WriteError};
pub use kind::{InnerKind, LeafKind, OverflowKind, register};
#[cfg(not(test))]
pub(crate) use lookup::ValueRef;
pub use note::{LargeValue, apply_redo_note};
pub use range::{Entry, Range};
pub use stats::{Counters, LevelStats, TreeStats};
pub use stored::{
    Fences, LargePart, StoredChild, StoredNode, StoredValue, overflow_data, overflow_parts,
};
#[cfg(not(test))]
pub(crate) use stream::Streamed;
pub use stream::ValueReader;
pub use tree::{BTree, Limits};
pub use undo::{Before, Undo};
pub use write_as::{Applied, Condition, Detached};
