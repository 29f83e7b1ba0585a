//! Forks of a process that has stores open.
//!
//! The child of a fork has the memory of its parent, and none of its threads: what these had locked
//! stays locked, and what they were to write nobody writes, but into the file that the parent goes
//! on writing to. So handles of the parent do nothing in the child, not even when they are dropped:
//! calls raise `millpond.InUse`, and what the handles refer to is left as it is until the child's
//! end.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Failure;

/// Forks, by `os.fork` and what is made of it, that lie between the first process that loaded the
/// module and this one. The child counts them when it has one thread.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which something was made.
#[derive(Clone, Copy)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Process {
        Process(FORKS.load(Relaxed))
    }

    /// Whether it is this one.
    pub(crate) fn is_this(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }

    pub(crate) fn check(self) -> Result<(), Failure> {
        if self.is_this() { Ok(()) } else { Err(Failure::Forked) }
    }
}

#[pyfunction]
fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// Has forks counted from now on.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let arguments = PyDict::new(py);
    arguments.set_item("after_in_child", wrap_pyfunction!(count_fork, module)?)?;
    py.import("os")?.getattr("register_at_fork")?.call((), Some(&arguments))?;
    Ok(())
}
