//! Errors of the profiler.

use std::io;

/// Reason that there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// This system has no sampling.
    #[error("call stacks are sampled on Linux with x86-64 only")]
    Unsupported,
    /// The system does not let the process sample itself.
    #[error(
        "the process may not sample itself ({error}): kernel.perf_event_paranoid must be at most 2 \
         (it is {paranoid}), and a container must allow perf_event_open"
    )]
    Forbidden {
        /// The system's error.
        error: io::Error,
        /// Content of `/proc/sys/kernel/perf_event_paranoid`.
        paranoid: String,
    },
    /// The process's threads or files could not be read, or a ring buffer could not be mapped.
    #[error("{what}: {error}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The profiler's own thread ended early.
    #[error("the thread that collects samples has ended: this is a bug")]
    Ended,
    /// The list of components cannot be read.
    #[error("the list of components is wrong: {0}")]
    Components(String),
}

impl ProfileError {
    #[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), allow(dead_code))]
    pub(crate) fn io(what: impl Into<String>, error: io::Error) -> ProfileError {
        ProfileError::Io { what: what.into(), error }
    }
}
