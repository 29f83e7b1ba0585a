//! Pages on a device: read with verification, written in batches, allocated and freed.
//!
//! A store file is an array of pages of one size. Page 0 is the superblock, some more are maps of
//! free pages (`page::superblock` and `page::free_map` draw both); all others belong to the
//! structures that allocated them. Every page carries a checksum seeded with its id, so that
//! neither a damaged page nor one that landed in the wrong place is ever taken for good.
//!
//! - **Life.** Opening for writing durably marks the superblock as open; closing writes the free
//!   maps, syncs, marks it as clean and syncs again. In between the free map is in
//!   memory only. A store that was not closed is opened again by way of its log
//!   (`open_to_recover`), which knows what is in use; without one `open_for_salvage` reads what is
//!   there.
//! - **Growth** is by half of the size until that is 1 MiB, by an eighth of it from 8 MiB on, at
//!   least 256 KiB and at most 64 MiB, in zeros that are really written (`io::file` says why). One
//!   thread grows; others that find no free page wait for it, and those that free pages do not.
//! - **Locks**: `free` is held for the few steps of a bitmap, never during I/O. `growing` comes
//!   before `free`. `gate` is held shared by everything that changes the file and exclusively by
//!   closing, so that nothing is written after the store was marked as clean. `anchor` is held
//!   while the superblock of an open store is written.
//! - **A failed sync is remembered**: the kernel reports a failed write-back once, so a
//!   later success would mean nothing. The store can be read, and not be closed cleanly.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, RwLockReadGuard};

use millpond_base::sync::unmodelled::{Mutex, RwLock};
use millpond_base::{Lsn, PageId};

use super::batch::{PageRead, PageWrite, runs};
use super::bitmap::Bitmap;
use super::counts::Counters;
use super::counts::StoreCounts;
use super::device::Device;
use super::device::ReadRequest;
use super::device::WriteRequest;
use super::error::DeviceError;
use super::store_error::AllocateError;
use super::store_error::FreeError;
use super::store_error::ReadError;
use super::store_error::SyncError;
use super::store_error::WriteError;
use crate::io::simulated::planted::planted;
use crate::page::superblock::Superblock;
use crate::page::{PageHeader, PageSize, free_map};

/// What a store may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Write,
    Read,
    Salvage,
}

/// Where everything begins that is found by way of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Anchor {
    /// Where recovery begins; 0 without a log.
    pub(super) log_position: Lsn,
    /// Root of the catalog.
    pub(super) catalog_root: Option<PageId>,
}

/// Pages on a device. All methods take `&self` and may be called from any number of threads.
pub struct PageStore {
    pub(super) device: Arc<dyn Device>,
    pub(super) page_size: PageSize,
    pub(super) access: Access,
    /// The superblock as it was read; `None` if a salvaged store has none that is sound.
    pub(super) superblock: Option<Superblock>,
    /// What of the superblock changes while the store is open.
    pub(super) anchor: Mutex<Anchor>,
    /// Length in pages. Changes under `growing`.
    pub(super) pages: AtomicU64,
    pub(super) free: Mutex<Bitmap>,
    pub(super) growing: Mutex<()>,
    pub(super) gate: RwLock<()>,
    /// Set under `gate`.
    pub(super) closed: AtomicBool,
    /// Whether a sync ever failed. Held while one runs: a kernel may tell of lost writes only once,
    /// so that a sync beside the one that is told would confirm them.
    sync_failed: Mutex<bool>,
    pub(super) counters: Counters,
}

impl std::fmt::Debug for PageStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageStore")
            .field("path", &self.path())
            .field("page_size", &self.page_size)
            .field("access", &self.access)
            .field("pages", &self.pages())
            .finish_non_exhaustive()
    }
}

/// What `usable` found instead.
pub(super) enum Unusable {
    ReadOnly,
    Closed,
}

