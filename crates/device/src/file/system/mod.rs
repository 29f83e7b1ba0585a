//! What Linux has and other systems have not: direct I/O and what it demands, advice, syncs of
//! ranges, a list of locks. Each is a function here, and what is done without it beside it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;
