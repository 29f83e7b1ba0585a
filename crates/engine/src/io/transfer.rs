//! Reading pages with verification, writing them in batches, syncing.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use millpond_base::PageId;

use super::batch::{PageRead, PageWrite, runs};
use super::counts::Counters;
use super::device::{ReadRequest, WriteRequest};
use super::error::DeviceError;
use super::store::PageStore;
use super::store_error::{ReadError, SyncError, WriteError};
use crate::io::simulated::planted::planted;
use crate::page::{MapEntry, PageHeader};

/// It is where it is, whatever the placement.
const SUPERBLOCK: PageId = PageId(0);

/// A page to be read, and where it is.
struct Wanted<'b, 'a, T> {
    read: &'b mut PageRead<'a, T>,
    place: u64,
}

impl PageStore {
    fn offset_of(&self, place: u64) -> u64 {
        place * self.page_size.bytes_u64()
    }

    /// Where `page` begins now, in bytes from the file's beginning, if it is anywhere.
    pub fn offset_of_page(&self, page: PageId) -> Option<u64> {
        self.place_of(page).ok().map(|place| self.offset_of(place))
    }

    /// Where `page` is now, in pages from the file's beginning.
    ///
    /// # Errors
    /// It is nowhere.
    pub(super) fn place_of(&self, page: PageId) -> Result<u64, ReadError> {
        let Some(map) = self.map().filter(|_| page != SUPERBLOCK) else { return Ok(page.0) };
        map.entry(page).place().ok_or_else(|| self.nowhere(page))
    }

    fn nowhere(&self, page: PageId) -> ReadError {
        ReadError::Nowhere { path: self.path().to_path_buf(), page }
    }