macro_rules! from_unusable {
    ($($error:ident),*) => {$(
        impl From<Unusable> for $error {
            fn from(why: Unusable) -> $error {
                match why {
                    Unusable::ReadOnly => $error::ReadOnly,
                    Unusable::Closed => $error::Closed,
                }
            }
        }
    )*};
}
from_unusable!(WriteError, AllocateError, FreeError, SyncError);

impl PageStore {
    /// A store over `device`, whose pages the caller has looked at.
    pub(super) fn over(
        device: Arc<dyn Device>,
        page_size: PageSize,
        access: Access,
        superblock: Option<Superblock>,
        free: Bitmap,
    ) -> PageStore {
        let anchor = superblock.map_or(Anchor::default(), |block| Anchor {
            log_position: block.log_position,
            catalog_root: block.catalog_root,
        });
        PageStore {
            device,
            page_size,
            access,
            superblock,
            anchor: Mutex::new(anchor),
            pages: AtomicU64::new(free.pages()),
            free: Mutex::new(free),
            growing: Mutex::new(()),
            gate: RwLock::new(()),
            closed: AtomicBool::new(false),
            sync_failed: Mutex::new(false),
            counters: Counters::default(),
        }
    }

    /// Name of the store's device.
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// The device under the store.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Size of all pages.
    #[inline]
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// Tells this store from all others; zeros if a salvaged store's superblock is lost.
    pub fn uuid(&self) -> [u8; 16] {
        self.superblock.map_or([0; 16], |block| block.uuid)
    }

    /// The superblock as it was when the store was opened; `None` if a salvaged store has none
    /// that is sound.
    pub fn superblock(&self) -> Option<&Superblock> {
        self.superblock.as_ref()
    }

    /// Root of the catalog as the superblock has it: as of the last clean close, or the last
    /// [`PageStore::set_log_position`] since.
    pub fn catalog_root(&self) -> Option<PageId> {
        self.anchor().catalog_root
    }

    /// Where recovery would begin; 0 for a store without a log.
    pub fn log_position(&self) -> Lsn {
        self.anchor().log_position
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.access != Access::Write
    }

