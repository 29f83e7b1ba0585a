//! Merges neighbours, and shrinks the root.
//!
//! A node that became thin is merged with a neighbour below the same parent, if both fit into one
//! page and leave some room in it. The left page is kept, the right one is freed. An empty leaf
//! without a left neighbour waits until its right neighbour is thin. Otherwise the content of a
//! whole page would be moved and logged over and over where entries are removed in ascending order.
//! A merge may make the parent thin. The parent is then merged one level up, and so on to the root,
//! which takes over the content of its only child.

use crate::btree::descend::{LocatedNode, Seek, sound};
use crate::btree::node::edit::{Edit, Payload, put_swip};
use crate::btree::node::layout::{LAST_CHILD, Node, common, rest_of, stride};
use crate::btree::structure::relink::{adopt_all, copy_body};
use crate::btree::structure::shift::drafted;
use crate::btree::tree::BTree;
use crate::btree::write::rebuild::{Moved, Rebuild};
use crate::btree::write::redo_note;
use crate::page::{PAGE_HEADER, PageBuffer};
use crate::pool::{Jump, MiniTransaction, Pages, PoolError, Swip, Try, Write};

/// A merged node leaves at least a tenth of its page free: otherwise the next insert would split
/// it.
const FILL_NUM: usize = 9;
const FILL_DEN: usize = 10;

/// Number of loads after which an optional merge is abandoned. All its pages must be resident at
/// once, and a policy that evicts the latest page, such as MRU, may never allow that.
pub(crate) const LOADS_MAX: u32 = 64;

/// The end of a merging climb.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The first level where nothing merged.
    Idle,
    /// The root.
    Root,
}

#[derive(PartialEq, Eq)]
enum Step {
    /// There is nothing to merge on this level.
    Fine,
    /// There is nothing to merge on this level or above.
    Top,
    Merged,
    Shrunk,
}

impl<P: Pages> BTree<P> {
    /// Merges the leaf of `key` with a neighbour if it is thin, and likewise the nodes above it.
    #[cold]
    pub(crate) fn merge(&self, key: &[u8]) -> Result<(), PoolError> {
        let done = self.climb(key, 0, Until::Idle, LOADS_MAX).and_then(|_| self.shrink());
        match done {
            // The write that caused this merge is applied, and must not be reported as failed. Thin
            // nodes can wait.
            Err(PoolError::Held { .. }) => Ok(()),
            done => done,
        }
    }

    /// Merges the parent of the leaf of `key` if it is thin, and likewise the nodes above it.
    pub(crate) fn merge_above(&self, key: &[u8]) -> Result<(), PoolError> {
        self.climb(key, 1, Until::Idle, LOADS_MAX)?;
        self.shrink()
    }

    /// Merges all thin nodes above `key`, however many loads that takes. Whole runs of leaves may
    /// have been freed, so a node may be thin though nothing below it merged; and leaves become
    /// neighbours when their parents merge. A tree without entries ends as one leaf.
    pub(crate) fn merge_all(&self, key: &[u8]) -> Result<(), PoolError> {
        while self.climb(key, 0, Until::Root, u32::MAX)? {}
        self.shrink()
    }

    /// Merges thin nodes from level `lowest` up; returns whether any merged.
    fn climb(
        &self,
        key: &[u8],
        lowest: u8,
        until: Until,
        loads_max: u32,
    ) -> Result<bool, PoolError> {
        let mut any = false;
        for level in lowest..u8::MAX {
            let mut merged = false;
            let last = loop {
                match self.merge_once(key, level, loads_max)? {
                    Step::Merged => merged = true,
                    other => break other,
                }
            };
            any |= merged;
            if last == Step::Top || !(merged || until == Until::Root) {
                break;
            }
        }
        Ok(any)
    }

    fn merge_once(&self, key: &[u8], level: u8, loads_max: u32) -> Result<Step, PoolError> {
        let mut loads = 0;
        self.pages.run(|mtr| {
            if loads >= loads_max {
                return Ok(Step::Fine);
            }
            let step = self.merge_attempt(mtr, key, level);
            loads += u32::from(step.as_ref().is_err_and(Jump::is_load));
            step
        })
    }

    /// Removes levels while the root has only one child.
    pub(crate) fn shrink(&self) -> Result<(), PoolError> {
        loop {
            let step = self.pages.run(|mtr| {
                let (root, level) = self.root_node(mtr, millpond_base::AccessKind::Read)?;
                let node = Node::inner(root.view());
                if level == 0 || node.count() > 0 {
                    root.validate()?;
                    return Ok(Step::Fine);
                }
                self.shrink_root(mtr, root.upgrade()?)
            })?;
            if step == Step::Fine {
                return Ok(());
            }
        }
    }

