//! VersionStore of entries for snapshots: in memory, and in runs in the spill file.

mod bulk_modified;
mod memory;
mod reader;
mod run;
mod spilled;
mod version;
mod version_store;

pub(in crate::txn) use bulk_modified::Visible;
pub(in crate::txn) use reader::Reader;
pub(in crate::txn) use version::{Before, Window};
pub(in crate::txn) use version_store::{BulkModification, VersionStore};
