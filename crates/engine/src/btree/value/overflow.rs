//! Builds, reads and frees values in overflow pages ([`layout`](super::layout) has the form).
//!
//! The leaf's entry holds the swip of the root. The value's *stamp* is drawn when the value is
//! written. A reader descends from the tree's root once per few pages, and compares the stamp to
//! check that the value is still the same.
//!
//! While a value is being written or freed, its root is an orphan below an anchor of its own. The
//! anchor holds the value's stamp, so a page of another value is never loaded as its root.

use std::time::Duration;

use millpond_base::{AccessKind, Mark, PageId, PageKind};

use crate::btree::descend::held_anchor;
use crate::btree::node::edit::{Reference, put_swip};
use crate::btree::node::layout::{KIND, LEVEL, Node, Value};
use crate::btree::tree::{BTree, corrupt};
use crate::btree::value::large::Detached;
use crate::btree::value::layout::*;
use crate::page::PageType;
use crate::pool::{
    Anchor, Jump, MiniTransaction, NewPage, Pages, PoolError, Read, Swip, Try, Write,
};

/// Number of data pages read or freed in one mini-transaction.
const BATCH: usize = 16;

/// Number of mini-transactions that free pages of one value without asking the log for room: their
/// records take about 4 KiB.
const FREED_UNASKED: u32 = 8;

/// Returns the mark of a reference to an overflow page.
fn other(what: AccessKind) -> Mark {
    Mark::of(what).with_kind(PageKind::OTHER, 0)
}

impl<P: Pages> BTree<P> {
    fn new_overflow(&self, level: u8) -> NewPage {
        NewPage { owner: self.owner, kind: PageType::OVERFLOW, level }
    }

    /// Begins a value of `len` bytes: allocates its root, which is an orphan.
    pub(crate) fn begin_value(&self, len: u64) -> Result<Detached, PoolError> {
        let level = level_for(self.pages.page_size(), len);
        let (anchor, _) = self.pages.anchor_new(self.new_overflow(level))?;
        let stamp = fastrand::u64(1..);
        self.pages.run(|mtr| {
            let stamp_at = anchor.stamp();
            let swip_at = anchor.swip();
            let mut anchor = held_anchor(mtr, anchor)?;
            let mut root = anchor.child_exclusive(swip_at, other(AccessKind::Write))?;
            // The root may have been evicted since, and an older version of its page loaded.
            if !is_page(root.view(), level, 0) || root.view().u64(USED) > 0 {
                return Err(misfit(root.id()));
            }
            set_word(root.page_mut(), STAMP, stamp);
            set_word(anchor.page_mut(), stamp_at, stamp);
            mtr.orphaned(root.id(), orphan_value(stamp));
            Ok(())
        })?;
        debug_assert_ne!(stamp, 0, "a page without a value has the stamp 0");
        Ok(Detached { anchor, len, stamp })
    }

