//! Ranges: the entries between two bounds, from both ends.

use std::ops::Bound;

use crate::btree::cursor::Cursor;
use crate::btree::tree::BTree;
use crate::pool::{Pages, PoolError};

/// An entry: key and value.
pub type Entry<'r> = (&'r [u8], &'r [u8]);

/// The entries between two bounds. [`Range::next`] and [`Range::next_back`] take them off its two
/// ends; what they answer is borrowed until the next call.
pub struct Range<'t, P: Pages> {
    front: Cursor<'t, P>,
    back: Cursor<'t, P>,
    started: (bool, bool),
    /// The ends met.
    empty: bool,
}

impl<P: Pages> BTree<P> {
    /// The entries between the bounds.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range<'_, P> {
        Range {
            front: self.cursor_in(lower, upper),
            back: self.cursor_in(lower, upper),
            started: (false, false),
            empty: false,
        }
    }

    /// Calls `visit` with each entry between the bounds, in order, until it answers `false`.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), PoolError> {
        let mut cursor = self.cursor_in(lower, upper);
        let mut more = cursor.first()?;
        while more && visit(cursor.key(), cursor.value()) {
            more = cursor.next()?;
        }
        Ok(())
    }
}

impl<P: Pages> Range<'_, P> {
    /// Values in overflow pages are not read, and come out empty.
    pub fn keys_only(mut self) -> Self {
        self.front = self.front.keys_only();
        self.back = self.back.keys_only();
        self
    }

    /// A large scan: the pool need not keep the leaves that it has to load for it.
    pub fn as_scan(mut self) -> Self {
        self.front = self.front.as_scan();
        self.back = self.back.as_scan();
        self
    }

    /// The next entry from the front.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    #[allow(clippy::should_implement_trait)] // it lends, which `Iterator` cannot
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, PoolError> {
        if self.empty {
            return Ok(None);
        }
        let more = if self.started.0 { self.front.next()? } else { self.front.first()? };
        self.started.0 = true;
        self.empty = !more || (self.started.1 && self.front.key() >= self.back.key());
        if self.empty {
            return Ok(None);
        }
        Ok(Some((self.front.key(), self.front.value())))
    }

    /// The next entry from the back.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn next_back(&mut self) -> Result<Option<Entry<'_>>, PoolError> {
        if self.empty {
            return Ok(None);
        }
        let more = if self.started.1 { self.back.prev()? } else { self.back.last()? };
        self.started.1 = true;
        self.empty = !more || (self.started.0 && self.back.key() <= self.front.key());
        if self.empty {
            return Ok(None);
        }
        Ok(Some((self.back.key(), self.back.value())))
    }
}
