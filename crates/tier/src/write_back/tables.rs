//! Steps in the tables of a write-back tier, each atomic under the mutex.

use std::ops::Range;

use millpond_base::{FrameId, Mark, PageId};
use millpond_device::Tag;

use crate::cache::{Cache, Fill};
use crate::copy::Copy;
use crate::directory::Entry;
use crate::dirty::{BUSY, Extent, NO_OWNER, OVERWRITTEN, PINNED};
use crate::frames::{DIRTY, Frame, Frames, HAS_COPY, RESIDENT};
use crate::write_back::format::{Kind, Record};

/// A page that is being written to a slot.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    page: PageId,
    frame: Option<FrameId>,
    number: u32,
    order: u64,
    mark: u32,
}

/// Location of a part of a request.
pub(super) enum Whereabouts {
    /// In this slot, with this checksum; the slot is pinned. `frame` owns the clean copy; without
    /// one, storage lacks the copy.
    Slot { slot: u32, checksum: u64, frame: Option<FrameId> },
    /// In the cache in part.
    Both,
    /// On storage; the bytes read may be kept.
    Storage(Option<Fill>),
}

/// Obstacle to a write to a range.
pub(super) enum Overlap {
    /// Nothing stands in the way.
    None,
    /// An extent in it is being written to storage.
    Busy,
    /// The listed extents reach beyond the range.
    Beyond(Vec<u64>),
}

impl Frames {
    /// Removes the extent at `place`: another version is there, or storage has it.
    pub(super) fn remove_extent(&mut self, place: u64) -> Option<Extent> {
        let slot = self.dirty.get(place)?.copy.slot;
        let is_mapped = self.slots.get(slot as usize).is_some_and(|slot| slot.is_mapped);
        let extent = self.dirty.remove(place, is_mapped)?;
        if let Some(frame) = self.frames.get_mut(extent.owner as usize) {
            frame.flags &= !(HAS_COPY | DIRTY);
        }
        self.release(slot);
        Some(extent)
    }

    fn record(&mut self, place: u64) -> Record {
        let Some(extent) = self.dirty.get(place).copied() else { return Record::gone(place) };
        let Copy { offset, checksum, length, slot } = extent.copy;
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.is_mapped = true;
        }
        let kind = if extent.has(PINNED) { Kind::Pinned } else { Kind::Dirty };
        let Extent { page, order, mark, .. } = extent;
        Record { kind, entry: Entry { page, offset, checksum, order, length, slot, mark } }
    }
}

impl Cache {
    /// Restores the copies of an earlier session.
    pub(super) fn restore_back(&mut self, mut records: Vec<Record>) {
        records.sort_unstable_by_key(|record| record.entry.order);
        let mut used = vec![false; self.tables.slots.len()];
        for Record { kind, entry } in records {
            if let Some(slot) = used.get_mut(entry.slot as usize) {
                *slot = true;
            }
            let Entry { page, offset, checksum, length, slot, mark, .. } = entry;
            let copy = Copy { offset, checksum, length, slot };
            let frame = match kind {
                Kind::Gone => continue,
                Kind::Pinned => None,
                Kind::Clean | Kind::Dirty => self.readmit(PageId(page), kind, mark),
            };
            self.requests = self.requests.max(entry.order);
            let order = self.requests;
            if kind == Kind::Clean {
                match frame {
                    Some(frame) => self.set_copy(frame, copy, HAS_COPY),
                    None => self.tables.free_slots.push(slot),
                }
                continue;
            }
            let owner = frame.map_or(NO_OWNER, |frame| frame.0);
            let flags = if kind == Kind::Pinned { PINNED } else { 0 };
            if let Some(slot) = self.tables.slots.get_mut(slot as usize) {
                slot.is_mapped = true;
            }
            if let Some(frame) = frame {
                self.tables.drop_copy(frame);
                self.set_copy(frame, copy, HAS_COPY | DIRTY);
            }
            self.tables.dirty.insert(Extent { copy, page, order, mark, owner, flags });
        }
        let end = used.iter().rposition(|is_used| *is_used).map_or(0, |last| last + 1);
        self.tables.fresh_slots = end as u32;
        let unused = (0..end).filter(|slot| used.get(*slot) == Some(&false));
        self.tables.free_slots.extend(unused.map(|slot| slot as u32));
        // The directory consists of these records already.
        self.tables.dirty.take_changes();
    }

