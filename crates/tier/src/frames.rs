//! Frames and slots of a second tier, their contents, and the host of the policy.

use std::ops::Range;

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, Host, OfferOutcome, PageState, RefusalReason};
use millpond_policies::parts::PageMap;

use crate::copy::Copy;
use crate::directory::Layout;
use crate::dirty::Dirty;

/// Maximum number of slots beyond one for each frame.
const SPARE_SLOTS: u32 = 256;
/// Frames of the smallest tier.
pub(super) const FRAMES_MIN: u32 = 8;

pub(super) const RESIDENT: u8 = 1;
pub(super) const COOLING: u8 = 2;
/// The frame has a copy.
pub(super) const HAS_COPY: u8 = 4;
/// The page was written since it was admitted, for a policy that distinguishes writes.
pub(super) const WRITTEN: u8 = 8;
/// Storage lacks this copy, which is in `Frames::dirty`, too.
pub(super) const DIRTY: u8 = 16;

#[derive(Clone, Copy, Default)]
pub(super) struct Frame {
    pub(super) page: u64,
    pub(super) copy: Copy,
    /// Order of the page's last request.
    pub(super) order: u64,
    /// Number of the last fill that began.
    pub(super) fill: u32,
    pub(super) mark: u32,
    pub(super) flags: u8,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    /// Reads and writes of it in progress.
    pub(super) pins: u16,
    /// Set if the slot becomes free once it is neither pinned nor mapped.
    pub(super) is_over: bool,
    /// Set if the directory on the cache's device names the slot, or may.
    pub(super) is_mapped: bool,
}

/// Frames, slots and their contents, without the policy, so that the two can be borrowed side by
/// side.
pub(super) struct Frames {
    pub(super) frames: Vec<Frame>,
    pub(super) slots: Vec<Slot>,
    pub(super) table: PageMap,
    /// Frames with copies, by the places of their pages, in units.
    pub(super) by_place: PageMap,
    pub(super) unit: u64,
    /// Units per slot.
    pub(super) slot_units: u64,
    pub(super) fresh_frames: u32,
    pub(super) free_frames: Vec<u32>,
    pub(super) fresh_slots: u32,
    /// Slots for which the file has room.
    pub(super) usable_slots: u32,
    pub(super) free_slots: Vec<u32>,
    pub(super) evictions: u64,
    /// Slots reserved for writes without another place.
    pub(super) reserved_slots: usize,
    /// Counts how often a slot's last pending I/O completed.
    pub(super) arrivals: u64,
    /// The value of [`Frames::arrivals`] that the waiting thread has seen; it waits until the
    /// counter moves past it.
    pub(super) awaited: Option<u64>,
    /// Data that storage lacks; empty in a write-through tier.
    pub(super) dirty: Dirty,
}

/// Returns the number of frames of a tier that has room for `slots` copies.
pub(super) fn frames_of(slots: u32) -> u32 {
    slots - SPARE_SLOTS.min(slots / 8)
}

/// Returns the number of slots without a frame in a write-back tier, for copies that wait for
/// storage.
pub(super) fn spare_of(slots: u32) -> u32 {
    (slots / 8).max(4)
}

/// Bytes of memory for each frame, without the policy.
pub(super) const FRAME_BYTES: u64 =
    size_of::<Frame>() as u64 + size_of::<Slot>() as u64 + 2 * TABLE_BYTES;
/// Maximum bytes of a hash table for each entry.
const TABLE_BYTES: u64 = 32;

impl Frames {
    /// Returns empty tables for `frames` pages.
    pub(super) fn new(layout: &Layout, frames: u32) -> Frames {
        let entries = frames as usize;
        let unit = u64::from(layout.unit.max(1));
        Frames {
            frames: vec![Frame::default(); entries],
            slots: vec![Slot::default(); layout.slots as usize],
            table: PageMap::new(None, entries),
            by_place: PageMap::new(None, entries),
            unit,
            slot_units: u64::from(layout.slot_bytes).div_ceil(unit),
            fresh_frames: 0,
            free_frames: Vec::new(),
            fresh_slots: 0,
            usable_slots: layout.slots,
            free_slots: Vec::new(),
            evictions: 0,
            reserved_slots: 0,
            arrivals: 0,
            awaited: None,
            dirty: Dirty::new(u64::from(layout.slot_bytes)),
        }
    }

    pub(super) fn copy_of(&self, frame: FrameId) -> Option<Copy> {
        let frame = self.frames.get(frame.index())?;
        (frame.flags & HAS_COPY != 0).then_some(frame.copy)
    }

    /// Drops the frame's copy, since its page is elsewhere.
    pub(super) fn drop_copy(&mut self, frame: FrameId) {
        self.drop_copy_of(frame, true);
    }

    /// Drops the frame's copy; the page either `moved` or was evicted.
    fn drop_copy_of(&mut self, frame: FrameId, moved: bool) {
        let Some(entry) = self.frames.get_mut(frame.index()) else { return };
        if entry.flags & HAS_COPY == 0 {
            return;
        }
        if entry.flags & DIRTY != 0 {
            entry.flags &= !(HAS_COPY | DIRTY);
            let place = entry.copy.offset;
            return self.dirty.orphan(place, moved);
        }
        entry.flags &= !HAS_COPY;
        let Copy { offset, slot, .. } = entry.copy;
        self.by_place.remove(PageId(offset / self.unit));
        self.release(slot);
    }

