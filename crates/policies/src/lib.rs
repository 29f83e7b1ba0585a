//! Every known page-replacement policy, one file each, behind one contract.
//!
//! - [`contract`]: what a policy promises its host, and the host it. Start here. [`hook`] holds the
//!   hot half of a policy, [`mod@host`] the host's side of an eviction.
//! - [`policy`], [`tier2`]: the policies. Each file opens with idea, source, state, invariants,
//!   cost, deviations and defaults.
//! - [`parts`]: lists, ghosts, heaps: what policies are built from.
//! - [`mod@config`], [`info`]: parameters and catalog rows.
//! - [`frames`], [`zeroed`]: the frames' metadata as a policy sees it.
//! - [`erased`]: the cold half behind a pointer, for live pools.
//! - [`policy_host`]: a policy with its frames' metadata and its clock, for hosts of one thread.
//! - [`any_hook`]: the hot half found at run time, for live pools, too.
//! - [`registry`]: all of them, one line each. [`chosen`] finds one by its text.
//!
//! No I/O, no threads, and no `unsafe` but in [`frames`], [`zeroed`], [`any_hook`],
//! [`mod@parts::prefetch`] and [`parts::worth_simd`].

#[macro_use]
pub mod config;
#[macro_use]
pub mod zeroed;
pub mod any_cold;
pub mod any_hook;
pub mod chosen;
pub mod contract;
pub mod erased;
pub mod frames;
pub mod hook;
pub mod host;
pub mod info;
pub mod parts;
pub mod policy;
pub mod policy_host;
pub mod registry;
#[cfg(test)]
mod testing;
pub mod tier2;
