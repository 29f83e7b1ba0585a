//! Versions of entries for snapshots: in memory, and in runs in the spill file.

mod bucket;
mod bulk_modified;
mod first_key;
mod found_before;
mod memory;
#[cfg(test)]
mod model_tests;
mod reader;
mod run;
mod spilled;
mod version;
mod version_store;
mod window;

pub(in crate::txn) use bulk_modified::Visible;
pub(in crate::txn) use reader::Reader;
pub(in crate::txn) use version::Image;
pub(in crate::txn) use version_store::{BulkModification, VersionStore};
pub(in crate::txn) use window::Window;
