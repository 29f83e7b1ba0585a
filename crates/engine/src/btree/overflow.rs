//! Values in pages of their own.
//!
//! ```text
//! offset size
//!      0   32  the common page header; its level is 0 for data
//!     32    8  stamp of the value
//!     40    8  level 0: bytes of the value in this page · above: swips in this page
//!     48    …  the bytes, or the swips
//! ```
//! The pages of a value are a tree whose data pages are all full but the last; so a byte's page
//! follows from its place. The leaf's entry holds the swip of the root. Its *stamp* is drawn when
//! the value is written: a reader, which comes down from the tree's root for every few pages,
//! compares it to find out that the value is still the same.
//!
//! While a value is written, and while it is freed, it hangs below an anchor of its own, which says
//! its stamp: no page of another value is loaded in place of its root.

use millpond_base::{AccessKind, Mark, PageId, PageKind};

use crate::btree::change::held_anchor;
use crate::btree::node::edit::{Reference, put_swip};
use crate::btree::node::layout::{KIND, LEVEL, Node, Value};
use crate::btree::note::LargeValue;
use crate::btree::tree::{BTree, corrupt};
use crate::page::record_body::OrphanRoot;
use crate::page::{PageType, View};
use crate::pool::{
    ANCHOR_STAMP, ANCHOR_SWIP, Anchor, Jump, MiniTransaction, NewPage, Pages, PoolError, Read,
    Swip, Try, Write,
};

pub(crate) const STAMP: usize = 32;
pub(crate) const USED: usize = 40;
pub(crate) const BODY: usize = 48;
/// Data pages read, or freed, in one attempt.
const BATCH: usize = 16;

/// Bytes of a value in a data page.
pub(crate) fn data_max(page_size: usize) -> usize {
    page_size - BODY
}

/// Swips in an index page.
pub(crate) fn fan_out(page_size: usize) -> usize {
    (page_size - BODY) / 8
}

/// Bytes of a value below a page of `level`.
fn span(page_size: usize, level: u8) -> u64 {
    let fan = fan_out(page_size) as u64;
    (0..level).fold(data_max(page_size) as u64, |span, _| span.saturating_mul(fan))
}

/// Level of the root of a value of `len` bytes.
pub(crate) fn level_for(page_size: usize, len: u64) -> u8 {
    (0..u8::MAX).find(|level| span(page_size, *level) >= len).unwrap_or(u8::MAX)
}

/// What the root of a value of `len` bytes holds: bytes, or swips.
pub(crate) fn held_in_root(page_size: usize, len: u64) -> u64 {
    match level_for(page_size, len) {
        0 => len,
        level => len.div_ceil(span(page_size, level - 1)),
    }
}

/// Pages of a value of `len` bytes.
pub(crate) fn pages_of(page_size: usize, len: u64) -> u64 {
    (0..=level_for(page_size, len)).map(|l| len.div_ceil(span(page_size, l)).max(1)).sum()
}

/// A value's root that nothing refers to.
pub(crate) fn orphan_value(stamp: u64) -> OrphanRoot {
    OrphanRoot { kind: PageType::OVERFLOW.0, stamp }
}

/// What a page says of itself.
fn is_page(view: View<'_>, level: u8, stamp: u64) -> bool {
    view.u8(KIND) == PageType::OVERFLOW.0 && view.u8(LEVEL) == level && view.u64(STAMP) == stamp
}

pub(crate) fn used(view: View<'_>) -> usize {
    let max = if view.u8(LEVEL) == 0 { data_max(view.len()) } else { fan_out(view.len()) };
    usize::try_from(view.u64(USED)).unwrap_or(usize::MAX).min(max)
}

