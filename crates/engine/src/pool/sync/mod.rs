//! Waiting and locking in the pool: an event that is cheap to signal, and locks that ignore poison.
pub mod event;
pub mod locked;
