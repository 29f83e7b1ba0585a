//! The memory of a lock owner, escalation to tree locks, and the release of locks.

use super::bytes::{FIRST_PIECE, KEY_BYTES, PIECE_MAX};
use super::error::LockError;
use super::mode::LockMode;
use super::name::Name;
use super::owner::LockOwner;
use super::tree::Want;
use crate::stats::counters::Counter;

/// Number of trees that an idle owner remembers, so that it need not look them up again.
const REMEMBERED: usize = 64;

impl LockOwner {
    /// Makes sure that `bytes` more may be used. Returns `true` if locks may have been escalated.
    #[inline]
    pub(super) fn make_room(&mut self, at: usize, bytes: usize) -> Result<bool, LockError> {
        debug_assert!(self.used <= self.reserved, "memory is reserved before it is used");
        if self.used + bytes <= self.reserved {
            return Ok(false);
        }
        self.reserve(at, bytes)?;
        debug_assert!(self.used + bytes <= self.reserved, "there is room once it was made");
        Ok(true)
    }

    #[cold]
    fn reserve(&mut self, at: usize, bytes: usize) -> Result<(), LockError> {
        let budget = &self.manager.budget;
        let usual = self.reserved.clamp(FIRST_PIECE, PIECE_MAX);
        for piece in [usual.max(bytes), bytes] {
            if budget.reserve(piece) {
                self.reserved += piece;
                return Ok(());
            }
        }
        let largest = (0..self.trees.len()).max_by_key(|at| self.trees[*at].keys);
        if largest.is_some_and(|largest| self.trees[largest].keys > 1 && self.escalate(largest)) {
            if self.used + bytes <= self.reserved {
                return Ok(());
            }
            if self.manager.budget.reserve(bytes) {
                self.reserved += bytes;
                return Ok(());
            }
        }
        self.manager.statistics.count(Counter::LockMemoryRefusals);
        let budget = &self.manager.budget;
        let hold = &self.trees[at];
        let (tree, keys) = (self.manager.tree_name(hold.tree.id), hold.keys);
        let (used, limit, own) = (budget.used(), budget.limit, self.reserved);
        Err(LockError::Memory { used, limit, own, tree, keys })
    }

    /// Tries to lock the whole tree instead of its keys, without waiting (rule 9). Returns whether
    /// some keys were released.
    pub(super) fn escalate(&mut self, at: usize) -> bool {
        if self.trees[at].covers(LockMode::X) {
            // The tree was locked as a whole after its keys.
            self.release_ranges(at);
            self.release_keys(at, LockMode::X);
            self.give_back_unused();
            return true;
        }
        let hold = &self.trees[at];
        let shared = hold.keys.saturating_sub(hold.written) > 0;
        let wanted: &[LockMode] = match (hold.written > 0, shared) {
            (true, true) => &[LockMode::X, LockMode::S],
            (true, false) => &[LockMode::X],
            _ => &[LockMode::S],
        };
        let asking = self.asking(at);
        let get =
            |mode: &&LockMode| hold.tree.request(&asking, &Want::Whole(**mode), &mut None, false);
        let granted = wanted.iter().find(get).copied();
        let every = self.manager.options.escalate_after;
        let hold = &mut self.trees[at];
        let Some(mode) = granted else {
            self.manager.statistics.count(Counter::LockEscalationsRefused);
            hold.escalate_at = hold.keys.saturating_add(every / 8 + 1);
            return false;
        };
        self.manager.statistics.count(Counter::LockEscalations);
        self.hold_whole(at, mode);
        self.release_ranges(at);
        self.release_keys(at, mode);
        self.give_back_unused();
        let hold = &mut self.trees[at];
        hold.escalate_at = hold.keys.saturating_add(every);
        true
    }

    /// Releases the memory of the keys that a tree lock has replaced, since other owners need it.
    fn give_back_unused(&mut self) {
        let kept = self.used + PIECE_MAX;
        if self.reserved > kept {
            self.manager.budget.give_back(self.reserved - kept);
            self.reserved = kept;
        }
    }

    /// Records that the whole tree is locked in `mode` now.
    pub(super) fn hold_whole(&mut self, at: usize, mode: LockMode) {
        let before = self.trees[at].whole.replace(mode);
        debug_assert!(
            before != Some(LockMode::X) || mode == LockMode::X,
            "an owner that has locked a tree to write keeps that to its end"
        );
        if mode == LockMode::X && before != Some(LockMode::X) {
            self.manager.begin_whole();
        }
    }