pub(crate) fn set_word(page: &mut [u8], at: usize, word: u64) {
    if let Some(place) = page.get_mut(at..at + 8) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

fn other(what: AccessKind) -> Mark {
    Mark::of(what).with_kind(PageKind::OTHER, 0)
}

/// A value, or what there is of it so far, below an anchor.
#[derive(Clone, Copy)]
pub(crate) struct Built {
    pub(crate) anchor: Anchor,
    pub(crate) len: u64,
    pub(crate) stamp: u64,
}

impl Built {
    /// `value`, which hangs below `anchor`.
    pub(crate) fn of(anchor: Anchor, value: LargeValue) -> Built {
        Built { anchor, len: value.len, stamp: value.stamp }
    }
}

impl<P: Pages> BTree<P> {
    fn new_overflow(&self, level: u8) -> NewPage {
        NewPage { owner: self.owner, kind: PageType::OVERFLOW, level }
    }

    /// An anchor with nothing below it.
    pub(crate) fn empty_anchor(&self) -> Result<Anchor, PoolError> {
        let (anchor, _) = self.pages.anchor_new(self.new_overflow(0))?;
        while !self.pages.run(|mtr| self.free_some(mtr, anchor, None))? {}
        Ok(anchor)
    }

    /// Begins a value of `len` bytes: room for its root.
    pub(crate) fn begin_value(&self, len: u64) -> Result<Built, PoolError> {
        let level = level_for(self.pages.page_size(), len);
        let (anchor, _) = self.pages.anchor_new(self.new_overflow(level))?;
        let stamp = fastrand::u64(1..);
        self.pages.run(|mtr| {
            let mut anchor = held_anchor(mtr, anchor)?;
            let mut root = anchor.child_exclusive(ANCHOR_SWIP, other(AccessKind::Write))?;
            // It may have been evicted since, and what came back be what its page was before.
            if !is_page(root.view(), level, 0) || used(root.view()) > 0 {
                return Err(misfit(root.id()));
            }
            set_word(root.page_mut(), STAMP, stamp);
            set_word(anchor.page_mut(), ANCHOR_STAMP, stamp);
            mtr.orphaned(root.id(), orphan_value(stamp));
            Ok(())
        })?;
        Ok(Built { anchor, len, stamp })
    }

    /// Writes a value that is all there.
    pub(crate) fn build(&self, value: &[u8]) -> Result<Built, PoolError> {
        let built = self.begin_value(value.len() as u64)?;
        let step = data_max(self.pages.page_size());
        for (i, part) in value.chunks(step).enumerate() {
            if let Err(error) = self.write_part(&built, (i * step) as u64, part) {
                self.free_below(&built)?;
                return Err(error);
            }
        }
        Ok(built)
    }

    /// Writes the data page at `offset`; parts come in order, and all but the last are full.
    pub(crate) fn write_part(
        &self,
        built: &Built,
        offset: u64,
        part: &[u8],
    ) -> Result<(), PoolError> {
        self.pages.run(|mtr| {
            let anchor = held_anchor(mtr, built.anchor)?;
            let mut page = anchor.child_exclusive(ANCHOR_SWIP, other(AccessKind::Write))?;
            drop(anchor);
            let mut level = level_for(self.pages.page_size(), built.len);
            if !is_page(page.view(), level, built.stamp) {
                return Err(misfit(page.id()));
            }
            while level > 0 {
                let index = child_index(self.pages.page_size(), level, offset);
                let at = BODY + 8 * index;
                level -= 1;
                // What was written before is below it, unless it is older.
                if index > used(page.view()) {
                    return Err(misfit(page.id()));
                }
                if index < used(page.view()) {
                    page = page.child_exclusive(at, other(AccessKind::Write))?;
                    continue;
                }
                // An attempt that ends below leaves an empty page, which the next one finds.
                let mut child = mtr.allocate(self.new_overflow(level))?;
                set_word(child.page_mut(), STAMP, built.stamp);
                let swip = child.swip();
                put_swip(page.page_mut(), at, swip);
                set_word(page.page_mut(), USED, index as u64 + 1);
                mtr.adopt(swip, &page);
                page = child;
            }
            let bytes = page.page_mut();
            if let Some(body) = bytes.get_mut(BODY..BODY + part.len()) {
                body.copy_from_slice(part);
            }
            set_word(bytes, USED, part.len() as u64);
            Ok(())
        })
    }

    /// Frees a value that hangs below an anchor of ours, and the anchor.
    pub(crate) fn free_below(&self, built: &Built) -> Result<(), PoolError> {
        self.free_stamped_below(built.anchor, built.stamp)
    }

    /// Frees what hangs below an anchor of ours, whatever value it is, and the anchor.
    pub(crate) fn free_any_below(&self, anchor: Anchor) -> Result<(), PoolError> {
        self.free_all(anchor, None)
    }

    /// Frees the value of that stamp below an anchor of ours, and the anchor.
    pub(crate) fn free_stamped_below(&self, anchor: Anchor, stamp: u64) -> Result<(), PoolError> {
        self.free_all(anchor, Some(stamp))
    }

    fn free_all(&self, anchor: Anchor, stamp: Option<u64>) -> Result<(), PoolError> {
        while !self.pages.run(|mtr| self.free_some(mtr, anchor, stamp))? {}
        self.pages.release_anchor(anchor);
        Ok(())
    }

    /// Frees a few pages, the last ones first; answers whether nothing is left. No parent holds the
    /// root's stamp: `stamp` is it, if it is known. A stale root would lead to the pages of others.
    fn free_some<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        anchor: Anchor,
        stamp: Option<u64>,
    ) -> Try<bool> {
        let mut anchor = held_anchor(mtr, anchor)?;
        if Swip(anchor.view().u64(ANCHOR_SWIP)) == Swip::NULL {
            return Ok(true);
        }
        if let Some(stamp) = stamp
            && anchor.view().u64(ANCHOR_STAMP) != stamp
        {
            set_word(anchor.page_mut(), ANCHOR_STAMP, stamp);
        }
        let mut page = anchor.child_exclusive(ANCHOR_SWIP, other(AccessKind::Write))?;
        let (kind, found) = (page.view().u8(KIND), page.view().u64(STAMP));
        if kind != PageType::OVERFLOW.0 || stamp.is_some_and(|stamp| stamp != found) {
            return Err(misfit(page.id()));
        }
        if page.view().u8(LEVEL) == 0 || used(page.view()) == 0 {
            put_swip(anchor.page_mut(), ANCHOR_SWIP, Swip::NULL);
            page.free();
            return Ok(true);
        }
        loop {
            let count = used(page.view());
            let at = BODY + 8 * count.saturating_sub(1);
            let child = page.child_exclusive(at, other(AccessKind::Write))?;
            if child.view().u8(KIND) != PageType::OVERFLOW.0 {
                return Err(corrupt(child.id(), "not the overflow page its parent expects"));
            }
            if child.view().u8(LEVEL) > 0 && used(child.view()) > 0 {
                page = child;
                continue;
            }
            free_last(&mut page, child, count);
            for count in (1..count).rev().take(BATCH - 1) {
                let child = page.child_exclusive(BODY + 8 * (count - 1), other(AccessKind::Write));
                // What is not at hand is left for the next attempt, which fetches it.
                let Ok(child) = child else { break };
                if child.view().u8(LEVEL) > 0 && used(child.view()) > 0 {
                    break;
                }
                free_last(&mut page, child, count);
            }
            return Ok(false);
        }
    }

    /// The value below an anchor of ours, which nobody else knows.
    pub(crate) fn read_below(&self, built: &Built, out: &mut Vec<u8>) -> Result<(), PoolError> {
        out.clear();
        let len = usize::try_from(built.len.min(self.limits.value_max)).unwrap_or(0);
        while out.len() < len {
            self.read_some_below(built, out.len() as u64, len - out.len(), out)?;
        }
        Ok(())
    }

    /// Appends up to `max` bytes from `offset` of that value, at least one.
    pub(crate) fn read_some_below(
        &self,
        built: &Built,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PoolError> {
        let level = level_for(self.pages.page_size(), built.len);
        let before = out.len();
        self.pages.run(|mtr| {
            out.truncate(before);
            let root =
                Read::anchor(mtr, built.anchor)?.child(ANCHOR_SWIP, other(AccessKind::Read))?;
            read_from(&root, level, built.stamp, offset, max, out)?;
            if out.len() == before {
                let page = root.header().page().unwrap_or_default();
                return Err(corrupt(page, "a value in overflow pages ends early"));
            }
            Ok(())
        })
    }

    /// All of a value; `None` if it is not the value of `key` any more.
    pub(crate) fn read_whole(
        &self,
        key: &[u8],
        reference: Reference,
    ) -> Result<Option<Vec<u8>>, PoolError> {
        let len = usize::try_from(reference.len.min(self.limits.value_max)).unwrap_or(0);
        let mut out = Vec::new();
        while out.len() < len {
            let offset = out.len() as u64;
            if !self.read_some(key, reference, offset, len - out.len(), &mut out)? {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    /// Appends up to `max` bytes from `offset` of a value, at least one; `false` if it is not the
    /// value of `key` any more.
    pub(crate) fn read_some(
        &self,
        key: &[u8],
        reference: Reference,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, PoolError> {
        let before = out.len();
        self.pages.run(|mtr| {
            out.truncate(before);
            let leaf = self.leaf_for(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            let found = if equal { node.reference(i) } else { None };
            let at = match node.value(i) {
                Value::Overflow(at) => at,
                Value::Inline(_) => 0,
            };
            leaf.validate()?;
            if found.is_none_or(|found| found.stamp != reference.stamp) {
                return Ok(false);
            }
            let level = level_for(self.pages.page_size(), reference.len);
            let root = leaf.child(at, other(AccessKind::Read))?;
            read_from(&root, level, reference.stamp, offset, max, out)?;
            if out.len() == before {
                let page = root.header().page().unwrap_or_default();
                return Err(corrupt(page, "a value in overflow pages ends early"));
            }
            Ok(true)
        })
    }
}

/// Which child of a page of `level` holds the byte at `offset` of the value.
fn child_index(page_size: usize, level: u8, offset: u64) -> usize {
    let below = span(page_size, level.saturating_sub(1));
    let index = (offset / below) % fan_out(page_size) as u64;
    index as usize
}

/// Takes child `count - 1`, the last, off `page` and frees it.
fn free_last<P: Pages>(page: &mut Write<'_, P>, child: Write<'_, P>, count: usize) {
    let at = BODY + 8 * (count - 1);
    put_swip(page.page_mut(), at, Swip::NULL);
    set_word(page.page_mut(), USED, count as u64 - 1);
    child.free();
}

/// The page does not fit its parent or its leaf entry: a stale page, or one of another value.
#[cold]
fn misfit(page: PageId) -> Jump {
    let what = "it is no part of the value, or of another level of it".to_string();
    Jump::failed(PoolError::Misfit { page, parent: None, what })
}

fn expect<P: Pages>(page: &Read<'_, P>, level: u8, stamp: u64) -> Try<()> {
    if is_page(page.view(), level, stamp) {
        return Ok(());
    }
    page.validate()?;
    let id = page.header().page().unwrap_or_default();
    Err(misfit(id))
}

/// Appends bytes from `offset` on of the value below `page`: those of one data page, and those of
/// its neighbours that are at hand. Nothing if the value ends before.
fn read_from<'o, P: Pages>(
    page: &Read<'o, P>,
    level: u8,
    stamp: u64,
    offset: u64,
    max: usize,
    out: &mut Vec<u8>,
) -> Try<()> {
    expect(page, level, stamp)?;
    let size = page.view().len();
    if level == 0 {
        let from = usize::try_from(offset % data_max(size) as u64).unwrap_or(0);
        let part = used(page.view()).saturating_sub(from).min(max);
        let before = out.len();
        page.view().copy_to(BODY + from, part, out);
        return page.validate().inspect_err(|_| out.truncate(before));
    }
    let index = child_index(size, level, offset);
    let count = used(page.view());
    if index >= count {
        return page.validate();
    }
    let child = page.child(BODY + 8 * index, other(AccessKind::Read))?;
    let before = out.len();
    read_from(&child, level - 1, stamp, offset, max, out)?;
    if level > 1 {
        return Ok(());
    }
    prefetch(page, index + 1, count);
    for next in (index + 1..count).take(BATCH - 1) {
        let read = out.len() - before;
        if read >= max {
            break;
        }
        let Ok(child) = page.child(BODY + 8 * next, other(AccessKind::Read)) else { break };
        if read_from(&child, 0, stamp, 0, max - read, out).is_err() {
            break;
        }
    }
    Ok(())
}

fn prefetch<P: Pages>(page: &Read<'_, P>, from: usize, to: usize) {
    let mut places = [0; 2 * BATCH];
    let mut n = 0;
    for (place, i) in places.iter_mut().zip(from..to) {
        *place = BODY + 8 * i;
        n += 1;
    }
    if places[..n].iter().any(|at| page.swip(*at).is_evicted()) {
        page.mtr().pages().prefetch(page, &places[..n]);
    }
}
