//! The sync shim: std's atomics and locks, or a model checker's.
//!
//! Code whose schedules are model-checked takes its atomics, mutexes and threads from here.
//! The cargo features `loom` and `shuttle` swap the implementation; nothing else changes.

#[cfg(not(feature = "model"))]
pub use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(feature = "loom")]
pub use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(all(feature = "shuttle", not(feature = "loom")))]
pub use shuttle::{
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread,
};
