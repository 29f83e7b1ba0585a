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

impl<'t, P: Pages> Range<'t, P> {
    /// What moves at one of its ends.
    #[inline]
    pub(crate) fn end(&self, forward: bool) -> &Cursor<'t, P> {
        if forward { &self.front } else { &self.back }
    }

    /// Values in overflow pages are not read, and come out empty.
    pub fn keys_only(mut self) -> Self {
        self.front = self.front.keys_only();
        self.back = self.back.keys_only();
        self
    }

    /// A large scan: leaves that only scans have referenced leave memory before all others, the
    /// oldest first, whichever policy decides.
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
        self.step(true)?;
        Ok(self.shown(true))
    }

    /// The next entry from the back.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn next_back(&mut self) -> Result<Option<Entry<'_>>, PoolError> {
        self.step(false)?;
        Ok(self.shown(false))
    }

    /// What the last step came to.
    #[inline]
    pub(crate) fn shown(&self, forward: bool) -> Option<Entry<'_>> {
        let end = self.end(forward);
        (!self.empty).then(|| (end.key(), end.value()))
    }

    /// Goes to the next entry from one of the ends; `false` if there is none.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub(crate) fn step(&mut self, forward: bool) -> Result<bool, PoolError> {
        if self.empty {
            return Ok(false);
        }
        let started = &mut self.started;
        let is_first =
            !std::mem::replace(if forward { &mut started.0 } else { &mut started.1 }, true);
        let more = match (forward, is_first) {
            (true, false) => self.front.next()?,
            (true, true) => self.front.first()?,
            (false, false) => self.back.prev()?,
            (false, true) => self.back.last()?,
        };
        let both = self.started.0 && self.started.1;
        self.empty = !more || (both && self.front.key() >= self.back.key());
        Ok(!self.empty)
    }
}
