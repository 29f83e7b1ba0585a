//! Policies that run as stated, and the terms of their runs.

use millpond::OwnPolicies;

use super::{Filo, LruK, Mru};

/// Prefix of the policies' names.
pub const PREFIX: &str = "stated-";
/// The policies.
pub const STATED: [&str; 5] =
    ["stated-mru", "stated-filo", "stated-lru-k", "stated-lru-k(k=3)", "stated-lru-k(k=4)"];
/// Attempts at an operation after which it counts as stalled: some hundred times what a path takes.
pub const ATTEMPTS_MAX: u32 = 1000;

/// The policies for a store's options: no store knows them otherwise.
pub fn policies() -> OwnPolicies {
    OwnPolicies::default().with::<Filo>().with::<Mru>().with::<LruK>()
}
