//! The entries of a snapshot between two bounds, from both ends: the tree's leaves, merged with the
//! versions of what was changed since.
//!
//! A cursor copies a leaf; the versions of all keys that the leaf covers are looked up afterwards,
//! at once, up to its fence. So a scan pays for versions once per leaf, and not at all where there
//! are none. A large value is read later than its leaf: its key is looked up once more, after that.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use crate::btree::{BTree, Cursor, Entry};
use crate::pool::Pages;
use crate::txn::error::TxnError;
use crate::txn::snapshot::Snapshot;
use crate::txn::versions::{Before, Window};

/// VersionStore that are looked up at once.
const WINDOW: usize = 256;

/// The position of an end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Nothing yet.
    Nothing,
    /// The cursor's entry.
    Entry,
    /// The entry in `held`.
    Held,
}

/// One end of a range.
struct End<'t, P: Pages> {
    snapshot: Arc<Snapshot>,
    tree: &'t BTree<P>,
    cursor: Cursor<'t, P>,
    forward: bool,
    keys_only: bool,
    /// The cursor's count of leaf copies when the versions of its leaf were last looked up.
    looks: u64,
    use_pages: bool,
    /// VersionStore between `near` and `far` were not looked up yet; those up to `target` are
    /// wanted.
    near: Bound<Vec<u8>>,
    target: Bound<Vec<u8>>,
    far: Bound<Vec<u8>>,
    more: bool,
    /// The versions of the whole range were looked up.
    done: bool,
    window: VecDeque<(Arc<[u8]>, Before)>,
    found: Window,
    shown: Shown,
    held: (Arc<[u8]>, Arc<[u8]>),
}

impl Snapshot {
    /// Returns the entries between two bounds.
    pub fn range<'t, P: Pages>(
        self: &Arc<Self>,
        tree: &'t BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> SnapshotRange<'t, P> {
        SnapshotRange::new(self.clone(), tree, lower, upper)
    }
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

impl<P: Pages> End<'_, P> {
    fn key(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Entry => self.cursor.key(),
            Shown::Held => &self.held.0,
        }
    }

    fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Entry => self.cursor.value(),
            Shown::Held if self.keys_only => &[],
            Shown::Held => &self.held.1,
        }
    }

    fn move_cursor(&mut self) -> Result<(), TxnError> {
        match (self.shown, self.forward) {
            (Shown::Nothing, true) => self.cursor.first()?,
            (Shown::Nothing, false) => self.cursor.last()?,
            (_, true) => self.cursor.next()?,
            (_, false) => self.cursor.prev()?,
        };
        Ok(())
    }

    /// Moves to the next entry; `false` if there is none.
    #[inline]
    fn step(&mut self) -> Result<bool, TxnError> {
        let is_plain = self.shown == Shown::Entry && self.use_pages && !self.more;
        if is_plain && self.window.is_empty() {
            let is_there = if self.forward { self.cursor.next()? } else { self.cursor.prev()? };
            if is_there && self.cursor.looks() == self.looks {
                // In the same leaf, of which no version is left, and not a large value.
                return Ok(true);
            }
        } else if self.shown != Shown::Held {
            self.move_cursor()?;
        }
        self.merge()
    }

    /// Moves to the next visible entry of the cursor and the versions, in key order.
    fn merge(&mut self) -> Result<bool, TxnError> {
        loop {
            self.follow()?;
            let order = match (self.window.front(), self.cursor.is_valid()) {
                (None, false) => return Ok(false),
                (Some(_), false) => Ordering::Less,
                (None, true) => Ordering::Greater,
                (Some((key, _)), true) if self.forward => (**key).cmp(self.cursor.key()),
                (Some((key, _)), true) => self.cursor.key().cmp(key),
            };
            if order == Ordering::Greater {
                if self.show_entry()? {
                    return Ok(true);
                }
                self.move_cursor()?;
                continue;
            }
            let version = self.window.pop_front();
            if order == Ordering::Equal {
                self.shown = Shown::Entry;
                self.move_cursor()?;
            }
            if let Some((key, Some(value))) = version {
                self.held = (key, self.snapshot.whole(&value)?);
                self.shown = Shown::Held;
                return Ok(true);
            }
        }
    }

    /// Shows the cursor's entry; `false` if the snapshot sees none.
    fn show_entry(&mut self) -> Result<bool, TxnError> {
        self.shown = Shown::Entry;
        if !self.use_pages {
            return Ok(false);
        }
        if !self.cursor.is_large() || self.keys_only {
            return Ok(true);
        }
        let key = self.cursor.key();
        let value = self.tree.get_owned(key)?;
        let value = match self.snapshot.seen(self.tree.owner(), key)? {
            Some(before) => before.map(|before| self.snapshot.whole(&before)).transpose()?,
            None => value.map(Arc::from),
        };
        let Some(value) = value else { return Ok(false) };
        self.held = (key.into(), value);
        // The cursor moves on as if its own entry were shown.
        let moved = self.move_cursor();
        self.shown = Shown::Held;
        moved?;
        Ok(true)
    }

    /// Looks up the versions of the leaf that the cursor has reached.
    fn follow(&mut self) -> Result<(), TxnError> {
        if !self.done && (self.cursor.looks() != self.looks || !self.cursor.is_valid()) {
            self.looks = self.cursor.looks();
            let fence = if self.cursor.is_valid() { self.cursor.fence(self.forward) } else { None };
            self.target = match fence {
                Some(fence) if self.is_within(&fence) && self.forward => Bound::Excluded(fence),
                Some(fence) if self.is_within(&fence) => Bound::Included(fence),
                _ => self.far.clone(),
            };
            self.more = true;
        }
        while self.more && self.window.is_empty() {
            self.look_up()?;
        }
        Ok(())
    }

    /// Whether a fence is before the range's end.
    fn is_within(&self, fence: &[u8]) -> bool {
        match &self.far {
            Bound::Unbounded => true,
            Bound::Included(far) | Bound::Excluded(far) if self.forward => fence < far.as_slice(),
            Bound::Included(far) | Bound::Excluded(far) => fence > far.as_slice(),
        }
    }

    fn look_up(&mut self) -> Result<(), TxnError> {
        let (near, target) = (borrowed(&self.near), borrowed(&self.target));
        let bounds = if self.forward { (near, target) } else { (target, near) };
        let how = (self.forward, WINDOW);
        let owner = self.tree.owner();
        let (more, use_pages) = self.snapshot.window(owner, bounds, how, &mut self.found)?;
        self.more = more;
        self.use_pages = use_pages;
        if let Some((last, _)) = self.found.last().filter(|_| more) {
            self.near = Bound::Excluded(last.to_vec());
        } else if self.target == self.far {
            self.done = true;
        } else {
            self.near = match std::mem::replace(&mut self.target, Bound::Unbounded) {
                Bound::Excluded(fence) => Bound::Included(fence),
                Bound::Included(fence) => Bound::Excluded(fence),
                Bound::Unbounded => Bound::Unbounded,
            };
        }
        self.window.extend(self.found.drain(..).map(|(key, (before, _))| (key, before)));
        Ok(())
    }
}