    /// Length in pages, the store's own and free ones included.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Acquire)
    }

    /// Pages that are free. 0 for a store that is salvaged: what is free is not known there.
    pub fn free_pages(&self) -> u64 {
        self.free_map().free_pages()
    }

    /// Pages in use, the store's own included.
    pub fn allocated_pages(&self) -> u64 {
        let free = self.free_map();
        debug_assert!(free.free_pages() <= free.pages(), "free pages are pages of the store");
        free.pages() - free.free_pages()
    }

    /// Whether `page` exists and is in use, as the store's own pages always are.
    pub fn is_allocated(&self, page: PageId) -> bool {
        let free = self.free_map();
        page.0 < free.pages() && free.is_taken(page.0)
    }

    /// Whether `page` is the superblock or a free map.
    pub fn is_reserved(&self, page: PageId) -> bool {
        free_map::is_reserved(self.page_size, page)
    }

    /// What the store has done since it was opened.
    pub fn counts(&self) -> StoreCounts {
        self.counters.snapshot(self.page_size.bytes_u64())
    }

    pub(super) fn free_map(&self) -> MutexGuard<'_, Bitmap> {
        // A thread that panicked between two steps of the map is a bug in the map; its words are
        // valid at each step, so the rest of the program may go on.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn anchor(&self) -> MutexGuard<'_, Anchor> {
        // It is replaced as a whole.
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offset_of(&self, page: PageId) -> u64 {
        page.0 * self.page_size.bytes_u64()
    }

    /// Keeps the store from being closed while it is changed.
    pub(super) fn usable(&self) -> Result<RwLockReadGuard<'_, ()>, Unusable> {
        if self.access != Access::Write {
            return Err(Unusable::ReadOnly);
        }
        let gate = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) { Err(Unusable::Closed) } else { Ok(gate) }
    }

    /// Reads `page` into `bytes`, which are one page long, and verifies that it is what was written
    /// as that page.
    ///
    /// # Errors
    /// If the device fails, the page is damaged or misplaced, or there is no such page. The
    /// contents of `bytes` are then anything.
    pub fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), ReadError> {
        let answer =
            self.check_read(page, bytes.len()).and_then(|()| self.read_and_verify(page, bytes));
        self.count_read(&answer);
        answer
    }

    fn read_and_verify(&self, page: PageId, bytes: &mut [u8]) -> Result<(), ReadError> {
        Counters::add(&self.counters.read_requests, 1);
        self.device
            .read(self.offset_of(page), bytes)
            .map_err(|error| ReadError::Device { page, error })?;
        self.verify(page, bytes)
    }

    /// Reads all pages of `batch`, adjacent ones together and as many at once as the device is
    /// good at. Each entry tells how it went; the batch keeps the order in which it came.
    pub fn read_batch<T>(&self, batch: &mut [PageRead<'_, T>]) {
        // Requests are sorted, not the batch: what the caller knows of its n-th entry stays true.
        let mut wanted = Vec::with_capacity(batch.len());
        for read in batch.iter_mut() {
            read.result = self.check_read(read.page, read.bytes.len());
            if read.result.is_ok() {
                wanted.push(read);
            }
        }
        wanted.sort_unstable_by_key(|read| read.page);
        let runs = runs(self.page_size, wanted.iter().map(|read| read.page));
        debug_assert_eq!(
            runs.iter().map(|run| run.count).sum::<usize>(),
            wanted.len(),
            "each once"
        );
        let mut parts: Vec<IoSliceMut<'_>> =
            wanted.iter_mut().map(|read| IoSliceMut::new(read.bytes)).collect();
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
            for read in wanted.by_ref().take(run.count) {
                let (page, bytes) = (read.page, &mut *read.bytes);
                read.result = match &result {
                    Ok(()) => self.verify(page, bytes),
                    // One bad page fails the whole request: its neighbours are read apart.
                    Err(_) if run.count > 1 => self.read_and_verify(page, bytes),
                    Err(source) => Err(ReadError::Device { page, error: source.clone() }),
                };
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
        if matches!(answer, Err(ReadError::Checksum { .. } | ReadError::Misplaced { .. })) {
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

    /// Verifies that `bytes` are what was written as page `page`.
    pub(super) fn verify(&self, page: PageId, bytes: &[u8]) -> Result<(), ReadError> {
        let header = PageHeader::read(bytes);
        let computed = PageHeader::checksum_of(page, bytes);
        let (stored, found) = (header.checksum, header.page);
        if stored == computed && found == page {
            return Ok(());
        }
        let (path, offset) = (self.path().to_path_buf(), self.offset_of(page));
        if stored == computed || stored == PageHeader::checksum_of(found, bytes) {
            planted!(OtherPageAccepted, return Ok(()));
            return Err(ReadError::Misplaced { path, page, offset, found });
        }
        Err(ReadError::Checksum { path, page, offset, stored, computed })
    }

    /// Seals all pages of `batch` and writes them, adjacent ones together and as many at once as
    /// the device is good at. Entries that were written are marked; the batch keeps the order in
    /// which it came. Durable after [`PageStore::sync`].
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
        let runs = runs(self.page_size, batch.iter().map(|write| write.page));
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
        let mut writes = batch.into_iter();
        for (run, result) in runs.iter().zip(results) {
            for write in writes.by_ref().take(run.count) {
                let result = match &result {
                    // One bad place fails the whole request: its neighbours are written apart.
                    Err(_) if run.count > 1 => self.write_one(write),
                    other => other.clone(),
                };
                let error = result.map_err(|error| WriteError::Device { page: write.page, error });
                write.written = error.is_ok();
                self.count_write(write);
                first_error = first_error.and(error);
            }
        }
        first_error
    }

    fn write_one(&self, write: &PageWrite<'_>) -> Result<(), DeviceError> {
        Counters::add(&self.counters.write_requests, 1);
        self.device.write(self.offset_of(write.page), write.bytes)
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
        let end = self.pages();
        let offset = |page: PageId| PageId(page.0.min(end)).0 * self.page_size.bytes_u64();
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
