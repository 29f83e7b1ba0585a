//! The stated policies, and the terms of their runs.

use millpond::OwnPolicies;

use super::{Filo, LruK, Mru};

/// Prefix of the policies' names.
pub const PREFIX: &str = "stated-";
/// The policies.
pub const STATED: [&str; 5] =
    ["stated-mru", "stated-filo", "stated-lru-k", "stated-lru-k(k=3)", "stated-lru-k(k=4)"];
/// Attempts after which an operation counts as stalled: about a hundred times the attempts of a
/// path.
pub const ATTEMPTS_MAX: u32 = 1000;

/// Returns the policies for a store's options; stores do not know them otherwise.
pub fn policies() -> OwnPolicies {
    OwnPolicies::default().with::<Filo>().with::<Mru>().with::<LruK>()
}
