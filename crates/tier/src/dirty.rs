//! Extents: data in the cache of a write-back tier that storage lacks, by place.
//!
//! - An *extent* is such a copy. Extents never overlap, and no clean copy overlaps one.
//! - Its *owner* is the frame of its page. An extent without an owner is *retiring*: its page was
//!   evicted, or is at another place now, and the extent is to be written to storage. At most the
//!   last checkpoint needs one that *moved*. It will be discarded soon, so it is written last.
//! - A *change* is a place whose extent differs from the directory on the cache's device. A slot
//!   that the directory names is *mapped*. It is not reused before the directory durably names
//!   another one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use crate::copy::Copy;

pub(super) const NO_OWNER: u32 = u32::MAX;

/// The extent stays until storage has everything: the beginning of the device, where the mark is.
pub(super) const PINNED: u8 = 1;
/// The extent is in the queue.
pub(super) const RETIRING: u8 = 2;
/// The extent is being written to storage.
pub(super) const BUSY: u8 = 4;
/// The extent's place on storage is being overwritten.
pub(super) const OVERWRITTEN: u8 = 8;
/// The extent's page is at another place now.
pub(super) const MOVED: u8 = 16;

/// A copy that storage does not have.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) copy: Copy,
    pub(super) page: u64,
    pub(super) order: u64,
    pub(super) mark: u32,
    /// Number of a frame, or [`NO_OWNER`].
    pub(super) owner: u32,
    pub(super) flags: u8,
}

