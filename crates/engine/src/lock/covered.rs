//! An owner's locks on whole trees and ranges, and the access that they allow.

use std::ops::Bound;

use super::error::LockError;
use super::hold::TreeHold;
use super::manager::TREE_ENDS;
use super::mode::LockMode;
use super::owner::LockOwner;
use super::range::Range;
use super::tree::Want;

impl LockOwner {
    /// Returns whether the owner's locks on `tree` as a whole allow `mode` on every key.
    pub fn covers(&self, tree: u32, mode: LockMode) -> bool {
        self.trees.iter().find(|hold| hold.id == tree).is_some_and(|hold| hold.covers(mode))
    }

    /// Returns whether the owner has locked every key between the bounds, at least in `S`.
    pub fn covers_range(&self, tree: u32, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        let Some(hold) = self.trees.iter().find(|hold| hold.id == tree) else { return false };
        hold.covers(LockMode::S) || {
            let range = Range::new(lower, upper);
            hold.ranges.iter().any(|held| held.has_all(&range))
        }
    }

    /// Locks the first or the last end of `tree` against other owners that lock it, so that owners
    /// that pop entries there take turns. The lock protects no key.
    ///
    /// # Errors
    /// [`LockError`]; earlier locks are still held.
    pub fn lock_end(&mut self, tree: u32, first: bool) -> Result<(), LockError> {
        self.lock_key(tree | TREE_ENDS, &[u8::from(first)], LockMode::X)
    }

    /// Locks all of `tree`. In `IS` and `IX`, only announces that keys will be locked.
    ///
    /// # Errors
    /// [`LockError`]; earlier locks are still held.
    pub fn lock_tree(&mut self, tree: u32, mode: LockMode) -> Result<(), LockError> {
        let at = self.tree_at(tree);
        let whole = match mode {
            LockMode::IS | LockMode::IX => None,
            LockMode::S | LockMode::SIX => Some(LockMode::S),
            LockMode::X => Some(LockMode::X),
        };
        let intention = matches!(mode, LockMode::IS | LockMode::IX | LockMode::SIX);
        if intention && !self.trees[at].covers(mode) {
            self.lock_intention(
                at,
                if mode == LockMode::IS { LockMode::IS } else { LockMode::IX },
            )?;
        }
        if let Some(whole) = whole
            && !self.trees[at].covers(whole)
        {
            if whole == LockMode::X {
                self.begin_writing();
            }
            self.lock_in_tree(at, Want::Whole(whole), &mut None)?;
            self.hold_whole(at, whole);
        }
        Ok(())
    }

    /// Locks every key between the bounds in `S`, whether it exists or not. Once this returns, no
    /// other owner has or gets an `X` lock on one of them. Ranges that touch each other are merged.
    ///
    /// # Errors
    /// [`LockError`]; earlier locks are still held.
    pub fn lock_range(
        &mut self,
        tree: u32,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<(), LockError> {
        if (lower, upper) == (Bound::Unbounded, Bound::Unbounded) {
            return self.lock_tree(tree, LockMode::S);
        }
        let range = Range::new(lower, upper);
        let at = self.tree_at(tree);
        let holds = |hold: &TreeHold| {
            hold.covers(LockMode::S) || hold.ranges.iter().any(|held| held.has_all(&range))
        };
        if range.is_empty() || holds(&self.trees[at]) {
            return Ok(());
        }
        self.lock_intention(at, LockMode::IS)?;
        let bytes = 2 * range.bytes();
        if self.make_room(at, bytes)? && holds(&self.trees[at]) {
            return Ok(());
        }
        debug_assert!(self.trees[at].intention.is_some(), "an intention comes before ranges");
        self.lock_in_tree(at, Want::Range(range.clone()), &mut None)?;
        let hold = &mut self.trees[at];
        if !hold.ranges.iter_mut().any(|held| held.extend(&range)) {
            hold.ranges.push(range);
            hold.range_bytes += bytes;
            self.used += bytes;
        }
        Ok(())
    }
}