    fn set_copy(&mut self, frame: FrameId, copy: Copy, flags: u8) {
        if flags & DIRTY == 0 {
            let place = PageId(copy.offset / self.tables.unit);
            self.tables.by_place.insert(place, frame.0);
        }
        if let Some(entry) = self.tables.frames.get_mut(frame.index()) {
            entry.copy = copy;
            entry.flags |= flags;
        }
    }

    /// Admits a page that was kept before. `None` if there is no room, or if the page of a clean
    /// copy has another copy.
    fn readmit(&mut self, page: PageId, kind: Kind, mark: u32) -> Option<FrameId> {
        let found = self.tables.table.get(page).map(FrameId);
        if let Some(frame) = found.filter(|_| kind == Kind::Dirty) {
            self.tables.set_written(frame, true);
            return Some(frame);
        }
        let frame = if found.is_some() { None } else { self.tables.free_frame() }?;
        let mark = Mark::from_bits(mark);
        let access = self.access(page, mark);
        let ghost_hit = self.policy.miss(&access);
        self.tables.table.insert(page, frame.0);
        self.policy.admit(frame, &access, ghost_hit);
        if let Some(entry) = self.tables.frames.get_mut(frame.index()) {
            let (order, mark) = (self.requests, mark.to_bits());
            *entry = Frame { page: page.0, order, mark, flags: RESIDENT, ..Frame::default() };
        }
        self.tables.set_written(frame, kind == Kind::Dirty);
        if kind == Kind::Clean && mark.is_write() {
            self.policy.cleaned(frame);
        }
        Some(frame)
    }

    /// Begins a read of a page at `range`.
    pub(super) fn read_back(&mut self, tag: Tag, range: &Range<u64>) -> Whereabouts {
        let (frame, was_kept) = self.request(tag, Mark::READ);
        self.counts.reads += 1;
        self.counts.read_hits += u64::from(was_kept);
        let found = self.find(range);
        if !matches!(found, Whereabouts::Storage(_)) {
            return found;
        }
        let Some(frame) = frame else { return found };
        if let Some(copy) = self.tables.copy_of(frame)
            && copy.offset == range.start
            && u64::from(copy.length) == range.end - range.start
            && self.tables.pin(copy.slot)
        {
            let Copy { slot, checksum, .. } = copy;
            return Whereabouts::Slot { slot, checksum, frame: Some(frame) };
        }
        // A dirty copy is of the page at another place, so it stays.
        let is_dirty = |entry: &Frame| entry.flags & DIRTY != 0;
        if self.tables.frames.get(frame.index()).is_some_and(is_dirty) {
            return found;
        }
        Whereabouts::Storage(self.begin_fill(frame))
    }

    /// Returns the location of these bytes, whichever page they belong to.
    pub(super) fn find(&mut self, range: &Range<u64>) -> Whereabouts {
        let Some(extent) = self.tables.dirty.within(range.clone()).next().copied() else {
            return Whereabouts::Storage(None);
        };
        if extent.range() == *range && self.tables.pin(extent.copy.slot) {
            let Copy { slot, checksum, .. } = extent.copy;
            return Whereabouts::Slot { slot, checksum, frame: None };
        }
        Whereabouts::Both
    }

    /// Returns the extents that overlap `range`, and pins their slots.
    pub(super) fn pin_within(&mut self, range: &Range<u64>) -> Vec<Copy> {
        let found: Vec<Copy> =
            self.tables.dirty.within(range.clone()).map(|extent| extent.copy).collect();
        found.into_iter().filter(|copy| self.tables.pin(copy.slot)).collect()
    }

    pub(super) fn unpin_slot(&mut self, slot: u32) {
        self.tables.unpin(slot);
    }

    /// Drops a clean copy with a wrong checksum.
    pub(super) fn lose_copy(&mut self, frame: FrameId, slot: u32) {
        self.counts.mismatches += 1;
        let is_clean = |entry: &Frame| entry.flags & DIRTY == 0;
        let is_it = self.tables.copy_of(frame).is_some_and(|copy| copy.slot == slot);
        if is_it && self.tables.frames.get(frame.index()).is_some_and(is_clean) {
            self.tables.drop_copy(frame);
        }
    }

    /// Begins a write of a page.
    pub(super) fn begin_write(&mut self, tag: Tag) -> Incoming {
        let mark = Mark::WRITE.with_reason(tag.reason);
        let (frame, was_kept) = self.request(tag, mark);
        self.counts.writes += 1;
        self.counts.write_hits += u64::from(was_kept);
        self.fills = self.fills.wrapping_add(1);
        let number = self.fills;
        if let Some(entry) = frame.and_then(|f| self.tables.frames.get_mut(f.index())) {
            entry.fill = number;
        }
        Incoming { page: tag.page, frame, number, order: self.requests, mark: mark.to_bits() }
    }

