//! Writes: pages into slots, everything else to storage.

use std::io::IoSlice;
use std::ops::Range;

use millpond_base::PastPoison;
use millpond_base::sync::atomic::Ordering;
use millpond_device::{DeviceError, Errno, Operation, ReadRequest, WriteRequest};
use xxhash_rust::xxh3::xxh3_64;

use crate::parts::{ToCache, write_slots};
use crate::waiting::{NewCopy, WaitingCopy};
use crate::write_back::back_device::BackDevice;
use crate::write_back::tables::{Incoming, Overlap};

/// Attempts to clear the way for a write to storage.
const TRIES: u32 = 100;
/// Attempts to get a slot before a page goes to storage.
const SLOT_TRIES: u32 = 3;
/// Ended reads and writes of slots that a write to the device's beginning waits for; it has no
/// other place to go.
const ROUNDS: u32 = 1000;

/// Result of a search for a slot.
enum SlotSearch {
    Slot(u32),
    /// No slot is free, and none becomes free until other threads end theirs.
    Taken,
    /// A device fails, or the cache's file cannot grow.
    Nothing,
}

/// A page that is to be written.
struct ToWrite<'p> {
    request: usize,
    page: Incoming,
    range: Range<u64>,
    bytes: &'p [u8],
}

/// Bytes to be written to storage.
struct ToStorage<'p> {
    request: usize,
    offset: u64,
    bytes: &'p [u8],
}

impl ToStorage<'_> {
    fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.bytes.len() as u64)
    }
}

impl BackDevice {
    pub(super) fn write_requests(&self, requests: &mut [WriteRequest<'_, '_>]) {
        let (mut pages, mut storage, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for (at, request) in requests.iter().enumerate() {
            results.push(self.usable());
            if results.last().is_some_and(Result::is_err) {
                continue;
            }
            let mut offset = request.offset;
            let tags = request.tags.iter().map(Some).chain(std::iter::repeat(None));
            for (bytes, tag) in request.parts.iter().zip(tags) {
                let range = offset..offset + bytes.len() as u64;
                let begin = std::mem::replace(&mut offset, range.end);
                let bytes: &[u8] = bytes;
                match tag.filter(|_| self.has_slot(&range)) {
                    Some(tag) => {
                        let page = self.cache().begin_write(*tag);
                        pages.push(ToWrite { request: at, page, range, bytes });
                    }
                    None => storage.push(ToStorage { request: at, offset: begin, bytes }),
                }
            }
        }
        self.write_pages(pages, &mut storage, &mut results);
        self.write_to_storage(storage, &mut results);
        for (request, result) in requests.iter_mut().zip(results) {
            request.result = result;
        }
        self.make_room_ahead();
    }

    fn usable(&self) -> Result<(), DeviceError> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        // Returns the reason.
        self.commit()
    }

    /// Waits for extents in the way of a write to `range`, or writes them to storage.
    fn clear_the_way(&self, range: &Range<u64>, to_storage: bool) -> Result<(), DeviceError> {
        for _ in 0..TRIES {
            let overlap = self.cache().overlap(range, to_storage);
            match overlap {
                Overlap::None => return Ok(()),
                Overlap::Busy => {}
                Overlap::Beyond(places) => {
                    self.destage_these(&places)?;
                    continue;
                }
            }
            self.await_destaging();
        }
        let (path, length) = (self.fast.path().to_path_buf(), range.end - range.start);
        let (operation, errno) = (Operation::Write, Errno(libc::EBUSY));
        Err(DeviceError::Io { operation, path, offset: range.start, length, errno })
    }

    /// Takes a slot, or makes room for one.
    fn slot(&self, even_the_last: bool) -> SlotSearch {
        let mut found = SlotSearch::Taken;
        for _ in 0..SLOT_TRIES {
            let taken = self.cache().take_slot(even_the_last);
            if let Some(slot) = taken {
                match self.reach(slot) {
                    Ok(()) => return SlotSearch::Slot(slot),
                    Err(error) => self.no_room_for(slot, &error),
                }
                found = SlotSearch::Nothing;
            } else if self.make_room().is_err() {
                return SlotSearch::Nothing;
            } else {
                found = SlotSearch::Taken;
            }
        }
        found
    }

    /// Returns a slot for bytes without another place, or `None` if there can be none. In a small
    /// cache, other threads may be reading or writing all slots at once: each slot is free, or can
    /// be destaged, once that has ended. None becomes free if the file has room for few slots, and
    /// all are needed.
    fn slot_at_last(&self) -> Option<u32> {
        for _ in 0..ROUNDS {
            let seen = self.cache().tables.arrivals;
            match self.slot(true) {
                SlotSearch::Slot(slot) => return Some(slot),
                SlotSearch::Nothing => return None,
                SlotSearch::Taken => {}
            }
            self.write_waiting(true);
            if !self.await_arrival(seen) {
                return None;
            }
        }
        None
    }

