//! Pages on a device: read with verification, written in batches, allocated and freed.
//!
//! A store file is an array of pages of one size. Page 0 is the superblock (`page::superblock`).
//! Every page carries a checksum seeded with its id, so that neither a damaged page nor one in the
//! wrong place is ever accepted.
//!
//! - **Placement** is fixed when a store is created. *In place*: page n is at place n, some pages
//!   are maps of free pages (`page::free_map`), all others belong to the structures that allocated
//!   them. *Out of place*: the page map has the place of a page (`page::page_map`,
//!   `io::placement`), which changes with each write. Page ids and places of the file are separate,
//!   and anything without an entry in the map is free.
//! - **Life.** Opening for writing durably marks the superblock as open; closing writes the free
//!   maps, or the page map, syncs, marks it as clean and syncs again. In between, the free pages
//!   are known in memory only. A store that was not closed is opened again by way of its log
//!   (`open_to_recover`), which knows the pages in use. Without a log `open_for_salvage` reads the
//!   pages that exist.
//! - **Growth** is by half of the size until that is 1 MiB, and by an eighth of it from 8 MiB on. A
//!   step has at least 256 KiB and at most 64 MiB, in zeros that are actually written
//!   (`file_device.rs` of the device crate has the reason). One thread grows. Others that find no
//!   free page wait for it, and those that free pages do not.
//! - **Locks**: `free` is held for the few steps of a bitmap, never during I/O. `growing` comes
//!   before `free`, and `free` before `map`. `gate` is held shared by everything that changes the
//!   file and exclusively by closing, so that nothing is written after the store was marked as
//!   clean. `anchor` is held while the superblock of an open store is written.
//! - **A failed sync is remembered**: the kernel reports a failed write-back once, so a later
//!   success would mean nothing. The store can be read, and not be closed cleanly.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, RwLockReadGuard};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::{Mutex, RwLock};
use millpond_base::{Lsn, PageId};
use millpond_device::{Device, DeviceError};

use super::counts::Counters;
use super::counts::StoreCounts;
use super::placement::bitmap::Bitmap;
use super::placement::map_read::MapError;
use super::placement::page_map::PageMap;
use super::store_error::AllocateError;
use super::store_error::FreeError;
use super::store_error::ReadError;
use super::store_error::SyncError;
use super::store_error::WriteError;
use crate::page::superblock::{Compression, Placement, Superblock};
use crate::page::{MapEntry, PAGES_MAX, PageSize, free_map};
use millpond_tier::BackMark;

/// Permitted use of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Write,
    Read,
    Salvage,
}

/// Positions that everything else is found from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Anchor {
    /// LSN where recovery begins; 0 without a log.
    pub(super) log_position: Lsn,
    /// Root of the catalog.
    pub(super) catalog_root: Option<PageId>,
    /// Root of the durable page map, and its number of page ids.
    pub(super) map_root: (MapEntry, u64),
    /// Generation of the superblock that was written last.
    pub(super) generation: u64,
}

/// Pages on a device. All methods take `&self` and may be called from any number of threads.
pub struct PageStore {
    pub(super) device: Arc<dyn Device>,
    pub(super) page_size: PageSize,
    pub(super) access: Access,
    /// The superblock as it was read; `None` if that of a salvaged store is not sound.
    pub(super) superblock: Option<Superblock>,
    /// The part of the superblock that changes while the store is open.
    pub(super) anchor: Mutex<Anchor>,
    /// Number of page ids: the length in pages where they are written in place. Changes under
    /// `growing`.
    pub(super) pages: AtomicU64,
    /// Largest number of page ids, and of places of the file. Only tests set fewer.
    pub(super) most_pages: u64,
    /// Free page ids. Locked before `map`.
    pub(super) free: Mutex<Bitmap>,
    /// Places of pages; `None` if they are written in place.
    pub(super) map: Option<Mutex<PageMap>>,
    /// Damage of a salvaged store's page map, because of which the whole file was searched.
    pub(super) map_damage: Option<Box<MapError>>,
    /// Held while the page map is saved.
    pub(super) saving: Mutex<()>,
    pub(super) growing: Mutex<()>,
    /// Set if the end of the file was given back and not needed since: the store does not grow
    /// ahead.
    pub(super) is_cut: AtomicBool,
    pub(super) gate: RwLock<()>,
    /// Set under `gate`.
    pub(super) closed: AtomicBool,
    /// `true` once a sync failed. Held during a sync: a kernel may report lost writes only once,
    /// and a concurrent sync would then wrongly report success.
    pub(super) sync_failed: Mutex<bool>,
    pub(super) counters: Counters,
    /// `true` if a write of the superblock syncs only the superblock.
    pub(super) defers_syncs: AtomicBool,
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

/// State that keeps a store from being changed, found by `usable`.
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
    /// Returns the store's path, if it leads to another file now, or to none.
    pub(crate) fn displaced(&self) -> Option<PathBuf> {
        self.device.displaced()
    }

