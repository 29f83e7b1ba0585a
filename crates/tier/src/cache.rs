//! The cached pages of a second tier, and the policy that decides about them: everything but the
//! I/O.
//!
//! - A *frame* is a page that is kept; the policy decides on frames. A *slot* is room in the
//!   cache's file, with the page's *copy*. There are some more slots than frames: a slot whose copy
//!   is being read or written stays until that is done, whatever page has the frame by then.
//! - So the policy's decisions depend only on the requests and their order, never on I/O. They are
//!   those of the simulated cache (`lab::tier2`, model `read`). A frame may have no copy, because
//!   the copy is being written, was lost, or found no slot. A request for it is a hit, and its page
//!   is read from storage.
//! - A copy is of a page *at a place*: it is useless once the page is written elsewhere. An index
//!   by place finds the copies of overwritten ranges.
//! - A *fill* is a copy on its way into a slot. It counts only if no other request of the page, and
//!   no write of anything but pages, began after it, and no write of the page ended after it began.

use std::ops::Range;

use millpond_base::{FrameId, Mark, PageId};
use millpond_device::Tag;
use millpond_policies::contract::{Access, NEVER, Shape};
use millpond_policies::policy_host::ErasedPolicyHost;

use crate::copy::Copy;
use crate::counts::TierCounts;
use crate::directory::{Entry, Layout};
use crate::dirty::EXTENT_BYTES;
use crate::frames::{COOLING, DIRTY, Frame, Frames, HAS_COPY, RESIDENT, Slot, frames_of};

/// A copy to be read; released with [`Cache::unpin`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub slot: u32,
    pub checksum: u64,
    frame: FrameId,
}

/// A copy to be written; ended with [`Cache::filled`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub slot: u32,
    frame: FrameId,
    number: u32,
    others: u64,
}

/// A write of a page to storage, in progress.
#[derive(Clone, Debug)]
pub(super) struct Write {
    page: PageId,
    /// Number of the fill that began with it, if the page is kept.
    number: Option<u32>,
    range: Range<u64>,
}

/// Location of a requested page.
#[derive(Clone, Copy, Debug)]
pub(super) enum PageLocation {
    Cache(Found),
    /// On storage; a copy of the page may be kept.
    Storage(Option<Fill>),
}

/// A cache's tables and its policy. One thread at a time uses it.
pub(super) struct Cache {
    pub policy: Box<dyn ErasedPolicyHost>,
    pub tables: Frames,
    pub counts: TierCounts,
    pub requests: u64,
    pub fills: u32,
    /// Number of writes to storage that are not pages; in a write-back tier, those of pages, too.
    pub others: u64,
    recorded: Option<Vec<(PageId, Mark)>>,
    /// Set in a write-back tier, which keeps every requested page (li 5, model `rw`).
    writes_back: bool,
}

impl Cache {
    /// Returns an empty cache; `policy` creates the policy for its shape.
    pub fn new(
        layout: &Layout,
        seed: u64,
        policy: impl FnOnce(&Shape) -> Box<dyn ErasedPolicyHost>,
    ) -> Cache {
        Cache::of(layout, frames_of(layout.slots), seed, false, policy)
    }

    /// Returns an empty write-back cache of `frames` frames.
    pub fn writing_back(
        layout: &Layout,
        frames: u32,
        seed: u64,
        policy: impl FnOnce(&Shape) -> Box<dyn ErasedPolicyHost>,
    ) -> Cache {
        Cache::of(layout, frames, seed, true, policy)
    }

    fn of(
        layout: &Layout,
        frames: u32,
        seed: u64,
        writes_back: bool,
        policy: impl FnOnce(&Shape) -> Box<dyn ErasedPolicyHost>,
    ) -> Cache {
        let mut tables = Frames::new(layout, frames);
        tables.reserved_slots = usize::from(writes_back);
        Cache {
            policy: policy(&Shape { frames, pages_dense: None, seed }),
            tables,
            counts: TierCounts::default(),
            requests: 0,
            fills: 0,
            others: 0,
            recorded: None,
            writes_back,
        }
    }

