//! Copying a store's pages while they are written: what a page store does for a backup.
//!
//! Pages are copied as they are on storage, in the order of the file, and no thread waits for that.
//!
//! - *Out of place*, what is copied is what a durable map refers to, its nodes among it. The caller
//!   keeps these places (`pin_places`), so nothing of it changes meanwhile. The copy has it at the
//!   same places, and zeros in between.
//! - *In place*, a page that is written meanwhile may be copied torn; redo rebuilds it from the log
//!   (`admin/backup.rs` has the argument), so a page that does not verify here is no error. It is
//!   listed, and verified again after the copy was recovered: then it must be sound. So it is out
//!   of place, where the log may have made it anew, too.

use std::sync::Arc;

use millpond_base::{Lsn, PageId};

use super::buffer::AlignedBuffer;
use super::device::Device;
use super::error::DeviceError;
use super::open::superblock_of;
use super::open::write_superblock;
use super::placement::map_read::{MapError, read_map};
use super::store::PageStore;
use super::store_error::OpenError;
use super::store_error::ReadError;
use super::transfer::verify;
use crate::page::packed::unpack;
use crate::page::superblock::{Superblock, new_uuid};
use crate::page::{MapEntry, PageHeader, Spot};

/// The error of a copy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A page of the store could not be read.
    #[error(transparent)]
    Source(ReadError),
    /// The page map of the store could not be read.
    #[error(transparent)]
    Map(Box<MapError>),
    /// The copy could not be written.
    #[error(transparent)]
    Target(DeviceError),
}

/// A copy in progress.
pub struct PageCopy<'s> {
    store: &'s PageStore,
    /// One bit per place, as [`PageStore::restore_map`] takes them.
    taken: Vec<u64>,
    /// Places that are copied.
    pages: u64,
    /// What is where, in the order of the file, as the durable map says; `None` where pages are
    /// written in place.
    contents: Option<Vec<(MapEntry, PageId)>>,
    /// Root of the durable map, and the page ids that it is of.
    map_root: (MapEntry, u64),
    /// Pages copied.
    done: u64,
    unsound: Vec<PageId>,
}

impl PageStore {
    /// A copy of the first `pages` pages, which are written in place: of those that are `taken`
    /// what is on the device, zeros of all others.
    pub fn copy_pages(&self, taken: Vec<u64>, pages: u64) -> PageCopy<'_> {
        let pages = pages.min(self.pages());
        let (contents, map_root) = (None, (MapEntry::NONE, pages));
        PageCopy { store: self, taken, pages, contents, map_root, done: 0, unsound: Vec::new() }
    }

    /// Root of the durable page map, and the page ids that it is of.
    pub fn map_root(&self) -> (MapEntry, u64) {
        self.anchor().map_root
    }

    /// A copy of what the durable page map at `map_root` refers to, whose places are kept by
    /// [`PageStore::pin_places`].
    ///
    /// # Errors
    /// If the map cannot be read.
    pub fn copy_places(&self, map_root: (MapEntry, u64)) -> Result<PageCopy<'_>, CopyError> {
        let Some(superblock) = self.superblock() else {
            return Ok(self.copy_pages(Vec::new(), 0));
        };
        let (root, ids) = map_root;
        let superblock = Superblock { map_root: root, pages: ids, ..*superblock };
        let map = read_map(&*self.device, &superblock, true).map_err(CopyError::Map)?;
        let (taken, pages) = map.taken_places();
        let mut contents: Vec<(MapEntry, PageId)> = Vec::with_capacity(map.placed() as usize);
        let placed = map.placed_from(0, PageId(0), usize::MAX);
        contents.extend(placed.into_iter().map(|(page, entry)| (entry, page)));
        contents.sort_unstable_by_key(|(entry, _)| entry.place());
        let (contents, done, unsound) = (Some(contents), 0, Vec::new());
        Ok(PageCopy { store: self, taken, pages, contents, map_root, done, unsound })
    }

    /// Makes the store on `device`, which is closed, one of its own: it gets another id, and needs
    /// no log; one that is beside it is that of another store from now on.
    ///
    /// # Errors
    /// If the device holds no store, one that was not closed, or fails.
    pub fn renew(device: &dyn Device) -> Result<(), OpenError> {
        let superblock = superblock_of(device, None)?;
        if !superblock.clean {
            return Err(OpenError::NotClean { path: device.path().to_path_buf() });
        }
        let renewed = Superblock { uuid: new_uuid(), log_position: Lsn(0), ..superblock };
        write_superblock(device, &renewed)?;
        Ok(device.sync()?)
    }
}

