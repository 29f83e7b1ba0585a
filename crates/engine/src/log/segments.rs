//! The slots of the log's file: the segment in each, and the free ones.
//!
//! The file may end within its last slot. It grows to the first slot's size in steps that follow
//! its length, so that the log of a small store is small. The part beyond the end of the file reads
//! as zeros.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_base::sync::{Mutex, MutexGuard};
use millpond_device::{AlignedBuffer, Device, DeviceError};

use super::error::LogError;
use super::options::BLOCK;
use super::slots;
use super::slots::{SlotState, SlotTable, slots_in};

/// Minimum number of slots of a log: one being filled, and one to go on in.
pub(super) const SLOTS_LEAST: usize = 2;

/// Minimum number of bytes by which the file grows.
const STEP_LEAST: u64 = 128 << 10;

/// Upper bound of all LSNs, so that sums of positions and lengths never overflow.
pub(super) const LSN_MOST: u64 = 1 << 62;

/// The slots of a log.
pub(super) struct Segments {
    pub(super) device: Arc<dyn Device>,
    uuid: [u8; 16],
    pub(super) size: u64,
    table: Mutex<SlotTable>,
    /// Held while the file grows, since only one thread at a time may grow a device.
    pub(super) growing: Mutex<()>,
}

/// Slot of a segment in the file.
pub(super) struct SegmentSlot {
    /// Offset of its slot's header.
    pub(super) header: u64,
    /// True if the segment got the slot just now: the slot's header has to be written.
    pub(super) is_new: bool,
    /// True if the slot had held another segment.
    pub(super) is_recycled: bool,
}

impl Segments {
    /// Creates a log on `device`, as short as possible, and makes it durable. Its first slot holds
    /// the segment that begins with `oldest`.
    pub(super) fn create(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        size: u64,
        oldest: u64,
    ) -> Result<Segments, LogError> {
        let path = || device.path().to_path_buf();
        if device.length() >= BLOCK {
            let mut first = AlignedBuffer::new(BLOCK as usize);
            device.read(0, &mut first).map_err(LogError::Read)?;
            if slots::read_log_header(&first, &uuid, device.path()).is_ok() {
                return Err(LogError::Exists { path: path() });
            }
        }
        let make = || {
            device.grow(slots::slot_offset(0, size) + BLOCK + STEP_LEAST.min(size))?;
            for slot in 1..slots_in(device.length(), size) {
                // Contents from before the creation are not this log's.
                let zeros = AlignedBuffer::new(BLOCK as usize);
                device.write(slots::slot_offset(slot, size), &zeros)?;
            }
            let header = slots::slot_header(&uuid, oldest / size);
            device.write(slots::slot_offset(0, size), &header)?;
            // The log's own header comes last: an unfinished log is no log.
            device.sync()?;
            device.write(0, &slots::log_header(&uuid, size))?;
            device.sync()
        };
        make().map_err(LogError::Prepare)?;
        let mut table = SlotTable { oldest, ..SlotTable::of(device.length(), size) };
        table.free = (1..table.count).rev().collect();
        table.held.insert(oldest / size, 0);
        debug_assert!(table.is_consistent(), "each slot is held or free");
        let table = Mutex::new(table);
        Ok(Segments { device, uuid, size, table, growing: Mutex::new(()) })
    }

    /// Opens a log: reads its header and the slots' headers.
    pub(super) fn open(device: Arc<dyn Device>, uuid: [u8; 16]) -> Result<Segments, LogError> {
        let mut block = AlignedBuffer::new(BLOCK as usize);
        if device.length() < BLOCK {
            return Err(LogError::NotALog { path: device.path().to_path_buf() });
        }
        device.read(0, &mut block).map_err(LogError::Read)?;
        let size = slots::read_log_header(&block, &uuid, device.path())?;
        Self::open_with(device, uuid, size)
    }

