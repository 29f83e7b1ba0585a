//! Names of values in overflow pages to which no leaf entry refers.

use millpond_base::PageId;

use crate::page::varint::{put_varint, take_varint};
use crate::pool::Anchor;

/// A value in overflow pages, as the log names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargeValue {
    /// Root of the value's pages.
    pub root: PageId,
    /// Length of the value in bytes.
    pub len: u64,
    /// Stamp drawn when the value was written; no other value has it.
    pub stamp: u64,
}

impl LargeValue {
    /// Appends the name to `out`.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.root.0);
        put_varint(out, self.len);
        put_varint(out, self.stamp);
    }

    /// Takes a value that [`LargeValue::put`] wrote off the front of `bytes`; returns `None` if it
    /// is cut short.
    pub(crate) fn take(bytes: &mut &[u8]) -> Option<LargeValue> {
        let root = PageId(take_varint(bytes)?);
        Some(LargeValue { root, len: take_varint(bytes)?, stamp: take_varint(bytes)? })
    }
}

/// A value in overflow pages below an anchor of its own. It is an orphan, to which no entry refers,
/// until it is attached to an entry or freed. While it is being written, it has the pages written
/// so far.
pub struct Detached {
    pub(crate) anchor: Anchor,
    pub(crate) len: u64,
    pub(crate) stamp: u64,
}

impl Detached {
    /// Returns `value`, whose root's swip is in `anchor`.
    pub(crate) fn below(anchor: Anchor, value: LargeValue) -> Detached {
        Detached { anchor, len: value.len, stamp: value.stamp }
    }

    /// Returns the value's stamp, which no other value has.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns the value's length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the value is empty, which it never is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
