//! Private copies of leaves, for cursors.
//!
//! A scan is a series of look-ups (leanstore IV-I). Each copies a few neighbouring leaves below one
//! parent in one attempt, and the next look-up continues at the fence of the last leaf. So a scan
//! holds no latch between two steps, and neither does its user's code.

use std::cell::RefCell;

use millpond_base::{AccessKind, PageId};

use crate::btree::ahead::{Ahead, Wish};
use crate::btree::descend::{Seek, astray};
use crate::btree::node::layout::{LEAF_SLOT, Node, REFERENCE, Span, UPPER, Value};
use crate::btree::tree::{BTree, mark};
use crate::page::{PageBuffer, PageHeader, View};
use crate::pool::{MiniTransaction, PageHint, Pages, PoolError, Read, Try};

/// Maximum number of leaves fetched in one attempt.
pub(crate) const LEAVES_MAX: usize = 8;
/// Bytes of heap per entry from which on keys are copied one by one if values are not wanted.
const APART_MIN: usize = 128;
/// Number of bytes of the next leaf to prefetch while one is copied.
const APPROACHED: usize = 1024;

/// Leaves, in the order of the scan.
#[derive(Default)]
pub(crate) struct Batch {
    copies: Vec<PageBuffer>,
    len: usize,
    /// The parent of the last leaf, and the leaf's index in it.
    last: Option<(PageHint, usize)>,
    /// Depth of the leaves.
    depth: u8,
    ahead: Ahead,
}

/// Number of buffers that a thread keeps for its next scans.
const SPARE_MAX: usize = 2 * LEAVES_MAX;

thread_local! {
    /// Spare buffers of the thread. A scan of a few rows takes less than a microsecond, and
    /// allocating memory for its copies would take half of that.
    static SPARE: RefCell<Vec<PageBuffer>> = const { RefCell::new(Vec::new()) };
}

/// Returns a buffer for a copy, with undefined content.
fn buffer(len: usize) -> PageBuffer {
    let spare = SPARE.try_with(|spare| spare.try_borrow_mut().ok().and_then(|mut all| all.pop()));
    let spare = spare.ok().flatten().filter(|spare| spare.bytes().len() == len);
    spare.unwrap_or_else(|| PageBuffer::new(len))
}

impl Drop for Batch {
    fn drop(&mut self) {
        // A thread that is ending has already dropped its spare buffers.
        let _ = SPARE.try_with(|spare| {
            if let Ok(mut all) = spare.try_borrow_mut() {
                let room = SPARE_MAX.saturating_sub(all.len());
                all.extend(self.copies.drain(..).take(room));
            }
        });
    }
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of leaf `i`.
    #[inline(always)]
    pub(crate) fn bytes(&self, i: usize) -> &[u8] {
        self.copies.get(i).map_or(&[], PageBuffer::bytes)
    }

    #[inline(always)]
    pub(crate) fn leaf(&self, i: usize) -> Node<'_> {
        Node::leaf(View::of(self.bytes(i)))
    }

    fn fences(&self, i: usize) -> (&[u8], Option<&[u8]>) {
        let (leaf, bytes) = (self.leaf(i), self.bytes(i));
        let part = |span: Span| bytes.get(span.at..span.end()).unwrap_or(&[]);
        (part(leaf.lower()), leaf.upper().map(part))
    }

    /// Returns the first leaf that does not cover its place in the scan. A scan that continued at
    /// its fences would skip entries, show them twice, or never end.
    fn stray(&self, wish: Wish<'_>) -> Option<PageId> {
        let mut before: Option<&[u8]> = None;
        for i in 0..self.len {
            let (lower, upper) = self.fences(i);
            let ascends = upper.is_none_or(|upper| lower < upper);
            let fits = match (before, wish.seek) {
                (Some(fence), _) if wish.forward => lower == fence,
                (Some(fence), _) => upper == Some(fence),
                (None, Seek::At(key)) => lower <= key && upper.is_none_or(|upper| key < upper),
                (None, Seek::Below(key)) => lower < key && upper.is_none_or(|upper| key <= upper),
                (None, Seek::Last) => upper.is_none(),
            };
            if !ascends || !fits {
                return Some(PageHeader::read(self.bytes(i)).page);
            }
            before = if wish.forward { upper } else { Some(lower) };
        }
        None
    }

    fn take(&mut self, view: View<'_>, values: bool) {
        if self.copies.len() == self.len {
            self.copies.push(buffer(view.len()));
        }
        if let Some(copy) = self.copies.get_mut(self.len) {
            copy_used(view, copy.bytes_mut(), values);
            self.len += 1;
        }
    }
}

