//! Destaging: extents whose pages were evicted or moved are written to storage, to free their
//! slots.
//!
//! A slot is free once storage durably has its contents, and the durable directory does not name it
//! any more: three syncs for a batch of slots.

use std::io::{IoSlice, IoSliceMut};

use millpond_base::PastPoison;
use millpond_base::sync::MutexGuard;
use millpond_base::sync::atomic::Ordering;
use millpond_device::{AlignedBuffer, DeviceError, ReadRequest, WriteRequest};
use xxhash_rust::xxh3::xxh3_64;

use crate::dirty::Extent;
use crate::write_back::back_device::BackDevice;

/// Extents written to storage together when a write waits for room.
const BATCH: usize = 128;
/// Extents written together ahead of need. Fewer than `BATCH`, since a caller that reads from
/// storage waits for these writes.
const AHEAD: usize = 32;

/// Work ahead of need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// Makes the directory durable, which frees slots.
    Commit,
    Destage {
        moved_too: bool,
    },
}

impl BackDevice {
    /// Frees slots, if there are none: brings the directory up to date. If that is not enough, it
    /// first writes to storage the retiring extents that have waited longest.
    pub(super) fn make_room(&self) -> Result<(), DeviceError> {
        {
            let _one = self.destaging.lock().past_poison();
            if self.has_room() {
                return Ok(());
            }
            if self.cache().tables.dirty.unmapping() > 0 {
                self.commit()?;
                if self.has_room() {
                    return Ok(());
                }
            }
            let taken = self.cache().take_retiring(BATCH, true);
            self.write_below(&taken)?;
        }
        self.commit()
    }

    fn has_room(&self) -> bool {
        let cache = self.cache();
        cache.tables.slots_left() > cache.tables.reserved_slots
    }

    /// Returns the work ahead of need.
    fn work_ahead(&self) -> Ahead {
        let cache = self.cache();
        let (left, dirty) = (cache.tables.slots_left(), &cache.tables.dirty);
        let evicted = dirty.retiring() - dirty.moved();
        match self.spare_slots {
            spare if left >= spare / 2 => Ahead::Nothing,
            spare if dirty.unmapping() > spare / 8 => Ahead::Commit,
            _ if evicted > 0 => Ahead::Destage { moved_too: false },
            spare if left < spare / 8 && dirty.moved() > 0 => Ahead::Destage { moved_too: true },
            _ => Ahead::Nothing,
        }
    }

    /// Returns `true` if there is work ahead of need: the thread does it, if there is one.
    pub fn has_work_ahead(&self) -> bool {
        self.work_ahead() != Ahead::Nothing
    }

    /// Makes room if it is time and nobody does it already, or rings for the thread.
    pub(super) fn make_room_ahead(&self) {
        let work = self.work_ahead();
        if work == Ahead::Nothing || self.has_failed.load(Ordering::Acquire) {
            return;
        }
        if self.bell.has_listener() {
            return self.bell.ring();
        }
        let Ok(one) = self.destaging.try_lock() else { return };
        if let Err(error) = self.do_ahead(work, BATCH, one) {
            tracing::warn!(%error, "what is in the second tier cannot be written to storage");
        }
    }

    /// Does some work ahead of need; returns `true` if there was any.
    pub(super) fn destage_some(&self) -> Result<bool, DeviceError> {
        let work = self.work_ahead();
        if work == Ahead::Nothing || self.has_failed.load(Ordering::Acquire) {
            return Ok(false);
        }
        let one = self.destaging.lock().past_poison();
        self.do_ahead(work, AHEAD, one)
    }

    fn do_ahead(
        &self,
        work: Ahead,
        most: usize,
        one: MutexGuard<'_, ()>,
    ) -> Result<bool, DeviceError> {
        let moved_too = match work {
            Ahead::Nothing => return Ok(false),
            Ahead::Commit => return self.commit().map(|()| true),
            Ahead::Destage { moved_too } => moved_too,
        };
        let taken = self.cache().take_retiring(most, moved_too);
        self.write_below(&taken)?;
        drop(one);
        self.commit()?;
        Ok(!taken.is_empty())
    }

