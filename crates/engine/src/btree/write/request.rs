//! Write requests, and their outcome.

use millpond_base::{Lsn, PageId};

use crate::btree::value::large::Detached;
use crate::btree::write::finger::Finger;
use crate::btree::write::undo::Undo;
use crate::page::record_body::OrphanRoot;
use crate::pool::{Actor, MiniTransaction, Pages, Write};

/// One write to the entry of a key, by one mini-transaction.
pub struct WriteRequest<'a> {
    /// The key.
    pub key: &'a [u8],
    /// New state of the key's entry.
    pub value: NewValue<'a>,
    /// Condition for the write to be applied.
    pub condition: WriteCondition<'a>,
    /// Context of the write.
    pub context: WriteContext<'a>,
}

impl<'a> WriteRequest<'a> {
    /// Returns a write outside any transaction.
    #[inline(always)]
    pub fn new(
        key: &'a [u8],
        value: NewValue<'a>,
        condition: WriteCondition<'a>,
    ) -> WriteRequest<'a> {
        WriteRequest { key, value, condition, context: WriteContext::default() }
    }

    /// Returns this write in another context.
    #[inline(always)]
    pub fn within(self, context: WriteContext<'a>) -> WriteRequest<'a> {
        WriteRequest { context, ..self }
    }
}

/// The new state of an entry.
#[derive(Clone, Copy)]
pub enum NewValue<'a> {
    /// The entry is removed.
    Removed,
    /// The entry has this value: in its leaf if it fits there, otherwise in overflow pages.
    Bytes(&'a [u8]),
    /// The entry has this value, whose overflow pages are written already.
    Detached(&'a Detached),
}

impl<'a> NewValue<'a> {
    /// Returns the value as a new value, or the removal if there is none.
    #[inline(always)]
    pub fn of(value: Option<&'a [u8]>) -> NewValue<'a> {
        value.map_or(NewValue::Removed, NewValue::Bytes)
    }

    /// Returns whether the entry is removed.
    #[inline(always)]
    pub(crate) fn is_removal(self) -> bool {
        matches!(self, NewValue::Removed)
    }
}

/// Condition for a write to be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WriteCondition<'a> {
    /// No condition; a removal needs an entry to remove.
    #[default]
    Always,
    /// There is no such key.
    Absent,
    /// There is such a key.
    Present,
    /// The key has this value.
    Equals(&'a [u8]),
    /// The key has the value with this stamp, in overflow pages.
    Stamp(u64),
}

/// The actor that writes an entry, and the write's side effects.
#[derive(Default)]
pub struct WriteContext<'a> {
    /// A transaction, the undo of one, or nobody.
    pub actor: Actor,
    /// Fate of the root that the entry's value names.
    pub root: RootFate,
    /// Receives the write's undo ([`Undo`](super::undo::Undo)), if the write is applied and has an
    /// actor.
    pub undo: Option<&'a mut Vec<u8>>,
    /// Place of the same writer's last write, updated by this one.
    pub finger: Option<&'a mut Finger>,
    /// Receives the inline value that the entry had.
    pub old: Option<&'a mut Vec<u8>>,
}

impl<'a> WriteContext<'a> {
    /// Returns a context on behalf of `actor`, without an undo buffer.
    #[inline(always)]
    pub fn of(actor: Actor) -> WriteContext<'a> {
        WriteContext { actor, ..WriteContext::default() }
    }

    /// Returns a context on behalf of `actor`; the write's undo is appended to `undo`.
    #[inline(always)]
    pub fn with_undo(actor: Actor, undo: &'a mut Vec<u8>) -> WriteContext<'a> {
        WriteContext { actor, undo: Some(undo), ..WriteContext::default() }
    }

    /// Returns this context with a finger.
    #[inline(always)]
    pub fn by(self, finger: &'a mut Finger) -> WriteContext<'a> {
        WriteContext { finger: Some(finger), ..self }
    }

    /// Returns this context with a buffer for the inline value that the entry had.
    #[inline(always)]
    pub fn returning(self, old: Option<&'a mut Vec<u8>>) -> WriteContext<'a> {
        WriteContext { old, ..self }
    }

    /// Remembers the leaf of the tree `owner` that was written at entry `at`, after the last write
    /// under the present latch.
    #[inline(always)]
    pub(crate) fn wrote<P: Pages>(&mut self, owner: u32, leaf: &Write<'_, P>, at: usize) {
        if let Some(finger) = &mut self.finger {
            finger.set(owner, leaf.hint(), at);
        }
    }

    /// Writes the undo of a write that is certain to be applied, to the log and to the caller's
    /// undo buffer.
    #[inline(always)]
    pub(crate) fn log_undo<P: Pages>(&mut self, mtr: &MiniTransaction<'_, P>, undo: &Undo<'_>) {
        if self.actor == Actor::Itself {
            return;
        }
        match self.undo.take() {
            None => mtr.undo(self.actor, |out| undo.put(out)),
            Some(buffer) => {
                let start = buffer.len();
                undo.put(buffer);
                mtr.undo(self.actor, |out| out.extend_from_slice(&buffer[start..]));
            }
        }
    }

    /// Returns a context without an actor, for an entry whose value names a root.
    pub(crate) fn root(root: RootFate) -> WriteContext<'a> {
        WriteContext { root, ..WriteContext::default() }
    }
}

/// Fate of a root that an entry's value names, when the entry is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RootFate {
    /// The value names no root.
    #[default]
    None,
    /// The root was an orphan, and is attached by this write.
    Attached(PageId),
    /// The root becomes an orphan by this write.
    Orphaned(PageId, OrphanRoot),
}

/// Outcome of a write.
#[derive(Default)]
pub struct WriteOutcome {
    /// True if the key existed.
    pub existed: bool,
    /// True if the write was applied.
    pub applied: bool,
    /// Number of entries added to a tree: 1, 0 or −1. Other structures do not count.
    pub rows: i8,
    /// Position of the write's record in the log; 0 if nothing was logged.
    pub at: Lsn,
    /// The value in overflow pages that the entry had, if the write was applied.
    pub gone: Option<Detached>,
}

impl WriteOutcome {
    /// Returns the outcome of a write that was not applied.
    pub(crate) fn refused(existed: bool) -> WriteOutcome {
        WriteOutcome { existed, ..WriteOutcome::default() }
    }
}

/// Finding of an update in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Updated {
    /// An inline value was shown and updated.
    Done,
    /// There is no such key.
    Absent,
    /// The value is in overflow pages, and was not shown: it has to be read and written.
    Large,
}

/// Outcome of an update in place on behalf of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpdateOutcome {
    /// The finding.
    pub updated: Updated,
    /// Position of the write's record in the log; 0 if nothing was logged.
    pub at: Lsn,
}
