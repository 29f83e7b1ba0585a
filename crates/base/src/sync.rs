//! The sync shim: std's atomics and locks, or a model checker's.
//!
//! Code whose schedules are model-checked takes its atomics, mutexes and threads from here.
//! `--cfg loom` and `--cfg shuttle` swap the implementation; nothing else changes.

#[cfg(not(any(loom, shuttle)))]
pub use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(loom)]
pub use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(all(shuttle, not(loom)))]
pub use shuttle::{
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};
