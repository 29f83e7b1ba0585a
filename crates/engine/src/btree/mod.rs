//! The B⁺-tree: ordered maps of byte strings on pages (leanstore IV-I).
//!
//! The tree is written once, over [`crate::pool::Pages`], so that it runs on the buffer pool and on
//! the in-memory twin alike.

mod ahead;
mod check;
mod counters;
mod cursor;
mod descend;
mod ends;
mod error;
mod fetch;
mod kind;
mod lookup;
mod lookup_many;
mod node;
mod range;
mod stats;
mod stored;
mod structure;
mod tree;
mod value;
mod within;
mod write;

pub use check::{Report, Violation, check_page};
pub use counters::Counters;
pub use cursor::Cursor;
pub use ends::EndEntry;
pub use error::{BulkError, StreamError, WriteError};
pub use kind::{InnerKind, KINDS, LeafKind, OverflowKind};
pub use lookup::Lookup;
#[cfg(not(test))]
pub(crate) use lookup::ValueRef;
pub use range::{Entry, Range};
pub use stats::{LevelStats, TreeStats};
pub use stored::{
    Fences, LargePart, StoredChild, StoredNode, StoredValue, overflow_data, overflow_parts,
};
pub use structure::bulk::BulkOptions;
pub use tree::{BTree, Limits};
pub use value::large::{Detached, LargeValue};
#[cfg(not(test))]
pub(crate) use value::stream::Streamed;
pub use value::stream::ValueReader;
pub use write::finger::Finger;
pub(crate) use write::patch::Patch;
pub(crate) use write::pending::done_anyway;
pub use write::redo_note::apply_redo_note;
pub(crate) use write::redo_note::differing;
pub use write::request::{
    NewValue, RootFate, UpdateOutcome, Updated, WriteCondition, WriteContext, WriteOutcome,
    WriteRequest,
};
pub use write::undo::{Before, Undo};