    fn shrink_root<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut root: Write<'o, P>,
    ) -> Try<Step> {
        let node = Node::of(root.view());
        if node.leaf || node.count() > 0 {
            return Ok(Step::Fine);
        }
        let level = node.level().saturating_sub(1);
        let mut child = self.child_held(&root, 0, level, 1)?;
        Edit::of(root.page_mut()).set_level(level);
        copy_body(child.page(), root.page_mut());
        adopt_all(mtr, &root);
        // The child's swips now belong to the root.
        Edit::of(child.page_mut()).init(&[], None);
        child.free();
        debug_assert_eq!(Node::of(root.view()).level(), level);
        self.see_height(level);
        self.tally.shrunk();
        Ok(Step::Shrunk)
    }

    fn merge_attempt<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
        level: u8,
    ) -> Try<Step> {
        let Some(place) = self.place(mtr, Seek::At(key), level)? else { return Ok(Step::Top) };
        let LocatedNode { parent, index, node, depth } = place;
        let Some(parent) = parent else {
            node.validate()?;
            return Ok(Step::Top);
        };
        let thin = Node::of(node.view()).is_thin();
        node.validate()?;
        drop(node);
        if !thin {
            return Ok(Step::Fine);
        }
        let mut parent = sound(parent.upgrade()?, level.saturating_add(1))?;
        let last = Node::inner(parent.view()).count();
        // The right neighbour comes first, then the left one.
        let pairs = [(index < last).then_some(index), index.checked_sub(1)];
        for left_index in pairs.into_iter().flatten() {
            let left = self.child_held(&parent, left_index, level, depth)?;
            let right = self.child_held(&parent, left_index + 1, level, depth)?;
            if !Node::of(left.view()).is_thin() && !Node::of(right.view()).is_thin() {
                return Ok(Step::Fine);
            }
            if self.merge_pair(mtr, &mut parent, left_index, left, right) {
                return Ok(Step::Merged);
            }
        }
        Ok(Step::Fine)
    }

    /// Moves all entries from `right` into `left`, if they fit.
    fn merge_pair<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        parent: &mut Write<'o, P>,
        index: usize,
        mut left: Write<'o, P>,
        mut right: Write<'o, P>,
    ) -> bool {
        let (a, b) = (Node::of(left.view()), Node::of(right.view()));
        debug_assert_eq!(a.level(), b.level(), "neighbours are on one level");
        let leaf = a.leaf;
        if leaf && a.count() == 0 && !b.is_thin() {
            return false;
        }
        let (lower, upper) = (a.lower_bytes(), b.upper_bytes());
        let prefix = upper.as_ref().map_or(0, |upper| common(&lower, upper));
        let size = |node: Node<'_>| -> usize {
            (0..node.count()).map(|i| node.entry_len_under(i, prefix)).sum()
        };
        let separator = b.lower_bytes();
        let middle =
            if leaf { 0 } else { stride(false) + rest_of(separator.len().saturating_sub(prefix)) };
        let fences = lower.len() + upper.as_ref().map_or(0, Vec::len);
        let mut room = a.view.len() - a.slots();
        if a.count() > 0 && b.count() > 0 {
            room = room * FILL_NUM / FILL_DEN;
        }
        if size(a) + size(b) + middle + fences > room {
            return false;
        }
        let merged = if leaf {
            let (front, back) =
                (Moved::default(), Moved { source: right.page(), entries: 0..b.count() });
            let (kept, upper) = (0..a.count(), upper.as_deref());
            drafted(mtr, left.page(), &Rebuild { kept, lower: &lower, upper, front, back })
        } else {
            inner_merged(a, left.page(), &separator, b, right.page())
                .map(|draft| (draft, Vec::new()))
        };
        let Some((draft, redo)) = merged else { return false };
        let page = match leaf {
            true => left.page_mut_with_redo(|out| out.extend_from_slice(&redo)),
            false => left.page_mut(),
        };
        copy_body(draft.bytes(), page);
        debug_assert!(Node::of(left.view()).is_sound(), "a merged node is sound");
        adopt_all(mtr, &left);
        let (swip, id) = (left.swip(), left.id());
        let above = parent.page_mut_with_redo(|out| redo_note::unlink(out, index, id));
        redo_note::unlink_in(&mut Edit::inner(above), index, swip);
        if let Some(body) = right.page_mut().get_mut(PAGE_HEADER..) {
            body.fill(0);
        }
        right.free();
        self.tally.merged(leaf, 1);
        true
    }
}

/// Returns the merge of two inner nodes and the separator between them, or `None` if it does not
/// fit, or an entry cannot be read.
fn inner_merged(
    left: Node<'_>,
    left_page: &[u8],
    separator: &[u8],
    right: Node<'_>,
    right_page: &[u8],
) -> Option<PageBuffer> {
    let mut draft = PageBuffer::new(left_page.len());
    let mut edit = Edit::inner(draft.bytes_mut());
    edit.init(&left.lower_bytes(), right.upper_bytes().as_deref());
    let child = Payload::Child(Swip(left.view.u64(LAST_CHILD)));
    let is_whole = edit.push_range(left_page, 0..left.count())
        && edit.push(separator, &child)
        && edit.push_range(right_page, 0..right.count());
    edit.finish();
    put_swip(draft.bytes_mut(), LAST_CHILD, Swip(right.view.u64(LAST_CHILD)));
    is_whole.then_some(draft)
}
