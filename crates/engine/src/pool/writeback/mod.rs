//! Dirty pages on their way to storage: the write buffer, deferred deletions, the sync list,
//! batches.
pub(crate) mod buffer;
pub(in crate::pool) mod write;
#[allow(clippy::module_inception, reason = "the folder's noun")]
pub mod writeback;
