//! A range and what it borrows from, in one.

use std::rc::Rc;

use millpond::{KeyRange, RawRange, RawSnapshotTree, RawTree, RawTxnTree, Snapshot, Txn};
use self_cell::self_cell;

/// Where a range reads.
pub(crate) enum Place {
    Alone,
    /// Never leaves what locks the transaction: see [`Transaction`](crate::Transaction).
    Txn(Rc<Txn>),
    Snapshot(Snapshot),
}

/// What a range borrows from.
pub(crate) struct Source {
    pub(crate) tree: RawTree,
    pub(crate) place: Place,
}

/// A tree, where it is read.
enum View<'a> {
    Alone(&'a RawTree),
    Txn(RawTxnTree<'a>),
    Snapshot(RawSnapshotTree<'a>),
}

/// A range, as it moves: forwards or backwards.
pub(crate) struct Steps<'a> {
    view: View<'a>,
    open: Option<(bool, RawRange<'a>)>,
}

self_cell! {
    /// A range with what it borrows from.
    pub(crate) struct RangeCell {
        owner: Source,
        #[not_covariant]
        dependent: Steps,
    }
}

impl RangeCell {
    /// Nothing is read yet.
    pub(crate) fn of(source: Source) -> RangeCell {
        RangeCell::new(source, |source| {
            let view = match &source.place {
                Place::Alone => View::Alone(&source.tree),
                Place::Txn(txn) => View::Txn(txn.raw_tree(&source.tree)),
                Place::Snapshot(snapshot) => View::Snapshot(snapshot.raw_tree(&source.tree)),
            };
            Steps { view, open: None }
        })
    }
}

impl<'a> Steps<'a> {
    /// Restarts with `range`, from its front or from its back.
    pub(crate) fn begin(&mut self, forward: bool, range: &KeyRange) {
        let range = match &self.view {
            View::Alone(tree) => tree.range(range.clone()),
            View::Txn(tree) => tree.range(range.clone()),
            View::Snapshot(tree) => tree.range(range.clone()),
        };
        self.open = Some((forward, range));
    }

    /// Ends the range; the next move begins another one.
    pub(crate) fn stop(&mut self) {
        self.open = None;
    }

    /// Whether it goes on in that direction.
    pub(crate) fn goes(&self, forward: bool) -> bool {
        self.open.as_ref().is_some_and(|(direction, _)| *direction == forward)
    }

    /// Copies the next entry; returns whether there is one. A range that is over has to be
    /// restarted, since there may be more by then.
    pub(crate) fn step(
        &mut self,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool, millpond::Error> {
        let Some((forward, range)) = &mut self.open else { return Ok(false) };
        let next = if *forward { range.next_entry() } else { range.next_entry_back() };
        let found = match next {
            Ok(Some((found_key, found_value))) => {
                key.clear();
                key.extend_from_slice(found_key);
                value.clear();
                value.extend_from_slice(found_value);
                return Ok(true);
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        self.open = None;
        found
    }
}