    /// Returns a store over `device`, whose pages the caller has examined.
    pub(super) fn over(
        device: Arc<dyn Device>,
        page_size: PageSize,
        access: Access,
        superblock: Option<Superblock>,
        free: Bitmap,
        map: Option<PageMap>,
    ) -> PageStore {
        let anchor = superblock.map_or(Anchor::default(), |block| Anchor {
            log_position: block.log_position,
            catalog_root: block.catalog_root,
            map_root: (block.map_root, block.pages),
            generation: block.generation,
        });
        debug_assert!(
            map.as_ref().is_none_or(|map| map.ids() == free.pages()),
            "the page map has an entry for each page id"
        );
        let most_pages = if map.is_some() { MapEntry::PLACES } else { PAGES_MAX };
        PageStore {
            device,
            page_size,
            access,
            superblock,
            anchor: Mutex::new(anchor),
            pages: AtomicU64::new(free.pages()),
            most_pages,
            free: Mutex::new(free),
            map: map.map(Mutex::new),
            map_damage: None,
            saving: Mutex::new(()),
            growing: Mutex::new(()),
            is_cut: AtomicBool::new(false),
            gate: RwLock::new(()),
            closed: AtomicBool::new(false),
            sync_failed: Mutex::new(false),
            counters: Counters::default(),
            defers_syncs: AtomicBool::new(false),
        }
    }

    /// Returns the name of the store's device.
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// Returns the device under the store.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the size of all pages.
    #[inline]
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// Returns an id that no other store has; zeros if a salvaged store's superblock is lost.
    pub fn uuid(&self) -> [u8; 16] {
        self.superblock.map_or([0; 16], |block| block.uuid)
    }

    /// Returns the superblock as it was when the store was opened; `None` if that of a salvaged
    /// store is not sound.
    pub fn superblock(&self) -> Option<&Superblock> {
        self.superblock.as_ref()
    }

    /// Returns the root of the catalog in the superblock: as of the last clean close, or the last
    /// [`PageStore::set_log_position`] since.
    pub fn catalog_root(&self) -> Option<PageId> {
        self.anchor().catalog_root
    }

    /// Returns the generation of the superblock that was read, or written last.
    pub fn generation(&self) -> u64 {
        self.anchor().generation
    }

    /// Returns the LSN where recovery would begin; 0 for a store without a log.
    pub fn log_position(&self) -> Lsn {
        self.anchor().log_position
    }

    /// Returns the highest LSN that a page may have, if the store was closed: a new log begins
    /// behind it.
    pub fn lsn_floor(&self) -> Lsn {
        self.superblock.map_or(Lsn(0), |block| block.lsn_floor)
    }

    /// Returns `true` if the store accepts no writes.
    pub fn is_read_only(&self) -> bool {
        self.access != Access::Write
    }

    /// Returns the damage of a salvaged store's page map; the whole file was searched for its pages
    /// instead.
    pub fn map_damage(&self) -> Option<&MapError> {
        self.map_damage.as_deref()
    }

