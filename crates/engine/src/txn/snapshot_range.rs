//! The entries of a snapshot between two bounds, from both ends: the tree's leaves, merged with
//! versions of the entries changed since.
//!
//! A cursor copies a few leaves. Then the versions of all keys that they cover are looked up at
//! once, up to the last leaf's fence. So a scan pays for versions once per copy, and not at all
//! where there are none. A large value is read later than its leaf, so its key is looked up once
//! more after that.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use crate::btree::{BTree, Cursor, Entry};
use crate::pool::Pages;
use crate::txn::before_image::BeforeImage;
use crate::txn::bounds::Bounds;
use crate::txn::error::TxnError;
use crate::txn::snapshot::Snapshot;
use crate::txn::versions::{Image, Window};

/// Maximum versions per look-up.
const WINDOW: usize = 256;

/// The entry that an end shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Nothing yet.
    Nothing,
    /// The cursor's entry.
    Entry,
    /// The entry in `held`.
    Held,
    /// The entry in the window with the number before `row`.
    Version,
}

/// One end of a range.
struct End<'t, P: Pages> {
    snapshot: Arc<Snapshot>,
    tree: &'t BTree<P>,
    cursor: Cursor<'t, P>,
    forward: bool,
    keys_only: bool,
    /// The cursor's count of leaves when the versions were last looked up.
    looks: u64,
    /// The cursor's count of copied leaves at that time.
    fetches: u64,
    use_pages: bool,
    /// Versions between `near` and `far` were not looked up yet; those up to `target` are needed.
    near: Bound<Vec<u8>>,
    target: Bound<Vec<u8>>,
    far: Bound<Vec<u8>>,
    more: bool,
    /// Set once the versions of the whole range were looked up.
    done: bool,
    /// The versions found; those from number `row` on are not merged yet.
    window: Window,
    row: usize,
    shown: Shown,
    /// An entry with a large value. For a version, only the value.
    held: (Vec<u8>, Vec<u8>),
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
            Shown::Version => self.window.key(self.version()).unwrap_or(&[]),
        }
    }

    fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Entry => self.cursor.value(),
            Shown::Held | Shown::Version if self.keys_only => &[],
            Shown::Held => &self.held.1,
            Shown::Version => match self.window.before(self.version()) {
                Some(Image::Bytes(value)) => value,
                Some(Image::Apart(BeforeImage::Here(value))) => value,
                Some(Image::Apart(BeforeImage::Spilled(_))) => &self.held.1,
                None => &[],
            },
        }
    }

    /// Returns the number in the window of the version that was merged last.
    fn version(&self) -> usize {
        self.row.wrapping_sub(1)
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
        if self.is_plain() {
            let is_there = if self.forward { self.cursor.next()? } else { self.cursor.prev()? };
            if is_there && self.cursor.looks() == self.looks {
                // The same leaf has no version left, and this is not a large value.
                return Ok(true);
            }
        } else if !matches!(self.shown, Shown::Held | Shown::Version) {
            self.move_cursor()?;
        }
        self.merge()
    }

    /// Returns `true` if the rest of the cursor's leaf is shown unchanged: it has no version left,
    /// and none is still to be looked up.
    #[inline]
    fn is_plain(&self) -> bool {
        self.shown == Shown::Entry
            && self.use_pages
            && !self.more
            && self.row == self.window.len()
            && self.cursor.looks() == self.looks
    }

    /// Moves to the next visible entry of the cursor and the versions, in key order.
    fn merge(&mut self) -> Result<bool, TxnError> {
        loop {
            self.follow()?;
            let order = match (self.window.key(self.row), self.cursor.is_valid()) {
                (None, false) => return Ok(false),
                (Some(_), false) => Ordering::Less,
                (None, true) => Ordering::Greater,
                (Some(key), true) if self.forward => key.cmp(self.cursor.key()),
                (Some(key), true) => self.cursor.key().cmp(key),
            };
            if order == Ordering::Greater {
                if self.show_entry()? {
                    return Ok(true);
                }
                self.move_cursor()?;
                continue;
            }
            self.row += 1;
            if order == Ordering::Equal {
                self.shown = Shown::Entry;
                self.move_cursor()?;
            }
            let Some(image) = self.window.before(self.version()) else { continue };
            if let Image::Apart(BeforeImage::Spilled(_)) = image
                && !self.keys_only
            {
                self.held.1 = self.snapshot.whole(image)?.into_owned();
            }
            self.shown = Shown::Version;
            return Ok(true);
        }
    }

    /// Shows the cursor's entry; `false` if the snapshot does not have it.
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
            Some(seen) => {
                let before =
                    seen.before(0).map(|before| self.snapshot.whole(before)).transpose()?;
                before.map(Cow::into_owned)
            }
            None => value,
        };
        let Some(value) = value else { return Ok(false) };
        self.held = (key.to_vec(), value);
        // The cursor moves on as if its own entry were shown.
        let moved = self.move_cursor();
        self.shown = Shown::Held;
        moved?;
        Ok(true)
    }

    /// Looks up the versions of the leaves that the cursor has copied.
    fn follow(&mut self) -> Result<(), TxnError> {
        if !self.done && (self.cursor.looks() != self.looks || !self.cursor.is_valid()) {
            self.looks = self.cursor.looks();
            if self.cursor.is_valid() && self.cursor.fetches() == self.fetches {
                // The versions of all leaves copied together were looked up.
                return self.refill();
            }
            self.fetches = self.cursor.fetches();
            let fence = if self.cursor.is_valid() { self.cursor.copied_fence() } else { None };
            self.target = match fence {
                Some(fence) if self.is_within(&fence) && self.forward => Bound::Excluded(fence),
                Some(fence) if self.is_within(&fence) => Bound::Included(fence),
                _ => self.far.clone(),
            };
            self.more = true;
        }
        self.refill()
    }

    /// Looks up more versions of these leaves once those found are merged.
    fn refill(&mut self) -> Result<(), TxnError> {
        while self.more && self.row == self.window.len() {
            self.look_up()?;
        }
        Ok(())
    }

    /// Returns `true` if a fence is before the range's end.
    fn is_within(&self, fence: &[u8]) -> bool {
        match &self.far {
            Bound::Unbounded => true,
            Bound::Included(far) | Bound::Excluded(far) if self.forward => fence < far.as_slice(),
            Bound::Included(far) | Bound::Excluded(far) => fence > far.as_slice(),
        }
    }

    fn look_up(&mut self) -> Result<(), TxnError> {
        let (near, target) = (borrowed(&self.near), borrowed(&self.target));
        let (lower, upper) = if self.forward { (near, target) } else { (target, near) };
        let (owner, bounds) = (self.tree.owner(), Bounds { lower, upper });
        self.window.clear();
        self.row = 0;
        let (more, use_pages) =
            self.snapshot.window(owner, bounds, self.forward, WINDOW, &mut self.window)?;
        self.more = more;
        self.use_pages = use_pages;
        if let Some(last) = self.window.last().filter(|_| more) {
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
        Ok(())
    }
}

