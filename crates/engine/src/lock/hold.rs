//! Locks of an owner on a tree and on a key.

use std::sync::Arc;

use super::mode::LockMode;
use super::name::Name;
use super::range::Range;
use super::spinlock::Spinlock;
use super::tree::{SharedWrites, Tree};
use super::writes::Writes;

/// A key lock.
pub(super) struct KeyHold {
    pub(super) name: Name,
    /// Index of the key's tree in the owner's `trees`.
    pub(super) tree: u32,
}

/// An owner's locks on a tree.
pub(super) struct TreeHold {
    /// The tree's id.
    pub(super) id: u32,
    pub(super) tree: Arc<Tree>,
    pub(super) intention: Option<LockMode>,
    /// `S` or `X` on the whole tree.
    pub(super) whole: Option<LockMode>,
    pub(super) ranges: Vec<Range>,
    pub(super) range_bytes: usize,
    /// Number of key locks in the tree.
    pub(super) keys: u32,
    /// Keys that are locked in `X`; `written` is their number.
    pub(super) writes: SharedWrites,
    /// A second reference to the writes, for the next intention: creating one costs an atomic
    /// addition.
    pub(super) spare: Option<SharedWrites>,
    pub(super) written: u32,
    /// Bytes used for keys and writes.
    pub(super) bytes: usize,
    /// Number of keys at which to try to lock the whole tree.
    pub(super) escalate_at: u32,
}

impl TreeHold {
    pub(super) fn new(tree: Arc<Tree>, escalate_at: u32) -> TreeHold {
        TreeHold {
            id: tree.id,
            tree,
            intention: None,
            whole: None,
            ranges: Vec::new(),
            range_bytes: 0,
            keys: 0,
            writes: Arc::new(Spinlock::new(Writes::default())),
            spare: None,
            written: 0,
            bytes: 0,
            escalate_at,
        }
    }

    /// Returns whether these locks allow `mode` on every key.
    pub(super) fn covers(&self, mode: LockMode) -> bool {
        self.whole.is_some_and(|whole| whole.covers(mode))
    }
}
