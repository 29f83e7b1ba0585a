//! What a transaction keeps in memory to take its changes back: the newest last.

use std::ops::Range;

use millpond_base::Lsn;

use crate::btree::Detached;

/// What an entry was before the transaction changed it.
pub(super) enum Was {
    Absent,
    Value(Range<usize>),
    Large(Detached),
}

/// One change.
pub(super) struct Change {
    /// The tree.
    pub(super) owner: u32,
    key: Range<usize>,
    pub(super) was: Was,
    /// The transaction's record before this change's.
    pub(super) prev: Lsn,
}

/// All changes of a transaction that are not taken back.
#[derive(Default)]
pub(super) struct UndoList {
    changes: Vec<Change>,
    bytes: Vec<u8>,
}

impl UndoList {
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// The entry of `key` was not there, or had this value, or a large one.
    pub(super) fn push(
        &mut self,
        owner: u32,
        key: &[u8],
        was: (bool, &[u8], Option<Detached>),
        prev: Lsn,
    ) {
        let key = self.keep(key);
        let was = match was {
            (_, _, Some(large)) => Was::Large(large),
            (true, value, None) => Was::Value(self.keep(value)),
            (false, _, None) => Was::Absent,
        };
        self.changes.push(Change { owner, key, was, prev });
    }

    /// The newest change, its key and the value that was there.
    pub(super) fn newest(&self) -> Option<(&Change, Vec<u8>, Vec<u8>)> {
        let change = self.changes.last()?;
        let copy = |range: &Range<usize>| self.bytes.get(range.clone()).map(<[u8]>::to_vec);
        let key = copy(&change.key).unwrap_or_default();
        let value = match &change.was {
            Was::Value(range) => copy(range).unwrap_or_default(),
            Was::Absent | Was::Large(_) => Vec::new(),
        };
        Some((change, key, value))
    }

    /// Takes the newest change off: it is taken back.
    pub(super) fn pop(&mut self) {
        if let Some(change) = self.changes.pop() {
            self.bytes.truncate(change.key.start);
        }
    }

    /// The large values that the changes replaced or removed; nothing is kept afterwards.
    pub(super) fn take_large(&mut self) -> impl Iterator<Item = (u32, Detached)> + '_ {
        self.bytes.clear();
        self.changes.drain(..).filter_map(|change| match change.was {
            Was::Large(large) => Some((change.owner, large)),
            Was::Absent | Was::Value(_) => None,
        })
    }
}
