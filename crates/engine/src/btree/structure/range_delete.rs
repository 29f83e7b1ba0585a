//! Removes all keys of a range.
//!
//! Removal goes leaf by leaf from the left. Leaves that are entirely in the range are freed instead
//! of emptied, a bounded number in one attempt. The first of them stays, empty, and covers the keys
//! of all of them until it is merged with a neighbour. Values in overflow pages are removed before
//! that, one by one.

use std::ops::Bound;

use millpond_base::PageId;

use crate::btree::descend::{LocatedNode, Seek, ahead, sound};
use crate::btree::node::edit::Edit;
use crate::btree::node::layout::Node;
use crate::btree::tree::BTree;
use crate::page::PAGE_HEADER;
use crate::pool::{Actor, MiniTransaction, Pages, PoolError, Try, Write};

/// Maximum number of leaves freed in one attempt.
const BATCH: usize = 16;

/// Outcome of an attempt.
struct Step {
    /// Page of the leaf changed.
    page: PageId,
    removed: u64,
    /// The lower fence of the next leaf; `None` at the end of the range.
    next: Option<Vec<u8>>,
    /// An entry with overflow pages that has to be removed first.
    large: Option<Vec<u8>>,
    thin: bool,
}

/// Returns whether `key` is within the lower bound.
fn above(key: &[u8], bound: Bound<&[u8]>) -> bool {
    match bound {
        Bound::Included(start) => key >= start,
        Bound::Excluded(start) => key > start,
        Bound::Unbounded => true,
    }
}

/// Returns whether `key` is within the upper bound.
fn below(key: &[u8], bound: Bound<&[u8]>) -> bool {
    match bound {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    }
}

impl<P: Pages> BTree<P> {
    /// Removes all keys between the bounds; returns their number. Each leaf is changed atomically,
    /// but not the range as a whole.
    ///
    /// # Errors
    /// The memory behind the tree failed; part of the range may then be removed.
    pub fn delete_range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Result<u64, PoolError> {
        self.delete_range_until(start, end, || false)
    }

    /// Like [`BTree::delete_range`], but calls `is_over` before each leaf, and fails with
    /// [`PoolError::Interrupted`] when it returns `true`.
    ///
    /// # Errors
    /// See [`BTree::delete_range`].
    pub(crate) fn delete_range_until(
        &self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
        is_over: impl Fn() -> bool,
    ) -> Result<u64, PoolError> {
        let mut key = match start {
            Bound::Included(key) | Bound::Excluded(key) => key.to_vec(),
            Bound::Unbounded => Vec::new(),
        };
        let mut removed = 0;
        loop {
            if is_over() {
                return Err(PoolError::Interrupted);
            }
            self.pages.make_log_room(2 * self.pages.page_size())?;
            let step = self.pages.run(|mtr| self.delete_step(mtr, &key, start, end))?;
            removed += step.removed;
            if let Some(large) = step.large {
                removed += u64::from(self.remove(&large)?);
                continue;
            }
            if step.thin {
                self.merge_all(&key)?;
            }
            match ahead(step.page, &key, step.next)? {
                Some(next) => key = next,
                None => return Ok(removed),
            }
        }
    }

    fn delete_step<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Try<Step> {
        let Some(place) = self.place(mtr, Seek::At(key), 0)? else {
            let page = self.root();
            return Ok(Step { page, removed: 0, next: None, large: None, thin: false });
        };
        let LocatedNode { parent, index, node, depth } = place;
        let Some(parent) = parent else {
            let mut root = sound(node.upgrade()?, 0)?;
            return Ok(self.clear_some(mtr, &mut root, start, end));
        };
        drop(node);
        let mut parent = sound(parent.upgrade()?, 1)?;
        let mut first = self.child_held(&parent, index, 0, depth)?;
        if !lies_within(&first, start, end) || Node::leaf(first.view()).overflows() > 0 {
            return Ok(self.clear_some(mtr, &mut first, start, end));
        }
        self.free_run(mtr, &mut parent, index, depth, first, end)
    }