    fn release_ranges(&mut self, at: usize) {
        let hold = &mut self.trees[at];
        if !hold.ranges.is_empty() {
            debug_assert!(self.used >= hold.range_bytes, "ranges are part of what is used");
            hold.ranges.clear();
            hold.tree.leave_ranges(self.id);
            self.used = self.used.saturating_sub(std::mem::take(&mut hold.range_bytes));
        }
    }

    /// Releases the keys of a tree that is locked as a whole in `mode`, as far as `mode` covers
    /// them.
    fn release_keys(&mut self, at: usize, mode: LockMode) {
        let (table, id) = (&self.manager.table, self.id);
        let before = self.keys.len();
        self.keys.retain(|key| {
            if key.tree as usize != at {
                return true;
            }
            if mode == LockMode::X {
                table.unlock(key.name, id);
                return false;
            }
            !table.unlock_shared(key.name, id)
        });
        let released = before - self.keys.len();
        let hold = &mut self.trees[at];
        debug_assert!(hold.keys as usize >= released, "keys that are released were counted");
        hold.keys = hold.keys.saturating_sub(released as u32);
        let mut bytes = released * KEY_BYTES;
        if mode == LockMode::X {
            hold.writes.lock().clear();
            hold.written = 0;
            bytes = hold.bytes;
        }
        debug_assert!(hold.bytes >= bytes, "a tree's keys were counted when they were locked");
        debug_assert!(self.used >= bytes, "a tree's keys are part of what is used");
        hold.bytes = hold.bytes.saturating_sub(bytes);
        self.used = self.used.saturating_sub(bytes);
    }

    /// Releases an `S` lock on one key, for reads that need not be repeatable. Returns whether
    /// there was one. An `X` lock, a range or a tree lock stays.
    pub fn release_shared(&mut self, tree: u32, key: &[u8]) -> bool {
        let name = Name::of(tree, key);
        let at = self.tree_at(tree);
        if !self.manager.table.unlock_shared(name, self.id) {
            return false;
        }
        if let Some(key) = self.keys.iter().rposition(|key| key.name == name) {
            self.keys.remove(key);
            let hold = &mut self.trees[at];
            debug_assert!(hold.keys > 0 && hold.bytes >= KEY_BYTES, "the key was counted");
            hold.keys = hold.keys.saturating_sub(1);
            hold.bytes = hold.bytes.saturating_sub(KEY_BYTES);
            self.used = self.used.saturating_sub(KEY_BYTES);
        }
        true
    }

    /// Releases all `S` locks on keys and all ranges: the end of a statement that need not be
    /// repeatable. `X` locks and tree locks remain.
    pub fn release_all_shared(&mut self) {
        for at in 0..self.trees.len() {
            self.release_ranges(at);
            if self.trees[at].keys > self.trees[at].written {
                self.release_keys(at, LockMode::S);
            }
        }
    }

    /// Releases all locks: the end of the transaction.
    pub fn release_all(&mut self) {
        // A closure's transaction that asked for no lock is tied to its thread as well.
        self.leave_thread();
        if std::mem::replace(&mut self.is_idle, true) {
            return;
        }
        debug_assert_eq!(
            self.trees.iter().map(|hold| hold.bytes + hold.range_bytes).sum::<usize>(),
            self.used,
            "what is used is what the trees' keys, writes and ranges take"
        );
        debug_assert_eq!(
            self.trees.iter().map(|hold| hold.keys as usize).sum::<usize>(),
            self.keys.len(),
            "each key that is held is counted at its tree"
        );
        let (table, id) = (&self.manager.table, self.id);
        for key in self.keys.drain(..) {
            table.unlock(key.name, id);
        }
        let escalate_at = self.manager.options.escalate_after;
        for hold in &mut self.trees {
            let in_core = hold.whole.is_some() || !hold.ranges.is_empty();
            if hold.written > 0 {
                hold.writes.lock().clear();
            }
            if in_core || hold.intention.is_some() {
                hold.spare = hold.tree.leave(id, self.stripe, in_core);
            }
            if hold.whole == Some(LockMode::X) {
                self.manager.end_whole();
            }
            (hold.intention, hold.whole) = (None, None);
            hold.ranges.clear();
            (hold.keys, hold.written, hold.bytes, hold.range_bytes) = (0, 0, 0, 0);
            hold.escalate_at = escalate_at;
        }
        if self.trees.len() > REMEMBERED {
            self.trees.clear();
        }
        self.used = 0;
        if self.reserved > FIRST_PIECE {
            self.manager.budget.give_back(self.reserved - FIRST_PIECE);
            self.reserved = FIRST_PIECE;
            // Keeps the memory that a usual transaction needs.
            self.keys.shrink_to(PIECE_MAX / KEY_BYTES);
        }
        if std::mem::take(&mut self.is_writing) {
            self.manager.end_writing();
        }
    }
}
