//! Detection of forks in a process that has stores open. This file needs `unsafe`.
//!
//! The child of a fork has the memory of its parent and none of its threads. The threads' locks
//! stay held, and nobody does their writes. Both processes would write to one file, and neither
//! would know the other's pages. So a store that a process has opened does nothing in its children:
//! calls fail, and a dropped store is left as it is until the child ends.
//!
//! The C library calls a handler in each child that `fork` creates, when the child has one thread.
//! A child that starts another program never asks.

use std::sync::Once;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

/// Number of forks between the first process that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was opened.
///
/// ```
/// use millpond_device::Process;
///
/// assert!(Process::this().is_this());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u32);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
}

impl Process {
    /// Returns the calling process.
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

    /// Returns `true` if the caller is in that process, and not in a child of it.
    #[inline(always)]
    pub fn is_this(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}

/// Values of [`Life::word`] that are not a number of forks.
const CLOSING: u32 = u32::MAX - 1;
const CLOSED: u32 = u32::MAX;

/// The life of a store that a process has opened. It ends when the store is closed, and a child of
/// the process does not have it. A call reads one word, and the number of forks.
#[derive(Debug)]
pub struct Life {
    word: AtomicU32,
    process: Process,
}

impl Life {
    /// Returns a life that begins in the calling process.
    #[allow(clippy::new_without_default, reason = "it registers a handler of forks")]
    pub fn new() -> Life {
        let process = Process::this();
        Life { word: AtomicU32::new(process.0), process }
    }

    /// Returns `true` if a call may begin.
    #[inline(always)]
    pub fn goes_on(&self) -> bool {
        // In the one order of all sequentially consistent operations: a call that was announced
        // before it asks is waited for, or sees that it is refused.
        self.word.load(SeqCst) == FORKS.load(Relaxed)
    }

    /// Returns `true` if the caller is in the process that opened it, and not in a child.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.process.is_this()
    }

    /// Refuses calls from now on; calls in progress may end.
    pub fn refuse(&self) {
        // It may have ended already.
        let _ = self.word.compare_exchange(self.process.0, CLOSING, SeqCst, SeqCst);
    }

    /// Ends the life: calls in progress change nothing any more.
    pub fn end(&self) {
        self.word.store(CLOSED, SeqCst);
    }

    /// Returns `true` if it has ended.
    pub fn is_over(&self) -> bool {
        self.word.load(SeqCst) == CLOSED
    }
}