impl PageCopy<'_> {
    /// Bytes that are copied, and that there are.
    pub fn progress(&self) -> (u64, u64) {
        let page_bytes = self.store.page_size().bytes_u64();
        (self.done * page_bytes, self.pages * page_bytes)
    }

    /// Appends the next pages to `target`, which was empty at first: not more than `buffer` holds,
    /// and one at least. Returns whether there was anything left.
    ///
    /// # Errors
    /// If the store cannot be read or `target` not be written. The copy is then of no use.
    pub fn step(
        &mut self,
        target: &dyn Device,
        buffer: &mut AlignedBuffer,
    ) -> Result<bool, CopyError> {
        let page_bytes = self.store.page_size().bytes();
        debug_assert!(self.done <= self.pages, "no more pages are copied than there are");
        if self.done >= self.pages {
            return Ok(false);
        }
        if buffer.len() < page_bytes {
            *buffer = AlignedBuffer::new(page_bytes);
        }
        let count = ((buffer.len() / page_bytes) as u64).min(self.pages - self.done);
        let bytes = &mut buffer[..count as usize * page_bytes];
        bytes.fill(0);
        let mut page = self.done;
        let end = self.done + count;
        while page < end {
            let first = page;
            let is_taken = self.is_taken(first);
            while page < end && self.is_taken(page) == is_taken {
                page += 1;
            }
            if is_taken {
                let run = (first - self.done) as usize..(page - self.done) as usize;
                self.read(first, &mut bytes[run.start * page_bytes..run.end * page_bytes])?;
            }
        }
        target.append(bytes).map_err(CopyError::Target)?;
        self.done = end;
        Ok(true)
    }

    /// Whether the page is to be copied; the store's own pages are not.
    fn is_taken(&self, page: u64) -> bool {
        let word = self.taken.get((page / 64) as usize).copied().unwrap_or(0);
        word & (1 << (page % 64)) != 0 && !self.store.is_reserved(PageId(page))
    }

    /// Which pages are not sound of what was read at `place`.
    fn unsound(&self, place: u64, bytes: &[u8]) -> Vec<PageId> {
        let at = || (self.store.path().to_path_buf(), 0);
        let Some(contents) = &self.contents else {
            let page = PageId(place);
            return verify(page, bytes, at).err().map(|_| page).into_iter().collect();
        };
        // Nodes of the map were read just now.
        let first = contents.partition_point(|(entry, _)| entry.place() < Some(place));
        let here = contents.iter().skip(first).take_while(|(e, _)| e.place() == Some(place));
        here.filter(|(entry, page)| !self.is_sound(*page, *entry, bytes)).map(|of| of.1).collect()
    }

    /// Whether what was read at a place holds the version of `page` that `entry` means.
    fn is_sound(&self, page: PageId, entry: MapEntry, bytes: &[u8]) -> bool {
        let size = self.store.page_size();
        let is_meant = |page_bytes: &[u8]| {
            entry.is_of(PageHeader::read(page_bytes).checksum)
                && PageHeader::is_sound(page, page_bytes)
        };
        match entry.spot().and_then(Spot::units) {
            None => is_meant(bytes),
            Some((first, units)) => {
                let range = first as usize * size.unit()..(first + units) as usize * size.unit();
                let mut unpacked = vec![0; size.bytes()];
                bytes.get(range).is_some_and(|stored| unpack(stored, &mut unpacked))
                    && is_meant(&unpacked)
            }
        }
    }

    /// Reads places from `first` on into `bytes`.
    fn read(&mut self, first: u64, bytes: &mut [u8]) -> Result<(), CopyError> {
        let page_bytes = self.store.page_size().bytes();
        let read = |place: u64, bytes: &mut [u8]| {
            self.store.device().read(place * page_bytes as u64, bytes)
        };
        debug_assert!(bytes.len().is_multiple_of(page_bytes), "whole pages are read");
        let is_read = read(first, bytes).is_ok();
        for (place, bytes) in (first..).zip(bytes.chunks_exact_mut(page_bytes)) {
            if is_read && self.unsound(place, bytes).is_empty() {
                continue;
            }
            // One bad page fails the whole request, so its neighbours are read apart; and what is
            // not sound may have been read during a write, or wrongly only this once.
            read(place, bytes).map_err(|error| {
                let page = PageId(place);
                CopyError::Source(ReadError::Device { page, error })
            })?;
            self.unsound.extend(self.unsound(place, bytes));
        }
        Ok(())
    }

    /// Writes the superblock, when all pages are copied: that of a store that was not closed, and
    /// whose recovery begins at `position` of its log. Returns which pages did not verify
    /// themselves: the log has them, or they are damaged.
    ///
    /// # Errors
    /// If `target` cannot be written or synced.
    pub fn finish(
        self,
        target: &dyn Device,
        position: Lsn,
        catalog_root: Option<PageId>,
    ) -> Result<Vec<PageId>, CopyError> {
        debug_assert_eq!(self.done, self.pages, "the superblock is written behind all pages");
        if let Some(superblock) = self.store.superblock().copied() {
            let ((map_root, pages), clean) = (self.map_root, false);
            let pid = std::process::id();
            let open = Superblock {
                pages,
                map_root,
                catalog_root,
                log_position: position,
                clean,
                pid,
                ..superblock
            };
            write_superblock(target, &open).map_err(CopyError::Target)?;
        }
        target.sync().map_err(CopyError::Target)?;
        Ok(self.unsound)
    }
}

impl std::fmt::Debug for PageCopy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageCopy").field("done", &self.done).field("pages", &self.pages).finish()
    }
}

/// The first of `pages` that the closed store on `device` has in use and cannot read.
///
/// # Errors
/// If the device holds no store that was closed, or fails.
pub fn first_damaged(
    device: Arc<dyn Device>,
    pages: &[PageId],
) -> Result<Option<ReadError>, OpenError> {
    let store = PageStore::open_on(device, None, true)?;
    let mut bytes = AlignedBuffer::new(store.page_size().bytes());
    let used = pages.iter().filter(|page| store.is_allocated(**page));
    let mut damaged = used.filter_map(|page| store.read(*page, &mut bytes).err());
    Ok(damaged.next())
}