    /// Restores the frames of an earlier session, in the order of their last requests.
    pub fn restore(&mut self, mut entries: Vec<Entry>) {
        entries.sort_unstable_by_key(|entry| entry.order);
        let mut slots = vec![false; self.tables.slots.len()];
        for entry in entries {
            let page = PageId(entry.page);
            let range = entry.offset..entry.offset.saturating_add(u64::from(entry.length));
            let Some(is_taken) = slots.get_mut(entry.slot as usize) else { continue };
            if *is_taken || self.tables.table.get(page).is_some() {
                continue;
            }
            let Some(frame) = self.tables.free_frame() else { break };
            *is_taken = true;
            let mark = Mark::from_bits(entry.mark);
            let access = self.access(page, mark);
            let ghost_hit = self.policy.miss(&access);
            self.tables.table.insert(page, frame.0);
            self.policy.admit(frame, &access, ghost_hit);
            if mark.is_write() {
                self.policy.cleaned(frame);
            }
            self.tables.overwrite(range, None);
            let Entry { offset, checksum, length, slot, .. } = entry;
            self.tables.by_place.insert(PageId(offset / self.tables.unit), frame.0);
            if let Some(kept) = self.tables.frames.get_mut(frame.index()) {
                let copy = Copy { offset, checksum, length, slot };
                let (order, flags) = (self.requests, RESIDENT | HAS_COPY);
                *kept = Frame { page: page.0, copy, order, fill: 0, mark: entry.mark, flags };
            }
        }
        let used = slots.iter().rposition(|is_taken| *is_taken).map_or(0, |last| last + 1);
        self.tables.fresh_slots = used as u32;
        let unused = (0..used).filter(|slot| slots.get(*slot) == Some(&false));
        self.tables.free_slots.extend(unused.map(|slot| slot as u32));
    }

    pub fn access(&mut self, page: PageId, mark: Mark) -> Access {
        self.requests += 1;
        Access { page, mark, now: self.policy.tick(), next: NEVER, next_read: NEVER }
    }

