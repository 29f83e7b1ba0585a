//! Writes of entries: requests and their outcome, the attempt that applies one, updates in place,
//! and a write's records in the log and in the undo buffer.

pub(super) mod apply;
pub(super) mod finger;
mod in_place;
mod logged_payload;
mod operations;
pub(crate) mod patch;
pub(super) mod pending;
pub(crate) mod rebuild;
pub(crate) mod redo_note;
pub(crate) mod request;
mod spill;
mod streamed;
mod transactional;
pub(crate) mod undo;
