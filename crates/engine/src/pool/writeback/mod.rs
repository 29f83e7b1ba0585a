//! Dirty pages on their way to storage: the write buffer, deferred deletions, the sync list, batches.
pub(crate) mod buffer;
pub(in crate::pool) mod write;
#[allow(clippy::module_inception, reason = "it is the type of the room")]
pub mod writeback;
