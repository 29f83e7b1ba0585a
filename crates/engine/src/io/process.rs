//! Forks of a process that has stores open. This file needs `unsafe`.
//!
//! The child of a fork has the memory of its parent and none of its threads. What these had locked
//! stays locked; what they were to write nobody writes. Both processes would write to one file, and
//! each would know nothing of the other's pages. So what a process has opened does nothing in its
//! children: calls fail, and what is dropped is left as it is until the child ends.
//!
//! The C library calls a handler in each child that `fork` makes, when the child has one thread.
//! A child that starts another program never asks.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Forks between the first process that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was opened.
///
/// ```
/// use millpond::internals::io::Process;
///
/// assert!(Process::this().is_this());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
}

impl Process {
    /// Returns the process that calls.
    pub fn this() -> Process {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the handler only adds to an atomic number, which a child with one thread may
            // do between `fork` and whatever comes next.
            let refused = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
            if refused != 0 {
                tracing::warn!("forks are not noticed: a child must not use its parent's stores");
            }
        });
        Process(FORKS.load(Relaxed))
    }

    /// Returns whether the caller is in that process, and not in a child of it.
    #[inline(always)]
    pub fn is_this(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}