impl Extent {
    pub(super) fn range(&self) -> Range<u64> {
        self.copy.offset..self.copy.offset.saturating_add(u64::from(self.copy.length))
    }

    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// All extents.
pub(super) struct Dirty {
    extents: BTreeMap<u64, Extent>,
    /// Places of retiring extents, the next one in front. Entries whose extent is not retiring are
    /// skipped.
    queue: VecDeque<u64>,
    /// Like `queue`, for extents whose pages moved.
    queue_moved: VecDeque<u64>,
    retiring: usize,
    /// Number of retiring extents that moved.
    moved: usize,
    /// Ranges of storage that are being written, by their beginning. A newer version may have
    /// replaced an extent in the meantime.
    being_written: BTreeMap<u64, u64>,
    /// Places that differ from the directory.
    changes: BTreeSet<u64>,
    /// Mapped slots whose extents are gone.
    unmapping: Vec<u32>,
    /// Maximum bytes of an extent.
    longest: u64,
}

/// Maximum bytes of memory for each slot.
pub(super) const EXTENT_BYTES: u64 = 2 * (size_of::<Extent>() as u64 + 8) + 24;

impl Dirty {
    pub(super) fn new(longest: u64) -> Dirty {
        Dirty {
            extents: BTreeMap::new(),
            queue: VecDeque::new(),
            queue_moved: VecDeque::new(),
            retiring: 0,
            moved: 0,
            being_written: BTreeMap::new(),
            changes: BTreeSet::new(),
            unmapping: Vec::new(),
            longest,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Returns the number of extents to be written to storage.
    pub(super) fn retiring(&self) -> usize {
        self.retiring
    }

    /// Returns the number of retiring extents that wait for a checkpoint.
    pub(super) fn moved(&self) -> usize {
        self.moved
    }

    /// Returns the number of slots that are free once the directory is durable.
    pub(super) fn unmapping(&self) -> usize {
        self.unmapping.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Extent> {
        self.extents.values()
    }

    pub(super) fn get(&self, place: u64) -> Option<&Extent> {
        self.extents.get(&place)
    }

    pub(super) fn get_mut(&mut self, place: u64) -> Option<&mut Extent> {
        self.extents.get_mut(&place)
    }

    /// Returns the extents that overlap `range`, in order.
    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = &Extent> {
        let (begin, from) = (range.start, range.start.saturating_sub(self.longest));
        let near = self.extents.range(from..range.end.max(from));
        near.map(|(_, extent)| extent).filter(move |extent| extent.range().end > begin)
    }

    pub(super) fn is_clean(&self, range: Range<u64>) -> bool {
        self.within(range).next().is_none()
    }

    /// Adds an extent where there is none. The directory does not have it yet.
    pub(super) fn insert(&mut self, extent: Extent) {
        debug_assert!(self.is_clean(extent.range()), "extents do not overlap");
        let place = extent.copy.offset;
        self.extents.insert(place, extent);
        self.changes.insert(place);
        if extent.owner == NO_OWNER && !extent.has(PINNED) {
            self.retire(place);
        }
    }

    /// Removes the extent at `place`; `is_mapped` if its slot is mapped.
    pub(super) fn remove(&mut self, place: u64, is_mapped: bool) -> Option<Extent> {
        let extent = self.extents.remove(&place)?;
        self.leave(&extent);
        if is_mapped {
            self.changes.insert(place);
            self.unmapping.push(extent.copy.slot);
        }
        Some(extent)
    }

    /// Retires the extent at `place`: its page `moved`, or was evicted.
    pub(super) fn orphan(&mut self, place: u64, moved: bool) {
        if let Some(extent) = self.extents.get_mut(&place) {
            extent.owner = NO_OWNER;
            extent.flags |= if moved { MOVED } else { 0 };
            self.retire(place);
        }
    }

    /// Records that an extent is no longer retiring.
    fn leave(&mut self, extent: &Extent) {
        if extent.has(RETIRING) {
            self.retiring -= 1;
            self.moved -= usize::from(extent.has(MOVED));
        }
    }

    /// Marks the extent at `place` as retiring.
    pub(super) fn retire(&mut self, place: u64) {
        let Some(extent) = self.extents.get_mut(&place) else { return };
        if !extent.has(RETIRING | PINNED) {
            extent.flags |= RETIRING;
            self.retiring += 1;
            if extent.has(MOVED) {
                self.moved += 1;
                self.queue_moved.push_back(place);
            } else {
                self.queue.push_back(place);
            }
        }
    }

    /// Takes up to `most` idle extents out of the queues, and marks them as busy. Extents that
    /// moved are taken only if there are too few others, and `moved_too` is set.
    pub(super) fn take_retiring(&mut self, most: usize, moved_too: bool) -> Vec<Extent> {
        let mut taken = Vec::new();
        let mut queue = std::mem::take(&mut self.queue);
        self.take_from(&mut queue, most, &mut taken);
        self.queue = queue;
        if moved_too {
            let mut queue = std::mem::take(&mut self.queue_moved);
            self.take_from(&mut queue, most, &mut taken);
            self.queue_moved = queue;
        }
        for extent in &taken {
            self.begin_writing(extent.copy.offset);
        }
        taken
    }

    fn take_from(&mut self, queue: &mut VecDeque<u64>, most: usize, taken: &mut Vec<Extent>) {
        for _ in 0..queue.len() {
            if taken.len() >= most {
                break;
            }
            let Some(place) = queue.pop_front() else { break };
            let Some(extent) = self.extents.get(&place).copied() else { continue };
            if !extent.has(RETIRING) {
                continue;
            }
            if extent.has(BUSY | OVERWRITTEN) {
                queue.push_back(place);
                continue;
            }
            self.leave(&extent);
            if let Some(extent) = self.extents.get_mut(&place) {
                extent.flags &= !RETIRING;
                taken.push(*extent);
            }
        }
    }

    /// Begins to write the extent at `place` to storage.
    pub(super) fn begin_writing(&mut self, place: u64) {
        if let Some(extent) = self.extents.get_mut(&place) {
            extent.flags |= BUSY;
            self.being_written.insert(place, extent.range().end);
        }
    }

    /// Ends the write of the extent at `place` to storage, successful or not.
    pub(super) fn end_writing(&mut self, place: u64) {
        self.being_written.remove(&place);
    }

    /// Returns `true` if an extent's copy is being written to storage in `range`.
    pub(super) fn is_being_written(&self, range: &Range<u64>) -> bool {
        let from = range.start.saturating_sub(self.longest);
        let mut near = self.being_written.range(from..range.end.max(from));
        near.any(|(_, end)| *end > range.start)
    }

    /// Takes the changes for the directory: places, and slots to be unmapped.
    pub(super) fn take_changes(&mut self) -> (BTreeSet<u64>, Vec<u32>) {
        (std::mem::take(&mut self.changes), std::mem::take(&mut self.unmapping))
    }

    /// Verifies the invariants.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut end = 0;
        for extent in self.extents.values() {
            if extent.range().start < end {
                return Err(format!("extents overlap at {end}"));
            }
            end = extent.range().end;
            let is_waiting = extent.has(RETIRING | BUSY | OVERWRITTEN | PINNED);
            if extent.owner == NO_OWNER && !is_waiting {
                return Err(format!("the extent at {} is forgotten", extent.copy.offset));
            }
            let queues = [&self.queue, &self.queue_moved];
            let is_queued = queues.iter().any(|queue| queue.contains(&extent.copy.offset));
            if extent.has(RETIRING) && !is_queued {
                return Err(format!("the extent at {} is not queued", extent.copy.offset));
            }
        }
        let retiring = self.extents.values().filter(|extent| extent.has(RETIRING)).count();
        let is_moved = |extent: &&Extent| extent.has(RETIRING) && extent.has(MOVED);
        let moved = self.extents.values().filter(is_moved).count();
        let is_right = (retiring, moved) == (self.retiring, self.moved);
        if is_right { Ok(()) } else { Err("retiring extents miscounted".into()) }
    }
}
