//! Cursors: positions in a tree that move both ways.
//!
//! A cursor reads private copies of leaves and holds no latch. The entries that it shows were in
//! the tree when their leaf was copied. Later inserts and removals in a leaf that the cursor has
//! already entered are not seen.
//!
//! The number of leaves that are copied at once, and prefetched, grows as a scan continues in one
//! direction: a look-up pays for one leaf, a long scan for few descents.

use std::ops::Bound;

use crate::btree::ahead::{AHEAD_MAX, Wish};
use crate::btree::descend::Seek;
use crate::btree::fetch::{Batch, LEAVES_MAX};
use crate::btree::lookup::Lookup;
use crate::btree::node::layout::{Span, Value};
use crate::btree::tree::BTree;
use crate::btree::within::{end_in, fence_of, first_in, key_of, place_in};
use crate::page::Scratch;
use crate::pool::{Pages, PoolError};

/// Number of leaves that a scan has entered for each leaf that is copied at once. Copied bytes that
/// the scan does not need are cold memory, while another descent is not.
const PATIENCE: usize = 4;

/// The values that a cursor reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    All,
    /// Only values that are in leaves.
    InLeaves,
    None,
}

/// A position in a tree.
///
/// A new cursor is on no entry: [`Cursor::first`], [`Cursor::last`] or a seek puts it on one. Each
/// move returns whether the cursor is on an entry.
pub struct Cursor<'t, P: Pages> {
    tree: &'t BTree<P>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    values: Values,
    scan: bool,
    batch: Batch,
    /// Index in the batch of the leaf that the cursor is in.
    current: usize,
    /// Index of its entry; `begin..end` are the entries of the leaf within the bounds.
    at: usize,
    begin: usize,
    end: usize,
    valid: bool,
    forward: bool,
    /// Number of leaves entered since the last seek.
    entered: usize,
    prefix: usize,
    key: Vec<u8>,
    value: Span,
    large: Option<Vec<u8>>,
    value_len: u64,
    /// Number of leaves entered, and of values read in overflow pages.
    looks: u64,
    /// Number of times that leaves were copied.
    fetches: u64,
}

impl<P: Pages> BTree<P> {
    /// Returns a cursor over the whole tree.
    pub fn cursor(&self) -> Cursor<'_, P> {
        self.cursor_in(Bound::Unbounded, Bound::Unbounded)
    }

    /// Returns a cursor over the keys between the bounds.
    pub fn cursor_in(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Cursor<'_, P> {
        Cursor {
            tree: self,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            values: Values::All,
            scan: false,
            batch: Batch::default(),
            current: 0,
            at: 0,
            begin: 0,
            end: 0,
            valid: false,
            forward: true,
            entered: 0,
            prefix: 0,
            key: Vec::new(),
            value: Span::default(),
            large: None,
            value_len: 0,
            looks: 0,
            fetches: 0,
        }
    }
}

