//! Every known page-replacement policy, one file each, behind one contract.
//!
//! - [`contract`]: what a policy promises its host, and the host it. Start here.
//! - [`policy`], [`tier2`]: the policies. Each file opens with idea, source, state, invariants,
//!   cost, deviations and defaults.
//! - [`parts`]: lists, ghosts, heaps: what policies are built from.
//! - [`mod@config`], [`info`]: parameters and catalog rows.
//! - [`erased`]: the cold half behind a pointer, for live pools.
//! - [`any_hook`]: the hot half found at run time, for live pools, too.
//! - [`registry`]: all of them, one line each.
//!
//! No I/O, no threads, and no `unsafe` but in [`frames`], [`any_hook`],
//! [`mod@parts::prefetch`] and
//! [`parts::worth_simd`].

#[macro_use]
pub mod config;
pub mod any_hook;
pub mod contract;
pub mod erased;
#[macro_use]
pub mod frames;
pub mod info;
pub mod parts;
pub mod policy;
pub mod registry;
#[cfg(test)]
mod testing;
pub mod tier2;