    fn clear_some(
        &self,
        mtr: &MiniTransaction<'_, P>,
        leaf: &mut Write<'_, P>,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Step {
        let step = clear_leaf(leaf, start, end);
        self.rows_changed(mtr, -(step.removed as i64), Actor::Itself);
        step
    }

    /// Frees the leaves after `first`, which is within the range, as long as they are within it,
    /// too.
    fn free_run(
        &self,
        mtr: &MiniTransaction<'_, P>,
        parent: &mut Write<'_, P>,
        index: usize,
        depth: u8,
        mut first: Write<'_, P>,
        end: Bound<&[u8]>,
    ) -> Try<Step> {
        let node = Node::leaf(first.view());
        let mut removed = node.count() as u64;
        let (lower, mut upper) = (node.lower_bytes(), node.upper_bytes());
        let mut run = Vec::new();
        let last = Node::inner(parent.view()).count();
        for i in index + 1..=last.min(index + BATCH) {
            // A leaf that is not resident is left for the next attempt, which loads it.
            let Ok(leaf) = self.child_held(parent, i, 0, depth) else { break };
            let inside = lies_within(&leaf, Bound::Unbounded, end);
            if !inside || Node::leaf(leaf.view()).overflows() > 0 {
                break;
            }
            run.push(leaf);
        }
        for leaf in &run {
            let node = Node::leaf(leaf.view());
            removed += node.count() as u64;
            upper = node.upper_bytes();
        }
        debug_assert!(run.len() <= BATCH, "a batch of children is removed at once");
        debug_assert_eq!(node.overflows(), 0, "values in overflow pages were removed before");
        Edit::leaf(first.page_mut()).init(&lower, upper.as_deref());
        self.rows_changed(mtr, -(removed as i64), Actor::Itself);
        let freed = run.len();
        if freed > 0 {
            let swip = first.swip();
            let mut edit = Edit::inner(parent.page_mut());
            edit.set_child(index + freed, swip);
            for _ in 0..freed {
                edit.remove(index);
            }
        }
        for mut leaf in run {
            if let Some(body) = leaf.page_mut().get_mut(PAGE_HEADER..) {
                body.fill(0);
            }
            leaf.free();
        }
        self.tally.merged(true, freed as u64);
        Ok(Step { page: first.id(), removed, next: upper, large: None, thin: true })
    }
}

/// Returns whether all keys that the leaf covers are in the range.
fn lies_within<P: Pages>(leaf: &Write<'_, P>, start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    let node = Node::leaf(leaf.view());
    let upper_inside = match (node.upper_bytes(), end) {
        (_, Bound::Unbounded) => true,
        (Some(upper), Bound::Included(end) | Bound::Excluded(end)) => upper.as_slice() <= end,
        (None, _) => false,
    };
    upper_inside && above(&node.lower_bytes(), start)
}

/// Removes the entries of the range from one leaf.
fn clear_leaf<P: Pages>(leaf: &mut Write<'_, P>, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Step {
    let node = Node::leaf(leaf.view());
    let next = node.upper_bytes().filter(|upper| below(upper, end));
    let mut key = Vec::new();
    let mut doomed = Vec::new();
    for i in 0..node.count() {
        node.key_to(i, &mut key);
        if above(&key, start) && below(&key, end) {
            if node.reference(i).is_some() {
                return Step {
                    page: leaf.id(),
                    removed: 0,
                    next: None,
                    large: Some(key),
                    thin: false,
                };
            }
            doomed.push(i);
        }
    }
    if !doomed.is_empty() {
        let mut edit = Edit::leaf(leaf.page_mut());
        for i in doomed.iter().rev() {
            edit.remove(*i);
        }
    }
    let thin = Node::leaf(leaf.view()).is_thin();
    Step { page: leaf.id(), removed: doomed.len() as u64, next, large: None, thin }
}
