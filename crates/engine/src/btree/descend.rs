//! Ways down the tree.

use millpond_base::{AccessKind, Mark, PageId};

use crate::btree::node::layout::{LEVEL, Node};
use crate::btree::tree::{BTree, corrupt, mark};
use crate::pool::{MiniTransaction, Pages, PoolError, Read, Try, Write};

/// Which keys are sought.
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
    /// Which child of an inner node.
    #[inline(always)]
    pub(crate) fn child(self, node: Node<'_>) -> usize {
        match self {
            Seek::At(key) => node.child_for(key),
            Seek::Below(key) => node.child_below(key),
            Seek::Last => node.count(),
        }
    }
}

/// Where a walk over leaves goes on that came to `page` by `key`: at its upper fence, which lies
/// ahead in a sound tree.
///
/// # Errors
/// It does not, and the walk would never end.
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

/// A leaf whose fences are not those of its place.
#[cold]
pub(crate) fn astray(page: PageId) -> PoolError {
    let what = "its fences are not around the key that led to it".to_string();
    PoolError::Corrupt { page, what }
}

/// A node on some level, and where its parent refers to it.
pub(crate) struct Place<'o, P: Pages> {
    /// `None`: the node is the root.
    pub(crate) parent: Option<Read<'o, P>>,
    /// Which child of the parent.
    pub(crate) index: usize,
    pub(crate) node: Read<'o, P>,
    pub(crate) depth: u8,
}

/// A node that is not what its parent says.
#[cold]
fn wrong<P: Pages, T>(node: &Read<'_, P>) -> Try<T> {
    let page = node.header().page().unwrap_or_default();
    node.validate()?;
    Err(corrupt(page, "not the tree node that its parent expects"))
}

impl<P: Pages> BTree<P> {
    /// The root, and its level, which counts after validation.
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

    /// The leaf that covers `key`, to read.
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
                // Header and slots at once, not one miss after the other.
                child.view().prefetch(0, 384);
            }
            if !Node::is_node(child.view(), level) {
                return wrong(&child);
            }
            node = child;
        }
        Ok(node)
    }

    /// The leaf that covers `key`, latched exclusively.
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

    /// The node of level `level` on the way to `seek`; `None` if the tree is not that high.
    pub(crate) fn place<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        seek: Seek<'_>,
        level: u8,
    ) -> Try<Option<Place<'o, P>>> {
        let (node, mut now) = self.root_node(mtr, AccessKind::Read)?;
        if now < level {
            node.validate()?;
            return Ok(None);
        }
        let mut place = Place { parent: None, index: 0, node, depth: 0 };
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
            place = Place { parent: Some(place.node), index, node: child, depth };
        }
        Ok(Some(place))
    }

    /// Child `index` of a node that is read, checked to be a node of `level`.
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

    /// Child `index` of a node that is held, held too.
    pub(crate) fn child_held<'o>(
        &self,
        parent: &Write<'o, P>,
        index: usize,
        level: u8,
        depth: u8,
    ) -> Try<Write<'o, P>> {
        let at = Node::inner(parent.view()).child_at(index);
        sound(parent.child_exclusive(at, mark(AccessKind::Write, level == 0, depth))?, level)
    }
}

/// A node that is held: it must be what its parent says, and make sense.
#[inline]
pub(crate) fn sound<P: Pages>(node: Write<'_, P>, level: u8) -> Try<Write<'_, P>> {
    let view = node.view();
    if Node::is_node(view, level) && Node::of(view).is_sound() {
        return Ok(node);
    }
    Err(corrupt(node.id(), "the header of a tree node makes no sense"))
}