    /// Writes pages into slots, as many at once as there are slots for. Pages without a slot, and
    /// pages whose writes fail, are left for storage.
    fn write_pages<'p>(
        &self,
        pages: Vec<ToWrite<'p>>,
        storage: &mut Vec<ToStorage<'p>>,
        results: &mut [Result<(), DeviceError>],
    ) {
        let mut waiting: Vec<(ToWrite<'p>, u32)> = Vec::new();
        for page in pages {
            if let Err(error) = self.clear_the_way(&page.range, false) {
                set(results, page.request, error);
                continue;
            }
            let taken = if waiting.is_empty() { None } else { self.slot_at_once() };
            let found = taken.map_or_else(
                || {
                    self.write_to_slots(std::mem::take(&mut waiting), storage);
                    self.slot(false)
                },
                SlotSearch::Slot,
            );
            match found {
                SlotSearch::Slot(slot) => waiting.push((page, slot)),
                SlotSearch::Taken | SlotSearch::Nothing => self.pass(page, storage),
            }
        }
        self.write_to_slots(waiting, storage);
    }

    fn slot_at_once(&self) -> Option<u32> {
        let slot = self.cache().take_slot(false)?;
        match self.reach(slot) {
            Ok(()) => Some(slot),
            Err(error) => {
                self.no_room_for(slot, &error);
                None
            }
        }
    }

    fn pass<'p>(&self, page: ToWrite<'p>, storage: &mut Vec<ToStorage<'p>>) {
        self.cache().passes(&page.page);
        let ToWrite { request, range, bytes, .. } = page;
        storage.push(ToStorage { request, offset: range.start, bytes });
    }

    fn write_to_slots<'p>(&self, pages: Vec<(ToWrite<'p>, u32)>, storage: &mut Vec<ToStorage<'p>>) {
        if pages.is_empty() {
            return;
        }
        let parts: Vec<[IoSlice<'_>; 1]> =
            pages.iter().map(|(page, _)| [IoSlice::new(page.bytes)]).collect();
        let mut requests: Vec<WriteRequest<'_, '_>> = (pages.iter().zip(&parts))
            .map(|((_, slot), parts)| WriteRequest::new(self.layout.slot_offset(*slot), parts))
            .collect();
        self.fast.write_batch(&mut requests);
        let written: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        drop(parts);
        self.fast_is_ahead.store(true, Ordering::Release);
        let mut failed = Vec::new();
        {
            let mut cache = self.cache();
            for ((page, slot), result) in pages.into_iter().zip(written) {
                match self.judge(result) {
                    Some(()) => {
                        let checksum = xxh3_64(page.bytes);
                        cache.install(Some(&page.page), &page.range, slot, checksum);
                    }
                    None => {
                        cache.give_slot(slot);
                        failed.push(page);
                    }
                }
            }
        }
        failed.into_iter().for_each(|page| self.pass(page, storage));
    }

    fn write_to_storage(
        &self,
        storage: Vec<ToStorage<'_>>,
        results: &mut [Result<(), DeviceError>],
    ) {
        let mut directs = Vec::new();
        for write in storage {
            if results.get(write.request).is_none_or(Result::is_err) {
                continue;
            }
            match self.direct(write) {
                Ok(direct) => directs.extend(direct),
                Err((request, error)) => set(results, request, error),
            }
        }
        if directs.is_empty() {
            return;
        }
        let parts: Vec<[IoSlice<'_>; 1]> =
            directs.iter().map(|direct| [IoSlice::new(direct.bytes)]).collect();
        let mut requests: Vec<WriteRequest<'_, '_>> = (directs.iter().zip(&parts))
            .map(|(direct, parts)| WriteRequest::new(direct.offset, parts))
            .collect();
        self.below.write_batch(&mut requests);
        let written: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        for (direct, result) in directs.iter().zip(written) {
            self.storage_has(&direct.range(), result.is_ok());
            if let Err(error) = result {
                set(results, direct.request, error);
            }
        }
    }

    /// Returns the part of a write that goes to storage; the beginning of the device stays in the
    /// cache.
    fn direct<'p>(
        &self,
        write: ToStorage<'p>,
    ) -> Result<Option<ToStorage<'p>>, (usize, DeviceError)> {
        let ToStorage { request, offset, bytes } = write;
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.below.length() {
            let (path, length) = (self.path_below(), bytes.len() as u64);
            let device_length = self.below.length();
            let error = DeviceError::PastEnd { path, offset, length, device_length };
            return Err((request, error));
        }
        let first = self.pinned_bytes.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (pinned, rest) = bytes.split_at(first);
        if !pinned.is_empty() {
            self.write_pinned(offset, pinned).map_err(|error| (request, error))?;
        }
        if rest.is_empty() {
            return Ok(None);
        }
        let write = ToStorage { request, offset: offset + first as u64, bytes: rest };
        self.clear_the_way(&write.range(), true).map_err(|error| (request, error))?;
        self.cache().overwrite(write.range());
        Ok(Some(write))
    }

    /// Ends a write to storage, successful or not.
    pub(super) fn storage_has(&self, range: &Range<u64>, was_written: bool) {
        self.below_is_ahead.store(true, Ordering::Release);
        let mut cache = self.cache();
        cache.overwritten(range, was_written);
        cache.overwrite(range.clone());
    }

    /// Runs `work`, which changes storage at `range`, for the bytes behind the pinned ones.
    pub(super) fn change_storage(
        &self,
        range: Range<u64>,
        work: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.usable()?;
        let range = range.start.max(self.pinned_bytes)..range.end;
        self.clear_the_way(&range, true)?;
        self.cache().overwrite(range.clone());
        let done = work();
        self.storage_has(&range, done.is_ok());
        done
    }

    /// Writes to the beginning of the device, whose copy is in the cache until the tier is given
    /// up.
    fn write_pinned(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let _one = self.writing_pinned.lock().past_poison();
        let mut whole = self.read_own(0, self.pinned_bytes as usize)?;
        let to = offset as usize..offset as usize + bytes.len();
        if let Some(place) = whole.get_mut(to) {
            place.copy_from_slice(bytes);
        }
        let Some(slot) = self.slot_at_last() else {
            // If it failed, the next sync reports the error.
            self.commit()?;
            let (path, needed) = (self.fast.path().to_path_buf(), self.pinned_bytes);
            return Err(DeviceError::DiskFull { path, offset: self.layout.end(), needed });
        };
        let written = self.fast.write(self.layout.slot_offset(slot), &whole);
        self.fast_is_ahead.store(true, Ordering::Release);
        let mut cache = self.cache();
        if let Err(error) = written {
            cache.give_slot(slot);
            return Err(error);
        }
        cache.install(None, &(0..self.pinned_bytes), slot, xxh3_64(&whole));
        Ok(())
    }

    /// Writes copies of pages read from storage into the cache, or queues them.
    pub(super) fn keep(&self, fills: Vec<ToCache>, requests: &[ReadRequest<'_, '_>]) {
        if fills.is_empty() {
            return;
        }
        let bytes_of = |keep: &ToCache| {
            let request = requests.get(keep.request).filter(|request| request.result.is_ok())?;
            request.parts.get(keep.part).map(|part| &part[..])
        };
        if self.waiting.is_on() {
            if self.waiting.push(fills, bytes_of) {
                self.write_waiting(true);
            }
            return;
        }
        let copy = |to: ToCache| NewCopy { bytes: bytes_of(&to), range: to.range, fill: to.fill };
        self.write_copies(fills.into_iter().map(copy).collect());
    }

    /// Queues copies of pages read from now on, until [`BackDevice::write_waiting`] is called.
    pub(crate) fn let_copies_wait(&self) {
        self.waiting.begin(u32::try_from(self.spare_slots).unwrap_or(u32::MAX) / 4);
    }

    /// Writes the waiting copies if there are many; any number if `even_few`.
    pub(crate) fn write_waiting(&self, even_few: bool) {
        let waiting = self.waiting.take(even_few);
        self.write_copies(waiting.iter().map(WaitingCopy::as_new).collect());
    }

    fn write_copies(&self, mut copies: Vec<NewCopy<'_>>) {
        if copies.is_empty() {
            return;
        }
        copies.sort_unstable_by_key(|copy| copy.fill.slot);
        for copy in &mut copies {
            copy.bytes = copy.bytes.filter(|_| self.reach(copy.fill.slot).is_ok());
        }
        let there: Vec<(u32, &[u8])> =
            copies.iter().filter_map(|copy| Some((copy.fill.slot, copy.bytes?))).collect();
        let offset_of = |slot| self.layout.slot_offset(slot);
        let runs = write_slots(&*self.fast, self.layout.slots.slot_bytes, offset_of, &there);
        let judge = |(count, result)| std::iter::repeat_n(self.judge(result).is_some(), count);
        let mut written = runs.into_iter().flat_map(judge);
        let mut done = Vec::with_capacity(copies.len());
        for NewCopy { range, fill, bytes } in copies {
            let is_written = |_: &&[u8]| written.next() == Some(true);
            done.push((fill, range, bytes.filter(is_written).map(xxh3_64)));
        }
        let mut cache = self.cache();
        for (fill, range, checksum) in done {
            cache.filled(fill, range, checksum);
        }
    }
}

/// Makes the first error of a request its result.
fn set(results: &mut [Result<(), DeviceError>], request: usize, error: DeviceError) {
    if let Some(result) = results.get_mut(request) {
        *result = std::mem::replace(result, Ok(())).and(Err(error));
    }
}
