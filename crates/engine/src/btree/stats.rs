//! Statistics of a tree, by walks over it.

use millpond_base::AccessKind;

use crate::btree::descend::{Seek, ahead};
use crate::btree::node::layout::{Node, OVERFLOW, stride};
use crate::btree::tree::{BTree, mark};
use crate::btree::value::layout::pages_of;
use crate::page::{PageBuffer, PageHeader};
use crate::pool::{MiniTransaction, Pages, PoolError, Read, Try};

/// Statistics of the nodes of one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LevelStats {
    /// Height above the leaves.
    pub level: u8,
    /// Number of nodes.
    pub pages: u64,
    /// Number of entries in the nodes.
    pub entries: u64,
    /// Bytes in use behind the headers.
    pub bytes_used: u64,
    /// Bytes available behind the headers.
    pub bytes_total: u64,
}

impl LevelStats {
    /// Returns the share of the bytes in use, from 0 to 1.
    pub fn fill(&self) -> f64 {
        if self.bytes_total == 0 { 0.0 } else { self.bytes_used as f64 / self.bytes_total as f64 }
    }
}

/// The size of a tree.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.raw_tree("ponds")?;
/// tree.put(b"mill", b"deep")?;
/// let stats = tree.stats()?;
/// assert_eq!((stats.key_bytes, stats.value_bytes, stats.overflow_pages), (4, 4, 0));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// Statistics of each level, from the leaves up.
    pub levels: Vec<LevelStats>,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values, including those in overflow pages.
    pub value_bytes: u64,
    /// Number of values in overflow pages.
    pub overflow_values: u64,
    /// Number of overflow pages.
    pub overflow_pages: u64,
    /// Bytes of all pages of the tree.
    pub total_bytes: u64,
}

impl TreeStats {
    /// Returns the number of levels of nodes.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("ponds")?;
    /// tree.put(b"mill", b"deep")?;
    /// let stats = tree.stats()?;
    /// assert_eq!(stats.height(), 1);
    /// # Ok(()) }
    /// ```
    pub fn height(&self) -> usize {
        self.levels.len()
    }

    /// Returns the number of entries in leaves.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tree = db.raw_tree("ponds")?;
    /// tree.put(b"mill", b"deep")?;
    /// let stats = tree.stats()?;
    /// assert_eq!(stats.entries(), 1);
    /// # Ok(()) }
    /// ```
    pub fn entries(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.entries)
    }
}