/// Copies the bytes of a leaf that are in use. Values in the leaf are copied only if they are
/// wanted, or if there is little else.
fn copy_used(view: View<'_>, out: &mut [u8], values: bool) {
    let node = Node::leaf(view);
    let (count, slots_end) = (node.count(), node.slots() + node.count() * LEAF_SLOT);
    let heap = node.heap().clamp(slots_end, out.len());
    view.copy_into(0, &mut out[..slots_end]);
    if values || out.len() - heap < count * APART_MIN {
        view.copy_into(heap, &mut out[heap..]);
        return;
    }
    let copy = |span: Span, out: &mut [u8]| {
        // Bytes that are not all there have changed since, which shows when the copy is validated.
        let _ = out.get_mut(span.at..span.end()).is_none_or(|out| view.copy_into(span.at, out));
    };
    copy(node.lower(), out);
    copy(node.span(UPPER), out);
    for i in 0..count {
        let copied = Node::leaf(View::of(out));
        let (rest, value) = (copied.rest(i), copied.value(i));
        copy(rest, out);
        if let Value::Overflow(at) = value {
            copy(Span { at, len: REFERENCE }, out);
        }
    }
}

impl<P: Pages> BTree<P> {
    /// Fetches at least one leaf.
    pub(crate) fn fetch(&self, wish: Wish<'_>, batch: &mut Batch) -> Result<(), PoolError> {
        let mut last = batch.last.filter(|_| wish.goes_on);
        if wish.goes_on {
            self.make_ready(&batch.ahead, wish);
        } else {
            batch.ahead.forget();
        }
        self.pages.run(|mtr| {
            batch.len = 0;
            // The next attempt does not use it: it may have changed.
            self.fetch_attempt(mtr, wish, last.take(), batch)
        })?;
        self.look_beyond(&mut batch.ahead, wish);
        match batch.stray(wish) {
            Some(page) => Err(astray(page)),
            None => Ok(()),
        }
    }

    fn fetch_attempt<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        wish: Wish<'_>,
        last: Option<(PageHint, usize)>,
        batch: &mut Batch,
    ) -> Try<()> {
        batch.last = None;
        let (parent, mut index) = match self.next_by(mtr, wish.forward, batch.depth, last) {
            Some(next) => next,
            None => {
                let Some(place) = self.place(mtr, wish.seek, 1)? else {
                    let Some(root) = self.place(mtr, wish.seek, 0)? else { return Ok(()) };
                    batch.take(root.node.view(), wish.values);
                    return root.node.validate();
                };
                batch.depth = place.depth.saturating_add(1);
                let index = wish.seek.child(Node::inner(place.node.view()));
                (place.node, index)
            }
        };
        let inner = Node::inner(parent.view());
        let (last, hint) = (inner.count(), parent.hint());
        let to = mark(AccessKind::Read, true, batch.depth).with_scan(wish.scan);
        loop {
            match self.child_node(&parent, index, 0, to) {
                Ok(child) => {
                    child.view().prefetch(0, 512);
                    let next = if wish.forward { Some(index + 1) } else { index.checked_sub(1) };
                    if let Some(next) = next.filter(|next| *next <= last) {
                        let next = parent.swip(inner.child_at(next));
                        parent.mtr().pages().approach(next, APPROACHED);
                    }
                    batch.take(child.view(), wish.values);
                    if let Err(jump) = child.validate() {
                        batch.len -= 1;
                        if batch.len == 0 {
                            return Err(jump);
                        }
                        return Ok(());
                    }
                    batch.last = hint.map(|hint| (hint, index));
                    batch.ahead.pass(&parent, if wish.forward { last - index } else { index });
                }
                // The copies so far are valid; the next call fetches this one.
                Err(_) if batch.len > 0 => return Ok(()),
                Err(jump) => return Err(jump),
            }
            if batch.len == 1 {
                batch.ahead.look(&parent, index, wish);
            }
            let more = if wish.forward { index < last } else { index > 0 };
            if !more || batch.len >= wish.leaves || reaches(batch.leaf(batch.len - 1), wish) {
                return Ok(());
            }
            if wish.forward { index += 1 } else { index -= 1 }
        }
    }
}

impl<P: Pages> BTree<P> {
    /// Returns the parent of the last leaf, for an optimistic read, and the index of the next leaf
    /// in it. Returns `None` if the parent has changed, or has no more children in that direction.
    fn next_by<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        forward: bool,
        depth: u8,
        last: Option<(PageHint, usize)>,
    ) -> Option<(Read<'o, P>, usize)> {
        let (hint, index) = last?;
        let what = mark(AccessKind::Read, false, depth.saturating_sub(1));
        let parent = mtr.pages().recall_to_read(mtr, hint, what)?;
        let next = if forward { Some(index + 1) } else { index.checked_sub(1) };
        let next = next.filter(|next| *next <= Node::inner(parent.view()).count())?;
        Some((parent, next))
    }
}

/// Returns whether a leaf covers the last key that is wanted.
fn reaches(leaf: Node<'_>, wish: Wish<'_>) -> bool {
    let Some(stop) = wish.stop else { return false };
    if wish.forward {
        leaf.upper().is_none_or(|upper| leaf.view.compare(upper.at, upper.len, stop).is_gt())
    } else {
        let lower = leaf.lower();
        leaf.view.compare(lower.at, lower.len, stop).is_le()
    }
}