/// The entries of a snapshot between two bounds. [`SnapshotRange::next`] and
/// [`SnapshotRange::next_back`] take them off its two ends. Their results are borrowed until the
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
                cursor: tree.cursor_in(lower, upper).without_large(),
                forward,
                keys_only: false,
                looks: 0,
                fetches: 0,
                use_pages: true,
                near,
                target: far.clone(),
                far,
                more: false,
                done: false,
                window: Window::default(),
                row: 0,
                shown: Shown::Nothing,
                held: (Vec::new(), Vec::new()),
            }
        };
        SnapshotRange { front: end(true), back: end(false), is_over: false }
    }

    /// Leaves out values, which are returned empty.
    pub fn keys_only(mut self) -> Self {
        self.front.keys_only = true;
        self.front.cursor = self.front.cursor.keys_only();
        self.back.keys_only = true;
        self.back.cursor = self.back.cursor.keys_only();
        self
    }

    /// Marks it as a large scan: the pool need not keep the leaves that it loads for it.
    pub fn as_scan(mut self) -> Self {
        self.front.cursor = self.front.cursor.as_scan();
        self.back.cursor = self.back.cursor.as_scan();
        self
    }

    /// Returns the next entry from the front.
    ///
    /// # Errors
    /// The memory behind the tree failed, or the snapshot is lost.
    #[allow(clippy::should_implement_trait)] // it lends, which `Iterator` cannot
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, TxnError> {
        self.step(true)?;
        Ok(self.shown(true))
    }

    /// Returns the next entry from the back.
    ///
    /// # Errors
    /// Same as [`SnapshotRange::next`].
    pub fn next_back(&mut self) -> Result<Option<Entry<'_>>, TxnError> {
        self.step(false)?;
        Ok(self.shown(false))
    }

    /// Skips up to `n` entries of a leaf without versions, from one of the ends. Returns the number
    /// skipped.
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn pass(&mut self, n: usize, forward: bool) -> usize {
        let (end, other) = match forward {
            true => (&mut self.front, &self.back),
            false => (&mut self.back, &self.front),
        };
        // An end that may meet the other checks each entry.
        if self.is_over || other.shown != Shown::Nothing || !end.is_plain() {
            return 0;
        }
        end.cursor.pass(n, forward)
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
