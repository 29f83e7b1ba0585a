//! Forks of a process that has stores open: the engine notices them, and its handles do nothing in
//! the child. The module's handles return before they wait for each other: a lock that another
//! thread of the parent held at the fork stays locked in the child.

use crate::error::Failure;

/// The process in which something was made.
#[derive(Clone, Copy)]
pub(crate) struct Process(millpond_device::Process);

impl Process {
    pub(crate) fn this() -> Process {
        Process(millpond_device::Process::this())
    }

    /// Returns `true` if this is the current process.
    pub(crate) fn is_this(self) -> bool {
        self.0.is_this()
    }

    pub(crate) fn check(self) -> Result<(), Failure> {
        if self.is_this() { Ok(()) } else { Err(Failure::Forked) }
    }
}
