//! Support of the page store for its log. The store opens while only the log knows the pages in
//! use, and takes the free map from recovery. Its superblock names the LSN where recovery begins.
//!
//! # The superblock while the store is open
//! Each checkpoint writes it, with the checkpoint's position in the log, the catalog's root, and
//! the store's length. The length may be ahead of the file's if the power fails before both are
//! durable; opening then grows the file. All of that lies in one sector, so a crash leaves the old
//! superblock or the new one (`page::superblock`).
//!
//! A clean close keeps the log position. A caller that opens the store without its log must set it
//! to 0 ([`PageStore::set_log_position`]) before anything is changed: the log no longer describes
//! the contents of the store after that.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_base::PastPoison;
use millpond_base::{Lsn, PageId};
use millpond_device::Device;

use super::counts::Counters;
use super::map_write::NewMap;
use super::open::{superblock_of, write_superblock};
use super::placement::bitmap::Bitmap;
use super::placement::map_read::read_map;
use super::store::{Access, Anchor, PageStore};
use super::store_error::{AllocateError, OpenError, SyncError};
use crate::page::superblock::{Placement, Superblock};
use crate::page::{MapEntry, PageSize};

impl PageStore {
    /// Opens the store on `device`, which was not closed and has a log, for writing. Its length is
    /// that of the device; all pages count as in use until [`PageStore::restore_map`]. It stays
    /// marked as open, so recovery can restart at any moment. Nothing may be written before
    /// [`PageStore::confirm`]. `page_size` is the size that the caller requires, `None` for any.
    ///
    /// # Errors
    /// The device holds no store of this version, one of another page size, one that was closed
    /// cleanly ([`OpenError::NothingToRecover`]), or one without a log ([`OpenError::NotClean`]).
    pub fn open_to_recover(
        device: Arc<dyn Device>,
        page_size: Option<PageSize>,
    ) -> Result<PageStore, OpenError> {
        let superblock = superblock_of(&*device, page_size)?;
        Self::recover_by(device, superblock)
    }

    /// Opens the store on `device` for writing, and with a log. Returns whether it has to be
    /// recovered, as after [`PageStore::open_to_recover`]. If it was closed, it stays marked so
    /// until the first [`PageStore::set_log_position`]: nothing may be changed before, and nothing
    /// at all before [`PageStore::confirm`]. The superblock is read once: a faulty drive might
    /// return something else the second time.
    ///
    /// # Errors
    /// Same as [`PageStore::open_on`] and [`PageStore::open_to_recover`].
    pub fn open_with_log(
        device: Arc<dyn Device>,
        page_size: Option<PageSize>,
    ) -> Result<(PageStore, bool), OpenError> {
        let superblock = superblock_of(&*device, page_size)?;
        if superblock.clean || superblock.log_position == Lsn(0) {
            let store = Self::open_clean(device, superblock, Access::Write, true)?;
            return Ok((store, false));
        }
        Ok((Self::recover_by(device, superblock)?, true))
    }

    fn recover_by(device: Arc<dyn Device>, superblock: Superblock) -> Result<PageStore, OpenError> {
        let path = || device.path().to_path_buf();
        if superblock.clean {
            return Err(OpenError::NothingToRecover { path: path() });
        }
        if superblock.log_position == Lsn(0) {
            return Err(OpenError::NotClean { path: path() });
        }
        if superblock.placement == Placement::OutOfPlace {
            // Its length was durable before the superblock named anything in it.
            let map = read_map(&*device, &superblock, true)?;
            let (size, taken) = (superblock.page_size, Bitmap::all_taken(map.ids()));
            return Ok(Self::over(device, size, Access::Write, Some(superblock), taken, Some(map)));
        }
        let page_bytes = superblock.page_size.bytes_u64();
        let expected = superblock.pages.saturating_mul(page_bytes);
        if expected > device.length() {
            device.grow(expected)?;
        }
        debug_assert!(device.length() >= expected, "the file is as long as the superblock says");
        let map = Bitmap::all_taken(device.length() / page_bytes);
        Ok(Self::over(device, superblock.page_size, Access::Write, Some(superblock), map, None))
    }

    /// Makes the superblock durable as it was read, before anything is written to a place that its
    /// page map does not name. The process that wrote it may have failed to sync it, and died. Then
    /// the operating system shows this superblock, but a power failure leaves the one before, with
    /// its map. No later sync covers the writes of a failed one, unless they are repeated.
    /// Everything that the superblock names was synced before the superblock was written.
    ///
    /// # Errors
    /// The device fails.
    pub fn confirm(&self) -> Result<(), SyncError> {
        let _gate = self.usable()?;
        let Some(superblock) = self.superblock() else { return Ok(()) };
        if superblock.generation < self.generation() {
            // A later one is durable.
            return Ok(());
        }
        write_superblock(&*self.device, superblock)?;
        self.sync_now(|| self.device.sync())
    }

