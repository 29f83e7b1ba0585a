//! CPU time of a process by component. The call stacks of all its threads are sampled by CPU time,
//! resolved with inlined functions, and charged to components (gilbert 2.1).
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
//! The kernel's CPU clock of each thread interrupts it 2,000 times per second of its CPU time. It
//! copies the registers and the top of the stack to a ring buffer (`perf_event_open`). One thread
//! of the profiler unwinds them by the tables that every Rust program has for panics, so the
//! program needs no special build. When sampling ends, addresses become functions, files and
//! lines. That needs line tables (`debug = "line-tables-only"` or more).
//!
//! A thread that starts during sampling is sampled if the thread that starts it is. The profiler's
//! own thread is not.
//!
//! # What it needs
//! Linux on x86-64, and the right of a process to sample itself: `kernel.perf_event_paranoid` of
//! at most 2. Time in the kernel needs at most 1, or `CAP_PERFMON`.

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