impl<P: Pages> Cursor<'_, P> {
    /// Skips values: [`Cursor::value`] is empty.
    pub fn keys_only(mut self) -> Self {
        self.values = Values::None;
        self
    }

    /// Skips values in overflow pages: [`Cursor::value`] is empty for them.
    pub(crate) fn without_large(mut self) -> Self {
        self.values = Values::InLeaves;
        self
    }

    /// Marks a large scan: the pool need not keep the leaves that it loads for this cursor
    /// (leanstore IV-I, hinting).
    pub fn as_scan(mut self) -> Self {
        self.scan = true;
        self
    }

    /// Returns whether the cursor is on an entry.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Returns the key of the cursor's entry; empty if it is on none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.valid { &self.key } else { &[] }
    }

    /// Returns the value of the cursor's entry; empty if it is on none.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.large {
            _ if !self.valid || self.values == Values::None => &[],
            Some(large) => large,
            None => {
                let page = self.batch.bytes(self.current);
                page.get(self.value.at..self.value.end()).unwrap_or(&[])
            }
        }
    }

    /// Returns whether the value is in overflow pages.
    pub(crate) fn is_large(&self) -> bool {
        self.valid && self.large.is_some()
    }

    /// Returns the number of reads of the tree. If it has changed, the cursor shows an entry that
    /// was read since.
    #[inline]
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Returns whether values of the present leaf are in overflow pages.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn has_large(&self) -> bool {
        self.batch.len() > 0 && self.batch.leaf(self.current).overflows() > 0
    }

    /// Returns the number of times that leaves were copied; several are copied at once.
    #[inline]
    pub(crate) fn fetches(&self) -> u64 {
        self.fetches
    }

    /// Returns the fence of the cursor's leaf in a direction: forwards the first key after the
    /// leaf, backwards the first key of the leaf. Returns `None` at the end of the tree.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn fence(&self, forward: bool) -> Option<Vec<u8>> {
        fence_of(self.batch.leaf(self.current), forward)
    }

    /// Returns the fence of the copied leaves in the direction in which the cursor moves, like
    /// [`Cursor::fence`].
    pub(crate) fn copied_fence(&self) -> Option<Vec<u8>> {
        fence_of(self.batch.leaf(self.batch.len().checked_sub(1)?), self.forward)
    }

    /// Returns the length of the value, even if the value was not read.
    pub fn value_len(&self) -> u64 {
        if self.valid { self.value_len } else { 0 }
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// The memory behind the tree failed. After an error of this or any other move, the cursor is
    /// on no entry.
    pub fn first(&mut self) -> Result<bool, PoolError> {
        let start = key_of(&self.lower).map(<[u8]>::to_vec).unwrap_or_default();
        self.enter(true, Some(&start))?;
        self.settle_forward(self.begin)
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// See [`Cursor::first`].
    pub fn last(&mut self) -> Result<bool, PoolError> {
        let bound = match &self.upper {
            Bound::Included(key) => Some((key.clone(), false)),
            Bound::Excluded(key) => Some((key.clone(), true)),
            Bound::Unbounded => None,
        };
        self.restart(false);
        match &bound {
            None => self.fetch(Seek::Last, 1, false)?,
            Some((key, true)) if !key.is_empty() => self.fetch(Seek::Below(key), 1, false)?,
            Some((key, _)) => self.fetch(Seek::At(key), 1, false)?,
        }
        self.settle_backward(self.end)
    }

    /// Moves to the first entry whose key is not below `key`.
    ///
    /// # Errors
    /// See [`Cursor::first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, PoolError> {
        if key_of(&self.lower).is_some_and(|lower| lower > key) {
            return self.first();
        }
        self.enter(true, Some(key))?;
        let (at, _) = place_in(self.batch.leaf(self.current), key);
        self.settle_forward(at.max(self.begin))
    }

    /// Moves to the last entry whose key is not above `key`.
    ///
    /// # Errors
    /// See [`Cursor::first`].
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool, PoolError> {
        if key_of(&self.upper).is_some_and(|upper| upper < key) {
            return self.last();
        }
        self.enter(false, Some(key))?;
        let (at, equal) = place_in(self.batch.leaf(self.current), key);
        self.settle_backward((at + usize::from(equal)).min(self.end))
    }

    /// Moves to the next entry. A cursor on no entry stays on none.
    ///
    /// # Errors
    /// See [`Cursor::first`].
    #[inline]
    #[allow(clippy::should_implement_trait)] // it lends, which `Iterator` cannot
    pub fn next(&mut self) -> Result<bool, PoolError> {
        if !self.valid {
            return Ok(false);
        }
        self.settle_forward(self.at + 1)
    }

    /// Moves to the previous entry. A cursor on no entry stays on none.
    ///
    /// # Errors
    /// See [`Cursor::first`].
    #[inline]
    pub fn prev(&mut self) -> Result<bool, PoolError> {
        if !self.valid {
            return Ok(false);
        }
        self.settle_backward(self.at)
    }

    /// Moves on by up to `n` entries within the present leaf, without looking at those between.
    /// Returns the number of entries moved: 0 in a leaf with values in overflow pages.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn pass(&mut self, n: usize, forward: bool) -> usize {
        if !self.valid || self.has_large() {
            return 0;
        }
        let (from, to) = if forward { (self.at + 1, self.end) } else { (self.begin, self.at) };
        let n = n.min(to.saturating_sub(from));
        let to = if forward { self.at + n } else { self.at - n };
        let Value::Inline(span) = self.batch.leaf(self.current).value(to) else { return 0 };
        self.set(to, span);
        n
    }

    fn restart(&mut self, forward: bool) {
        self.valid = false;
        self.forward = forward;
        self.entered = 0;
    }

    /// Fetches the leaf that covers `key`.
    fn enter(&mut self, forward: bool, key: Option<&[u8]>) -> Result<(), PoolError> {
        self.restart(forward);
        self.fetch(Seek::At(key.unwrap_or(&[])), 1, false)
    }

    fn fetch(&mut self, seek: Seek<'_>, leaves: usize, goes_on: bool) -> Result<(), PoolError> {
        let bound = if self.forward { &self.upper } else { &self.lower };
        let wish = Wish {
            seek,
            forward: self.forward,
            leaves,
            ahead: (self.entered * 4).min(AHEAD_MAX).min(self.tree.pages.ahead_max()),
            stop: key_of(bound),
            scan: self.scan,
            values: self.values != Values::None,
            goes_on,
        };
        self.valid = false;
        self.fetches += 1;
        self.tree.fetch(wish, &mut self.batch)?;
        self.look(0);
        Ok(())
    }

    /// Enters leaf `i` of the batch, before or after its entries.
    fn look(&mut self, i: usize) {
        debug_assert!(i < self.batch.len());
        self.current = i;
        self.entered += 1;
        self.looks += 1;
        let node = self.batch.leaf(i);
        self.key.clear();
        node.append(node.prefix(), &mut self.key);
        let (begin, end) = match (&self.lower, &self.upper) {
            (Bound::Unbounded, Bound::Unbounded) => (0, node.count()),
            (lower, upper) => (first_in(node, lower), end_in(node, upper)),
        };
        self.prefix = self.key.len();
        (self.begin, self.end) = (begin, end);
    }

    /// Moves to entry `at` or, if there is none, to the next entry.
    #[inline]
    fn settle_forward(&mut self, mut at: usize) -> Result<bool, PoolError> {
        loop {
            if at < self.end {
                if self.show(at)? {
                    return Ok(true);
                }
                at += 1;
            } else if let Some(first) = self.step(true)? {
                at = first;
            } else {
                return Ok(false);
            }
        }
    }

    /// Moves to the entry before `behind` or, if there is none, to the last entry before that leaf.
    #[inline]
    fn settle_backward(&mut self, mut behind: usize) -> Result<bool, PoolError> {
        loop {
            if behind > self.begin {
                behind -= 1;
                if self.show(behind)? {
                    return Ok(true);
                }
            } else if let Some(end) = self.step(false)? {
                behind = end;
            } else {
                return Ok(false);
            }
        }
    }

    /// Moves to the next leaf in a direction. Returns its first entry or, backwards, the one after
    /// its last. If there is no leaf, returns `None`, and the cursor is on no entry.
    fn step(&mut self, forward: bool) -> Result<Option<usize>, PoolError> {
        self.valid = false;
        let Some(fence) = self.fence_ahead(forward) else { return Ok(None) };
        if forward == self.forward && self.current + 1 < self.batch.len() {
            self.look(self.current + 1);
            return Ok(Some(if forward { self.begin } else { self.end }));
        }
        let goes_on = forward == self.forward;
        if !goes_on {
            self.restart(forward);
        }
        let leaves = (self.entered / PATIENCE).clamp(1, LEAVES_MAX);
        let seek = if forward { Seek::At(&fence) } else { Seek::Below(&fence) };
        self.fetch(seek, leaves, goes_on)?;
        // The leaf may have merged or shared with its neighbour in the meantime: entries on this
        // side of the fence were already shown.
        let (at, _) = place_in(self.batch.leaf(self.current), &fence);
        Ok(Some(if forward { at.max(self.begin) } else { at.min(self.end) }))
    }

    /// Returns the fence of the present leaf in a direction, if entries within the bounds may be
    /// beyond it.
    fn fence_ahead(&self, forward: bool) -> Option<Vec<u8>> {
        let node = self.batch.leaf(self.current);
        if !forward {
            let fence = node.lower_bytes();
            let beyond = key_of(&self.lower).is_some_and(|key| fence.as_slice() <= key);
            return (!fence.is_empty() && !beyond).then_some(fence);
        }
        let fence = node.upper_bytes()?;
        let beyond = match &self.upper {
            Bound::Included(key) => fence > *key,
            Bound::Excluded(key) => fence >= *key,
            Bound::Unbounded => false,
        };
        (!beyond).then_some(fence)
    }

    /// Puts the cursor on entry `at` of the present leaf. Returns `false` if the entry was removed
    /// in the meantime, which shows only if its value is in overflow pages.
    #[inline]
    fn show(&mut self, at: usize) -> Result<bool, PoolError> {
        match self.batch.leaf(self.current).value(at) {
            Value::Inline(span) => {
                self.set(at, span);
                Ok(true)
            }
            Value::Overflow(_) => self.show_large(at),
        }
    }

    /// Shows entry `at` of the present leaf, whose value is in the leaf.
    #[inline(always)]
    fn set(&mut self, at: usize, value: Span) {
        self.set_key(at);
        self.value = value;
        self.value_len = value.len as u64;
        self.large = None;
        self.valid = true;
    }

    #[inline(always)]
    fn set_key(&mut self, at: usize) {
        self.at = at;
        self.key.truncate(self.prefix);
        self.batch.leaf(self.current).suffix_to(at, &mut self.key);
    }

    fn show_large(&mut self, at: usize) -> Result<bool, PoolError> {
        self.set_key(at);
        self.looks += 1;
        let mut reference = self.batch.leaf(self.current).reference(at);
        self.valid = false;
        if self.values != Values::All {
            self.value_len = reference.map_or(0, |reference| reference.len);
            self.large = Some(Vec::new());
            self.valid = true;
            return Ok(true);
        }
        while let Some(wanted) = reference {
            if let Some(value) = self.tree.read_whole(&self.key, wanted)? {
                self.value_len = value.len() as u64;
                self.large = Some(value);
                self.valid = true;
                return Ok(true);
            }
            // The value was replaced: the present one is shown.
            let mut scratch = Scratch::default();
            reference = match self.tree.look(&self.key, &mut scratch)? {
                Lookup::Missing => return Ok(false),
                Lookup::Inline => {
                    self.value_len = scratch.bytes().len() as u64;
                    self.large = Some(scratch.bytes().to_vec());
                    self.valid = true;
                    return Ok(true);
                }
                Lookup::Overflow(other) => Some(other),
            };
        }
        Ok(false)
    }
}
