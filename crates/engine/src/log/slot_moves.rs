//! Shortens a log's file: cuts free slots off its end, and moves segments to its beginning.

use millpond_base::PastPoison;
use millpond_device::{AlignedBuffer, DeviceError};

use super::error::LogError;
use super::options::BLOCK;
use super::segments::{SLOTS_LEAST, Segments};
use super::slots;

/// Number of bytes moved at a time.
const COPIED: u64 = 1 << 20;

impl Segments {
    /// Returns whether the segment of position `lsn` is behind more slots than are held, so that
    /// slots before it are free.
    pub(super) fn is_far(&self, lsn: u64) -> bool {
        let sequence = self.sequence(lsn);
        let table = self.table();
        table.held.get(&sequence).is_some_and(|slot| *slot > table.held.len() + 1)
    }

    /// Cuts free slots off the end of the file, as long as the remaining ones have room for records
    /// up to `until`. Returns the number of bytes by which the file is shorter. The file does not
    /// grow ahead in the meantime.
    ///
    /// # Errors
    /// If the device fails; the file is then as long as before.
    pub(super) fn give_back(&self, until: u64) -> Result<u64, DeviceError> {
        let _growing = self.growing.lock().past_poison();
        let mut given = Vec::new();
        let (ready, end) = {
            let mut table = self.table();
            // Segments from the oldest one on have slots, or will get them.
            let oldest = self.sequence(table.oldest);
            let slots = (until.div_ceil(self.size).saturating_sub(oldest)) as usize;
            while table.count > slots.max(SLOTS_LEAST)
                && let Some(at) = table.free.iter().position(|slot| slot + 1 == table.count)
            {
                given.push(table.free.swap_remove(at));
                table.count -= 1;
            }
            if given.is_empty() {
                return Ok(0);
            }
            let end = slots::slot_offset(table.count, self.size);
            (std::mem::replace(&mut table.ready, end), end)
        };
        let old = self.device.length();
        if let Err(error) = self.device.shrink(end) {
            let mut table = self.table();
            table.count += given.len();
            table.ready = ready;
            table.free.append(&mut given);
            return Err(error);
        }
        Ok(old - self.device.length())
    }

    /// Moves the segments from the oldest kept position to `end`, where the log ends, to the
    /// beginning of the file, and cuts off the rest. Nothing is appended any more. Returns the
    /// number of bytes by which the file is shorter.
    ///
    /// Each segment is durable in its new slot before that slot's header names it. So a crash
    /// leaves the old one, the new one, or both with the same records (rule 7).
    ///
    /// # Errors
    /// If the device fails. The log is unchanged then.
    pub(super) fn cut_back(&self, end: u64) -> Result<u64, LogError> {
        let _growing = self.growing.lock().past_poison();
        let oldest = self.oldest();
        let (first, last) = (self.sequence(oldest), self.sequence(end.max(1) - 1));
        let kept: Vec<u64> = {
            let mut table = self.table();
            let behind = table.held.split_off(&(last + 1));
            table.free.extend(behind.into_values());
            table.held.range(first..).map(|(&sequence, _)| sequence).collect()
        };
        let Some(&last) = kept.last() else { return Ok(0) };
        for &sequence in &kept {
            self.move_below(sequence, kept.len(), oldest, end)?;
        }
        let (old, in_last) = (self.device.length(), end.min((last + 1) * self.size));
        let places = kept.iter().map(|&sequence| {
            let begin = sequence * self.size;
            let bytes = (in_last.min(begin + self.size) - begin).next_multiple_of(BLOCK);
            Ok(self.offset(begin)? + bytes)
        });
        let ends: Result<Vec<u64>, LogError> = places.collect();
        self.device.shrink(ends?.into_iter().max().unwrap_or(old)).map_err(LogError::Prepare)?;
        Ok(old - self.device.length())
    }

    /// Moves segment `sequence` into a slot below `slots`, unless it is in one. Its records from
    /// `oldest` to `end` are kept.
    fn move_below(
        &self,
        sequence: u64,
        slots: usize,
        oldest: u64,
        end: u64,
    ) -> Result<(), LogError> {
        let (from, to) = {
            let mut table = self.table();
            let Some(&from) = table.held.get(&sequence).filter(|&&slot| slot >= slots) else {
                return Ok(());
            };
            let Some(at) = table.free.iter().position(|&slot| slot < slots) else { return Ok(()) };
            (from, table.free.swap_remove(at))
        };
        let begin = sequence * self.size;
        let kept = oldest.clamp(begin, begin + self.size) / BLOCK * BLOCK
            ..end.min(begin + self.size).next_multiple_of(BLOCK);
        let place = |slot, lsn| slots::slot_offset(slot, self.size) + BLOCK + (lsn - begin);
        debug_assert!(kept.start <= kept.end, "a segment that moves has records that are kept");
        let mut buffer = AlignedBuffer::new(COPIED.min(self.size) as usize);
        let mut at = kept.start;
        while at < kept.end {
            let bytes = &mut buffer[..(kept.end - at).min(COPIED) as usize];
            self.read(at, bytes)?;
            self.device.write(place(to, at), bytes).map_err(LogError::Prepare)?;
            at += bytes.len() as u64;
        }
        self.device.sync().map_err(LogError::Prepare)?;
        let header = slots::slot_offset(to, self.size);
        self.device.write(header, &self.header(sequence)).map_err(LogError::Prepare)?;
        self.device.sync().map_err(LogError::Prepare)?;
        let mut table = self.table();
        table.held.insert(sequence, to);
        table.free.push(from);
        debug_assert!(to < from, "a segment moves to the front");
        debug_assert!(table.is_consistent(), "each slot is held or free");
        Ok(())
    }

    /// Clears the headers of slots that name the same segment as a lower slot.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn forget_doubles(&self) -> Result<(), LogError> {
        let doubles = std::mem::take(&mut self.table().doubles);
        let zeros = AlignedBuffer::new(BLOCK as usize);
        let mut offsets = doubles.into_iter().map(|slot| slots::slot_offset(slot, self.size));
        offsets.try_for_each(|offset| self.device.write(offset, &zeros)).map_err(LogError::Prepare)
    }
}
