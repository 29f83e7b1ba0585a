//! Dirty pages on their way to storage: batches, the background writer, and the pool's threads.
pub(crate) mod buffer;
mod overdue;
mod sync_mode;
pub mod workers;
pub mod write;