    /// Takes a slot for a write, pinned; with `even_the_last`, it may be the one reserved for the
    /// beginning of the device.
    pub(super) fn take_slot(&mut self, even_the_last: bool) -> Option<u32> {
        let tables = &mut self.tables;
        let slot = if even_the_last { tables.any_free_slot() } else { tables.free_slot() }?;
        self.tables.pin(slot);
        Some(slot)
    }

    /// Gives back a slot after a failed write.
    pub(super) fn give_slot(&mut self, slot: u32) {
        self.tables.release(slot);
        self.tables.unpin(slot);
    }

    /// Records that `slot`, taken for the bytes of `range`, has them now. `page` is `None` for the
    /// beginning of the device.
    pub(super) fn install(
        &mut self,
        page: Option<&Incoming>,
        range: &Range<u64>,
        slot: u32,
        checksum: u64,
    ) {
        let inside: Vec<u64> =
            self.tables.dirty.within(range.clone()).map(|extent| extent.copy.offset).collect();
        for place in inside {
            self.counts.spared += u64::from(self.tables.remove_extent(place).is_some());
        }
        self.tables.overwrite(range.clone(), None);
        let length = u32::try_from(range.end - range.start).unwrap_or(0);
        let copy = Copy { offset: range.start, checksum, length, slot };
        let none = Extent { copy, page: 0, order: 0, mark: 0, owner: NO_OWNER, flags: PINNED };
        let extent = page.map_or(none, |page| {
            let Incoming { page: id, frame, number, order, mark } = *page;
            let is_it = |entry: &Frame| {
                entry.fill == number && entry.flags & RESIDENT != 0 && entry.page == id.0
            };
            let entry = frame.and_then(|f| self.tables.frames.get(f.index()));
            let owner = frame.filter(|_| entry.is_some_and(is_it));
            let owner = owner.map_or(NO_OWNER, |frame| frame.0);
            Extent { copy, page: id.0, order, mark, owner, flags: 0 }
        });
        if extent.owner != NO_OWNER {
            let frame = FrameId(extent.owner);
            self.tables.drop_copy(frame);
            self.set_copy(frame, copy, HAS_COPY | DIRTY);
        }
        self.tables.dirty.insert(extent);
        self.tables.unpin(slot);
    }

    /// Records that a requested page is written to storage, since there is no slot for it.
    pub(super) fn passes(&mut self, page: &Incoming) {
        let entry = page.frame.and_then(|frame| self.tables.frames.get(frame.index()));
        if let Some(frame) = page.frame
            && entry.is_some_and(|entry| entry.fill == page.number && entry.page == page.page.0)
        {
            self.tables.drop_copy(frame);
            self.tables.set_written(frame, false);
            self.policy.cleaned(frame);
        }
    }

    /// Returns the obstacle to a write to `range`; for `to_storage` marks the extents inside it.
    pub(super) fn overlap(&mut self, range: &Range<u64>, to_storage: bool) -> Overlap {
        // Even an extent that is gone by now counts: its write must not land after this one.
        let is_busy = to_storage && self.tables.dirty.is_being_written(range);
        if is_busy {
            return Overlap::Busy;
        }
        let (mut inside, mut beyond) = (Vec::new(), Vec::new());
        for extent in self.tables.dirty.within(range.clone()) {
            let own = extent.range();
            let is_inside = range.start <= own.start && own.end <= range.end;
            if extent.has(BUSY) && !is_inside {
                return Overlap::Busy;
            }
            let list = if is_inside { &mut inside } else { &mut beyond };
            list.push(own.start);
        }
        if !beyond.is_empty() {
            return Overlap::Beyond(beyond);
        }
        for place in inside.into_iter().filter(|_| to_storage) {
            if let Some(extent) = self.tables.dirty.get_mut(place) {
                extent.flags |= OVERWRITTEN;
            }
        }
        Overlap::None
    }

    /// Ends a write to storage at `range`, successful or not.
    pub(super) fn overwritten(&mut self, range: &Range<u64>, was_written: bool) {
        let marked = self.tables.dirty.within(range.clone());
        let marked: Vec<u64> = marked
            .filter(|extent| extent.has(OVERWRITTEN))
            .map(|extent| extent.copy.offset)
            .collect();
        for place in marked {
            if was_written {
                self.counts.spared += u64::from(self.tables.remove_extent(place).is_some());
            } else if let Some(extent) = self.tables.dirty.get_mut(place) {
                extent.flags &= !OVERWRITTEN;
                if extent.owner == NO_OWNER {
                    self.tables.dirty.retire(place);
                }
            }
        }
    }

