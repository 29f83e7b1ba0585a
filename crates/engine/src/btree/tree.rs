//! The tree's handle, and the limits of each page size.
//!
//! # Synchronisation
//!
//! Readers validate versions and restart (leanstore IV-F, IV-I). A writer descends like a reader
//! and latches only its leaf. If the leaf has no room, or gets too empty, the writer releases it
//! and descends again, latching parent and node (and a sibling, for a merge). Threads wait for
//! latches only downwards and, among the children of a latched parent, from left to right.
//!
//! The root keeps its page. The tree grows by moving the root's content into a new child, and
//! shrinks by moving the content of its only child into the root. So the anchor's swip changes only
//! when the pool loads or evicts the root, or moves it to another page so that the store can shrink
//! (`pool/moving.rs`).

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use millpond_base::sync::unmodelled::Mutex;
use millpond_base::{AccessKind, Mark, PageId, PageKind};

use crate::btree::counters::{Counters, Tally};
use crate::btree::error::WriteError;
use crate::btree::node::edit::{Edit, put_swip};
use crate::btree::node::layout::{
    INNER_SLOT, LEAF_SLOT, LEVEL, REFERENCE_ROOM, SLOTS_HINTED, slots_at,
};
use crate::page::PageType;
use crate::pool::{
    ANCHOR_SWIP, Actor, Anchor, Jump, MiniTransaction, NewPage, Pages, PoolError, Read, Swip, Try,
    Write,
};

/// The owner of the catalog's own pages, whose entries are not counted.
const CATALOG: u32 = 0;
/// Maximum length of a value in bytes.
pub(crate) const VALUE_MAX: u64 = 1 << 30;

/// Bytes of a fence of ordinary keys: two entries of `half_max` bytes share a leaf whose fences
/// have no more.
const FENCE: usize = 16;

/// Limits of keys and values at one page size.
///
/// Both fences of a node and an entry of the longest key always fit on its page: a key gets a third
/// of it. So a full leaf can be split until the new entry has a leaf to itself, and an inner node
/// until the new separator has a node to itself.
///
/// An entry of up to a third of the page is stored in its leaf. So is an entry of up to half of the
/// page, two of which share a leaf ([`Limits::fits_inline`]), unless the leaf's fences are so long
/// that the entry would not fit there alone. In that case, and if the entry is larger, its value is
/// stored in overflow pages, of which it has at least one to itself.
///
/// # Why every full leaf can be split
///
/// Let a leaf have the fences *L* and *U*, which have *p* bytes in common, and entries of *e(i)*
/// bytes with keys *k(i)*; *e(i)* ≥ |*k(i)*| − *p* + 6, since four bytes of a key are in its slot
/// of 10. A separator *S* before entry *i* + 1 is no longer than *k(i + 1)*, and at most one byte
/// longer than *k(i)*.
///
/// - **A cut between two entries always fits**, however large they are. The left half gains |*S*|,
///   and loses |*U*| + *e(i + 1)* ≥ *p* + |*k(i + 1)*| − *p* + 6 > |*S*|. The right half gains
///   |*S*|, and loses |*L*| + *e(i)* ≥ |*k(i)*| + 6 > |*S*|.
/// - **An entry that is alone** is separated from a new key beside it: it keeps one fence, of at
///   most `key_max` bytes, and gets one of at most |*k*| + 1. Both fit beside it: beside a third of
///   the page by the choice of `key_max`, and beside a larger entry since `fits_inline` requires
///   it.
/// - **The new entry** gets an empty leaf in the end, and goes to overflow pages if it does not fit
///   there (`write/spill.rs`). A reference to them takes less than a third of the page.
///
/// Other operations that build leaves (merges, shifts, compaction) first check that everything
/// fits. A bulk load gives a row that is alone two fences of at most |*k*| + 1 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum length of a key in bytes: 1275 at a page size of 4096, 2641 at 8192.
    pub key_max: usize,
    /// Maximum length of a key and its value together that are stored in any leaf.
    pub inline_max: usize,
    /// Maximum length of a key and its value together that are stored in a leaf whose fences leave
    /// enough room. The value of a larger entry is stored in overflow pages.
    pub half_max: usize,
    /// Maximum length of a value in bytes.
    pub value_max: u64,
}