    /// Reads `page` into `bytes`, which are one page long, and verifies that it is what was written
    /// as that page.
    ///
    /// # Errors
    /// If the device fails, the page is damaged or misplaced, an older version of it is there, or
    /// there is no such page. The contents of `bytes` are then anything.
    pub fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), ReadError> {
        let answer =
            self.check_read(page, bytes.len()).and_then(|()| self.read_and_verify(page, bytes));
        self.count_read(&answer);
        answer
    }

    fn read_and_verify(&self, page: PageId, bytes: &mut [u8]) -> Result<(), ReadError> {
        loop {
            let place = self.place_of(page)?;
            Counters::add(&self.counters.read_requests, 1);
            let answer = self
                .device
                .read(self.offset_of(place), bytes)
                .map_err(|error| ReadError::Device { page, error })
                .and_then(|()| self.verify_at(page, place, bytes));
            // The page may have moved meanwhile, and its place may have been used again.
            if answer.is_ok() || self.place_of(page)? == place {
                return answer;
            }
        }
    }

    /// Reads all pages of `batch`, adjacent ones together and as many at once as the device is
    /// good at. Each entry tells how it went; the batch keeps the order in which it came.
    pub fn read_batch<T>(&self, batch: &mut [PageRead<'_, T>]) {
        // Requests are sorted, not the batch: what the caller knows of its n-th entry stays true.
        let mut wanted = Vec::with_capacity(batch.len());
        for read in batch.iter_mut() {
            let place = self
                .check_read(read.page, read.bytes.len())
                .and_then(|()| self.place_of(read.page));
            match place {
                Ok(place) => {
                    read.result = Ok(());
                    wanted.push(Wanted { read, place });
                }
                Err(error) => read.result = Err(error),
            }
        }
        wanted.sort_unstable_by_key(|wanted| wanted.place);
        let runs = runs(self.page_size, wanted.iter().map(|wanted| wanted.place));
        debug_assert_eq!(
            runs.iter().map(|run| run.count).sum::<usize>(),
            wanted.len(),
            "each once"
        );
        let mut parts: Vec<IoSliceMut<'_>> =
            wanted.iter_mut().map(|wanted| IoSliceMut::new(wanted.read.bytes)).collect();
        let mut rest = &mut parts[..];
        let mut requests = Vec::with_capacity(runs.len());
        for run in &runs {
            let (parts, others) = std::mem::take(&mut rest).split_at_mut(run.count);
            rest = others;
            requests.push(ReadRequest { offset: self.offset_of(run.first), parts, result: Ok(()) });
        }
        Counters::add(&self.counters.read_requests, requests.len());
        self.device.read_batch(&mut requests);
        let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        drop(parts);
        let mut wanted = wanted.into_iter();
        for (run, result) in runs.iter().zip(results) {
            for Wanted { read, place } in wanted.by_ref().take(run.count) {
                let (page, bytes) = (read.page, &mut *read.bytes);
                read.result = match &result {
                    Ok(()) => self.verify_at(page, place, bytes),
                    // One bad page fails the whole request: its neighbours are read apart.
                    Err(_) if run.count > 1 => self.read_and_verify(page, bytes),
                    Err(source) => Err(ReadError::Device { page, error: source.clone() }),
                };
                if read.result.is_err() && self.place_of(page).is_ok_and(|now| now != place) {
                    read.result = self.read_and_verify(page, bytes);
                }
            }
        }
        for read in batch.iter() {
            self.count_read(&read.result);
        }
    }

    fn count_read(&self, answer: &Result<(), ReadError>) {
        let counters = &self.counters;
        let counter = if answer.is_ok() { &counters.reads } else { &counters.read_errors };
        Counters::add(counter, 1);
        if matches!(
            answer,
            Err(ReadError::Checksum { .. } | ReadError::Misplaced { .. } | ReadError::Stale { .. })
        ) {
            Counters::add(&counters.damaged_reads, 1);
        }
    }

    fn check_read(&self, page: PageId, buffer_bytes: usize) -> Result<(), ReadError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(ReadError::Closed);
        }
        let pages = self.pages();
        if page.0 >= pages {
            return Err(ReadError::OutOfRange { page, pages });
        }
        let page_bytes = self.page_size.bytes();
        if buffer_bytes != page_bytes {
            return Err(ReadError::BufferSize { page, page_bytes, buffer_bytes });
        }
        Ok(())
    }

    /// Verifies that `bytes`, which were read at `place`, are what was written as page `page`, and
    /// the version of it that the page map means.
    fn verify_at(&self, page: PageId, place: u64, bytes: &[u8]) -> Result<(), ReadError> {
        let (path, offset) = (self.path(), self.offset_of(place));
        verify(page, bytes, || (path.to_path_buf(), offset))?;
        let Some(map) = self.map().filter(|_| page != SUPERBLOCK) else { return Ok(()) };
        let entry = map.entry(page);
        drop(map);
        // If it is elsewhere by now, that is found out by the caller.
        if entry.is_of(PageHeader::read(bytes).checksum) && entry.place() == Some(place) {
            return Ok(());
        }
        planted!(StalePageAccepted, return Ok(()));
        Err(ReadError::Stale { path: path.to_path_buf(), page, offset })
    }

    /// Seals all pages of `batch` and writes them, adjacent ones together and as many at once as
    /// the device is good at. Entries that were written are marked; the batch keeps the order in
    /// which it came. Durable after [`PageStore::sync`], and where pages are written out of place,
    /// once a page map is durable that was written behind them.
    ///
    /// # Errors
    /// The first error. If the batch itself is wrong, nothing is written; if the device fails,
    /// all other requests are carried out.
    pub fn write_batch(&self, batch: &mut [PageWrite<'_>]) -> Result<(), WriteError> {
        let _gate = self.usable()?;
        let mut batch: Vec<&mut PageWrite<'_>> = batch.iter_mut().collect();
        batch.sort_unstable_by_key(|write| write.page);
        self.check_writes(&batch)?;
        for write in &mut batch {
            PageHeader::seal(write.page, write.bytes);
            write.written = false;
        }
        let places = match self.map {
            None => batch.iter().map(|write| write.page.0).collect(),
            Some(_) => self.take_places(batch.len(), self.reserve_of_map())?,
        };
        let runs = runs(self.page_size, places.iter().copied());
        debug_assert_eq!(runs.iter().map(|run| run.count).sum::<usize>(), batch.len(), "each once");
        let parts: Vec<IoSlice<'_>> = batch.iter().map(|w| IoSlice::new(w.bytes)).collect();
        let mut requests = Vec::with_capacity(runs.len());
        let mut rest = &parts[..];
        for run in &runs {
            let (parts, others) = rest.split_at(run.count);
            rest = others;
            let offset = self.offset_of(run.first);
            requests.push(WriteRequest { offset, parts, result: Ok(()) });
        }
        Counters::add(&self.counters.write_requests, requests.len());
        self.device.write_batch(&mut requests);
        let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        drop(parts);
        let mut first_error = Ok(());
        let mut writes = batch.iter_mut().zip(&places);
        for (run, result) in runs.iter().zip(results) {
            for (write, place) in writes.by_ref().take(run.count) {
                let result = match &result {
                    // One bad place fails the whole request: its neighbours are written apart.
                    Err(_) if run.count > 1 => self.write_one(write, *place),
                    other => other.clone(),
                };
                let error = result.map_err(|error| WriteError::Device { page: write.page, error });
                write.written = error.is_ok();
                self.count_write(write);
                first_error = first_error.and(error);
            }
        }
        self.enter(&batch, &places);
        first_error
    }

    fn reserve_of_map(&self) -> u64 {
        self.map().map_or(0, |map| map.reserve())
    }

    /// The page map names the places that pages were written to.
    fn enter(&self, batch: &[&mut PageWrite<'_>], places: &[u64]) {
        let Some(mut map) = self.map() else { return };
        for (write, place) in batch.iter().zip(places) {
            if write.written {
                let checksum = PageHeader::read(write.bytes).checksum;
                map.set(write.page, MapEntry::new(*place, checksum));
            } else {
                // Nothing refers to it; it is not tried again at once.
                map.supersede(*place);
            }
        }
    }

    fn write_one(&self, write: &PageWrite<'_>, place: u64) -> Result<(), DeviceError> {
        Counters::add(&self.counters.write_requests, 1);
        self.device.write(self.offset_of(place), write.bytes)
    }

    fn count_write(&self, write: &PageWrite<'_>) {
        let counters = &self.counters;
        let by_reason = &counters.writes[write.reason as usize];
        Counters::add(if write.written { by_reason } else { &counters.write_errors }, 1);
    }

    fn check_writes(&self, batch: &[&mut PageWrite<'_>]) -> Result<(), WriteError> {
        debug_assert!(
            batch.is_sorted_by_key(|write| write.page),
            "pages that occur twice are adjacent"
        );
        let (pages, page_bytes) = (self.pages(), self.page_size.bytes());
        for (at, write) in batch.iter().enumerate() {
            let (page, buffer_bytes) = (write.page, write.bytes.len());
            if page.0 >= pages {
                return Err(WriteError::OutOfRange { page, pages });
            }
            if self.is_reserved(page) {
                return Err(WriteError::Reserved { page });
            }
            if buffer_bytes != page_bytes {
                return Err(WriteError::BufferSize { page, page_bytes, buffer_bytes });
            }
            let found = PageHeader::read(write.bytes).page;
            if found != page {
                return Err(WriteError::WrongPage { page, found });
            }
            if at > 0 && batch[at - 1].page == page {
                return Err(WriteError::Twice { page });
            }
        }
        Ok(())
    }

    /// Makes all writes that have returned durable.
    ///
    /// # Errors
    /// If the device does not confirm, now or ever before.
    pub fn sync(&self) -> Result<(), SyncError> {
        let _gate = self.usable()?;
        self.sync_now(|| self.device.sync())
    }

    /// Makes writes of these pages durable; others may become so, too.
    ///
    /// # Errors
    /// As [`PageStore::sync`].
    pub fn sync_pages(&self, pages: &[Range<PageId>]) -> Result<(), SyncError> {
        let _gate = self.usable()?;
        if self.map.is_some() {
            // They are anywhere.
            return self.sync_now(|| self.device.sync());
        }
        let end = self.pages();
        let offset = |page: PageId| page.0.min(end) * self.page_size.bytes_u64();
        let ranges: Vec<_> = pages.iter().map(|r| offset(r.start)..offset(r.end)).collect();
        self.sync_now(|| self.device.sync_ranges(&ranges))
    }

    pub(super) fn sync_now(
        &self,
        sync: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), SyncError> {
        let mut failed = self.sync_failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(SyncError::FailedBefore { path: self.path().to_path_buf() });
        }
        Counters::add(&self.counters.syncs, 1);
        sync().map_err(|error| {
            *failed = true;
            SyncError::Device(error)
        })
    }
}

/// Verifies that `bytes` are what was written as page `page`; `at` tells where they were read.
pub(super) fn verify(
    page: PageId,
    bytes: &[u8],
    at: impl Fn() -> (PathBuf, u64),
) -> Result<(), ReadError> {
    let header = PageHeader::read(bytes);
    let computed = PageHeader::checksum_of(page, bytes);
    let (stored, found) = (header.checksum, header.page);
    if stored == computed && found == page {
        return Ok(());
    }
    let (path, offset) = at();
    if stored == computed || stored == PageHeader::checksum_of(found, bytes) {
        planted!(OtherPageAccepted, return Ok(()));
        return Err(ReadError::Misplaced { path, page, offset, found });
    }
    Err(ReadError::Checksum { path, page, offset, stored, computed })
}
