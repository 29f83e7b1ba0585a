//! Features of Linux that other systems lack: direct I/O and its alignment, advice, syncs of
//! ranges, a list of locks. Each is one function, beside its replacement for other systems.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;
