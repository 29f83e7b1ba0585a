//! Work for which room was reserved: undo, and freeing the values that a transaction replaced.
//!
//! The log keeps room for it ([`Log::reserve`](crate::log::Log::reserve)), and a full data file
//! keeps places for a few new pages. All other work asks for room first, and leaves the reserved
//! room alone. A thread that is about to use reserved room marks itself here: splits and overflow
//! pages are allocated far below the transaction that needs them.

use std::cell::Cell;
use std::marker::PhantomData;

#[cfg(not(feature = "model"))]
thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}
// Threads of a model are not threads of the system.
#[cfg(feature = "loom")]
loom::thread_local! {
    static DEPTH: Cell<u32> = Cell::new(0);
}
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
shuttle::thread_local! {
    static DEPTH: Cell<u32> = Cell::new(0);
}

/// A permit of the thread to use room that was reserved, until it is dropped.
pub(crate) struct Reserved {
    /// Keeps the permit in the thread that began it.
    _thread: PhantomData<*const ()>,
}

impl Reserved {
    pub(crate) fn begin() -> Reserved {
        DEPTH.with(|depth| depth.set(depth.get().wrapping_add(1)));
        Reserved { _thread: PhantomData }
    }

    /// Returns whether the thread may use room that was reserved.
    pub(crate) fn is_in_use() -> bool {
        DEPTH.with(|depth| depth.get() > 0)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get().wrapping_sub(1)));
    }
}
