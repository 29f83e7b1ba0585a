//! A range together with its source: a self-referential cell.

use std::sync::Arc;

use millpond::{KeyRange, Range, RawTree, Snapshot, Txn};
use self_cell::self_cell;

/// The context of a range.
pub(crate) enum Context {
    Autocommit,
    Txn(Arc<Txn>),
    Snapshot(Snapshot),
}

/// The tree that a range reads, and its context.
pub(crate) struct Source {
    pub(crate) tree: RawTree,
    pub(crate) context: Context,
}

impl Source {
    fn range(&self, range: KeyRange) -> Range<'_, Vec<u8>, Vec<u8>> {
        match &self.context {
            Context::Autocommit => self.tree.range(range),
            Context::Txn(txn) => txn.tree(&self.tree).into_range(range),
            Context::Snapshot(snapshot) => snapshot.tree(&self.tree).into_range(range),
        }
    }
}

/// An open range, and its direction.
struct Open<'a> {
    forward: bool,
    range: Range<'a, Vec<u8>, Vec<u8>>,
}

/// A source, and a range over it while one is open.
pub(crate) struct Steps<'a> {
    source: &'a Source,
    open: Option<Open<'a>>,
}

self_cell! {
    /// A source together with the steps that borrow it.
    pub(crate) struct RangeCell {
        owner: Source,
        #[not_covariant]
        dependent: Steps,
    }
}

impl RangeCell {
    pub(crate) fn of(source: Source) -> RangeCell {
        RangeCell::new(source, |source| Steps { source, open: None })
    }
}

impl Steps<'_> {
    /// Opens a range in one direction.
    pub(crate) fn begin(&mut self, forward: bool, range: &KeyRange) {
        let range = self.source.range(range.clone());
        self.open = Some(Open { forward, range });
    }

    /// Closes the range.
    pub(crate) fn stop(&mut self) {
        self.open = None;
    }

    /// Returns `true` if a range is open in that direction.
    pub(crate) fn goes(&self, forward: bool) -> bool {
        self.open.as_ref().is_some_and(|open| open.forward == forward)
    }

    /// Copies the next entry into `key` and `value`. Returns `false` at the end, which closes the
    /// range.
    pub(crate) fn step(
        &mut self,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool, millpond::Error> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let next = match open.forward {
            true => open.range.next_entry(),
            false => open.range.next_entry_back(),
        };
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
