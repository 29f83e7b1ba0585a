//! A run over any store: its clients, its phases and clocks, and what is counted.
//!
//! - [`runner`]: threads, phases, clocks: other engines run the very same loop.
//! - `outcome`: the results of a run and of each of its threads.
//! - [`client`]: the workloads, and one thread's driver of each.
//! - [`on_this_thread`]: one client on its caller's thread, for what is counted by thread.
//! - [`counts`]: the engine's counters, as differences over a run.
//! - [`record`]: the page references of a run as a trace.
//! - [`turns`]: the order in which competitors take turns.

#[cfg(feature = "runs")]
pub mod client;
#[cfg(feature = "runs")]
pub mod counts;
#[cfg(feature = "runs")]
mod instructions;
#[cfg(feature = "runs")]
pub mod on_this_thread;
#[cfg(feature = "runs")]
mod outcome;
#[cfg(feature = "runs")]
pub mod record;
#[cfg(feature = "runs")]
pub mod runner;
pub mod turns;

#[cfg(feature = "runs")]
pub(crate) use outcome::latencies;