impl Limits {
    /// Returns the limits for a page size in bytes.
    pub const fn of(page_size: usize) -> Limits {
        let room = page_size - SLOTS_HINTED;
        Limits {
            key_max: room / 3 - INNER_SLOT - REFERENCE_ROOM,
            inline_max: room / 3 - LEAF_SLOT,
            half_max: (page_size - slots_at(page_size, true)) / 2 - LEAF_SLOT - FENCE,
            value_max: VALUE_MAX,
        }
    }

    /// Returns whether a value of `value` bytes is stored in the leaf of its key, which has `key`
    /// bytes. It always is if both have at most `inline_max` bytes together. If they have at most
    /// `half_max`, it is stored there if both fit beside a fence of their own and one of `key_max`
    /// bytes, and the leaf's fences leave enough room.
    #[inline]
    pub const fn fits_inline(&self, key: usize, value: u64) -> bool {
        let entry = (key as u64).saturating_add(value);
        // A leaf has room for three times `inline_max`, and for three slots.
        let beside = entry + (key + 1) as u64 <= (3 * self.inline_max - self.key_max) as u64;
        entry <= self.inline_max as u64 || (entry <= self.half_max as u64 && beside)
    }
}

/// An ordered map of byte strings, for any number of threads.
pub struct BTree<P: Pages> {
    pub(crate) pages: Arc<P>,
    pub(crate) anchor: Anchor,
    pub(crate) owner: u32,
    pub(crate) limits: Limits,
    pub(crate) tally: Tally,
    /// True if the tree's entries are counted.
    is_counted: bool,
    root: AtomicU64,
    /// The key at which the next [`BTree::compact`] starts.
    compact_from: Mutex<Vec<u8>>,
    /// Level of the root when it was last read: a hint, which affects only marks.
    height: AtomicU8,
}

impl<P: Pages> BTree<P> {
    /// Creates an empty tree whose pages belong to `owner`.
    ///
    /// # Errors
    /// There is no memory or no page for the root.
    pub fn create(pages: Arc<P>, owner: u32) -> Result<BTree<P>, PoolError> {
        let (anchor, root) =
            pages.anchor_new(NewPage { owner, kind: PageType::BTREE_LEAF, level: 0 })?;
        pages.run(|mtr| {
            let mut page = Read::root(mtr, anchor, Mark::WRITE)?.upgrade()?;
            Edit::leaf(page.page_mut()).init(&[], None);
            if owner != CATALOG {
                mtr.rows_begin(owner);
            }
            Ok(())
        })?;
        Ok(BTree::with(pages, owner, anchor, root))
    }

    /// Opens the tree whose root is the page `root`.
    ///
    /// # Errors
    /// There is no memory. A root that is no node is reported by the first operation.
    pub fn open(pages: Arc<P>, owner: u32, root: PageId) -> Result<BTree<P>, PoolError> {
        let anchor = pages.anchor_of(owner, root)?;
        Ok(BTree::with(pages, owner, anchor, root))
    }

    fn with(pages: Arc<P>, owner: u32, anchor: Anchor, root: PageId) -> BTree<P> {
        let limits = Limits::of(pages.page_size());
        let (tally, height) = (Tally::default(), AtomicU8::new(0));
        let (compact_from, root) = (Mutex::new(Vec::new()), AtomicU64::new(root.0));
        let is_counted = owner != CATALOG;
        BTree { pages, anchor, owner, limits, tally, is_counted, root, compact_from, height }
    }

    /// Returns the page of the root.
    pub fn root(&self) -> PageId {
        PageId(self.root.load(Ordering::Acquire))
    }