    /// Records that the frame's page was written, or that storage has it.
    pub(super) fn set_written(&mut self, frame: FrameId, is_written: bool) {
        let Some(entry) = self.frames.get_mut(frame.index()) else { return };
        entry.flags = if is_written { entry.flags | WRITTEN } else { entry.flags & !WRITTEN };
    }

    pub(super) fn release(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        if entry.pins > 0 || entry.is_mapped {
            entry.is_over = true;
        } else {
            self.free_slots.push(slot);
        }
    }

    pub(super) fn pin(&mut self, slot: u32) -> bool {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return false };
        let Some(pins) = entry.pins.checked_add(1) else { return false };
        entry.pins = pins;
        true
    }

    pub(super) fn unpin(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        debug_assert!(entry.pins > 0, "a slot is unpinned as often as it was pinned");
        entry.pins = entry.pins.saturating_sub(1);
        if entry.pins > 0 {
            return;
        }
        self.arrivals += 1;
        if entry.is_over && !entry.is_mapped {
            entry.is_over = false;
            self.free_slots.push(slot);
        }
    }

    /// Returns `true` if a slot is being read or written.
    pub(super) fn is_under_way(&self) -> bool {
        self.slots.iter().any(|slot| slot.pins > 0)
    }

    /// Records that the directory on the cache's device does not name the slot any more.
    pub(super) fn unmap(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        entry.is_mapped = false;
        if entry.pins == 0 && entry.is_over {
            entry.is_over = false;
            self.free_slots.push(slot);
        }
    }

    /// Returns the number of slots that can be taken.
    pub(super) fn slots_left(&self) -> usize {
        self.free_slots.len() + self.usable_slots.saturating_sub(self.fresh_slots) as usize
    }

    /// Takes a free slot, except for the reserved ones.
    pub(super) fn free_slot(&mut self) -> Option<u32> {
        (self.slots_left() > self.reserved_slots).then(|| self.any_free_slot()).flatten()
    }

    pub(super) fn any_free_slot(&mut self) -> Option<u32> {
        while let Some(slot) = self.free_slots.pop() {
            if slot < self.usable_slots {
                return Some(slot);
            }
        }
        let slot = self.fresh_slots;
        self.fresh_slots += u32::from(slot < self.usable_slots);
        (slot < self.fresh_slots).then_some(slot)
    }

    /// Takes a frame without a page; fresh ones first, in ascending order.
    pub(super) fn free_frame(&mut self) -> Option<FrameId> {
        if (self.fresh_frames as usize) < self.frames.len() {
            self.fresh_frames += 1;
            return Some(FrameId(self.fresh_frames - 1));
        }
        self.free_frames.pop().map(FrameId)
    }

    /// Removes the frame's page.
    pub(super) fn vacate(&mut self, frame: FrameId) {
        self.drop_copy_of(frame, false);
        let Some(entry) = self.frames.get_mut(frame.index()) else { return };
        entry.flags = 0;
        self.table.remove(PageId(entry.page));
        self.free_frames.push(frame.0);
    }

    /// Drops the copies in `range`, except that of `but` and those that storage lacks. Returns
    /// `true` if there were any.
    pub(super) fn overwrite(&mut self, range: Range<u64>, but: Option<FrameId>) -> bool {
        let overlaps = |copy: Copy| {
            let end = copy.offset.saturating_add(u64::from(copy.length));
            copy.offset < range.end && range.start < end
        };
        let first = (range.start / self.unit).saturating_sub(self.slot_units.saturating_sub(1));
        let units = first..range.end.div_ceil(self.unit);
        let found: Vec<FrameId> =
            if units.end.saturating_sub(units.start) > self.frames.len() as u64 {
                (0..self.frames.len() as u32).map(FrameId).collect()
            } else {
                units.filter_map(|unit| self.by_place.get(PageId(unit))).map(FrameId).collect()
            };
        let mut any = false;
        for frame in found {
            let is_clean =
                self.frames.get(frame.index()).is_some_and(|entry| entry.flags & DIRTY == 0);
            if Some(frame) != but && is_clean && self.copy_of(frame).is_some_and(overlaps) {
                self.drop_copy(frame);
                any = true;
            }
        }
        any
    }
}

impl Host for Frames {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        let is_resident = |entry: &&Frame| entry.flags & RESIDENT != 0;
        let Some(entry) = self.frames.get(frame.index()).filter(is_resident) else {
            return OfferOutcome::Refused(RefusalReason::Absent);
        };
        let page = PageId(entry.page);
        self.vacate(frame);
        self.evictions += 1;
        OfferOutcome::Taken(page)
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        match self.frames.get_mut(frame.index()) {
            Some(entry) if entry.flags & (RESIDENT | COOLING) == RESIDENT => {
                entry.flags |= COOLING;
                Cooled::Yes
            }
            Some(entry) if entry.flags & RESIDENT != 0 => Cooled::Refused(RefusalReason::Changed),
            _ => Cooled::Refused(RefusalReason::Absent),
        }
    }

    fn state(&self, frame: FrameId) -> PageState {
        // In a write-through tier, no page is ever marked as written.
        match self.frames.get(frame.index()) {
            Some(entry) if entry.flags & WRITTEN != 0 => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}
