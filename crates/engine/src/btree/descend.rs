//! Descents from the anchor to a node.

use millpond_base::{AccessKind, Mark, PageId};

use crate::btree::node::layout::{LEVEL, Node};
use crate::btree::tree::{BTree, corrupt, mark};
use crate::pool::{Anchor, MiniTransaction, Pages, PoolError, Read, Try, Write};

/// The target of a descent: a node of some level.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seek<'k> {
    /// The node that covers this key.
    At(&'k [u8]),
    /// The node that covers the keys just below this one.
    Below(&'k [u8]),
    /// The last node.
    Last,
}

impl Seek<'_> {
    /// Returns the index of the child of an inner node that leads to the target.
    #[inline(always)]
    pub(crate) fn child(self, node: Node<'_>) -> usize {
        match self {
            Seek::At(key) => node.child_for(key),
            Seek::Below(key) => node.child_below(key),
            Seek::Last => node.count(),
        }
    }
}

/// Returns the key at which a walk over nodes continues after it reached `page` by `key`. That is
/// the page's upper fence, which is above `key` in a sound tree.
///
/// # Errors
/// The fence is not above `key`, so the walk would never end.
pub(crate) fn ahead(
    page: PageId,
    key: &[u8],
    fence: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, PoolError> {
    match fence {
        Some(fence) if fence.as_slice() <= key => Err(astray(page)),
        fence => Ok(fence),
    }
}

/// Returns the error of a node whose fences do not enclose the key that led to it.
#[cold]
pub(crate) fn astray(page: PageId) -> PoolError {
    let what = "its fences are not around the key that led to it".to_string();
    PoolError::Corrupt { page, what }
}

/// A node on some level, and its place in its parent.
pub(crate) struct LocatedNode<'o, P: Pages> {
    /// Parent of the node; `None` if the node is the root.
    pub(crate) parent: Option<Read<'o, P>>,
    /// Index of the child in its parent.
    pub(crate) index: usize,
    pub(crate) node: Read<'o, P>,
    pub(crate) depth: u8,
}

/// Ends the attempt: the node does not match its parent's description, unless it has changed since.
#[cold]
fn wrong<P: Pages, T>(node: &Read<'_, P>) -> Try<T> {
    let page = node.header().page().unwrap_or_default();
    node.validate()?;
    Err(corrupt(page, "not the tree node that its parent expects"))
}

impl<P: Pages> BTree<P> {
    /// Returns the root and its level, which is valid once the root was validated.
    #[inline(always)]
    pub(crate) fn root_node<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        what: AccessKind,
    ) -> Try<(Read<'o, P>, u8)> {
        let hint = self.height_hint();
        let what = if hint == 0 { what } else { AccessKind::Read };
        let root = Read::root(mtr, self.anchor, mark(what, hint == 0, 0))?;
        let level = root.view().u8(LEVEL);
        if !Node::is_node(root.view(), level) {
            return wrong(&root);
        }
        self.see_height(level);
        Ok((root, level))
    }

    /// Returns the leaf that covers `key`, for an optimistic read.
    #[inline(always)]
    pub(crate) fn leaf_for<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
    ) -> Try<Read<'o, P>> {
        let (mut node, mut level) = self.root_node(mtr, AccessKind::Read)?;
        let mut depth = 0;
        while level > 0 {
            let inner = Node::inner(node.view());
            let at = inner.child_at(inner.child_for(key));
            depth += 1;
            level -= 1;
            let child = node.child(at, mark(AccessKind::Read, level == 0, depth))?;
            if level == 0 {
                // Fetches header and slots together instead of one cache miss after the other.
                child.view().prefetch(0, 384);
            }
            if !Node::is_node(child.view(), level) {
                return wrong(&child);
            }
            node = child;
        }
        Ok(node)
    }

    /// Returns the leaf that covers `key`, latched exclusively.
    #[inline(always)]
    pub(crate) fn leaf_to_write<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
    ) -> Try<Write<'o, P>> {
        let (mut node, mut level) = self.root_node(mtr, AccessKind::Write)?;
        if level == 0 {
            return sound(node.upgrade()?, 0);
        }
        let mut depth = 0;
        loop {
            let inner = Node::inner(node.view());
            let at = inner.child_at(inner.child_for(key));
            depth += 1;
            level -= 1;
            if level == 0 {
                return sound(node.child_exclusive(at, mark(AccessKind::Write, true, depth))?, 0);
            }
            let child = node.child(at, mark(AccessKind::Read, false, depth))?;
            if !Node::is_node(child.view(), level) {
                return wrong(&child);
            }
            node = child;
        }
    }

    /// Returns the node of level `level` on the path to `seek`, or `None` if the tree is lower.
    pub(crate) fn place<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        seek: Seek<'_>,
        level: u8,
    ) -> Try<Option<LocatedNode<'o, P>>> {
        let (node, mut now) = self.root_node(mtr, AccessKind::Read)?;
        if now < level {
            node.validate()?;
            return Ok(None);
        }
        let mut place = LocatedNode { parent: None, index: 0, node, depth: 0 };
        while now > level {
            let inner = Node::inner(place.node.view());
            let index = seek.child(inner);
            let depth = place.depth.saturating_add(1);
            now -= 1;
            let to = mark(AccessKind::Read, now == 0, depth);
            let child = place.node.child(inner.child_at(index), to)?;
            if !Node::is_node(child.view(), now) {
                return wrong(&child);
            }
            place = LocatedNode { parent: Some(place.node), index, node: child, depth };
        }
        Ok(Some(place))
    }

    /// Returns child `index` of a node that is being read, checked to be a node of `level`.
    pub(crate) fn child_node<'o>(
        &self,
        parent: &Read<'o, P>,
        index: usize,
        level: u8,
        mark: Mark,
    ) -> Try<Read<'o, P>> {
        let child = parent.child(Node::inner(parent.view()).child_at(index), mark)?;
        if Node::is_node(child.view(), level) { Ok(child) } else { wrong(&child) }
    }

    /// Returns child `index` of an exclusively latched node, latched exclusively, too.
    pub(crate) fn child_held<'o>(
        &self,
        parent: &Write<'o, P>,
        index: usize,
        level: u8,
        depth: u8,
    ) -> Try<Write<'o, P>> {
        debug_assert_eq!(Node::of(parent.view()).level(), level.saturating_add(1));
        debug_assert!(index <= Node::inner(parent.view()).count());
        let at = Node::inner(parent.view()).child_at(index);
        sound(parent.child_exclusive(at, mark(AccessKind::Write, level == 0, depth))?, level)
    }
}

/// Checks an exclusively latched node: its type and level must be those that its parent states, and
/// its header must be consistent.
#[inline]
pub(crate) fn sound<P: Pages>(node: Write<'_, P>, level: u8) -> Try<Write<'_, P>> {
    let view = node.view();
    if Node::is_node(view, level) && Node::of(view).is_sound() {
        return Ok(node);
    }
    Err(corrupt(node.id(), "the header of a tree node is inconsistent"))
}

/// Returns an anchor, latched exclusively.
pub(crate) fn held_anchor<'o, P: Pages>(
    mtr: &'o MiniTransaction<'o, P>,
    anchor: Anchor,
) -> Try<Write<'o, P>> {
    Read::anchor(mtr, anchor)?.upgrade()
}
