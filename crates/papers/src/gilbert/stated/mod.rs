//! Policies as gilbert states them, for one experiment only: his policies that did not work in
//! small pools (gilbert 1.3.4), beside the shipped ones.
//!
//! - [`Filo`], [`Mru`]: a stack and a retry queue, in the turns of his algorithm 1.1.
//! - [`LruK`]: all K·n references in one list (algorithms 1.7 to 1.12).

mod lru_k;
mod quasi;
mod stacks;
mod terms;
#[cfg(test)]
mod tests;

pub use lru_k::LruK;
pub use stacks::{Filo, Mru};
pub use terms::{ATTEMPTS_MAX, PREFIX, STATED, policies};