    /// Opens a log with segments of `size` bytes: reads the slots' headers.
    pub(super) fn open_with(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        size: u64,
    ) -> Result<Segments, LogError> {
        let mut block = AlignedBuffer::new(BLOCK as usize);
        let mut table = SlotTable::of(device.length(), size);
        for slot in (0..table.count).rev() {
            let offset = slots::slot_offset(slot, size);
            device.read(offset, &mut block).map_err(LogError::Read)?;
            match slots::read_slot_header(&block, &uuid) {
                SlotState::Empty => table.free.push(slot),
                SlotState::Damaged => table.damaged.push(slot),
                SlotState::Holds(sequence) if sequence >= LSN_MOST / size => {
                    table.damaged.push(slot);
                }
                SlotState::Holds(sequence) => {
                    // Two slots have one segment: the log was being cut back. The lower one counts.
                    if let Some(other) = table.held.insert(sequence, slot) {
                        table.free.push(other);
                        table.doubles.push(other);
                    }
                }
            }
        }
        debug_assert!(table.is_consistent(), "each slot is held, free or damaged");
        debug_assert!(
            table.doubles.iter().all(|slot| table.free.contains(slot)),
            "doubles are free"
        );
        let table = Mutex::new(table);
        Ok(Segments { device, uuid, size, table, growing: Mutex::new(()) })
    }

