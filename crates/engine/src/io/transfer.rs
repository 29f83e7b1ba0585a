//! Reads of pages with verification, writes in batches, and syncs.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::path::PathBuf;

use millpond_base::PastPoison;
use millpond_base::{PageId, Reason};
use millpond_device::{AlignedBuffer, DeviceError};

use super::batch::{PageRead, PageWrite, runs};
use super::counts::Counters;
use super::store::PageStore;
use super::store_error::{ReadError, SyncError, WriteError};
use crate::page::packed::{Packer, unpack};
use crate::page::superblock::Compression;
use crate::page::{MapEntry, PageHeader, PageSize, Spot};
use millpond_device::device::{ReadRequest, Tag, WriteRequest};

/// The superblock, whose place does not depend on the placement.
const SUPERBLOCK: PageId = PageId(0);

/// Present place of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Here {
    /// Bytes from the file's beginning.
    offset: u64,
    /// Number of stored bytes.
    bytes: usize,
    /// `true` if the stored bytes are compressed.
    is_packed: bool,
}

/// A page to be read, and its place.
struct Wanted<'b, 'a, T> {
    read: &'b mut PageRead<'a, T>,
    here: Here,
}

/// Bytes to be written.
pub(super) struct Outgoing<'o> {
    /// Index of the page within its batch.
    at: usize,
    offset: u64,
    stored: &'o [u8],
    /// Tag of the page, if it is written because it changed.
    tag: Option<Tag>,
}

/// Stored form of the pages of a batch.
pub(super) struct Stored {
    /// Compressed pages, each at its page's place in the batch; empty if none is compressed.
    packed: AlignedBuffer,
    /// Units of each page, `None` if it is not compressed.
    pub(super) units: Vec<Option<u64>>,
}

impl<'o> Outgoing<'o> {
    /// Returns the bytes of page `at` of a batch, to be written at `offset`.
    pub(super) fn new(at: usize, offset: u64, stored: &'o [u8]) -> Outgoing<'o> {
        Outgoing { at, offset, stored, tag: None }
    }

    fn tagged(self, page: PageId, reason: Reason) -> Outgoing<'o> {
        Outgoing { tag: Some(Tag { page, reason }), ..self }
    }
}

impl PageStore {
    /// Returns the present offset of `page` in the file, in bytes, if it has one.
    pub fn offset_of_page(&self, page: PageId) -> Option<u64> {
        self.here(page).ok().map(|here| here.offset)
    }

    fn at(&self, spot: Spot) -> Here {
        let is_packed = spot.units().is_some();
        Here { offset: spot.offset(self.page_size), bytes: spot.bytes(self.page_size), is_packed }
    }

    /// Returns the present place of `page`.
    ///
    /// # Errors
    /// The page map has no place for the page.
    fn here(&self, page: PageId) -> Result<Here, ReadError> {
        let Some(map) = self.map().filter(|_| page != SUPERBLOCK) else {
            let (offset, bytes) = (page.0 * self.page_size.bytes_u64(), self.page_size.bytes());
            return Ok(Here { offset, bytes, is_packed: false });
        };
        map.entry(page).spot().map(|spot| self.at(spot)).ok_or_else(|| self.nowhere(page))
    }

    fn nowhere(&self, page: PageId) -> ReadError {
        ReadError::Nowhere { path: self.path().to_path_buf(), page }
    }

