//! Loads sorted rows into an empty tree.
//!
//! Rows are packed into a draft of a leaf until one no longer fits. The draft then becomes the last
//! leaf, and a new, empty one is linked after it. Inner nodes fill from left to right by the splits
//! that ascending inserts cause. So the tree is sound after every step.

use crate::btree::descend::{LocatedNode, Seek, sound};
use crate::btree::error::BulkError;
use crate::btree::node::edit::{Edit, Payload};
use crate::btree::node::layout::{
    INNER_SLOT, LEAF_SLOT, Node, REFERENCE_ROOM, common, rest_of, slots_at,
};
use crate::btree::node::split::separator;
use crate::btree::structure::relink::{copy_body, link};
use crate::btree::tree::BTree;
use crate::page::{PageBuffer, View};
use crate::pool::{Actor, MiniTransaction, Pages, PoolError, Try, Write};

/// Options of a bulk load.
///
/// ```
/// # use millpond::{BulkOptions, Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.tree::<u32, String>("words")?;
/// let mut options = BulkOptions::default();
/// options.fill = 0.8; // room for what is inserted later
/// tree.bulk_load((0..1000).map(|n| (n, format!("{n}"))), options)?;
/// assert_eq!(tree.len()?, 1000);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct BulkOptions {
    /// Share of each leaf that is filled, from 0.5 to 1.
    pub fill: f64,
}

impl Default for BulkOptions {
    fn default() -> BulkOptions {
        BulkOptions { fill: 1.0 }
    }
}

/// Bound on the bytes of values for overflow pages that wait until their leaf is written: the
/// smallest bound, and the one in a store with much memory.
const LARGE_MAX: (usize, usize) = (256 << 10, 16 << 20);

/// A row that waits for its leaf.
struct Row {
    key: Vec<u8>,
    value: Vec<u8>,
    /// True if the value goes to overflow pages once the leaf is written.
    large: bool,
}

/// Bytes of rows in a leaf with a prefix of `prefix` bytes.
#[derive(Clone, Copy, Default)]
struct Sum {
    prefix: usize,
    bytes: usize,
}

/// Rows for the next leaf. All rows except the last are known to fit, with the fence before the
/// last.
struct Pending {
    rows: Vec<Row>,
    /// Fence below the first row.
    lower: Vec<u8>,
    /// Bytes of large values.
    large: usize,
    /// Bytes of all rows, as far as they are known.
    sum: Sum,
    /// Bytes that may be in use in a leaf.
    room: usize,
}

impl Pending {
    fn row_len(row: &Row, prefix: usize) -> usize {
        let value = if row.large { REFERENCE_ROOM } else { row.value.len() };
        LEAF_SLOT + rest_of(row.key.len().saturating_sub(prefix)) + value
    }

    fn push(&mut self, row: Row) {
        debug_assert!(
            self.rows.last().is_none_or(|last| last.key < row.key),
            "rows come in ascending order"
        );
        debug_assert!(self.lower <= row.key, "the lower fence is not above a key");
        self.sum.bytes += Pending::row_len(&row, self.sum.prefix);
        self.large += if row.large { row.value.len() } else { 0 };
        self.rows.push(row);
    }

    /// Returns the fence before `key`, which follows the last row.
    fn fence(&self, key: &[u8]) -> Vec<u8> {
        let last = self.rows.last().map_or(&[][..], |row| &row.key);
        separator(last, key).to_vec()
    }

    /// Returns whether all rows fit into one leaf with this upper fence.
    fn fits(&mut self, fence: Option<&[u8]>) -> bool {
        let prefix = fence.map_or(0, |fence| common(&self.lower, fence));
        if prefix != self.sum.prefix {
            let bytes = self.rows.iter().map(|row| Pending::row_len(row, prefix)).sum();
            self.sum = Sum { prefix, bytes };
        }
        self.sum.bytes + self.lower.len() + fence.map_or(0, <[u8]>::len) <= self.room
    }

