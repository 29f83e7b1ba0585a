//! The first key of a bucket's range, by which buckets are found. Its first eight bytes decide most
//! comparisons, and are stored in the map itself.

use std::borrow::{Borrow, Cow};

use crate::txn::versions::bucket::head_of;

/// A key that can be compared with first keys. The order is that of the keys: of two different
/// heads, the smaller belongs to the smaller key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'k> {
    head: u64,
    key: Cow<'k, [u8]>,
}

/// A first key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FirstKey(Key<'static>);

impl<'k> Key<'k> {
    #[inline]
    pub(super) fn new(key: &'k [u8]) -> Key<'k> {
        Key { head: head_of(key), key: Cow::Borrowed(key) }
    }
}

impl FirstKey {
    pub(super) fn new(key: &[u8]) -> FirstKey {
        FirstKey(Key { head: head_of(key), key: Cow::Owned(key.to_vec()) })
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { head: self.0.head, key: Cow::Borrowed(&self.0.key) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.key
    }
}

impl<'k> Borrow<Key<'k>> for FirstKey {
    fn borrow(&self) -> &Key<'k> {
        &self.0
    }
}
