//! Copies of a store's pages while they are written, for a backup.
//!
//! Pages are copied from storage as they are, in the order of the file, and no thread waits for the
//! copy.
//!
//! - *Out of place*, the copy has everything that a durable map refers to, including its nodes. The
//!   caller keeps these places (`pin_places`), so none of it changes in the meantime. The copy has
//!   the same places, with zeros in between.
//! - *In place*, a page that is written in the meantime may be copied torn. Redo rebuilds it from
//!   the log (`admin/backup.rs` has the argument), so a page that fails verification here is not an
//!   error. It is listed, and verified again after the copy was recovered: then it must be sound.
//!   The same holds out of place, where the log may have rebuilt a page, too.

use std::sync::Arc;

use millpond_base::uuid::new_uuid;
use millpond_base::{Lsn, PageId};
use millpond_device::{AlignedBuffer, Device, DeviceError};

use super::open::superblock_of;
use super::open::write_superblock;
use super::placement::map_read::{MapError, read_map};
use super::store::PageStore;
use super::store_error::OpenError;
use super::store_error::ReadError;
use super::transfer::verify;
use crate::page::packed::unpack;
use crate::page::superblock::Superblock;
use crate::page::{MapEntry, PageHeader, Spot};

/// Error of a copy.
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
    /// One bit per grain, in the form that [`PageStore::restore_map`] takes.
    taken: Vec<u64>,
    /// Places per grain: nothing is stored across its end.
    grain: u64,
    /// Number of grains to copy.
    grains: u64,
    /// Pages with their places by the durable map, in file order; `None` if pages are written in
    /// place.
    contents: Option<Vec<(MapEntry, PageId)>>,
    /// Root of the durable map, and its number of page ids.
    map_root: (MapEntry, u64),
    /// Number of grains copied.
    done: u64,
    unsound: Vec<PageId>,
}

