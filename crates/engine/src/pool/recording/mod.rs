//! Traces recorded live: page references, and requests to storage.
pub mod recorder;
pub mod storage_recorder;
