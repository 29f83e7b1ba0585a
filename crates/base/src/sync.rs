//! The sync shim: std's atomics and locks, or a model checker's.
//!
//! Model-checked code takes its atomics, mutexes and threads from here. The cargo features `loom`
//! and `shuttle` swap the implementation; nothing else changes. All other code of the engine takes
//! its locks from [`unmodelled`]. With the feature `critical-sections` both are locks that count
//! ([`crate::sections`]).

#[cfg(not(feature = "model"))]
pub use std::{
    sync::{Arc, Condvar, MutexGuard, atomic},
    thread,
};

#[cfg(not(feature = "model"))]
pub use unmodelled::Mutex;

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

/// Locks of code that no model checker schedules: std's, or counted ones with `critical-sections`.
pub mod unmodelled {
    #[cfg(not(all(feature = "critical-sections", not(feature = "model"))))]
    pub use std::sync::{Mutex, RwLock};

    #[cfg(all(feature = "critical-sections", not(feature = "model")))]
    pub use crate::counted_locks::{Mutex, RwLock};
}