    /// Writes the pages of a value that is in memory as a whole.
    pub(crate) fn build(&self, bytes: &[u8]) -> Result<Detached, PoolError> {
        let value = self.begin_value(bytes.len() as u64)?;
        let (size, mut offset) = (self.pages.page_size(), 0);
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            let len = part_at(size, value.len, offset as u64).len.min(rest.len());
            if let Err(error) = self.write_part(&value, offset as u64, &rest[..len]) {
                self.free_below(&value)?;
                return Err(error);
            }
            offset += len;
        }
        Ok(value)
    }

    /// Writes the part at `offset` ([`part_at`]); parts are written in order.
    pub(crate) fn write_part(
        &self,
        value: &Detached,
        offset: u64,
        part: &[u8],
    ) -> Result<(), PoolError> {
        let size = self.pages.page_size();
        let Part { front: in_front, len } = part_at(size, value.len, offset);
        debug_assert_eq!(part.len(), len, "a part is written as a whole");
        self.pages.make_log_room(2 * size)?;
        self.pages.run(|mtr| {
            let mut offset = offset;
            let anchor = held_anchor(mtr, value.anchor)?;
            let mut page = anchor.child_exclusive(value.anchor.swip(), other(AccessKind::Write))?;
            drop(anchor);
            let mut level = level_for(size, value.len);
            if !is_page(page.view(), level, value.stamp) {
                return Err(misfit(page.id()));
            }
            while level > 0 {
                let expected = if level == 1 { in_front } else { 0 };
                let (index, behind) = match locate(size, level, expected, offset) {
                    ByteLocation::Child(index, behind) => (index, behind),
                    ByteLocation::Front(_) => {
                        let bytes = page.page_mut();
                        if let Some(front) = bytes.get_mut(size - part.len()..) {
                            front.copy_from_slice(part);
                        }
                        let held = Held { used: 0, front: part.len() as u64 };
                        set_word(bytes, USED, held.word());
                        return Ok(());
                    }
                };
                // Parts written earlier are in and below the page, unless the page is an older
                // version.
                if index > used(page.view()) || front(page.view()) != expected {
                    return Err(misfit(page.id()));
                }
                let at = BODY + 8 * index;
                (level, offset) = (level - 1, behind);
                if index < used(page.view()) {
                    page = page.child_exclusive(at, other(AccessKind::Write))?;
                    continue;
                }
                // A jump further down leaves an empty page, which the next attempt finds.
                let mut child = mtr.allocate(self.new_overflow(level))?;
                set_word(child.page_mut(), STAMP, value.stamp);
                let swip = child.swip();
                put_swip(page.page_mut(), at, swip);
                set_used(&mut page, index + 1);
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

    /// Frees the pages of a detached value, if they are still below its anchor, and the anchor.
    pub(crate) fn free_below(&self, value: &Detached) -> Result<(), PoolError> {
        self.free_stamped_below(value.anchor, value.stamp)
    }

    /// Frees the orphan below `anchor`, whichever value it is, and the anchor.
    pub(crate) fn free_any_below(&self, anchor: Anchor) -> Result<(), PoolError> {
        self.free_all(anchor, None)
    }

    /// Frees the value with the given stamp below `anchor`, and the anchor.
    pub(crate) fn free_stamped_below(&self, anchor: Anchor, stamp: u64) -> Result<(), PoolError> {
        self.free_all(anchor, Some(stamp))
    }

    /// Frees all pages of a value that no entry has. The operation that removed it from its entry
    /// is complete, so freeing must not fail because the log has no room for the rest: the next
    /// opening frees that.
    fn free_all(&self, anchor: Anchor, stamp: Option<u64>) -> Result<(), PoolError> {
        let mut freed = 0;
        while !self.pages.run(|mtr| self.free_some(mtr, anchor, stamp))? {
            freed += 1;
            if freed >= FREED_UNASKED
                && let Err(error) = self.room_to_free()
            {
                // The anchor stays: there are pages below it.
                tracing::warn!(%error, "pages of a large value are freed by the next opening");
                return Ok(());
            }
        }
        self.pages.release_anchor(anchor);
        Ok(())
    }

    /// Waits for a checkpoint to free a log without room, if one does.
    fn room_to_free(&self) -> Result<(), PoolError> {
        const TRIES: u32 = 200;
        const NAP: Duration = Duration::from_millis(5);
        for _ in 0..TRIES {
            if self.pages.make_log_room(self.pages.page_size()).is_ok() {
                return Ok(());
            }
            std::thread::sleep(NAP);
        }
        self.pages.make_log_room(self.pages.page_size())
    }

    /// Frees a few pages, the last ones first; returns `true` if nothing is left. No parent holds
    /// the root's stamp, so `stamp` gives it, if it is known: a stale root would lead to pages of
    /// other values.
    fn free_some<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        anchor: Anchor,
        stamp: Option<u64>,
    ) -> Try<bool> {
        let (swip_at, stamp_at) = (anchor.swip(), anchor.stamp());
        let mut anchor = held_anchor(mtr, anchor)?;
        if Swip(anchor.view().u64(swip_at)) == Swip::NULL {
            return Ok(true);
        }
        if let Some(stamp) = stamp
            && anchor.view().u64(stamp_at) != stamp
        {
            set_word(anchor.page_mut(), stamp_at, stamp);
        }
        let mut page = anchor.child_exclusive(swip_at, other(AccessKind::Write))?;
        let (kind, found) = (page.view().u8(KIND), page.view().u64(STAMP));
        if kind != PageType::OVERFLOW.0 || stamp.is_some_and(|stamp| stamp != found) {
            return Err(misfit(page.id()));
        }
        if page.view().u8(LEVEL) == 0 || used(page.view()) == 0 {
            put_swip(anchor.page_mut(), swip_at, Swip::NULL);
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
                // A child that is not resident is left for the next attempt, which loads it.
                let Ok(child) = child else { break };
                if child.view().u8(LEVEL) > 0 && used(child.view()) > 0 {
                    break;
                }
                free_last(&mut page, child, count);
            }
            return Ok(false);
        }
    }

    /// Reads a detached value into `out`.
    pub(crate) fn read_below(&self, value: &Detached, out: &mut Vec<u8>) -> Result<(), PoolError> {
        out.clear();
        let len = usize::try_from(value.len).unwrap_or(usize::MAX);
        while out.len() < len {
            self.read_some_below(value, out.len() as u64, len - out.len(), out)?;
        }
        Ok(())
    }

    /// Appends up to `max` bytes of a detached value from `offset` on, at least one.
    pub(crate) fn read_some_below(
        &self,
        value: &Detached,
        offset: u64,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PoolError> {
        let level = level_for(self.pages.page_size(), value.len);
        let before = out.len();
        self.pages.run(|mtr| {
            out.truncate(before);
            let root = Read::root(mtr, value.anchor, other(AccessKind::Read))?;
            read_from(&root, level, value.stamp, offset, max, out)?;
            if out.len() == before {
                let page = root.header().page().unwrap_or_default();
                return Err(corrupt(page, "a value in overflow pages ends early"));
            }
            Ok(())
        })
    }

    /// Reads the value that `reference` names. Returns `None` if it is no longer the value of
    /// `key`.
    pub(crate) fn read_whole(
        &self,
        key: &[u8],
        reference: Reference,
    ) -> Result<Option<Vec<u8>>, PoolError> {
        let len = usize::try_from(reference.len).unwrap_or(usize::MAX);
        let mut out = Vec::new();
        out.try_reserve_exact(len).map_err(|_| PoolError::NoRoom { bytes: reference.len })?;
        while out.len() < len {
            let offset = out.len() as u64;
            if !self.read_some(key, reference, offset, len - out.len(), &mut out)? {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    /// Appends up to `max` bytes of a value from `offset` on, at least one. Returns `false` if it
    /// is no longer the value of `key`.
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

/// Sets the number of swips of a page above the data.
fn set_used<P: Pages>(page: &mut Write<'_, P>, used: usize) {
    let held = Held { used: used as u64, ..held_by(page.view()) };
    set_word(page.page_mut(), USED, held.word());
}

/// Unlinks child `count - 1`, the last one, from `page` and frees it.
fn free_last<P: Pages>(page: &mut Write<'_, P>, child: Write<'_, P>, count: usize) {
    debug_assert!(count > 0, "a value has pages");
    debug_assert_eq!(used(page.view()), count, "children are freed from the end");
    let at = BODY + 8 * (count - 1);
    put_swip(page.page_mut(), at, Swip::NULL);
    set_used(page, count - 1);
    child.free();
}

/// Ends the attempt: the page does not fit its parent or its leaf entry. It is stale, or belongs to
/// another value.
#[cold]
fn misfit(page: PageId) -> Jump {
    let what = "it is no part of the value, or of another level of it".to_string();
    Jump::failed(PoolError::Misfit { page, parent: None, what })
}

/// Checks that `page` is of the given level, of the value with the given stamp.
fn expect<P: Pages>(page: &Read<'_, P>, level: u8, stamp: u64) -> Try<()> {
    if is_page(page.view(), level, stamp) {
        return Ok(());
    }
    page.validate()?;
    let id = page.header().page().unwrap_or_default();
    Err(misfit(id))
}

/// Appends bytes of the value in and below `page` from `offset` on. It appends those of a front and
/// of the data page behind it, or of one data page, and those of the page's resident neighbours.
/// Appends nothing if the value ends before `offset`.
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
    let (count, in_front) = (used(page.view()), front(page.view()));
    let (before, mut index, mut behind) = (out.len(), 0, 0);
    match locate(size, level, in_front, offset) {
        ByteLocation::Child(child, offset) => (index, behind) = (child, offset),
        ByteLocation::Front(from) => {
            page.view().copy_to(size - in_front + from, (in_front - from).min(max), out);
        }
    }
    let read = out.len() - before;
    if index >= count || read >= max {
        return page.validate().inspect_err(|_| out.truncate(before));
    }
    let child = page.child(BODY + 8 * index, other(AccessKind::Read))?;
    read_from(&child, level - 1, stamp, behind, max - read, out)?;
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

/// Prefetches the children `from..to` of `page` that are not resident.
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