    /// Records that the root moved to `page`.
    pub(crate) fn set_root(&self, page: PageId) {
        self.root.store(page.0, Ordering::Release);
    }

    /// Returns the owner id in the headers of the tree's pages.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns the memory that holds the tree's pages.
    pub fn pages(&self) -> &Arc<P> {
        &self.pages
    }

    /// Returns the anchor, which holds the root's swip.
    pub fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// Returns the limits of keys and values.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the counters of structural changes since the tree was opened.
    pub fn counters(&self) -> Counters {
        self.tally.counters()
    }

    /// Returns whether an entry of this size is stored in a leaf, if the leaf's fences leave enough
    /// room.
    #[inline(always)]
    pub(crate) fn fits_inline(&self, key: &[u8], value: u64) -> bool {
        self.limits.fits_inline(key.len(), value)
    }

    /// Checks the lengths of a key and of its value against the limits.
    pub(crate) fn check_sizes(&self, key: &[u8], value: u64) -> Result<(), WriteError> {
        if key.len() > self.limits.key_max {
            return Err(WriteError::KeyTooLong { len: key.len(), max: self.limits.key_max });
        }
        if value > self.limits.value_max {
            return Err(WriteError::ValueTooLong { len: value, max: self.limits.value_max });
        }
        Ok(())
    }

    /// Removes every entry and frees every page except the root; returns the number of entries. The
    /// tree is one leaf afterwards, if no other thread writes to it in the meantime.
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
    pub fn destroy(mut self) -> Result<(), PoolError> {
        // A tree that cannot be freed may outlive its id, which another tree then gets.
        self.is_counted = false;
        self.clear()?;
        self.pages.run(|mtr| {
            let mut anchor = Read::anchor(mtr, self.anchor)?.upgrade()?;
            let root = anchor.child_exclusive(ANCHOR_SWIP, Mark::WRITE)?;
            if root.view().u8(LEVEL) != 0 {
                return Err(corrupt(root.id(), "still an inner node after all was removed"));
            }
            put_swip(anchor.page_mut(), ANCHOR_SWIP, Swip::NULL);
            root.free();
            Ok(())
        })?;
        self.pages.release_anchor(self.anchor);
        Ok(())
    }

    /// Locks the key at which the next [`BTree::compact`] starts.
    pub(crate) fn compact_from(&self) -> MutexGuard<'_, Vec<u8>> {
        match self.compact_from.lock() {
            Ok(from) => from,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Returns the level of the root when it was last read.
    #[inline(always)]
    pub(crate) fn height_hint(&self) -> u8 {
        self.height.load(Ordering::Relaxed)
    }

    /// Records the root's level, which was just read.
    #[inline(always)]
    pub(crate) fn see_height(&self, level: u8) {
        if self.height_hint() != level {
            self.height.store(level, Ordering::Relaxed);
        }
    }

    /// Counts entries that were added or removed on behalf of `actor`. Their leaf is latched.
    #[inline(always)]
    pub(crate) fn rows_changed(&self, mtr: &MiniTransaction<'_, P>, change: i64, actor: Actor) {
        if self.is_counted && change != 0 {
            mtr.rows_changed(self.owner, change, actor);
        }
    }

    /// Allocates the page of a node of `level`, latched exclusively.
    pub(crate) fn new_page<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        level: u8,
    ) -> Try<Write<'o, P>> {
        let kind = if level == 0 { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
        mtr.allocate(NewPage { owner: self.owner, kind, level })
    }
}

/// Returns the mark of a reference to a node.
#[inline(always)]
pub(crate) fn mark(access: AccessKind, leaf: bool, depth: u8) -> Mark {
    let kind = if leaf { PageKind::BTREE_LEAF } else { PageKind::BTREE_INNER };
    Mark::of(access).with_kind(kind, depth)
}

/// Ends the attempt with an error: the store is damaged.
#[cold]
pub(crate) fn corrupt(page: PageId, what: &str) -> Jump {
    Jump::failed(PoolError::Corrupt { page, what: what.to_string() })
}