    /// Notifies the policy of a request. Returns the page's frame, if it is kept, and whether it
    /// was kept before.
    pub fn request(&mut self, tag: Tag, mark: Mark) -> (Option<FrameId>, bool) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push((tag.page, mark));
        }
        let access = self.access(tag.page, mark);
        let found = self.tables.table.get(tag.page).map(FrameId);
        let frame = match found {
            Some(frame) => {
                let Some(entry) = self.tables.frames.get_mut(frame.index()) else {
                    return (None, false);
                };
                let was_cooling = entry.flags & COOLING != 0;
                entry.flags &= !COOLING;
                self.policy.hit(frame, &access, was_cooling);
                Some(frame)
            }
            None => self.miss(&access),
        };
        if let Some(frame) = frame {
            if let Some(entry) = self.tables.frames.get_mut(frame.index()) {
                (entry.order, entry.mark) = (self.requests, mark.to_bits());
            }
            match (mark.is_write(), self.writes_back) {
                (true, true) => self.tables.set_written(frame, true),
                (true, false) => self.policy.cleaned(frame),
                (false, _) => {}
            }
        }
        (frame, found.is_some())
    }

    fn miss(&mut self, access: &Access) -> Option<FrameId> {
        if !self.writes_back && !self.policy.wants(access) {
            self.counts.bypasses += 1;
            return None;
        }
        let ghost_hit = self.policy.miss(access);
        let frame = match self.tables.free_frame() {
            Some(frame) => frame,
            None => {
                self.policy.evict(&mut self.tables, 1, Some((access.page, ghost_hit)));
                // Without a victim, which would be a fault of the policy, the page is not kept.
                self.tables.free_frame()?
            }
        };
        self.tables.table.insert(access.page, frame.0);
        if let Some(entry) = self.tables.frames.get_mut(frame.index()) {
            *entry = Frame { page: access.page.0, flags: RESIDENT, ..Frame::default() };
        }
        self.policy.admit(frame, access, ghost_hit);
        Some(frame)
    }

    /// Begins a read of a page at `range`.
    pub fn read(&mut self, tag: Tag, range: Range<u64>) -> PageLocation {
        let (frame, was_kept) = self.request(tag, Mark::READ);
        self.counts.reads += 1;
        self.counts.read_hits += u64::from(was_kept);
        let Some(frame) = frame else { return PageLocation::Storage(None) };
        if let Some(copy) = self.tables.copy_of(frame)
            && copy.offset == range.start
            && u64::from(copy.length) == range.end - range.start
            && self.tables.pin(copy.slot)
        {
            return PageLocation::Cache(Found { slot: copy.slot, checksum: copy.checksum, frame });
        }
        PageLocation::Storage(self.begin_fill(frame))
    }

    /// Returns the copy of a page at `range`, if there is one, without notifying the policy.
    pub fn peek(&mut self, page: PageId, range: Range<u64>) -> Option<Found> {
        let frame = self.tables.table.get(page).map(FrameId)?;
        let copy = self.tables.copy_of(frame)?;
        let is_it = copy.offset == range.start && u64::from(copy.length) == range.end - range.start;
        let is_it = is_it && self.tables.pin(copy.slot);
        is_it.then_some(Found { slot: copy.slot, checksum: copy.checksum, frame })
    }

    /// Forgets a page that is no longer needed.
    pub fn forget(&mut self, page: PageId) {
        let Some(frame) = self.tables.table.get(page).map(FrameId) else { return };
        self.tables.vacate(frame);
        self.policy.forget(frame);
    }

    /// Returns the kept pages with these numbers.
    pub fn pages_within(&self, pages: Range<u64>) -> Vec<PageId> {
        let frames = &self.tables.frames;
        if pages.end.saturating_sub(pages.start) <= frames.len() as u64 {
            return pages.map(PageId).collect();
        }
        let kept = frames.iter().filter(|frame| frame.flags & RESIDENT != 0);
        kept.map(|frame| PageId(frame.page)).filter(|page| pages.contains(&page.0)).collect()
    }

    /// Begins a write of a page to `range`; [`Cache::wrote`] ends it. The copy to be kept is a
    /// fill, like that of a page read.
    pub fn write(&mut self, tag: Tag, range: Range<u64>) -> (Write, Option<Fill>) {
        let mark = Mark::WRITE.with_reason(tag.reason);
        let (frame, was_kept) = self.request(tag, mark);
        self.counts.writes += 1;
        self.counts.write_hits += u64::from(was_kept);
        let number = self.fills.wrapping_add(1);
        let write = Write { page: tag.page, number: frame.map(|_| number), range };
        self.tables.overwrite(write.range.clone(), frame);
        let fill = frame.and_then(|frame| self.begin_fill(frame));
        (write, fill)
    }

    /// Ends a write to storage. A concurrent read of the page may have returned a mixture of its
    /// former and its present contents.
    pub fn wrote(&mut self, write: &Write) {
        let frame = self.tables.table.get(write.page).map(FrameId);
        self.tables.overwrite(write.range.clone(), frame);
        let Some(frame) = frame else { return };
        let Some(entry) = self.tables.frames.get_mut(frame.index()) else { return };
        if Some(entry.fill) != write.number {
            self.fills = self.fills.wrapping_add(1);
            entry.fill = self.fills;
            self.tables.drop_copy(frame);
        }
    }

    /// Records a write of anything but a page to `range`, before and after it, or a truncation.
    pub fn overwrite(&mut self, range: Range<u64>) {
        self.others += 1;
        self.tables.overwrite(range, None);
    }

    /// Drops copies of misread bytes in `range`; returns `true` if there were any.
    pub fn distrust(&mut self, range: Range<u64>) -> bool {
        let any = self.tables.overwrite(range, None);
        self.counts.mismatches += u64::from(any);
        any
    }

    /// Begins to fill the frame again: drops its outdated copy and takes a slot.
    pub fn begin_fill(&mut self, frame: FrameId) -> Option<Fill> {
        self.tables.drop_copy(frame);
        self.fills = self.fills.wrapping_add(1);
        let number = self.fills;
        self.tables.frames.get_mut(frame.index())?.fill = number;
        let slot = self.tables.free_slot()?;
        self.tables.pin(slot);
        Some(Fill { slot, frame, number, others: self.others })
    }

    /// Releases a copy after it was read.
    pub fn unpin(&mut self, found: Found, is_sound: bool) {
        if is_sound {
            self.counts.served += 1;
        } else {
            self.counts.mismatches += 1;
            let is_there = |copy: Copy| (copy.slot, copy.checksum) == (found.slot, found.checksum);
            if self.tables.copy_of(found.frame).is_some_and(is_there) {
                self.tables.drop_copy(found.frame);
            }
        }
        self.tables.unpin(found.slot);
    }

    /// Ends a fill. The copy of `range` has this checksum; `None` if it could not be written.
    pub fn filled(&mut self, fill: Fill, range: Range<u64>, checksum: Option<u64>) {
        let Fill { slot, frame, number, others } = fill;
        let is_newest = |entry: &&mut Frame| entry.fill == number && entry.flags & RESIDENT != 0;
        let length = u32::try_from(range.end - range.start).unwrap_or(0);
        match (checksum, self.tables.frames.get_mut(frame.index()).filter(is_newest)) {
            (Some(checksum), Some(entry))
                if others == self.others && self.tables.dirty.is_clean(range.clone()) =>
            {
                entry.copy = Copy { offset: range.start, checksum, length, slot };
                entry.flags |= HAS_COPY;
                self.counts.fills += 1;
                self.tables.overwrite(range.clone(), Some(frame));
                self.tables.by_place.insert(PageId(range.start / self.tables.unit), frame.0);
            }
            _ => self.tables.release(slot),
        }
        self.tables.unpin(slot);
    }

    /// Limits the file, which cannot grow further, to `slots`. Returns `true` if the limit is lower
    /// than before.
    pub fn limit_slots(&mut self, slots: u32) -> bool {
        let is_less = slots < self.tables.usable_slots;
        self.tables.usable_slots = self.tables.usable_slots.min(slots);
        self.tables.fresh_slots = self.tables.fresh_slots.min(slots);
        is_less
    }

    /// Drops all copies.
    pub fn clear(&mut self) {
        for frame in 0..self.tables.frames.len() as u32 {
            self.tables.drop_copy(FrameId(frame));
        }
        self.others += 1;
    }

    /// Returns the directory, to be kept for the next session.
    pub fn entries(&self) -> Vec<Entry> {
        let kept = self.tables.frames.iter().filter(|frame| frame.flags & HAS_COPY != 0);
        let entry = |frame: &Frame| {
            let Copy { offset, checksum, length, slot } = frame.copy;
            let Frame { page, order, mark, .. } = *frame;
            Entry { page, offset, checksum, order, length, slot, mark }
        };
        kept.map(entry).collect()
    }

    pub fn counts(&self) -> TierCounts {
        TierCounts {
            frames: self.tables.frames.len() as u64,
            resident: self.tables.table.len() as u64,
            evictions: self.tables.evictions,
            memory_bytes: self.bytes(),
            dirty: self.tables.dirty.len() as u64,
            ..self.counts
        }
    }

    fn bytes(&self) -> u64 {
        let tables = &self.tables;
        let tables = tables.frames.len() * size_of::<Frame>()
            + tables.slots.len() * size_of::<Slot>()
            + tables.table.bytes()
            + tables.by_place.bytes()
            + tables.dirty.len() * EXTENT_BYTES as usize;
        (tables + self.policy.bytes()) as u64
    }

    /// Records requests from now on, in the order in which the policy gets them.
    pub fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    pub fn recorded(&mut self) -> Vec<(PageId, Mark)> {
        self.recorded.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Verifies the invariants between requests, and those of the policy.
    pub fn check(&self) -> Result<(), String> {
        let resident = |(_, frame): &(usize, &Frame)| frame.flags & RESIDENT != 0;
        let all = self.tables.frames.iter().enumerate().filter(resident);
        let resident: Vec<FrameId> = all.map(|(at, _)| FrameId(at as u32)).collect();
        if resident.len() != self.tables.table.len() {
            return Err("the table has another number of pages than the frames".to_string());
        }
        let mut owners = vec![0u8; self.tables.slots.len()];
        let fresh = self.tables.fresh_slots as usize..self.tables.usable_slots as usize;
        let is_clean = |frame: &&FrameId| {
            self.tables.frames.get(frame.index()).is_some_and(|entry| entry.flags & DIRTY == 0)
        };
        let clean = resident.iter().filter(is_clean);
        let copies = clean.filter_map(|frame| self.tables.copy_of(*frame));
        let extents = self.tables.dirty.all().map(|extent| extent.copy);
        let used = copies.chain(extents).map(|copy| copy.slot as usize);
        let free = self.tables.free_slots.iter().map(|slot| *slot as usize);
        for slot in used.chain(free).chain(fresh) {
            match owners.get_mut(slot) {
                Some(count) if *count == 0 => *count = 1,
                _ => return Err(format!("slot {slot} has two owners, or does not exist")),
            }
        }
        let is_lost = |(at, count): (usize, &u8)| {
            let is_usable = at < self.tables.usable_slots as usize;
            let slot = self.tables.slots.get(at);
            *count == 0 && is_usable && slot.is_some_and(|s| s.pins == 0 && !s.is_mapped)
        };
        if let Some(slot) = owners.iter().enumerate().position(is_lost) {
            return Err(format!("slot {slot} is nobody's"));
        }
        for frame in &resident {
            let Some(entry) = self.tables.frames.get(frame.index()) else { continue };
            if self.tables.table.get(PageId(entry.page)) != Some(frame.0) {
                return Err(format!("page {} is not found in {frame:?}", entry.page));
            }
            let Some(copy) = self.tables.copy_of(*frame) else { continue };
            if entry.flags & DIRTY != 0 {
                let extent = self.tables.dirty.get(copy.offset);
                if extent.is_none_or(|e| (e.owner, e.copy.slot) != (frame.0, copy.slot)) {
                    return Err(format!("the copy in {frame:?} is no extent"));
                }
                continue;
            }
            let place = PageId(copy.offset / self.tables.unit);
            if self.tables.by_place.get(place) != Some(frame.0) {
                return Err(format!("the copy in {frame:?} is not found by its place"));
            }
        }
        self.tables.dirty.check()?;
        self.policy.check(&resident)
    }
}