    /// Takes out all rows; the next rows are above `fence`.
    fn take(&mut self, fence: &[u8]) -> Vec<Row> {
        self.lower = fence.to_vec();
        self.sum = Sum::default();
        self.large = 0;
        std::mem::take(&mut self.rows)
    }
}

enum Step {
    Done,
    /// The last inner node needs this many bytes for the separator.
    ParentFull(usize),
    /// Another thread wrote here.
    Disturbed,
}

impl<P: Pages> BTree<P> {
    /// Loads rows whose keys ascend into this tree, which must be empty; returns their number.
    /// Values too large for a leaf are stored in overflow pages, as always.
    ///
    /// # Errors
    /// If the tree is not empty, or another thread writes to it; if a key is not above the one
    /// before it; if a key or value is too long; or if the memory behind the tree failed. All or
    /// some of the rows before the failed one may be in the tree.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = (K, V)>,
        options: BulkOptions,
    ) -> Result<u64, BulkError> {
        let fail = |row: u64| move |error| BulkError::Write { row, error };
        let page = self.pages.page_size();
        let room = (page - slots_at(page, true)) as f64 * options.fill.clamp(0.5, 1.0);
        if self.count().map_err(|error| fail(0)(error.into()))? > 0 {
            return Err(BulkError::NotEmpty);
        }
        let (waiting, lower) = (Vec::new(), Vec::new());
        let mut pending =
            Pending { rows: waiting, lower, large: 0, sum: Sum::default(), room: room as usize };
        let mut at = 0;
        for (key, value) in rows {
            let (key, value) = (key.as_ref(), value.as_ref());
            self.check_sizes(key, value.len() as u64).map_err(fail(at))?;
            if let Some(last) = pending.rows.last() {
                if key <= last.key.as_slice() {
                    let (key, previous) = (key.to_vec(), last.key.clone());
                    return Err(BulkError::Order { row: at, key, previous });
                }
                self.load_before(&mut pending, key, at)?;
            }
            let large = !self.fits_inline(key, value.len() as u64);
            pending.push(Row { key: key.to_vec(), value: value.to_vec(), large });
            at += 1;
        }
        while pending.rows.len() > 1 && !pending.fits(None) {
            self.load_all_but_last(&mut pending, at)?;
        }
        let lower = pending.lower.clone();
        let rows = pending.take(&[]);
        self.load_leaf(rows, &lower, None, at)?;
        Ok(at)
    }

    /// Returns how many bytes of large values may wait for their leaf: as many as a scan may read
    /// ahead.
    fn large_max(&self) -> usize {
        let (least, most) = LARGE_MAX;
        match self.pages.ahead_max() * self.pages.page_size() {
            0 => most,
            bytes => bytes.clamp(least, most),
        }
    }

    /// Writes leaves until the pending rows fit with the fence before `key`.
    fn load_before(&self, pending: &mut Pending, key: &[u8], at: u64) -> Result<(), BulkError> {
        let fence = pending.fence(key);
        let large_max = self.large_max();
        while !pending.fits(Some(&fence)) || pending.large > large_max {
            if pending.rows.len() > 1 {
                self.load_all_but_last(pending, at)?;
                continue;
            }
            // A single row fits into any leaf, even if not within the wanted fill.
            let lower = pending.lower.clone();
            let rows = pending.take(&fence);
            return self.load_leaf(rows, &lower, Some(&fence), at);
        }
        Ok(())
    }

    fn load_all_but_last(&self, pending: &mut Pending, at: u64) -> Result<(), BulkError> {
        let Some(last) = pending.rows.pop() else { return Ok(()) };
        let fence = pending.fence(&last.key);
        let lower = pending.lower.clone();
        let rows = pending.take(&fence);
        pending.push(last);
        self.load_leaf(rows, &lower, Some(&fence), at)
    }

    fn load_leaf(
        &self,
        rows: Vec<Row>,
        lower: &[u8],
        fence: Option<&[u8]>,
        at: u64,
    ) -> Result<(), BulkError> {
        let mut draft = PageBuffer::new(self.pages.page_size());
        let mut edit = Edit::leaf(draft.bytes_mut());
        edit.init(lower, fence);
        let mut inline = rows.iter().filter(|row| !row.large);
        let fits = inline.all(|row| edit.push(&row.key, &Payload::Inline(&row.value)));
        edit.finish();
        let fail = |error| BulkError::Write { row: at, error };
        let room = self.pages.make_log_room(2 * self.pages.page_size());
        room.map_err(|error| fail(error.into()))?;
        let appended = fits
            && self
                .append_leaf(&draft, fence.unwrap_or(&[]), fence.is_some())
                .map_err(|error| fail(error.into()))?;
        if !appended {
            return Err(BulkError::NotEmpty);
        }
        for row in rows.iter().filter(|row| row.large) {
            self.insert(&row.key, &row.value).map_err(fail)?;
        }
        Ok(())
    }

    /// Copies the draft to the last leaf and, if `more` is set, links an empty leaf after it.
    /// Returns `false` if the last leaf is not empty, or is not the one that the draft is for.
    fn append_leaf(&self, draft: &PageBuffer, fence: &[u8], more: bool) -> Result<bool, PoolError> {
        loop {
            match self.pages.run(|mtr| self.append_attempt(mtr, draft, fence, more))? {
                Step::Done => return Ok(true),
                Step::Disturbed => return Ok(false),
                Step::ParentFull(bytes) => self.make_room(fence, 1, bytes, false)?,
            }
        }
    }

    fn append_attempt<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        draft: &PageBuffer,
        fence: &[u8],
        more: bool,
    ) -> Try<Step> {
        let Some(place) = self.place(mtr, Seek::Last, 0)? else { return Ok(Step::Disturbed) };
        let LocatedNode { parent, index, node, depth } = place;
        let Some(parent) = parent else {
            let mut root = sound(node.upgrade()?, 0)?;
            if more {
                self.grow(mtr, root)?;
                return Ok(Step::ParentFull(0));
            }
            return Ok(self.fill(mtr, &mut root, draft));
        };
        drop(node);
        let mut parent = sound(parent.upgrade()?, 1)?;
        let mut last = self.child_held(&parent, index, 0, depth)?;
        if !more {
            return Ok(self.fill(mtr, &mut last, draft));
        }
        let above = Node::inner(parent.view());
        let bytes = INNER_SLOT + rest_of(fence.len().saturating_sub(above.prefix_len()));
        if above.free() < bytes {
            return Ok(Step::ParentFull(bytes));
        }
        let mut next = self.new_page(mtr, 0)?;
        if let Step::Disturbed = self.fill(mtr, &mut last, draft) {
            next.free();
            return Ok(Step::Disturbed);
        }
        Edit::leaf(next.page_mut()).init(fence, None);
        link(&mut parent, index, fence, &last, &next);
        mtr.adopt(next.swip(), &parent);
        Ok(Step::Done)
    }

    /// Copies the draft to a leaf, like [`fill_leaf`], and counts its entries.
    fn fill(
        &self,
        mtr: &MiniTransaction<'_, P>,
        leaf: &mut Write<'_, P>,
        draft: &PageBuffer,
    ) -> Step {
        let step = fill_leaf(leaf.page_mut(), draft);
        if let Step::Done = step {
            let rows = Node::leaf(draft.view()).count() as i64;
            self.rows_changed(mtr, rows, Actor::Itself);
        }
        step
    }
}

/// Copies the draft to a leaf, which must be empty and the last one.
fn fill_leaf(page: &mut [u8], draft: &PageBuffer) -> Step {
    let old = Node::leaf(View::of(page));
    let new = Node::leaf(draft.view());
    let same = old.lower_bytes() == new.lower_bytes();
    if old.count() > 0 || !same || old.upper().is_some() {
        return Step::Disturbed;
    }
    copy_body(draft.bytes(), page);
    debug_assert!(Node::leaf(View::of(page)).is_sound(), "a leaf that was filled is sound");
    Step::Done
}