    pub(super) fn table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().past_poison()
    }

    pub(super) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the store's id.
    pub(super) fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Returns the number of record bytes of a segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of the segment that holds `lsn`.
    pub(super) fn sequence(&self, lsn: u64) -> u64 {
        lsn / self.size
    }

    /// Returns the oldest position that is kept.
    pub(super) fn oldest(&self) -> u64 {
        self.table().oldest
    }

    /// Returns whether segment `sequence` has a slot.
    pub(super) fn holds(&self, sequence: u64) -> bool {
        self.table().held.contains_key(&sequence)
    }

    /// Returns the first LSN at or behind `lsn` that is in no slot.
    pub(super) fn end_of_run(&self, lsn: u64) -> u64 {
        let table = self.table();
        let mut sequence = self.sequence(lsn);
        while table.held.contains_key(&sequence) {
            sequence += 1;
        }
        (sequence * self.size).max(lsn)
    }

    /// Returns the first LSN at or behind `lsn` that is in a slot.
    pub(super) fn next_held(&self, lsn: u64) -> Option<u64> {
        let table = self.table();
        let (&sequence, _) = table.held.range(self.sequence(lsn)..).next()?;
        Some((sequence * self.size).max(lsn))
    }

    /// Returns the offset of a slot whose header is unreadable, if there is one.
    pub(super) fn damaged_header(&self) -> Option<u64> {
        let table = self.table();
        table.damaged.last().map(|&slot| slots::slot_offset(slot, self.size))
    }

    /// Settles the slots of an opened log. It keeps the unbroken run of segments around `end`, from
    /// `least` on at the earliest, and the segments that were prepared behind it. All other slots
    /// are free.
    pub(super) fn keep_run(&self, end: u64, least: u64) {
        let mut guard = self.table();
        let table = &mut *guard;
        let mut first = self.sequence(end);
        while first > 0 && table.held.contains_key(&(first - 1)) {
            first -= 1;
        }
        table.oldest = (first * self.size).max(least);
        // Segments behind the run keep their slots: no two slots may ever name one segment (rule
        // 7).
        let kept = table.held.split_off(&first);
        let freed = std::mem::replace(&mut table.held, kept);
        table.free.extend(freed.into_values());
        table.free.append(&mut table.damaged);
        debug_assert!(table.oldest <= end.max(least), "the end is kept");
        debug_assert!(table.is_consistent(), "each slot is held or free");
    }

    /// Returns the slots that hold neither a segment of the unbroken run around `end` nor one
    /// behind it. Their contents are not needed.
    pub(super) fn strays(&self, end: u64) -> Vec<usize> {
        let table = self.table();
        let mut first = self.sequence(end);
        while first > 0 && table.held.contains_key(&(first - 1)) {
            first -= 1;
        }
        let mut is_stray = vec![true; table.count];
        for (_, &slot) in table.held.range(first..) {
            if let Some(place) = is_stray.get_mut(slot) {
                *place = false;
            }
        }
        is_stray.iter().enumerate().filter(|(_, stray)| **stray).map(|(slot, _)| slot).collect()
    }

    /// Frees the slots whose segments end at or before `lsn`.
    pub(super) fn forget_before(&self, lsn: u64) {
        let mut guard = self.table();
        let table = &mut *guard;
        table.oldest = table.oldest.max(lsn);
        let behind = table.held.split_off(&self.sequence(lsn));
        let forgotten = std::mem::replace(&mut table.held, behind);
        table.free.extend(forgotten.into_values());
        debug_assert!(table.is_consistent(), "each slot is held or free");
    }

    /// Returns the place of segment `sequence`, which gets a slot if it has none. The file grows if
    /// no slot is free, or if the file does not reach the end of the segment's first `bytes`.
    ///
    /// # Errors
    /// If the file cannot grow.
    pub(super) fn place(&self, sequence: u64, bytes: u64) -> Result<SegmentSlot, DeviceError> {
        debug_assert!(bytes <= self.size, "{bytes} bytes exceed a segment");
        debug_assert!(sequence < LSN_MOST / self.size, "no log has segment {sequence}");
        let (slot, is_new) = self.slot(sequence)?;
        let header = slots::slot_offset(slot, self.size);
        if self.table().room(slot, self.size) < bytes {
            let _growing = self.growing.lock().past_poison();
            self.grow(header + BLOCK + bytes)?;
        }
        let is_recycled = is_new && sequence >= self.table().count as u64;
        Ok(SegmentSlot { header, is_new, is_recycled })
    }

    /// Returns the slot of segment `sequence`, and `true` if the segment got it just now.
    fn slot(&self, sequence: u64) -> Result<(usize, bool), DeviceError> {
        loop {
            {
                let mut table = self.table();
                if let Some(&slot) = table.held.get(&sequence) {
                    return Ok((slot, false));
                }
                if let Some(slot) = table.take_free() {
                    table.held.insert(sequence, slot);
                    debug_assert!(table.is_consistent(), "each slot is held or free");
                    return Ok((slot, true));
                }
            }
            let _growing = self.growing.lock().past_poison();
            let next = {
                let table = self.table();
                table.free.is_empty().then(|| slots::slot_offset(table.count, self.size))
            };
            if let Some(header) = next {
                self.grow(header + BLOCK)?;
            }
        }
    }

    /// Returns whether the room ready behind `tail` is less than one and a half times the file's
    /// next step.
    pub(super) fn runs_short(&self, tail: u64) -> bool {
        let wanted = self.step(self.table().ready) / 2 * 3;
        self.room_until(tail).saturating_sub(tail) < wanted
    }

    /// Returns the position up to which the file has room for records, from `lsn` on. Records
    /// before `lsn` may be only in the buffer: their segments get the first free slots.
    pub(super) fn room_until(&self, lsn: u64) -> u64 {
        let table = self.table();
        let next = table.held.last_key_value().map_or(0, |(last, _)| last + 1);
        let now = self.sequence(lsn).min(next);
        let mut free = table.free.clone();
        free.sort_unstable();
        let held = table.held.range(now..).map(|(_, &slot)| slot);
        let mut until = now * self.size;
        for slot in held.chain(free) {
            let room = table.room(slot, self.size);
            until += room;
            // The file ends in this slot, and a segment cannot continue in another one.
            if room < self.size {
                break;
            }
        }
        until
    }

    /// Returns the number of bytes by which a file of `length` bytes grows: half of it, but at most
    /// a segment.
    fn step(&self, length: u64) -> u64 {
        let half = (length / 2).next_multiple_of(BLOCK);
        half.max(STEP_LEAST).min(self.size)
    }

    /// Rounds `length` up so that there are only whole slots behind the first one, as long as there
    /// is room for them. A segment in a whole slot needs no further room on the disk, however full
    /// that gets.
    fn longer(&self, length: u64) -> u64 {
        let slot = BLOCK + self.size;
        if length <= BLOCK + slot {
            length
        } else {
            (length - BLOCK).next_multiple_of(slot) + BLOCK
        }
    }

    /// Makes the file a step longer, or by `least` bytes if there is no room for more. The new part
    /// is not durable, and so not ready yet. Returns the new length of the file.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn grow_ahead(&self, least: u64) -> Result<u64, DeviceError> {
        let _growing = self.growing.lock().past_poison();
        self.cut_rest()?;
        let ready = self.table().ready;
        let grow = |by: u64, whole: bool| {
            let length = (ready + by).next_multiple_of(BLOCK);
            let length = if whole { self.longer(length) } else { length };
            debug_assert!(length > ready, "a file grows");
            self.device.grow(length).map(|()| length)
        };
        let step = self.step(ready);
        let grown = grow(step.max(least), true);
        if grown.is_err() && least > 0 {
            // There may be room for the present need. The first error names the step.
            return grow(least, false).or(grown);
        }
        grown
    }

    /// Notes that the file is durable up to `length`, to which [`Segments::grow_ahead`] has grown
    /// it.
    pub(super) fn give(&self, length: u64) {
        self.table().reach(length, self.size);
    }

    /// Makes the file longer, by a step and at least up to `least`, and marks the new part as
    /// ready. The caller holds `growing`.
    fn grow(&self, least: u64) -> Result<(), DeviceError> {
        self.cut_rest()?;
        let ready = self.table().ready;
        let mut length = self.longer(least.max(ready + self.step(ready)));
        if let Err(error) = self.device.grow(length) {
            // There may be room for the present need.
            if least == length || self.device.grow(least).is_err() {
                return Err(error);
            }
            length = least;
        }
        self.table().reach(length, self.size);
        Ok(())
    }

    /// Cuts off a rest of less than a block, which an editor or a copy tool left at the file's end.
    /// The rest would be taken for the damaged header of a slot.
    fn cut_rest(&self) -> Result<(), DeviceError> {
        let length = self.device.length();
        if length.is_multiple_of(BLOCK) {
            return Ok(());
        }
        self.device.shrink(length - length % BLOCK)?;
        self.device.sync()
    }

    /// Returns the header block of a slot that holds `sequence`.
    pub(super) fn header(&self, sequence: u64) -> AlignedBuffer {
        slots::slot_header(&self.uuid, sequence)
    }

    /// Writes the headers of all slots that hold segment `sequence` or a later one.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn write_headers(&self, sequence: u64) -> Result<(), DeviceError> {
        let held: Vec<(u64, usize)> =
            self.table().held.range(sequence..).map(|(&held, &slot)| (held, slot)).collect();
        held.into_iter().try_for_each(|(held, slot)| {
            self.device.write(slots::slot_offset(slot, self.size), &self.header(held))
        })
    }

    /// Fills `bytes`, whole blocks, from `lsn` on, the start of a block.
    ///
    /// # Errors
    /// If a part is not kept, or the device fails.
    pub(super) fn read(&self, lsn: u64, bytes: &mut [u8]) -> Result<(), LogError> {
        debug_assert!(lsn.is_multiple_of(BLOCK), "reads begin at a block, not at {lsn}");
        debug_assert!((bytes.len() as u64).is_multiple_of(BLOCK), "whole blocks are read");
        let mut done = 0;
        while done < bytes.len() {
            let at = lsn + done as u64;
            let room = self.size - at % self.size;
            let count = room.min((bytes.len() - done) as u64) as usize;
            let offset = self.offset(at)?;
            let part = &mut bytes[done..done + count];
            let there = self.device.length().saturating_sub(offset).min(count as u64) / BLOCK;
            let (there, behind) = part.split_at_mut((there * BLOCK) as usize);
            if !there.is_empty() {
                self.device.read(offset, there).map_err(LogError::Read)?;
            }
            behind.fill(0);
            done += count;
        }
        Ok(())
    }

    /// Returns the number of bytes from `lsn` to the end of its segment that the file has.
    pub(super) fn in_file(&self, lsn: u64) -> u64 {
        let table = self.table();
        let room = table.held.get(&self.sequence(lsn)).map(|&slot| table.room(slot, self.size));
        room.unwrap_or(0).saturating_sub(lsn % self.size)
    }

    /// Returns the offset in the file of the byte at `lsn`.
    pub(super) fn offset(&self, lsn: u64) -> Result<u64, LogError> {
        let table = self.table();
        match table.held.get(&self.sequence(lsn)) {
            Some(&slot) => Ok(slots::slot_offset(slot, self.size) + BLOCK + lsn % self.size),
            None => {
                let (path, at) = (self.device.path().to_path_buf(), Lsn(lsn));
                match lsn < table.oldest {
                    true => Err(LogError::Forgotten { path, at, oldest: Lsn(table.oldest) }),
                    false => Err(LogError::Missing { path, at }),
                }
            }
        }
    }
}
