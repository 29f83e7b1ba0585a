//! Which slot of the file holds which segment, and which are free.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond_base::Lsn;
use millpond_base::sync::{Mutex, MutexGuard};

use super::error::LogError;
use super::options::BLOCK;
use super::shared::locked;
use super::slots::{self, SlotState};
use crate::io::{AlignedBuffer, Device, DeviceError};

/// A log has no fewer slots than this: one being filled, one to go on in.
pub(super) const SLOTS_LEAST: usize = 2;

/// No log gets as far as this, so that sums of positions and lengths never overflow.
const LSN_MOST: u64 = 1 << 62;

/// The slots of a log.
pub(super) struct Segments {
    device: Arc<dyn Device>,
    uuid: [u8; 16],
    size: u64,
    table: Mutex<Table>,
    /// Held while the file grows: a device is made longer by one thread at a time.
    growing: Mutex<()>,
}

struct Table {
    /// Sequence number → slot.
    held: BTreeMap<u64, usize>,
    free: Vec<usize>,
    /// Slots of the file.
    count: usize,
    /// Nothing before this is kept.
    oldest: u64,
    /// Slots whose header could not be read; they count as neither held nor free.
    damaged: Vec<usize>,
}

impl Table {
    /// Takes the first free slot of the file, so that its end gets free.
    fn take_free(&mut self) -> Option<usize> {
        let first = self.free.iter().enumerate().min_by_key(|(_, slot)| **slot);
        let (at, _) = first?;
        Some(self.free.swap_remove(at))
    }
}

/// Where a segment lies.
pub(super) struct Place {
    /// Offset of its slot's header.
    pub(super) header: u64,
    /// Whether the slot was given to this segment just now: its header is to be written.
    pub(super) is_new: bool,
    /// Whether the slot had held another segment.
    pub(super) is_recycled: bool,
}

