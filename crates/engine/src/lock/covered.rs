//! What an owner's locks on more than single keys allow.

use std::ops::Bound;

use super::mode::LockMode;
use super::owner::LockOwner;
use super::range::Range;

impl LockOwner {
    /// Whether what the owner holds of `tree` as a whole allows `mode` on every key.
    pub fn covers(&self, tree: u32, mode: LockMode) -> bool {
        self.trees.iter().find(|hold| hold.id == tree).is_some_and(|hold| hold.covers(mode))
    }

    /// Whether the owner has locked every key between the bounds, at least in `S`.
    pub fn covers_range(&self, tree: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        let Some(hold) = self.trees.iter().find(|hold| hold.id == tree) else { return false };
        hold.covers(LockMode::S) || {
            let range = Range::new(lower, upper);
            hold.ranges.iter().any(|held| held.has_all(&range))
        }
    }
}
