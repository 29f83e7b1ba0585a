//! Where a tree is read and written: the calls on byte strings, by place, compiled in this crate.
mod calls;
pub(crate) mod counted;
pub(crate) mod range;
pub(crate) mod reader;
pub(crate) mod snapshot_view;
pub(crate) mod txn_cell;
mod txn_scan;

pub(crate) use calls::Place;
pub use range::{RawEntry, RawRange};
pub use reader::RawReader;