impl Segments {
    /// Makes a new log of two slots on `device`, the first of which holds segment 0, and makes it
    /// durable.
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
            device.grow(slots::slot_offset(SLOTS_LEAST, size))?;
            for slot in 1..Self::slots_in(device.length(), size) {
                // Whatever was there is none of ours.
                let zeros = AlignedBuffer::new(BLOCK as usize);
                device.write(slots::slot_offset(slot, size), &zeros)?;
            }
            device.write(slots::slot_offset(0, size), &slots::slot_header(&uuid, 0))?;
            // The log's own header last: a log that was not finished is none.
            device.sync()?;
            device.write(0, &slots::log_header(&uuid, size))?;
            device.sync()
        };
        make().map_err(LogError::Prepare)?;
        let count = Self::slots_in(device.length(), size);
        let free = (1..count).rev().collect();
        let held = BTreeMap::from([(0, 0)]);
        let table = Mutex::new(Table { held, free, count, oldest, damaged: Vec::new() });
        Ok(Segments { device, uuid, size, table, growing: Mutex::new(()) })
    }

    /// Reads which slots hold what.
    pub(super) fn open(device: Arc<dyn Device>, uuid: [u8; 16]) -> Result<Segments, LogError> {
        let mut block = AlignedBuffer::new(BLOCK as usize);
        if device.length() < BLOCK {
            return Err(LogError::NotALog { path: device.path().to_path_buf() });
        }
        device.read(0, &mut block).map_err(LogError::Read)?;
        let size = slots::read_log_header(&block, &uuid, device.path())?;
        let count = Self::slots_in(device.length(), size);
        let mut table = Table {
            held: BTreeMap::new(),
            free: Vec::new(),
            count,
            oldest: 0,
            damaged: Vec::new(),
        };
        for slot in (0..count).rev() {
            let offset = slots::slot_offset(slot, size);
            device.read(offset, &mut block).map_err(LogError::Read)?;
            match slots::read_slot_header(&block, &uuid) {
                SlotState::Empty => table.free.push(slot),
                SlotState::Damaged => table.damaged.push(slot),
                SlotState::Holds(sequence) if sequence >= LSN_MOST / size => {
                    table.damaged.push(slot);
                }
                SlotState::Holds(sequence) => {
                    // Two slots for one segment: no crash leaves that, but a copied file might.
                    if let Some(other) = table.held.insert(sequence, slot) {
                        table.free.push(other);
                    }
                }
            }
        }
        let table = Mutex::new(table);
        Ok(Segments { device, uuid, size, table, growing: Mutex::new(()) })
    }

    fn slots_in(length: u64, size: u64) -> usize {
        (length.saturating_sub(BLOCK) / (BLOCK + size)) as usize
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }

    pub(super) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The store's id.
    pub(super) fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Record bytes of a segment.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Which segment holds `lsn`.
    pub(super) fn sequence(&self, lsn: u64) -> u64 {
        lsn / self.size
    }

    /// Nothing before this is kept.
    pub(super) fn oldest(&self) -> u64 {
        self.table().oldest
    }

    /// Whether segment `sequence` has a slot.
    pub(super) fn holds(&self, sequence: u64) -> bool {
        self.table().held.contains_key(&sequence)
    }

    /// First LSN that no slot has, going up from `lsn`; `lsn` itself if it has none.
    pub(super) fn end_of_run(&self, lsn: u64) -> u64 {
        let table = self.table();
        let mut sequence = self.sequence(lsn);
        while table.held.contains_key(&sequence) {
            sequence += 1;
        }
        (sequence * self.size).max(lsn)
    }

    /// First LSN at or behind `lsn` that has a slot.
    pub(super) fn next_held(&self, lsn: u64) -> Option<u64> {
        let table = self.table();
        let (&sequence, _) = table.held.range(self.sequence(lsn)..).next()?;
        Some((sequence * self.size).max(lsn))
    }

    /// Offset of a slot whose header is not readable.
    pub(super) fn damaged_header(&self) -> Option<u64> {
        let table = self.table();
        table.damaged.last().map(|&slot| slots::slot_offset(slot, self.size))
    }

    /// Settles what an opened log keeps: the unbroken run of segments around `end`, from `least`
    /// on at the earliest, and those that were made ready behind it. All other slots are free.
    pub(super) fn keep_run(&self, end: u64, least: u64) {
        let mut guard = self.table();
        let table = &mut *guard;
        let mut first = self.sequence(end);
        while first > 0 && table.held.contains_key(&(first - 1)) {
            first -= 1;
        }
        table.oldest = (first * self.size).max(least);
        // What lies behind keeps its slot: no two slots may ever name one segment (rule 7).
        let kept = table.held.split_off(&first);
        let freed = std::mem::replace(&mut table.held, kept);
        table.free.extend(freed.into_values());
        table.free.append(&mut table.damaged);
    }

    /// Slots that neither hold a segment of the unbroken run around `end` nor one behind it: what
    /// lies in them is of no use, whatever it is.
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

    /// Gives the slots free whose segments end at or before `lsn`.
    pub(super) fn forget_before(&self, lsn: u64) {
        let mut guard = self.table();
        let table = &mut *guard;
        table.oldest = table.oldest.max(lsn);
        let behind = table.held.split_off(&self.sequence(lsn));
        let forgotten = std::mem::replace(&mut table.held, behind);
        table.free.extend(forgotten.into_values());
    }

    /// Where segment `sequence` lies; it gets a slot if it has none, and the file grows if none is
    /// free.
    ///
    /// # Errors
    /// If the file cannot grow.
    pub(super) fn place(&self, sequence: u64) -> Result<Place, DeviceError> {
        loop {
            {
                let mut table = self.table();
                if let Some(&slot) = table.held.get(&sequence) {
                    let header = slots::slot_offset(slot, self.size);
                    return Ok(Place { header, is_new: false, is_recycled: false });
                }
                if let Some(slot) = table.take_free() {
                    table.held.insert(sequence, slot);
                    let header = slots::slot_offset(slot, self.size);
                    let is_recycled = sequence >= table.count as u64;
                    return Ok(Place { header, is_new: true, is_recycled });
                }
            }
            let growing = locked(&self.growing);
            if self.table().free.is_empty() {
                self.grow()?;
            }
            drop(growing);
        }
    }

    /// Whether the segment behind `lsn`'s lacks a slot that it could have at once.
    pub(super) fn runs_short(&self, lsn: u64) -> bool {
        let table = self.table();
        table.free.is_empty() && !table.held.contains_key(&(self.sequence(lsn) + 1))
    }

    /// Makes the file a slot longer, without making that durable: the new slot is not free yet.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn grow_ahead(&self) -> Result<usize, DeviceError> {
        let _growing = locked(&self.growing);
        let slot = self.table().count;
        self.device.grow(slots::slot_offset(slot + 1, self.size))?;
        self.table().count = slot + 1;
        Ok(slot)
    }

    /// A slot made by [`Segments::grow_ahead`] is durable.
    pub(super) fn give(&self, slot: usize) {
        self.table().free.push(slot);
    }

    /// Makes the file a slot longer and gives it free; `growing` is locked.
    fn grow(&self) -> Result<(), DeviceError> {
        let slot = self.table().count;
        self.device.grow(slots::slot_offset(slot + 1, self.size))?;
        let mut table = self.table();
        table.count = slot + 1;
        table.free.push(slot);
        Ok(())
    }

    /// Gives free slots at the end of the file back, down to `slots`. Answers by how many bytes the
    /// file is shorter.
    ///
    /// # Errors
    /// If the device fails; the file is then as long as before.
    pub(super) fn give_back(&self, slots: usize) -> Result<u64, DeviceError> {
        let _growing = locked(&self.growing);
        let mut given = Vec::new();
        {
            let mut table = self.table();
            while table.count > slots.max(SLOTS_LEAST)
                && let Some(at) = table.free.iter().position(|slot| slot + 1 == table.count)
            {
                given.push(table.free.swap_remove(at));
                table.count -= 1;
            }
        }
        if given.is_empty() {
            return Ok(0);
        }
        let old = self.device.length();
        let count = self.table().count;
        if let Err(error) = self.device.shrink(slots::slot_offset(count, self.size)) {
            let mut table = self.table();
            table.count += given.len();
            table.free.append(&mut given);
            return Err(error);
        }
        Ok(old - self.device.length())
    }

    /// The header block of a slot that holds `sequence`.
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

    /// Fills `bytes`, whole blocks, from `lsn` on, the beginning of a block.
    ///
    /// # Errors
    /// If a part is not kept, or the device fails.
    pub(super) fn read(&self, lsn: u64, bytes: &mut [u8]) -> Result<(), LogError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = lsn + done as u64;
            let room = self.size - at % self.size;
            let count = room.min((bytes.len() - done) as u64) as usize;
            let offset = self.offset(at)?;
            let part = &mut bytes[done..done + count];
            self.device.read(offset, part).map_err(LogError::Read)?;
            done += count;
        }
        Ok(())
    }

    /// Where the byte at `lsn` lies in the file.
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
