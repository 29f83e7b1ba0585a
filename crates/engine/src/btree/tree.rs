//! The tree itself: what a handle holds, and the limits that a page size sets.
//!
//! # Synchronisation
//!
//! Readers validate versions and restart (leanstore IV-F, IV-I). A writer descends like a reader
//! and latches only its leaf. If the leaf has no room, or gets too empty, the writer lets go and
//! comes again, latching parent and node (and a sibling, for a merge). Latches are waited for only
//! downwards and, among the children of a latched parent, from left to right.
//!
//! The root keeps its page: it grows by moving its content into a new child, and shrinks by
//! taking over that of its only child. So the anchor's swip changes only when the pool moves the
//! root in or out of memory, or to another page so that the store can shrink (`pool/moving.rs`).

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use millpond_base::{Mark, PageId, PageKind};

use crate::btree::node::edit::Edit;
use crate::btree::node::layout::{INNER_SLOT, LEAF_SLOT, REFERENCE_ROOM, SLOTS_HINTED};
use crate::btree::stats::Tally;
use crate::page::PageType;
use crate::pool::{Anchor, Jump, MiniTransaction, NewPage, Pages, PoolError, Read, Try};

/// Most bytes of a value.
pub(crate) const VALUE_MAX: u64 = 1 << 30;

/// What fits into a tree of some page size.
///
/// Both fences of a node and an entry of the longest key always fit on its page: a key gets a third
/// of it. So a leaf that is full can be cut until the entry to come has one to itself, and an inner
/// node until the separator to come has. The value of an entry that would take more than a quarter
/// of the page goes to overflow pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most bytes of a key: 1275 at a page size of 4096, 2641 at 8192.
    pub key_max: usize,
    /// Most bytes of a key and its value together that stay in a leaf; a larger value goes to
    /// overflow pages.
    pub inline_max: usize,
    /// Most bytes of a value.
    pub value_max: u64,
}

impl Limits {
    /// The limits at a page size in bytes.
    pub const fn of(page_size: usize) -> Limits {
        let room = page_size - SLOTS_HINTED;
        Limits {
            key_max: room / 3 - INNER_SLOT - REFERENCE_ROOM,
            inline_max: room / 4 - LEAF_SLOT,
            value_max: VALUE_MAX,
        }
    }
}

/// An ordered map of byte strings, for any number of threads.
pub struct BTree<P: Pages> {
    pub(crate) pages: Arc<P>,
    pub(crate) anchor: Anchor,
    pub(crate) owner: u32,
    pub(crate) limits: Limits,
    pub(crate) tally: Tally,
    root: AtomicU64,
    /// Where the next [`BTree::compact`] begins.
    compact_from: Mutex<Vec<u8>>,
    /// Level of the root when it was last seen; only marks depend on it.
    height: AtomicU8,
}

impl<P: Pages> BTree<P> {
    /// A new, empty tree whose pages belong to `owner`.
    ///
    /// # Errors
    /// No memory or no page for its root.
    pub fn create(pages: Arc<P>, owner: u32) -> Result<BTree<P>, PoolError> {
        let (anchor, root) =
            pages.anchor_new(NewPage { owner, kind: PageType::BTREE_LEAF, level: 0 })?;
        pages.run(|mtr| {
            let mut page = Read::root(mtr, anchor, Mark::WRITE)?.upgrade()?;
            Edit::leaf(page.page_mut()).init(&[], None);
            Ok(())
        })?;
        Ok(BTree::with(pages, owner, anchor, root))
    }

    /// The tree whose root is the page `root`.
    ///
    /// # Errors
    /// No memory. A root that is no node is found out by the first operation.
    pub fn open(pages: Arc<P>, owner: u32, root: PageId) -> Result<BTree<P>, PoolError> {
        let anchor = pages.anchor_of(owner, root)?;
        Ok(BTree::with(pages, owner, anchor, root))
    }

    fn with(pages: Arc<P>, owner: u32, anchor: Anchor, root: PageId) -> BTree<P> {
        let limits = Limits::of(pages.page_size());
        let (tally, height) = (Tally::default(), AtomicU8::new(0));
        let (compact_from, root) = (Mutex::new(Vec::new()), AtomicU64::new(root.0));
        BTree { pages, anchor, owner, limits, tally, root, compact_from, height }
    }

    /// The page of the root.
    pub fn root(&self) -> PageId {
        PageId(self.root.load(Ordering::Acquire))
    }

    /// The root moved to `page`.
    pub(crate) fn set_root(&self, page: PageId) {
        self.root.store(page.0, Ordering::Release);
    }

    /// The id that the tree's pages carry.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// The memory that holds its pages.
    pub fn pages(&self) -> &Arc<P> {
        &self.pages
    }

    /// Where its root's swip is.
    pub fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// What fits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Removes every entry and gives every page but the root back: the tree is empty, and one leaf
    /// high, if nobody writes to it meanwhile.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn clear(&self) -> Result<u64, PoolError> {
        self.delete_range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded)
    }

    /// Frees all pages, and the anchor with them.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn destroy(self) -> Result<(), PoolError> {
        self.clear()?;
        self.pages.run(|mtr| {
            let mut anchor = Read::anchor(mtr, self.anchor)?.upgrade()?;
            let root = anchor.child_exclusive(crate::pool::ANCHOR_SWIP, Mark::WRITE)?;
            if root.view().u8(crate::btree::node::layout::LEVEL) != 0 {
                return Err(corrupt(root.id(), "still an inner node after all was removed"));
            }
            crate::btree::node::edit::put_swip(
                anchor.page_mut(),
                crate::pool::ANCHOR_SWIP,
                crate::pool::Swip::NULL,
            );
            root.free();
            Ok(())
        })?;
        self.pages.release_anchor(self.anchor);
        Ok(())
    }

    pub(crate) fn compact_from(&self) -> MutexGuard<'_, Vec<u8>> {
        match self.compact_from.lock() {
            Ok(from) => from,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    #[inline(always)]
    pub(crate) fn height_hint(&self) -> u8 {
        self.height.load(Ordering::Relaxed)
    }

    /// Notes the root's level, once it is known.
    #[inline(always)]
    pub(crate) fn see_height(&self, level: u8) {
        if self.height_hint() != level {
            self.height.store(level, Ordering::Relaxed);
        }
    }

    pub(crate) fn new_page<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        level: u8,
    ) -> Try<crate::pool::Write<'o, P>> {
        let kind = if level == 0 { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
        mtr.allocate(NewPage { owner: self.owner, kind, level })
    }
}

/// What a reference to a node says of itself.
#[inline(always)]
pub(crate) fn mark(mtr: millpond_base::AccessKind, leaf: bool, depth: u8) -> Mark {
    let kind = if leaf { PageKind::BTREE_LEAF } else { PageKind::BTREE_INNER };
    Mark::of(mtr).with_kind(kind, depth)
}

/// The attempt fails: the store is damaged.
#[cold]
pub(crate) fn corrupt(page: PageId, what: &str) -> Jump {
    Jump::failed(PoolError::Corrupt { page, what: what.to_string() })
}