/// The entries of a snapshot between two bounds. [`SnapshotRange::next`] and
/// [`SnapshotRange::next_back`] take them off its two ends; what they return is borrowed until the
/// next call.
pub struct SnapshotRange<'t, P: Pages> {
    front: End<'t, P>,
    back: End<'t, P>,
    is_over: bool,
}

impl<'t, P: Pages> SnapshotRange<'t, P> {
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        tree: &'t BTree<P>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> SnapshotRange<'t, P> {
        let end = |forward: bool| {
            let (near, far) = if forward { (lower, upper) } else { (upper, lower) };
            let (near, far) = (near.map(<[u8]>::to_vec), far.map(<[u8]>::to_vec));
            End {
                snapshot: snapshot.clone(),
                tree,
                cursor: tree.cursor_in(lower, upper).keys_only(),
                forward,
                keys_only: false,
                looks: 0,
                use_pages: true,
                near,
                target: far.clone(),
                far,
                more: false,
                done: false,
                window: VecDeque::new(),
                found: Vec::new(),
                shown: Shown::Nothing,
                held: (Arc::from([]), Arc::from([])),
            }
        };
        SnapshotRange { front: end(true), back: end(false), is_over: false }
    }

    /// Does not read large values, which are returned empty.
    pub fn keys_only(mut self) -> Self {
        (self.front.keys_only, self.back.keys_only) = (true, true);
        self
    }

    /// Marks it as a large scan: the pool need not keep the leaves that it loads for it.
    pub fn as_scan(mut self) -> Self {
        self.front.cursor = self.front.cursor.as_scan();
        self.back.cursor = self.back.cursor.as_scan();
        self
    }

    /// The next entry from the front.
    ///
    /// # Errors
    /// The memory behind the tree failed, or the snapshot is lost.
    #[allow(clippy::should_implement_trait)] // it lends, which `Iterator` cannot
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, TxnError> {
        self.step(true)?;
        Ok(self.shown(true))
    }

    /// The next entry from the back.
    ///
    /// # Errors
    /// As [`SnapshotRange::next`].
    pub fn next_back(&mut self) -> Result<Option<Entry<'_>>, TxnError> {
        self.step(false)?;
        Ok(self.shown(false))
    }

    /// Returns the entry that the last step moved to.
    pub(crate) fn shown(&self, forward: bool) -> Option<Entry<'_>> {
        let end = if forward { &self.front } else { &self.back };
        (!self.is_over).then(|| (end.key(), end.value()))
    }

    /// Moves to the next entry from one of the ends; `false` if there is none.
    pub(crate) fn step(&mut self, forward: bool) -> Result<bool, TxnError> {
        if self.is_over {
            return Ok(false);
        }
        let (end, other) = match forward {
            true => (&mut self.front, &self.back),
            false => (&mut self.back, &self.front),
        };
        // An error ends it.
        self.is_over = true;
        if !end.step()? {
            return Ok(false);
        }
        let past = if forward { Ordering::Less } else { Ordering::Greater };
        self.is_over = other.shown != Shown::Nothing && end.key().cmp(other.key()) != past;
        Ok(!self.is_over)
    }
}