impl PageStore {
    /// Begins a copy of the first `pages` pages, which are written in place. Pages in `taken` are
    /// read from the device; all others are zeros.
    pub fn copy_pages(&self, taken: Vec<u64>, pages: u64) -> PageCopy<'_> {
        let pages = pages.min(self.pages());
        let (contents, map_root) = (None, (MapEntry::NONE, pages));
        let (grain, grains, done, unsound) = (1, pages, 0, Vec::new());
        PageCopy { store: self, taken, grain, grains, contents, map_root, done, unsound }
    }

    /// Returns the root of the durable page map, and its number of page ids.
    pub fn map_root(&self) -> (MapEntry, u64) {
        self.anchor().map_root
    }

    /// Begins a copy of everything that the durable page map at `map_root` refers to.
    /// [`PageStore::pin_places`] keeps the places.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn copy_places(&self, map_root: (MapEntry, u64)) -> Result<PageCopy<'_>, CopyError> {
        let Some(superblock) = self.superblock() else {
            return Ok(self.copy_pages(Vec::new(), 0));
        };
        let (root, ids) = map_root;
        let superblock = Superblock { map_root: root, pages: ids, ..*superblock };
        let map = read_map(&*self.device, &superblock, true).map_err(CopyError::Map)?;
        let (taken, grain) = map.used_grains();
        let words = (0..).zip(&taken).filter(|(_, word)| **word != 0);
        let ends = words.map(|(at, word)| at * 64 + 64 - u64::from(word.leading_zeros()));
        let grains = ends.max().unwrap_or(0);
        let mut contents: Vec<(MapEntry, PageId)> = Vec::with_capacity(map.placed() as usize);
        let placed = map.placed_from(0, PageId(0), usize::MAX);
        contents.extend(placed.into_iter().map(|(page, entry)| (entry, page)));
        contents.sort_unstable_by_key(|(entry, _)| entry.place());
        let (contents, done, unsound) = (Some(contents), 0, Vec::new());
        Ok(PageCopy { store: self, taken, grain, grains, contents, map_root, done, unsound })
    }

    /// Makes the closed store on `device` independent: it gets a new id, and needs no log. A log
    /// beside it belongs to another store from now on.
    ///
    /// # Errors
    /// The device holds no store, or one that was not closed, or it fails.
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
    /// Returns the bytes copied so far, and the bytes in all.
    pub fn progress(&self) -> (u64, u64) {
        let bytes = self.grain_bytes() as u64;
        (self.done * bytes, self.grains * bytes)
    }

    fn grain_bytes(&self) -> usize {
        self.grain as usize * self.store.page_size().bytes()
    }

    /// Appends the next pages to `target`, which was empty at first: as many as fit into `buffer`,
    /// and at least one grain. Returns `true` if there was anything left to copy.
    ///
    /// # Errors
    /// The store cannot be read, or `target` cannot be written; the copy is then useless.
    pub fn step(
        &mut self,
        target: &dyn Device,
        buffer: &mut AlignedBuffer,
    ) -> Result<bool, CopyError> {
        let grain_bytes = self.grain_bytes();
        debug_assert!(self.done <= self.grains, "no more is copied than there is");
        if self.done >= self.grains {
            return Ok(false);
        }
        if buffer.len() < grain_bytes {
            *buffer = AlignedBuffer::new(grain_bytes);
        }
        let count = ((buffer.len() / grain_bytes) as u64).min(self.grains - self.done);
        let bytes = &mut buffer[..count as usize * grain_bytes];
        bytes.fill(0);
        let mut grain = self.done;
        let end = self.done + count;
        while grain < end {
            let first = grain;
            let is_taken = self.is_taken(first);
            while grain < end && self.is_taken(grain) == is_taken {
                grain += 1;
            }
            if is_taken {
                let run = (first - self.done) as usize..(grain - self.done) as usize;
                self.read(first, &mut bytes[run.start * grain_bytes..run.end * grain_bytes])?;
            }
        }
        if self.done == 0
            && let Some(superblock) = bytes.get_mut(..self.store.page_size().bytes())
        {
            // The copy must not look like a store before it is complete.
            superblock.fill(0);
        }
        target.append(bytes).map_err(CopyError::Target)?;
        self.done = end;
        Ok(true)
    }

    /// Returns `true` if the grain is to be copied. The store's own pages are not copied.
    fn is_taken(&self, grain: u64) -> bool {
        let word = self.taken.get((grain / 64) as usize).copied().unwrap_or(0);
        let is_own = self.grain == 1 && self.store.is_reserved(PageId(grain));
        word & (1 << (grain % 64)) != 0 && !is_own
    }

    /// Returns the pages of `grain` that are not sound in `bytes`.
    fn unsound(&self, grain: u64, bytes: &[u8]) -> Vec<PageId> {
        let at = || (self.store.path().to_path_buf(), 0);
        let Some(contents) = &self.contents else {
            let page = PageId(grain);
            return verify(page, bytes, at).err().map(|_| page).into_iter().collect();
        };
        // Nodes of the map were read just now.
        let (begin, end) = (grain * self.grain, (grain + 1) * self.grain);
        let first = contents.partition_point(|(entry, _)| entry.place() < Some(begin));
        let here = contents.iter().skip(first).take_while(|(e, _)| e.place() < Some(end));
        let is_sound = |entry: MapEntry, page: PageId| {
            entry.spot().is_some_and(|spot| self.is_sound(page, entry, spot, begin, bytes))
        };
        here.filter(|(entry, page)| !is_sound(*entry, *page)).map(|(_, page)| *page).collect()
    }

    /// Returns `true` if `bytes`, which begin at place `begin` of the file, hold at `spot` the
    /// version of `page` that `entry` names.
    fn is_sound(
        &self,
        page: PageId,
        entry: MapEntry,
        spot: Spot,
        begin: u64,
        bytes: &[u8],
    ) -> bool {
        let size = self.store.page_size();
        let offset = (spot.offset(size) - begin * size.bytes_u64()) as usize;
        let Some(stored) = bytes.get(offset..offset + spot.bytes(size)) else { return false };
        let is_meant = |page_bytes: &[u8]| {
            entry.is_of(PageHeader::read(page_bytes).checksum)
                && PageHeader::is_sound(page, page_bytes)
        };
        if spot.units().is_none() {
            return is_meant(stored);
        }
        let mut unpacked = vec![0; size.bytes()];
        unpack(stored, &mut unpacked) && is_meant(&unpacked)
    }

    /// Reads grains from `first` on into `bytes`.
    fn read(&mut self, first: u64, bytes: &mut [u8]) -> Result<(), CopyError> {
        let grain_bytes = self.grain_bytes();
        let read = |grain: u64, bytes: &mut [u8]| {
            let (device, offset) = (self.store.device(), grain * grain_bytes as u64);
            // The last grain may go beyond the file's end.
            let there = device.length().saturating_sub(offset).min(bytes.len() as u64);
            device.read(offset, &mut bytes[..there as usize])
        };
        debug_assert!(bytes.len().is_multiple_of(grain_bytes), "whole grains are read");
        let is_read = read(first, bytes).is_ok();
        for (grain, bytes) in (first..).zip(bytes.chunks_exact_mut(grain_bytes)) {
            if is_read && self.unsound(grain, bytes).is_empty() {
                continue;
            }
            // One bad page fails the whole request, so its neighbours are read separately. An
            // unsound page may have been read during a write, or wrongly only this once.
            read(grain, bytes).map_err(|error| {
                let page = PageId(grain);
                CopyError::Source(ReadError::Device { page, error })
            })?;
            self.unsound.extend(self.unsound(grain, bytes));
        }
        Ok(())
    }

    /// Writes the superblock once all pages are copied: that of a store that was not closed, and
    /// whose recovery begins at `position` of its log. Returns the pages that failed verification:
    /// the log has them, or they are damaged.
    ///
    /// # Errors
    /// `target` cannot be written or synced.
    pub fn finish(
        self,
        target: &dyn Device,
        position: Lsn,
        catalog_root: Option<PageId>,
    ) -> Result<Vec<PageId>, CopyError> {
        debug_assert_eq!(self.done, self.grains, "the superblock is written behind all pages");
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
                // The log's copy ends before it, and has no later one.
                generation: self.store.generation(),
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
        f.debug_struct("PageCopy").field("done", &self.done).field("grains", &self.grains).finish()
    }
}

/// Returns the first of `pages` that is in use in the closed store on `device`, and cannot be read.
///
/// # Errors
/// The device holds no store that was closed, or it fails.
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
