//! Every known page-replacement policy, one file each, behind one contract.
//!
//! - [`contract`]: mutual guarantees of a policy and its host. Start here. [`hook`] holds the hot
//!   half of a policy, [`mod@host`] the host's side of an eviction.
//! - [`policy`], [`tier2`]: the policies. Each file opens with idea, source, state, invariants,
//!   cost, deviations and defaults.
//! - [`parts`]: building blocks of policies: lists, ghosts, heaps.
//! - [`mod@config`], [`info`]: parameters and catalog rows.
//! - [`frames`], [`zeroed`]: the policy's view of the frames' metadata.
//! - [`erased`]: the cold half behind a pointer, for live pools.
//! - [`policy_host`]: a policy with its frames' metadata and its clock, for hosts of one thread.
//! - [`any_hook`]: the hot half chosen at run time, for live pools.
//! - [`registry`]: all policies, one line each. [`chosen`] finds one by its text.
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
