//! Contexts in which a structure is read and written. A context implements the byte-level calls
//! once; the verbs of [`Tree`](crate::Tree), [`HashIndex`](crate::HashIndex) and
//! [`Heap`](crate::Heap) are thin generic layers over them.
mod autocommit;
mod calls;
mod in_snapshot;
mod in_txn;
mod inside;
mod snapshot_reader;
pub use calls::{Autocommit, Reads, Writes};
pub(crate) use calls::{Inside, ReadCalls, WriteCalls};
pub(crate) use inside::update_once;