    /// Returns the former path of a salvaged store's second-tier cache, which has the last writes
    /// and is not used.
    pub(crate) fn lost_cache(&self) -> Option<PathBuf> {
        let mark = BackMark::of(&*self.device).ok().flatten();
        mark.filter(|_| self.access == Access::Salvage).map(|mark| mark.cache)
    }

    /// Returns the policy that places new versions of pages.
    pub fn placement(&self) -> Placement {
        match self.map {
            None => Placement::InPlace,
            Some(_) => Placement::OutOfPlace,
        }
    }

    /// Returns the compression of written pages.
    pub fn compression(&self) -> Compression {
        self.superblock.map_or(Compression::None, |block| block.compression)
    }

    /// Returns the length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.device.length()
    }

    /// Returns the number of page ids, including the store's own and free ones: its length in pages
    /// if they are written in place.
    #[inline]
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Acquire)
    }

    /// Returns the number of free pages; 0 for a salvaged store, whose free pages are unknown.
    pub fn free_pages(&self) -> u64 {
        self.free_map().free_pages()
    }

    /// Returns the number of page ids and the number of free ones, at one moment.
    pub fn page_counts(&self) -> (u64, u64) {
        let free = self.free_map();
        (free.pages(), free.free_pages())
    }

    /// Returns the number of pages in use, including the store's own.
    pub fn allocated_pages(&self) -> u64 {
        let free = self.free_map();
        debug_assert!(free.free_pages() <= free.pages(), "free pages are pages of the store");
        free.pages() - free.free_pages()
    }

    /// Returns the bytes that pages take in the file, as of their last writes; if pages are written
    /// in place, those of all pages in use.
    pub fn stored_bytes(&self) -> u64 {
        let in_place = || self.allocated_pages() * self.page_size.bytes_u64();
        self.map().map_or_else(in_place, |map| map.stored_bytes())
    }

    /// Returns `true` if `page` exists and is in use, as the store's own pages always are.
    pub fn is_allocated(&self, page: PageId) -> bool {
        let free = self.free_map();
        page.0 < free.pages() && free.is_taken(page.0)
    }

    /// Returns `true` if `page` is the superblock or a free map.
    pub fn is_reserved(&self, page: PageId) -> bool {
        match self.map {
            None => free_map::is_reserved(self.page_size, page),
            Some(_) => page == PageId(0),
        }
    }

    /// Returns the counters of the store since it was opened.
    pub fn counts(&self) -> StoreCounts {
        self.counters.snapshot()
    }

    pub(super) fn free_map(&self) -> MutexGuard<'_, Bitmap> {
        // A thread that panicked between two steps of the map is a bug in the map. Its words are
        // valid at each step, so the rest of the program may continue.
        self.free.lock().past_poison()
    }

    /// Locks the page map, if pages are written out of place. Each of its steps leaves it valid.
    pub(super) fn map(&self) -> Option<MutexGuard<'_, PageMap>> {
        self.map.as_ref().map(|map| map.lock().past_poison())
    }

    pub(super) fn anchor(&self) -> MutexGuard<'_, Anchor> {
        // It is replaced as a whole.
        self.anchor.lock().past_poison()
    }

    /// Keeps the store from being closed while it is changed.
    pub(super) fn usable(&self) -> Result<RwLockReadGuard<'_, ()>, Unusable> {
        if self.access != Access::Write {
            return Err(Unusable::ReadOnly);
        }
        let gate = self.gate.read().past_poison();
        if self.closed.load(Ordering::Acquire) { Err(Unusable::Closed) } else { Ok(gate) }
    }

    /// Fails once the store is closed: the file may then belong to another opening.
    pub(super) fn readable(&self) -> Result<(), ReadError> {
        if self.closed.load(Ordering::Acquire) { Err(ReadError::Closed) } else { Ok(()) }
    }

    /// Converts the device's error for `page`.
    pub(super) fn failed_read(&self, page: PageId, error: DeviceError) -> Result<(), ReadError> {
        self.readable()?;
        Err(ReadError::Device { page, error })
    }
}
