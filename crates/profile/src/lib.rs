//! Where a process's CPU time goes: the call stacks of all its threads, sampled by CPU time,
//! resolved with what was inlined, and charged to components (gilbert 2.1).
//!
//! ```no_run
//! use std::time::Duration;
//! use millpond_profile::{Components, Options, Sampling};
//!
//! # fn main() -> Result<(), millpond_profile::ProfileError> {
//! let sampling = Sampling::start(&Options::default())?;
//! std::thread::sleep(Duration::from_secs(5));
//! let profile = sampling.stop()?;
//! println!("{}", profile.breakdown(&Components::shipped()?));
//! # Ok(()) }
//! ```
//!
//! # How
//! The kernel's CPU clock of each thread interrupts it 2,000 times per second of its CPU time and
//! copies its registers and the top of its stack to a ring buffer (`perf_event_open`). One thread
//! of the profiler's unwinds them by the tables that every Rust program has for panics, so that
//! nothing must be compiled for it. Addresses become functions, files and lines when sampling is
//! over, for which line tables are needed (`debug = "line-tables-only"` or more).
//!
//! Threads that begin while others are sampled are sampled, too, as long as the threads that begin
//! them are. The profiler's own thread is not.
//!
//! # What it needs
//! Linux on x86-64, and the right to sample the own process: `kernel.perf_event_paranoid` at most
//! 2; at most 1, or `CAP_PERFMON`, for the time in the kernel.

#![deny(missing_docs)]

mod breakdown;
mod components;
mod error;
mod formats;
mod functions;
mod profile;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[path = "linux/mod.rs"]
mod sampling;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "elsewhere.rs"]
mod sampling;

pub use breakdown::{Breakdown, Share};
pub use components::{Component, Components, LATCHING};
pub use error::ProfileError;
pub use functions::HotFunction;
pub use profile::{Frame, Options, Profile, Stack};
pub use sampling::Sampling;
