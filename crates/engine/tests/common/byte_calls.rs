//! Calls on byte strings with the tree as an argument: shorter in tests that use many trees of one
//! transaction or snapshot.

use std::ops::RangeBounds;

use millpond::{Error, KeyRange, Range, RawTree, Snapshot, Txn};

type Entry = (Vec<u8>, Vec<u8>);

/// Calls of a transaction.
pub trait TxnCalls {
    fn get(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    fn get_with<R>(
        &self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error>;

    fn get_for_update(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    fn put(&self, tree: &RawTree, key: &[u8], value: &[u8]) -> Result<bool, Error>;

    fn delete(&self, tree: &RawTree, key: &[u8]) -> Result<bool, Error>;

    /// Hands the entries of a range to `f`, in order, until it returns `false`. The whole range is
    /// locked before it is read.
    fn scan<'k>(
        &self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error>;

    /// Hands the entries of a range to `f`, from the last key to the first, until it returns
    /// `false`.
    fn scan_back<'k>(
        &self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error>;

    /// The entries of a range, which is locked as a whole.
    fn range<'k>(
        &self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Vec<Entry>, Error>;
}

/// Locks a range as a whole, and opens it.
fn locked<'t>(
    txn: &'t Txn,
    tree: &'t RawTree,
    range: KeyRange,
) -> Result<Range<'t, Vec<u8>, Vec<u8>>, Error> {
    txn.tree(tree).count(&range)?;
    Ok(txn.tree(tree).into_range(range))
}

/// Hands rows to `f` until it returns `false`.
fn hand_out(
    rows: impl Iterator<Item = Result<Entry, Error>>,
    mut f: impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), Error> {
    for row in rows {
        let (key, value) = row?;
        if !f(&key, &value) {
            break;
        }
    }
    Ok(())
}

impl TxnCalls for Txn {
    fn get(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.tree(tree).get(key)
    }

    fn get_with<R>(
        &self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.tree(tree).get_with(key, f)
    }

    fn get_for_update(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.tree(tree).get_for_update(key)
    }

    fn put(&self, tree: &RawTree, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.tree(tree).put(key, value)
    }

    fn delete(&self, tree: &RawTree, key: &[u8]) -> Result<bool, Error> {
        self.tree(tree).delete(key)
    }

    fn scan<'k>(
        &self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        hand_out(locked(self, tree, KeyRange::of::<Vec<u8>, &[u8]>(range))?, f)
    }

    fn scan_back<'k>(
        &self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
        f: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        hand_out(locked(self, tree, KeyRange::of::<Vec<u8>, &[u8]>(range))?.rev(), f)
    }

    fn range<'k>(
        &self,
        tree: &RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Vec<Entry>, Error> {
        locked(self, tree, KeyRange::of::<Vec<u8>, &[u8]>(range))?.collect()
    }
}

/// Calls of a snapshot.
pub trait SnapshotCalls {
    fn get(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    fn get_with<R>(
        &self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error>;

    fn range<'t, 'k>(
        &'t self,
        tree: &'t RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Range<'t, Vec<u8>, Vec<u8>>, Error>;

    fn iter<'t>(&'t self, tree: &'t RawTree) -> Result<Range<'t, Vec<u8>, Vec<u8>>, Error>;
}

impl SnapshotCalls for Snapshot {
    fn get(&self, tree: &RawTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.tree(tree).get(key)
    }

    fn get_with<R>(
        &self,
        tree: &RawTree,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.tree(tree).get_with(key, f)
    }

    fn range<'t, 'k>(
        &'t self,
        tree: &'t RawTree,
        range: impl RangeBounds<&'k [u8]>,
    ) -> Result<Range<'t, Vec<u8>, Vec<u8>>, Error> {
        Ok(self.tree(tree).into_range(KeyRange::of::<Vec<u8>, &[u8]>(range)))
    }

    fn iter<'t>(&'t self, tree: &'t RawTree) -> Result<Range<'t, Vec<u8>, Vec<u8>>, Error> {
        Ok(self.tree(tree).into_range(..))
    }
}
