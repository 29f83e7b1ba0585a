//! The storage below the pool: a page store, or tiers of them.

use millpond_base::{FrameId, PageId, Reason};

use crate::io::{PageRead, PageStore, PageWrite};
use crate::page::superblock::{Compression, Placement};
use crate::pool::error::PoolError;

/// A page to be written: a private copy, with every swip in its evicted form.
pub struct PageOut<'a> {
    /// Id of the page.
    pub page: PageId,
    /// Reason for the write (li 2.2).
    pub reason: Reason,
    /// Bytes of the page, aligned to 512; the storage puts the checksum in.
    pub bytes: &'a mut [u8],
}

/// A page to be read, with its frame and the result of the read.
#[derive(Debug)]
pub struct PageIn<'a> {
    /// Id of the page.
    pub page: PageId,
    /// The frame into which the page is read.
    pub frame: FrameId,
    /// The frame's page, to read into.
    pub bytes: &'a mut [u8],
    /// The result of the read.
    pub result: Result<(), PoolError>,
}

impl<'a> PageIn<'a> {
    /// Returns the request to read page `page` into `bytes`, the memory of `frame`.
    pub fn new(page: PageId, frame: FrameId, bytes: &'a mut [u8]) -> PageIn<'a> {
        PageIn { page, frame, bytes, result: Ok(()) }
    }
}

/// Storage for pages. All calls may block on I/O, and come from many threads.
pub trait Storage: Send + Sync {
    /// Returns the bytes of a page.
    fn page_size(&self) -> usize;

    /// Returns whether a new version of a page is written over the old one. If not, storage has a
    /// whole version of each page whenever the power fails, and a log needs no images of pages.
    fn is_in_place(&self) -> bool {
        true
    }

    /// Returns the number of pages that can exist now; all ids are below it.
    fn pages(&self) -> u64;

    /// Reads `page` into `bytes`, and verifies that it is the page that was written.
    ///
    /// # Errors
    /// The page cannot be read, or is damaged.
    fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), PoolError>;

    /// Reports that the bytes read for `page` are sound, and cannot be the page: a cache below
    /// drops its copy, so that the next read comes from the store.
    fn distrust(&self, _page: PageId) {}

    /// Returns whether pages are compressed when they are written.
    fn compresses(&self) -> bool {
        false
    }

    /// Reads several pages, as many at a time as suits the device; each request gets its own
    /// result.
    fn read_batch(&self, reads: &mut [PageIn<'_>]) {
        for read in reads {
            read.result = self.read(read.page, read.bytes);
        }
    }

    /// Writes pages, in any order. Durable only after a sync.
    ///
    /// # Errors
    /// At least one was not written; any of them may have been.
    fn write(&self, pages: &mut [PageOut<'_>]) -> Result<(), PoolError>;

    /// Makes all writes that have returned durable.
    ///
    /// # Errors
    /// The storage does not confirm; it is unknown which writes are durable.
    fn sync(&self) -> Result<(), PoolError> {
        Ok(())
    }

    /// Allocates pages, at least one and `count` at most, and appends their ids to `ids`.
    ///
    /// # Errors
    /// There is no room for more pages.
    fn allocate(&self, count: u32, ids: &mut Vec<PageId>) -> Result<(), PoolError>;

    /// Returns whether the next checkpoint will free places to which pages can be written.
    fn waits_for_checkpoint(&self) -> bool {
        false
    }

    /// Allocates up to `count` pages for undo. If there is no room for more pages, storage provides
    /// the pages that it keeps for undo.
    ///
    /// # Errors
    /// See [`Storage::allocate`].
    fn allocate_for_undo(&self, count: u32, ids: &mut Vec<PageId>) -> Result<(), PoolError> {
        self.allocate(count, ids)
    }

    /// Allocates the free page with the lowest id, if that is below `bound`. Does no I/O, since
    /// latches are held.
    fn allocate_below(&self, _bound: PageId) -> Option<PageId> {
        None
    }

    /// Frees `page`.
    ///
    /// # Errors
    /// `page` is reserved, out of range, or already free.
    fn free(&self, page: PageId) -> Result<(), PoolError>;
}

impl Storage for PageStore {
    fn page_size(&self) -> usize {
        PageStore::page_size(self).bytes()
    }

    fn is_in_place(&self) -> bool {
        self.placement() == Placement::InPlace
    }

    fn compresses(&self) -> bool {
        self.compression() != Compression::None
    }

    fn pages(&self) -> u64 {
        PageStore::pages(self)
    }

    fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), PoolError> {
        PageStore::read(self, page, bytes).map_err(PoolError::storage)
    }

    fn distrust(&self, page: PageId) {
        PageStore::distrust(self, page);
    }

    fn read_batch(&self, reads: &mut [PageIn<'_>]) {
        let mut batch: Vec<_> = reads
            .iter_mut()
            .map(|PageIn { page, bytes, result, .. }| PageRead::tagged(*page, bytes, result))
            .collect();
        PageStore::read_batch(self, &mut batch);
        for PageRead { result, tag: place, .. } in batch {
            *place = result.map_err(PoolError::storage);
        }
    }

    fn write(&self, pages: &mut [PageOut<'_>]) -> Result<(), PoolError> {
        let mut batch: Vec<PageWrite<'_>> =
            pages.iter_mut().map(|p| PageWrite::new(p.page, p.reason, p.bytes)).collect();
        PageStore::write_batch(self, &mut batch).map_err(PoolError::storage)
    }

    fn sync(&self) -> Result<(), PoolError> {
        PageStore::sync(self).map_err(PoolError::storage)
    }

    fn allocate(&self, count: u32, ids: &mut Vec<PageId>) -> Result<(), PoolError> {
        ids.extend(self.allocate_up_to(count as usize).map_err(PoolError::storage)?);
        Ok(())
    }

    fn waits_for_checkpoint(&self) -> bool {
        self.superseded_bytes() > 0
    }

    fn allocate_for_undo(&self, count: u32, ids: &mut Vec<PageId>) -> Result<(), PoolError> {
        let count = count as usize;
        ids.extend(PageStore::allocate_for_undo(self, count).map_err(PoolError::storage)?);
        Ok(())
    }

    fn allocate_below(&self, bound: PageId) -> Option<PageId> {
        self.take_below(bound)
    }

    fn free(&self, page: PageId) -> Result<(), PoolError> {
        PageStore::free(self, page).map_err(PoolError::storage)
    }
}
