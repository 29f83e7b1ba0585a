//! Waiting of the pool's threads: an event that is cheap to signal, and locking that ignores
//! poison.
pub mod event;
pub mod locked;