    /// Writes these extents to storage, because their places are about to be written in part.
    pub(super) fn destage_these(&self, places: &[u64]) -> Result<(), DeviceError> {
        let _one = self.destaging.lock().past_poison();
        let taken = self.cache().take_extents(places);
        self.write_below(&taken)
    }

    /// Waits until no extent is being written to storage.
    pub(super) fn await_destaging(&self) {
        drop(self.destaging.lock().past_poison());
    }

    /// Writes everything to storage except pinned extents.
    pub(super) fn destage_all(&self) -> Result<(), DeviceError> {
        loop {
            let places: Vec<u64> = {
                let cache = self.cache();
                let all = cache.tables.dirty.all().filter(|e| !e.has(crate::dirty::PINNED));
                all.map(|extent| extent.copy.offset).take(BATCH).collect()
            };
            if places.is_empty() {
                return self.commit();
            }
            self.destage_these(&places)?;
        }
    }

    /// Writes pinned, busy extents to storage, in the order of their places.
    fn write_below(&self, taken: &[Extent]) -> Result<(), DeviceError> {
        if taken.is_empty() {
            return Ok(());
        }
        let copies: Vec<_> = taken.iter().map(|extent| extent.copy).collect();
        let (buffers, mut results) = self.read_slots(&copies);
        let is_sound = |at: &usize| results[*at].is_ok();
        let sound: Vec<usize> = (0..taken.len()).filter(is_sound).collect();
        let parts: Vec<[IoSlice<'_>; 1]> =
            sound.iter().map(|at| [IoSlice::new(&buffers[*at])]).collect();
        let mut requests: Vec<WriteRequest<'_, '_>> = (sound.iter().zip(&parts))
            .map(|(at, parts)| WriteRequest::new(taken[*at].copy.offset, parts))
            .collect();
        self.below.write_batch(&mut requests);
        let written: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        for (at, result) in sound.into_iter().zip(written) {
            results[at] = result;
        }
        self.below_is_ahead.store(true, Ordering::Release);
        let mut cache = self.cache();
        let (mut first, mut any) = (None, false);
        for (extent, result) in taken.iter().zip(results) {
            cache.destaged(extent, result.is_ok());
            any |= result.is_ok();
            first = first.or(result.err());
        }
        match first {
            // Some found room, and the others have another try.
            Some(error) if any => {
                drop(cache);
                tracing::warn!(%error, "a page of the second tier cannot be written to storage");
                Ok(())
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads pinned slots, and verifies the bytes.
    pub(super) fn read_slots(
        &self,
        copies: &[crate::copy::Copy],
    ) -> (Vec<AlignedBuffer>, Vec<Result<(), DeviceError>>) {
        let mut buffers: Vec<AlignedBuffer> =
            copies.iter().map(|copy| AlignedBuffer::new(copy.length as usize)).collect();
        let mut parts: Vec<[IoSliceMut<'_>; 1]> =
            buffers.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
        let mut reads: Vec<ReadRequest<'_, '_>> = (copies.iter().zip(&mut parts))
            .map(|(copy, parts)| ReadRequest::new(self.layout.slot_offset(copy.slot), parts))
            .collect();
        self.fast.read_batch(&mut reads);
        let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
        drop(parts);
        let proven = |((copy, bytes), result): ((&crate::copy::Copy, &AlignedBuffer), _)| {
            let result: Result<(), DeviceError> = result;
            result.and_then(|()| self.prove(copy.slot, copy.checksum, bytes))
        };
        let results = copies.iter().zip(&buffers).zip(results).map(proven).collect();
        (buffers, results)
    }

    /// Verifies `bytes` against the checksum of the slot.
    pub(super) fn prove(&self, slot: u32, checksum: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        if xxh3_64(bytes) == checksum {
            return Ok(());
        }
        let (offset, length) = (self.layout.slot_offset(slot), bytes.len() as u64);
        Err(DeviceError::Damaged { path: self.fast.path().to_path_buf(), offset, length })
    }
}
