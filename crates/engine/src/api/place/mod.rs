//! Where a structure is read and written: the calls on byte strings, by place, compiled in this
//! crate.
pub(crate) mod at;
mod calls;
mod once;
pub(crate) mod range;
pub(crate) mod reader;
pub(crate) mod scan;
pub(crate) mod snapshot_view;
pub(crate) mod txn_cell;
mod txn_scan;

pub use at::{Alone, InSnapshot, InTxn};
pub(crate) use calls::Place;
pub(crate) use once::update_once;
pub use range::{RawEntry, RawRange};
pub use reader::RawReader;