impl<P: Pages> BTree<P> {
    /// Walks the whole tree, node by node, and returns its size. Each node is counted in its state
    /// when it is read; no latch is held between two nodes.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn stats(&self) -> Result<TreeStats, PoolError> {
        let mut stats = TreeStats::default();
        let page_size = self.pages.page_size() as u64;
        let mut pages = 0;
        for level in 0..=u8::MAX {
            let mut row = LevelStats { level, ..LevelStats::default() };
            self.walk_level(level, |node| {
                row.pages += 1;
                row.entries += node.count() as u64;
                row.bytes_used += node.used() as u64;
                row.bytes_total += (node.view.len() - node.slots()) as u64;
                if node.leaf {
                    self.count_leaf(node, &mut stats);
                }
                true
            })?;
            if row.pages == 0 {
                break;
            }
            pages += row.pages;
            stats.levels.push(row);
        }
        stats.total_bytes = (pages + stats.overflow_pages) * page_size;
        Ok(stats)
    }

    fn count_leaf(&self, node: Node<'_>, stats: &mut TreeStats) {
        for i in 0..node.count() {
            stats.key_bytes += (node.prefix_len() + node.key_len(i)) as u64;
            match node.view.u16(node.slot(i) + stride(true) - 2) {
                OVERFLOW => {
                    if let Some(reference) = node.reference(i) {
                        stats.value_bytes += reference.len;
                        stats.overflow_values += 1;
                        stats.overflow_pages += pages_of(node.view.len(), reference.len);
                    }
                }
                len => stats.value_bytes += u64::from(len),
            }
        }
    }

    /// Calls `visit` with a copy of each node of a level, from left to right, until it returns
    /// `false`.
    pub(crate) fn walk_level(
        &self,
        level: u8,
        mut visit: impl FnMut(Node<'_>) -> bool,
    ) -> Result<(), PoolError> {
        let mut copy = PageBuffer::new(self.pages.page_size());
        let mut key = Vec::new();
        loop {
            let found = self.pages.run(|mtr| {
                let Some(place) = self.place(mtr, Seek::At(&key), level)? else {
                    return Ok(false);
                };
                place.node.view().copy_into(0, copy.bytes_mut());
                place.node.validate()?;
                Ok(true)
            })?;
            let node = Node::of(copy.view());
            if !found || !visit(node) {
                return Ok(());
            }
            let page = PageHeader::read(copy.bytes()).page;
            match ahead(page, &key, node.upper_bytes())? {
                Some(upper) => key = upper,
                None => return Ok(()),
            }
        }
    }

    /// Counts the entries of every leaf, in the leaf's state when it is read.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn count(&self) -> Result<u64, PoolError> {
        self.count_until(|| false)
    }

    /// Like [`BTree::count`], but calls `is_over` after some leaves, and fails with
    /// [`PoolError::Interrupted`] when it returns `true`.
    ///
    /// # Errors
    /// See [`BTree::count`].
    pub(crate) fn count_until(&self, is_over: impl Fn() -> bool) -> Result<u64, PoolError> {
        let mut count = 0;
        let mut key = Vec::new();
        while let Some(next) = self.count_some(&key, &mut count)? {
            if is_over() {
                return Err(PoolError::Interrupted);
            }
            key = next;
        }
        Ok(count)
    }

    /// Counts the entries of the leaf of `key` and of the leaves after it below the same parent.
    /// Returns the key at which to continue.
    fn count_some(&self, key: &[u8], count: &mut u64) -> Result<Option<Vec<u8>>, PoolError> {
        let (found, page, next) = self.pages.run(|mtr| {
            let Some(place) = self.place(mtr, Seek::At(key), 0)? else {
                return Ok((0, self.root(), None));
            };
            let mut page = place.node.header().page().unwrap_or_default();
            let mut leaf = Node::leaf(place.node.view());
            // A leaf that merged in the meantime also covers keys below this one, which were
            // already counted.
            let before = if key.is_empty() { 0 } else { leaf.lower_bound(key).0 };
            let mut found = leaf.count().saturating_sub(before) as u64;
            let mut next = leaf.upper_bytes();
            place.node.validate()?;
            let Some(parent) = place.parent else { return Ok((found, page, next)) };
            let last = Node::inner(parent.view()).count();
            let to = mark(AccessKind::Read, true, place.depth);
            for i in place.index + 1..=last.min(place.index + 64) {
                // The count so far is valid, whatever stops the walk here.
                let Ok(child) = self.child_node(&parent, i, 0, to) else { break };
                leaf = Node::leaf(child.view());
                let (entries, upper) = (leaf.count() as u64, leaf.upper_bytes());
                let id = child.header().page().unwrap_or_default();
                if child.validate().is_err() || parent.validate().is_err() {
                    break;
                }
                found += entries;
                next = upper;
                page = id;
            }
            Ok((found, page, next))
        })?;
        *count += found;
        ahead(page, key, next)
    }

    /// Estimates the number of entries from the fan-out along a few random paths. Each path costs
    /// one descent.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn count_estimate(&self, paths: u32) -> Result<u64, PoolError> {
        let mut sum = 0.0;
        for _ in 0..paths.max(1) {
            sum += self.pages.run(|mtr| self.random_path(mtr))?;
        }
        Ok((sum / f64::from(paths.max(1))) as u64)
    }

    /// Descends at random; returns the product of the fan-outs.
    fn random_path<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<f64> {
        let mut product = 1.0;
        let to = mark(AccessKind::Read, false, 0);
        let mut node = Read::root(mtr, self.anchor, to)?;
        let mut level = Node::of(node.view()).level();
        while level > 0 {
            let fan = Node::inner(node.view()).count() + 1;
            level -= 1;
            node = self.child_node(&node, fastrand::usize(..fan), level, to)?;
            product *= fan as f64;
        }
        let count = Node::leaf(node.view()).count();
        node.validate()?;
        Ok(product * count as f64)
    }
}