    /// Makes the store at least `pages` long. New pages are free, except the store's own.
    ///
    /// # Errors
    /// The store cannot grow, and is unchanged.
    pub fn grow_to(&self, pages: u64) -> Result<(), AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().past_poison();
        let old = self.pages();
        if pages <= old {
            return Ok(());
        }
        if pages > self.most_pages {
            return Err(AllocateError::Grow(self.too_long()));
        }
        if self.map.is_some() {
            self.set_ids(&mut self.free_map(), pages);
            return Ok(());
        }
        let page_bytes = self.page_size().bytes_u64();
        self.device.grow(pages.saturating_mul(page_bytes))?;
        Counters::add(&self.counters.growths, 1);
        Counters::add(&self.counters.grown_bytes, ((pages - old) * page_bytes) as usize);
        let mut free = self.free_map();
        debug_assert_eq!(free.pages(), old, "one thread at a time makes the store longer");
        free.extend(pages, |page| self.is_reserved(page));
        self.pages.store(pages, Ordering::Release);
        Ok(())
    }

    /// Sets the pages in use: one bit per page, the first page's the lowest of the first word.
    /// Pages beyond the words are free, bits beyond the store are ignored, and the store's own
    /// pages are always in use.
    pub fn restore_map(&self, taken: &[u64]) {
        let words = taken.iter().copied().chain(std::iter::repeat(0));
        let mut free = self.free_map();
        free.load(0, words, |page| self.is_reserved(page));
        if let Some(mut map) = self.map() {
            map.keep_only(|page| free.is_taken(page));
        }
    }

    /// Returns the map of pages in use, in the form that [`PageStore::restore_map`] takes.
    pub fn taken_words(&self) -> Vec<u64> {
        self.free_map().words(0).collect()
    }

    /// Returns `true` if the page ids in use are those of `taken`, a word for each 64, apart from
    /// the store's own.
    pub(crate) fn has_taken(&self, taken: &[u64]) -> bool {
        let free = self.free_map();
        let differs = |(at, word): (usize, u64)| {
            let differing = word ^ taken.get(at).copied().unwrap_or(0);
            let bits = if differing == 0 { 0 } else { 64 };
            (0..bits)
                .filter(move |bit| differing & (1 << bit) != 0)
                .map(move |bit| at as u64 * 64 + bit)
        };
        let mut differing = free.words(0).enumerate().flat_map(differs);
        differing.all(|page| self.is_reserved(PageId(page)))
    }

    /// Writes the superblock, durably, with the `position` of the log at which recovery begins (0
    /// if there is no log), and with the places of the catalog and of the new page map, if any. The
    /// store stays marked as open. All other writes that have returned become durable, too. Returns
    /// the superblock's generation: once the log has recorded it durably, the map's places can be
    /// released. The generation is the log position if no superblock had it, and otherwise the next
    /// number.
    ///
    /// # Errors
    /// The device fails: a crash then leaves either the old superblock or this one.
    pub fn set_log_position(
        &self,
        position: Lsn,
        catalog_root: Option<PageId>,
        map: Option<&NewMap<'_>>,
    ) -> Result<u64, SyncError> {
        self.name_checkpoint(position, position, catalog_root, map)
    }

    /// Lets each later superblock be synced by itself: the pages that it needs are synced before,
    /// and others wait (li 4.3).
    pub(crate) fn defer_syncs(&self) {
        self.defers_syncs.store(true, Ordering::Relaxed);
    }

    fn sync_superblock(&self) -> Result<(), SyncError> {
        self.sync_now(|| {
            if self.defers_syncs.load(Ordering::Relaxed) && self.map.is_none() {
                let superblock = 0..self.page_size.bytes_u64();
                return self.device.sync_ranges(std::slice::from_ref(&superblock));
            }
            self.device.sync()
        })
    }

    /// Like [`PageStore::set_log_position`], given the LSN of a durable record logged for it.
    pub(super) fn name_checkpoint(
        &self,
        position: Lsn,
        lsn: Lsn,
        catalog_root: Option<PageId>,
        map: Option<&NewMap<'_>>,
    ) -> Result<u64, SyncError> {
        let _gate = self.usable()?;
        let Some(superblock) = self.superblock().copied() else { return Ok(0) };
        let mut anchor = self.anchor();
        let map_root = match (map, &self.map) {
            (Some(map), _) => (map.root, map.ids),
            (None, Some(_)) => anchor.map_root,
            (None, None) => (MapEntry::NONE, self.pages()),
        };
        // Even if this write fails, no other superblock gets that generation.
        let generation = lsn.0.max(anchor.generation.saturating_add(1));
        anchor.generation = generation;
        let open = Superblock {
            pages: map_root.1,
            map_root: map_root.0,
            catalog_root,
            log_position: position,
            clean: false,
            pid: std::process::id(),
            generation,
            ..superblock
        };
        write_superblock(&*self.device, &open)?;
        self.sync_superblock()?;
        *anchor = Anchor { log_position: position, catalog_root, map_root, generation };
        Ok(generation)
    }
}