    /// Discards the copies in `range`, which are no longer needed.
    pub(super) fn discard(&mut self, range: &Range<u64>) {
        let unneeded = self.tables.dirty.within(range.clone()).filter(|extent| {
            let own = extent.range();
            let is_inside = range.start <= own.start && own.end <= range.end;
            is_inside && !extent.has(BUSY | OVERWRITTEN | PINNED)
        });
        let places: Vec<u64> = unneeded.map(|extent| extent.copy.offset).collect();
        for place in places {
            self.counts.spared += u64::from(self.tables.remove_extent(place).is_some());
        }
    }

    /// Takes retiring extents, in the order of their places; those that moved only if `moved_too`
    /// is set. They are pinned, and busy until [`Cache::destaged`].
    pub(super) fn take_retiring(&mut self, most: usize, moved_too: bool) -> Vec<Extent> {
        let mut taken = self.tables.dirty.take_retiring(most, moved_too);
        taken.sort_unstable_by_key(|extent| extent.copy.offset);
        taken.retain(|extent| {
            let is_pinned = self.tables.pin(extent.copy.slot);
            if !is_pinned {
                self.tables.dirty.end_writing(extent.copy.offset);
                self.not_busy(extent.copy.offset);
            }
            is_pinned
        });
        taken
    }

    /// Takes these idle extents, retiring or not.
    pub(super) fn take_extents(&mut self, places: &[u64]) -> Vec<Extent> {
        let mut taken = Vec::new();
        for place in places {
            let Some(extent) = self.tables.dirty.get(*place).copied() else { continue };
            if extent.has(BUSY | OVERWRITTEN | PINNED) || !self.tables.pin(extent.copy.slot) {
                continue;
            }
            self.tables.dirty.begin_writing(*place);
            taken.push(extent);
        }
        taken
    }

    fn not_busy(&mut self, place: u64) {
        let Some(extent) = self.tables.dirty.get_mut(place) else { return };
        extent.flags &= !BUSY;
        if extent.owner == NO_OWNER {
            self.tables.dirty.retire(place);
        }
    }

    /// Ends the write of an extent to storage, successful or not.
    pub(super) fn destaged(&mut self, extent: &Extent, was_written: bool) {
        let Copy { offset, slot, .. } = extent.copy;
        self.tables.dirty.end_writing(offset);
        // Another version may have replaced it in the meantime.
        let is_it = |now: &Extent| now.copy.slot == slot;
        let now = self.tables.dirty.get(offset).copied().filter(is_it);
        match now {
            Some(now) if was_written => {
                self.counts.destaged += 1;
                // A read of storage in progress may return the old bytes.
                self.others += 1;
                self.tables.remove_extent(offset);
                if let Some(frame) = Some(FrameId(now.owner)).filter(|f| f.0 != NO_OWNER) {
                    self.tables.set_written(frame, false);
                    self.policy.cleaned(frame);
                }
            }
            Some(_) => self.not_busy(offset),
            None => {}
        }
        self.tables.unpin(slot);
    }

    /// Returns records of the changes, and the slots that are free once the records are durable.
    pub(super) fn take_changes(&mut self) -> (Vec<Record>, Vec<u32>) {
        let (places, slots) = self.tables.dirty.take_changes();
        (places.into_iter().map(|place| self.tables.record(place)).collect(), slots)
    }

    /// Returns the whole directory, and the slots that are free once it is durable.
    pub(super) fn directory(&mut self, with_clean: bool) -> (Vec<Record>, Vec<u32>) {
        let (_, slots) = self.tables.dirty.take_changes();
        let places: Vec<u64> = self.tables.dirty.all().map(|e| e.copy.offset).collect();
        let mut records: Vec<Record> =
            places.into_iter().map(|place| self.tables.record(place)).collect();
        if with_clean {
            let is_clean = |frame: &&Frame| frame.flags & (HAS_COPY | DIRTY) == HAS_COPY;
            records.extend(self.tables.frames.iter().filter(is_clean).map(|frame| {
                let Copy { offset, checksum, length, slot } = frame.copy;
                let Frame { page, order, mark, .. } = *frame;
                let entry = Entry { page, offset, checksum, order, length, slot, mark };
                Record { kind: Kind::Clean, entry }
            }));
        }
        (records, slots)
    }

    /// Frees these slots: the durable directory does not name them any more.
    pub(super) fn unmap(&mut self, slots: Vec<u32>) {
        slots.into_iter().for_each(|slot| self.tables.unmap(slot));
    }
}
