//! What a transaction keeps in memory to take its changes back: the newest last.
//!
//! Each change is kept in the words of the log ([`Undo`]), all of them in one row of bytes, so that
//! a list that is used again allocates nothing. A large value that was replaced hangs meanwhile:
//! what is kept of it is its place.

use millpond_base::Lsn;

use crate::btree::{Before, Detached, Undo};

/// What one transaction leaves of a list's memory to the next, in bytes.
const KEPT: usize = 256 << 10;

/// One change.
pub(super) struct Change {
    /// Where its undo begins.
    start: usize,
    /// The transaction's record before this change's.
    pub(super) prev: Lsn,
    /// The large value that the entry had.
    pub(super) large: Option<Detached>,
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

    /// Where a tree appends how a change is taken back; [`UndoList::noted`] follows.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Where the undo of the next change will begin.
    pub(super) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// A change is over whose undo, if it was made, was appended from `start` on.
    #[inline]
    pub(super) fn noted(&mut self, start: usize, prev: Lsn) {
        if self.bytes.len() > start {
            self.changes.push(Change { start, prev, large: None });
        }
    }

    /// The last change took this large value away.
    #[cold]
    pub(super) fn took(&mut self, large: Detached) {
        if let Some(change) = self.changes.last_mut() {
            change.large = Some(large);
        }
    }

    fn undo(&self, change: &Change) -> Option<Undo<'_>> {
        Undo::read(self.bytes.get(change.start..)?)
    }

    /// The changes, newest first: the tree's owner id, the key, what its entry was before the
    /// change, and the large value that it had.
    ///
    /// Of an update that kept the value's length only the bytes that differ are kept
    /// ([`Before::Part`]): the value before the change is the value after it, which is what the
    /// next change of this key found or what the tree holds now, with these bytes put back.
    pub(super) fn entries_back(
        &self,
    ) -> impl Iterator<Item = (u32, &[u8], Before<'_>, Option<&Detached>)> {
        self.changes.iter().rev().filter_map(|change| {
            let Undo { owner, key, before } = self.undo(change)?;
            Some((owner, key, before, change.large.as_ref()))
        })
    }

    /// The same from the change numbered `from` on, oldest first.
    pub(super) fn entries(
        &self,
        from: usize,
    ) -> impl Iterator<Item = (u32, &[u8], Before<'_>, Option<&Detached>)> {
        self.changes.iter().skip(from).filter_map(|change| {
            let Undo { owner, key, before } = self.undo(change)?;
            Some((owner, key, before, change.large.as_ref()))
        })
    }

    /// The newest change, and how it is taken back; `None` if there is none.
    pub(super) fn newest(&self) -> Option<(&Change, Undo<'_>)> {
        let change = self.changes.last()?;
        Some((change, self.undo(change)?))
    }

    /// Takes the newest change off: it is taken back.
    pub(super) fn pop(&mut self) {
        if let Some(change) = self.changes.pop() {
            self.bytes.truncate(change.start);
        }
    }

    /// The large values that the changes replaced or removed; nothing is kept afterwards.
    pub(super) fn take_large(&mut self) -> impl Iterator<Item = (u32, Detached)> + '_ {
        let bytes = &self.bytes;
        self.changes.drain(..).filter_map(|change| {
            let large = change.large?;
            Some((Undo::read(bytes.get(change.start..)?)?.owner, large))
        })
    }

    /// Forgets everything, and gives memory back that only a long transaction needs.
    pub(super) fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
        self.changes.shrink_to(KEPT / size_of::<Change>());
        self.bytes.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_in_order_and_go_from_the_newest() {
        let mut list = UndoList::default();
        let befores =
            [Before::Absent, Before::Value(b"was"), Before::Part { offset: 3, bytes: b"xy" }];
        for (at, before) in befores.into_iter().enumerate() {
            let start = list.end();
            Undo { owner: at as u32, key: &[at as u8], before }.put(list.room());
            list.noted(start, Lsn(at as u64));
        }
        // A change that was not made leaves nothing.
        list.noted(list.end(), Lsn(9));
        let mut seen: Vec<_> = list.entries_back().collect();
        seen.reverse();
        let expected = befores.iter().enumerate();
        let expected: Vec<_> = expected.map(|(at, b)| (at as u32, vec![at as u8], *b)).collect();
        assert!(seen.iter().zip(&expected).all(|(a, b)| (a.0, a.1, a.2) == (b.0, &b.1[..], b.2)));
        assert_eq!((seen.len(), list.len()), (3, 3));
        for at in (0..3).rev() {
            let (change, undo) = list.newest().unwrap();
            assert_eq!(
                (change.prev, undo.owner, undo.before),
                (Lsn(at), at as u32, befores[at as usize])
            );
            list.pop();
        }
        assert!(list.is_empty() && list.end() == 0 && list.newest().is_none());
    }
}
