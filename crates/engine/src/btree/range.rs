//! Ranges: the entries between two bounds, from both ends.

use std::ops::Bound;

use crate::btree::cursor::Cursor;
use crate::btree::tree::BTree;
use crate::pool::{Pages, PoolError};

/// An entry: key and value.
pub type Entry<'r> = (&'r [u8], &'r [u8]);

/// The entries between two bounds. [`Range::next`] and [`Range::next_back`] return them from the
/// two ends of the range. An entry is borrowed until the next call.
pub struct Range<'t, P: Pages> {
    front: Cursor<'t, P>,
    back: Cursor<'t, P>,
    is_front_started: bool,
    is_back_started: bool,
    /// True once the two ends have met.
    empty: bool,
}

impl<P: Pages> BTree<P> {
    /// Returns the entries between the bounds.
    pub fn range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range<'_, P> {
        Range {
            front: self.cursor_in(lower, upper),
            back: self.cursor_in(lower, upper),
            is_front_started: false,
            is_back_started: false,
            empty: false,
        }
    }

    /// Calls `visit` with each entry between the bounds, in order, until it returns `false`.
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
    /// Returns the cursor at one of the range's ends.
    #[inline]
    pub(crate) fn end(&self, forward: bool) -> &Cursor<'t, P> {
        if forward { &self.front } else { &self.back }
    }

    /// Skips values: they are empty.
    pub fn keys_only(mut self) -> Self {
        self.front = self.front.keys_only();
        self.back = self.back.keys_only();
        self
    }

    /// Marks a large scan: leaves that only scans have referenced are evicted before all others,
    /// the oldest first, under every policy.
    pub fn as_scan(mut self) -> Self {
        self.front = self.front.as_scan();
        self.back = self.back.as_scan();
        self
    }

    /// Returns the next entry from the front.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    #[allow(clippy::should_implement_trait)] // it lends, which `Iterator` cannot
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, PoolError> {
        self.step(true)?;
        Ok(self.shown(true))
    }

    /// Returns the next entry from the back.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn next_back(&mut self) -> Result<Option<Entry<'_>>, PoolError> {
        self.step(false)?;
        Ok(self.shown(false))
    }

    /// Returns the entry that the last step reached.
    #[inline]
    pub(crate) fn shown(&self, forward: bool) -> Option<Entry<'_>> {
        let end = self.end(forward);
        (!self.empty).then(|| (end.key(), end.value()))
    }

    /// Moves on from one of the ends by up to `n` entries that were read already; returns the
    /// number of entries moved.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn pass(&mut self, n: usize, forward: bool) -> usize {
        // An end that has not begun is on no entry, and an end that may meet the other looks at
        // each entry.
        if self.empty || (self.is_front_started && self.is_back_started) {
            return 0;
        }
        if forward { self.front.pass(n, true) } else { self.back.pass(n, false) }
    }

    /// Moves to the next entry from one of the ends; returns `false` at the end.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub(crate) fn step(&mut self, forward: bool) -> Result<bool, PoolError> {
        if self.empty {
            return Ok(false);
        }
        let started = if forward { &mut self.is_front_started } else { &mut self.is_back_started };
        let is_first = !std::mem::replace(started, true);
        let more = match (forward, is_first) {
            (true, false) => self.front.next()?,
            (true, true) => self.front.first()?,
            (false, false) => self.back.prev()?,
            (false, true) => self.back.last()?,
        };
        let both = self.is_front_started && self.is_back_started;
        self.empty = !more || (both && self.front.key() >= self.back.key());
        Ok(!self.empty)
    }
}