    /// Reads `page` into `bytes`, which are one page long, and verifies that the bytes are those
    /// written as that page.
    ///
    /// # Errors
    /// The device fails, the page is damaged or misplaced, an older version of it is there, or it
    /// does not exist. The contents of `bytes` are undefined then.
    pub fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), ReadError> {
        let answer =
            self.check_read(page, bytes.len()).and_then(|()| self.read_and_verify(page, bytes));
        self.count_read(&answer);
        answer
    }

    fn read_and_verify(&self, page: PageId, bytes: &mut [u8]) -> Result<(), ReadError> {
        let mut is_second = false;
        loop {
            let here = self.here(page)?;
            Counters::add(&self.counters.read_requests, 1);
            let answer = self
                .read_page(page, here, bytes)
                .or_else(|error| self.failed_read(page, error))
                .and_then(|()| self.verify_at(page, here, bytes));
            if answer.is_ok() || matches!(answer, Err(ReadError::Closed)) {
                return answer;
            }
            let had_copy = self.distrusts(&answer, here);
            // The page may have moved in the meantime, and its place may have been reused.
            if self.here(page)? == here {
                if !had_copy || is_second {
                    return answer;
                }
                is_second = true;
            }
        }
    }

    /// Reports that a sound page read as `page` cannot be that page: a cache drops its copy.
    pub fn distrust(&self, page: PageId) {
        if let Ok(Here { offset, bytes, .. }) = self.here(page) {
            self.device.distrust(offset..offset + bytes as u64);
        }
    }

    /// Drops the copies that a cache may have of a damaged page; returns `true` if there were any.
    fn distrusts(&self, answer: &Result<(), ReadError>, here: Here) -> bool {
        let range = here.offset..here.offset + here.bytes as u64;
        answer.as_ref().is_err_and(is_damage) && self.device.distrust(range)
    }

    /// Reads the stored bytes of `page` to the beginning of `bytes`.
    fn read_page(&self, page: PageId, here: Here, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let mut parts = [IoSliceMut::new(bytes.get_mut(..here.bytes).unwrap_or(&mut []))];
        let tags = [Tag::read(page)];
        let mut request = [ReadRequest::new(here.offset, &mut parts).tagged(&tags)];
        self.device.read_batch(&mut request);
        let [request] = request;
        request.result
    }

    /// Reads all pages of `batch`, adjacent ones together, at the depth that suits the device. Each
    /// entry has its own result; the batch keeps its order.
    pub fn read_batch<T>(&self, batch: &mut [PageRead<'_, T>]) {
        // Requests are sorted, not the batch: the caller's index of each entry stays valid.
        let mut wanted = Vec::with_capacity(batch.len());
        for read in batch.iter_mut() {
            let here =
                self.check_read(read.page, read.bytes.len()).and_then(|()| self.here(read.page));
            match here {
                Ok(here) => {
                    read.result = Ok(());
                    wanted.push(Wanted { read, here });
                }
                Err(error) => read.result = Err(error),
            }
        }
        wanted.sort_unstable_by_key(|wanted| wanted.here.offset);
        let runs = runs(wanted.iter().map(|wanted| (wanted.here.offset, wanted.here.bytes)));
        debug_assert_eq!(
            runs.iter().map(|run| run.count).sum::<usize>(),
            wanted.len(),
            "each once"
        );
        let tags: Vec<Tag> = wanted.iter().map(|wanted| Tag::read(wanted.read.page)).collect();
        let mut parts: Vec<IoSliceMut<'_>> = wanted
            .iter_mut()
            .map(|Wanted { read, here }| {
                IoSliceMut::new(read.bytes.get_mut(..here.bytes).unwrap_or(&mut []))
            })
            .collect();
        let (mut rest, mut rest_tags) = (&mut parts[..], &tags[..]);
        let mut requests = Vec::with_capacity(runs.len());
        for run in &runs {
            let (parts, others) = std::mem::take(&mut rest).split_at_mut(run.count);
            let (tags, other_tags) = rest_tags.split_at(run.count);
            (rest, rest_tags) = (others, other_tags);
            requests.push(ReadRequest::new(run.offset, parts).tagged(tags));
        }
        Counters::add(&self.counters.read_requests, requests.len());
        self.device.read_batch(&mut requests);
        let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        drop(parts);
        let mut wanted = wanted.into_iter();
        for (run, result) in runs.iter().zip(results) {
            for Wanted { read, here } in wanted.by_ref().take(run.count) {
                let (page, bytes) = (read.page, &mut *read.bytes);
                read.result = match &result {
                    Ok(()) => self.verify_at(page, here, bytes),
                    // One bad page fails the whole request, so its neighbours are read separately.
                    Err(_) if run.count > 1 => self.read_and_verify(page, bytes),
                    Err(source) => self.failed_read(page, source.clone()),
                };
                let had_copy = self.distrusts(&read.result, here);
                let has_moved = || self.here(page).is_ok_and(|now| now != here);
                if had_copy || read.result.is_err() && has_moved() {
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
        if answer.as_ref().is_err_and(is_damage) {
            Counters::add(&counters.damaged_reads, 1);
        }
    }

    fn check_read(&self, page: PageId, buffer_bytes: usize) -> Result<(), ReadError> {
        self.readable()?;
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

    /// Unpacks the bytes read from `here` into `bytes`. Verifies that they are those written as
    /// `page`, in the version in the page map.
    fn verify_at(&self, page: PageId, here: Here, bytes: &mut [u8]) -> Result<(), ReadError> {
        self.readable()?;
        Counters::add(&self.counters.bytes_read, here.bytes);
        if here.is_packed {
            let stored = bytes.get(..here.bytes).map_or(Vec::new(), <[u8]>::to_vec);
            unpack(&stored, bytes);
        }
        let (path, offset) = (self.path(), here.offset);
        verify(page, bytes, || (path.to_path_buf(), offset))?;
        let Some(map) = self.map().filter(|_| page != SUPERBLOCK) else { return Ok(()) };
        let entry = map.entry(page);
        drop(map);
        // If it has moved by now, the caller finds that out.
        let is_here = entry.spot().is_some_and(|spot| self.at(spot) == here);
        if is_here && entry.is_of(PageHeader::read(bytes).checksum) {
            return Ok(());
        }
        Err(ReadError::Stale { path: path.to_path_buf(), page, offset })
    }

    /// Seals all pages of `batch` and writes them, adjacent ones together, at the depth that suits
    /// the device. Entries that were written are marked; the batch keeps its order. The writes are
    /// durable after [`PageStore::sync`]; out of place, they are durable once a later page map is
    /// durable.
    ///
    /// # Errors
    /// The first error. If the batch itself is invalid, nothing is written; if the device fails,
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
        let stored = self.stored(batch.iter().map(|write| &*write.bytes));
        let spots = match self.map {
            None => Vec::new(),
            Some(_) => self.take_spots(&stored.units, self.reserve_of_map())?,
        };
        let outgoing = batch.iter().enumerate().map(|(at, write)| {
            let spot = spots.get(at).copied();
            let offset = || write.page.0 * self.page_size.bytes_u64();
            let offset = spot.map_or_else(offset, |spot| spot.offset(self.page_size));
            let stored = stored.of(self.page_size, at).unwrap_or(write.bytes);
            Outgoing::new(at, offset, stored).tagged(write.page, write.reason)
        });
        let results = self.send(outgoing.collect());
        let mut first_error = Ok(());
        for (at, result) in results {
            let Some(write) = batch.get_mut(at) else { continue };
            let error = result.map_err(|error| WriteError::Device { page: write.page, error });
            write.written = error.is_ok();
            self.count_write(write);
            first_error = first_error.and(error);
        }
        self.enter(&batch, &spots);
        first_error
    }

    /// Returns the stored form of sealed pages, compressed if the store compresses.
    pub(super) fn stored<'p>(&self, pages: impl ExactSizeIterator<Item = &'p [u8]>) -> Stored {
        if self.compression() == Compression::None {
            let units = vec![None; pages.len()];
            return Stored { packed: AlignedBuffer::new(0), units };
        }
        let size = self.page_size;
        let mut packed = AlignedBuffer::new(pages.len() * size.bytes());
        let room = packed.chunks_mut(size.bytes());
        let mut packer = Packer::new(size);
        let units = pages.zip(room).map(|(page, room)| packer.pack(page, room)).collect();
        Stored { packed, units }
    }

    /// Writes adjacent bytes together; returns the result of each, in any order.
    pub(super) fn send(
        &self,
        mut outgoing: Vec<Outgoing<'_>>,
    ) -> Vec<(usize, Result<(), DeviceError>)> {
        outgoing.sort_unstable_by_key(|out| out.offset);
        let runs = runs(outgoing.iter().map(|out| (out.offset, out.stored.len())));
        debug_assert_eq!(
            runs.iter().map(|run| run.count).sum::<usize>(),
            outgoing.len(),
            "each once"
        );
        let parts: Vec<IoSlice<'_>> = outgoing.iter().map(|out| IoSlice::new(out.stored)).collect();
        // All of a batch have a tag, or none.
        let tags: Vec<Tag> = outgoing.iter().filter_map(|out| out.tag).collect();
        let mut requests = Vec::with_capacity(runs.len());
        let (mut rest, mut rest_tags) = (&parts[..], &tags[..]);
        for run in &runs {
            let (parts, others) = rest.split_at(run.count);
            let (tags, other_tags) = rest_tags.split_at(run.count.min(rest_tags.len()));
            (rest, rest_tags) = (others, other_tags);
            requests.push(WriteRequest::new(run.offset, parts).tagged(tags));
        }
        Counters::add(&self.counters.write_requests, requests.len());
        self.device.write_batch(&mut requests);
        let answers: Vec<_> = requests.into_iter().map(|request| request.result).collect();
        let mut results = Vec::with_capacity(outgoing.len());
        let mut written = outgoing.iter();
        for (run, answer) in runs.iter().zip(answers) {
            for out in written.by_ref().take(run.count) {
                let result = match &answer {
                    // One bad place fails the whole request, so its neighbours are written
                    // separately.
                    Err(_) if run.count > 1 => {
                        Counters::add(&self.counters.write_requests, 1);
                        self.device.write(out.offset, out.stored)
                    }
                    other => other.clone(),
                };
                if result.is_ok() {
                    Counters::add(&self.counters.bytes_written, out.stored.len());
                }
                results.push((out.at, result));
            }
        }
        results
    }

    fn reserve_of_map(&self) -> u64 {
        self.map().map_or(0, |map| map.reserve())
    }

    /// Enters the new places of written pages into the page map.
    fn enter(&self, batch: &[&mut PageWrite<'_>], spots: &[Spot]) {
        let Some(mut map) = self.map() else { return };
        for (write, spot) in batch.iter().zip(spots) {
            if write.written {
                let checksum = PageHeader::read(write.bytes).checksum;
                map.set(write.page, MapEntry::new(*spot, checksum));
            } else {
                // Nothing refers to it, and it is not tried again at once.
                map.supersede(*spot);
            }
        }
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
    /// The device does not confirm the sync, or did not confirm an earlier one.
    pub fn sync(&self) -> Result<(), SyncError> {
        let _gate = self.usable()?;
        self.sync_now(|| self.device.sync())
    }

    /// Makes writes of these pages durable; others may become durable, too.
    ///
    /// # Errors
    /// Same as [`PageStore::sync`].
    pub fn sync_pages(&self, pages: &[Range<PageId>]) -> Result<(), SyncError> {
        let _gate = self.usable()?;
        if self.map.is_some() {
            // Their places can be anywhere.
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
        let mut failed = self.sync_failed.lock().past_poison();
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

/// Returns `true` if the bytes read differ from those written.
fn is_damage(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Checksum { .. } | ReadError::Misplaced { .. } | ReadError::Stale { .. }
    )
}

impl Stored {
    /// Returns the stored bytes of page `at` of the batch, if it is compressed.
    pub(super) fn of(&self, size: PageSize, at: usize) -> Option<&[u8]> {
        let units = self.units.get(at).copied().flatten()?;
        let begin = at * size.bytes();
        self.packed.get(begin..begin + units as usize * size.unit())
    }
}

/// Verifies that `bytes` are those written as `page`; `at` is the place they were read from.
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
        return Err(ReadError::Misplaced { path, page, offset, found });
    }
    Err(ReadError::Checksum { path, page, offset, stored, computed })
}
