//! Opening and closing of a page store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_base::PastPoison;
use millpond_base::{Lsn, PageId};
use millpond_device::{AlignedBuffer, Device, FileDevice, FileOptions};

use super::placement::bitmap::Bitmap;
use super::placement::map_read::{
    find_pages, has_free_map, page_size_by_free_map, page_size_by_pages, read_map,
};
use super::placement::page_map::PageMap;
use super::store::Access;
use super::store::PageStore;
use super::store_error::CloseError;
use super::store_error::OpenError;
use super::store_error::ReadError;
use super::transfer::verify;
use crate::page::superblock::{Compression, Placement, Superblock, SuperblockError};
use crate::page::{MapEntry, PageSize, free_map};
use millpond_device::error::{DeviceError, OpenFileError};
use millpond_tier::BackMark;

/// Bytes of page 0 that are read before the page size is known.
pub(super) const HEAD: usize = PageSize::KIB_4.bytes();

/// Returns `options` for the file of a store, whose superblock names the process that writes it.
pub(crate) fn store_file(options: &FileOptions) -> FileOptions {
    FileOptions { holder: Superblock::peek_pid, ..options.clone() }
}

impl PageStore {
    /// Opens the store in the file at `path`: for writing and exclusively, or beside other readers
    /// if `options.read_only`. `page_size` is the size that the caller requires, `None` for any.
    ///
    /// # Errors
    /// The file cannot be opened or is locked, is not a store of this version, has another page
    /// size, or is cut off or damaged. If it was not closed cleanly: [`OpenError::NeedsRecovery`]
    /// if it has a log, [`OpenError::NotClean`] otherwise.
    pub fn open(
        path: &Path,
        page_size: Option<PageSize>,
        options: &FileOptions,
    ) -> Result<PageStore, OpenError> {
        let device = Self::open_file(path, options)?;
        Self::open_on(Arc::new(device), page_size, options.read_only)
    }

    /// Opens the file of a store. It does not use direct I/O if compressed pages are shorter than
    /// the blocks of the drive, to which the store may have been copied.
    ///
    /// # Errors
    /// Same as [`FileDevice::open`].
    pub(crate) fn open_file(
        path: &Path,
        options: &FileOptions,
    ) -> Result<FileDevice, OpenFileError> {
        let options = store_file(options);
        let device = FileDevice::open(path, &options)?;
        let block = device.alignment().offset;
        let is_shorter = |superblock: &Superblock| {
            let unit = superblock.page_size.unit() as u64;
            superblock.compression != Compression::None && !unit.is_multiple_of(block)
        };
        if block <= 1 || !read_superblock(&device).is_ok_and(|found| is_shorter(&found)) {
            return Ok(device);
        }
        tracing::warn!(
            "the compressed pages of {} are shorter than the blocks of {block} bytes that its drive \
             wants: they go through the kernel's page cache, which takes memory of its own",
            path.display()
        );
        device.release();
        drop(device);
        FileDevice::open(path, &FileOptions { direct: false, ..options })
    }

    /// Like [`PageStore::open`], for the store on `device`.
    ///
    /// # Errors
    /// Same as [`PageStore::open`].
    pub fn open_on(
        device: Arc<dyn Device>,
        page_size: Option<PageSize>,
        read_only: bool,
    ) -> Result<PageStore, OpenError> {
        let access = if read_only { Access::Read } else { Access::Write };
        let superblock = superblock_of(&*device, page_size)?;
        // Without a log it becomes consistent when it is closed, and not before.
        let store = Self::open_clean(device, superblock, access, false)?;
        if let (Access::Write, Some(superblock)) = (access, store.superblock) {
            // The log no longer describes the contents of the store.
            let log_position = Lsn(0);
            let pid = std::process::id();
            let generation = superblock.generation.saturating_add(1);
            let open = Superblock { clean: false, pid, log_position, generation, ..superblock };
            write_superblock(&*store.device, &open)?;
            store.device.sync()?;
            let mut anchor = store.anchor();
            (anchor.log_position, anchor.generation) = (log_position, generation);
            drop(anchor);
        }
        Ok(store)
    }

    pub(super) fn open_clean(
        device: Arc<dyn Device>,
        superblock: Superblock,
        access: Access,
        waits: bool,
    ) -> Result<PageStore, OpenError> {
        let path = || device.path().to_path_buf();
        let found = superblock.page_size;
        let is_in_place = superblock.placement == Placement::InPlace;
        let expected = if is_in_place { superblock.pages } else { 1 };
        let expected = expected.saturating_mul(found.bytes_u64());
        // A store to be recovered may have been growing when the power failed: its superblock
        // became durable, and its length did not.
        let is_growing = !superblock.clean && superblock.log_position != Lsn(0);
        if expected > device.length() && !is_growing {
            let found = device.length();
            return Err(OpenError::Truncated { path: path(), expected, found });
        }
        match superblock {
            Superblock { clean: true, .. } => {}
            Superblock { log_position: Lsn(0), .. } => {
                return Err(OpenError::NotClean { path: path() });
            }
            _ => return Err(OpenError::NeedsRecovery { path: path() }),
        }
        if !is_in_place {
            let map = read_map(&*device, &superblock, waits)?;
            return Ok(Self::over_map(device, access, Some(superblock), found, map));
        }
        let taken = Bitmap::all_taken(superblock.pages);
        let store = Self::over(device, found, access, Some(superblock), taken, None);
        store.read_free_map()?;
        Ok(store)
    }

    /// Returns a store with the page places of `map`; page ids without a place are free.
    fn over_map(
        device: Arc<dyn Device>,
        access: Access,
        superblock: Option<Superblock>,
        page_size: PageSize,
        map: PageMap,
    ) -> PageStore {
        let mut free = Bitmap::default();
        let is_used = |page: PageId| page == PageId(0) || map.entry(page) != MapEntry::NONE;
        free.extend(map.ids(), is_used);
        Self::over(device, page_size, access, superblock, free, Some(map))
    }

    /// Opens any contents of the file at `path`, for reading only: a store that was not closed, is
    /// cut off, or has lost its superblock. Each page is verified when it is read. `page_size` is
    /// needed only if neither superblock nor free map has it.
    ///
    /// # Errors
    /// The file cannot be opened or is locked, or the page size is unknown.
    pub fn open_for_salvage(
        path: &Path,
        page_size: Option<PageSize>,
        options: &FileOptions,
    ) -> Result<PageStore, OpenError> {
        let options = FileOptions { read_only: true, ..options.clone() };
        let device = Self::open_file(path, &options)?;
        Self::salvage_on(Arc::new(device), page_size)
    }

    /// Like [`PageStore::open_for_salvage`], for the contents of `device`.
    ///
    /// # Errors
    /// Same as [`PageStore::open_for_salvage`].
    pub fn salvage_on(
        device: Arc<dyn Device>,
        page_size: Option<PageSize>,
    ) -> Result<PageStore, OpenError> {
        let superblock = read_superblock(&*device);
        // A device whose second tier wrote back, and is lost, has no superblock, but it has the
        // page size.
        let mark = BackMark::of(&*device).ok().flatten();
        let marked = mark.and_then(|mark| PageSize::new(u64::from(mark.page_bytes)).ok());
        let size = superblock.as_ref().ok().map(|block| block.page_size).or(marked);
        let size = size.or_else(|| page_size_by_free_map(&*device)).or(page_size);
        let size = size.or_else(|| page_size_by_pages(&*device));
        let (superblock, size) = match (superblock, size) {
            (superblock, Some(size)) => (superblock.ok(), size),
            (Ok(superblock), None) => (Some(superblock), superblock.page_size),
            (Err(error), None) => {
                let (path, superblock) = (device.path().to_path_buf(), Box::new(error));
                return Err(OpenError::NothingToSalvage { path, superblock });
            }
        };
        let has_map = superblock.filter(|block| block.placement == Placement::OutOfPlace);
        let is_in_place = superblock.is_some() && has_map.is_none() || has_free_map(&*device, size);
        if is_in_place {
            // The superblock's length is that of the last clean close; pages may have been added
            // since.
            let pages = Bitmap::all_taken(device.length() / size.bytes_u64());
            return Ok(Self::over(device, size, Access::Salvage, superblock, pages, None));
        }
        // The map of a store that was not closed is as old as its last checkpoint.
        let closed = has_map.filter(|block| block.clean);
        let map = closed.map(|block| read_map(&*device, &block, true)).transpose();
        let (map, damage) = match map {
            Ok(Some(map)) => (map, None),
            Ok(None) => (find_pages(&*device, size), None),
            Err(damage) => (find_pages(&*device, size), Some(damage)),
        };
        let mut store = Self::over_map(device, Access::Salvage, superblock, size, map);
        store.map_damage = damage;
        Ok(store)
    }

    /// Closes the store: writes the free map, makes everything durable and marks the store as
    /// clean. The superblock names its catalog at `catalog_root` and the last log position, so that
    /// the log can be found and continued later. The caller must have written all pages. Waits for
    /// calls in progress; later ones find the store closed. Closing twice, or a store that was open
    /// for reading, only releases the lock.
    ///
    /// # Errors
    /// The device fails. The store then stays marked as open, and can be used or closed again,
    /// unless it was a sync that failed.
    pub fn close(&self, catalog_root: Option<PageId>) -> Result<(), CloseError> {
        self.end(catalog_root, || true)?;
        self.device.release();
        Ok(())
    }

    /// Like [`PageStore::close`], but keeps the lock. If the store is not at rest, it stays marked
    /// as open, and its log recovers it.
    pub(crate) fn end(
        &self,
        catalog_root: Option<PageId>,
        is_at_rest: impl FnOnce() -> bool,
    ) -> Result<(), CloseError> {
        let _gate = self.gate.write().past_poison();
        let is_open = self.access == Access::Write && !self.closed.load(Ordering::Acquire);
        if is_open && is_at_rest() {
            self.mark_clean(catalog_root)?;
        }
        self.closed.store(true, Ordering::Release);
        Ok(())
    }

    fn mark_clean(&self, catalog_root: Option<PageId>) -> Result<(), CloseError> {
        let free = self.free_map();
        if let Some(page) = catalog_root
            && (self.is_reserved(page) || page.0 >= free.pages() || !free.is_taken(page.0))
        {
            return Err(CloseError::CatalogRoot { page });
        }
        let Some(superblock) = self.superblock else { return Ok(()) };
        let pages = free.pages();
        let map = if self.map.is_some() {
            drop(free);
            self.write_map_now().map_err(CloseError::Map)?
        } else {
            write_free_map(&*self.device, self.page_size, &free)?;
            drop(free);
            None
        };
        self.sync_now(|| self.device.sync())?;
        let mut anchor = self.anchor();
        let log_position = anchor.log_position;
        anchor.generation = anchor.generation.saturating_add(1);
        let (map_root, pages) =
            map.as_ref().map_or((MapEntry::NONE, pages), |map| (map.root, map.ids));
        let clean = Superblock {
            pages,
            map_root,
            catalog_root,
            log_position,
            lsn_floor: superblock.lsn_floor.max(log_position),
            clean: true,
            pid: 0,
            generation: anchor.generation,
            ..superblock
        };
        write_superblock(&*self.device, &clean)?;
        self.sync_now(|| self.device.sync())?;
        anchor.catalog_root = catalog_root;
        Ok(())
    }

    /// Reads the free map from the device into memory.
    fn read_free_map(&self) -> Result<(), ReadError> {
        let mut bytes = AlignedBuffer::new(self.page_size.bytes());
        let mut free = self.free_map();
        let words_per_map = (free_map::pages_per_map(self.page_size) / 64) as usize;
        for group in 0..free_map::maps(self.page_size, self.pages()) {
            let page = free_map::map_page(self.page_size, group);
            self.device
                .read(page.0 * self.page_size.bytes_u64(), &mut bytes)
                .map_err(|error| ReadError::Device { page, error })?;
            let at = || (self.path().to_path_buf(), page.0 * self.page_size.bytes_u64());
            verify(page, &bytes, at)?;
            let words = free_map::words(&bytes);
            free.load(group as usize * words_per_map, words, |page| self.is_reserved(page));
        }
        Ok(())
    }
}

/// Returns the superblock of `device`, whose pages must have the size `page_size` if that is given.
pub(crate) fn superblock_of(
    device: &dyn Device,
    page_size: Option<PageSize>,
) -> Result<Superblock, OpenError> {
    let superblock = read_superblock(device)?;
    let found = superblock.page_size;
    match page_size.filter(|&asked| asked != found) {
        None => Ok(superblock),
        Some(asked) => {
            let path = device.path().to_path_buf();
            Err(OpenError::PageSizeDiffers { path, asked, found })
        }
    }
}

fn read_superblock(device: &dyn Device) -> Result<Superblock, OpenError> {
    let path = || device.path().to_path_buf();
    let no_store = |error| OpenError::Superblock { path: path(), error };
    if device.length() < HEAD as u64 {
        return Err(no_store(SuperblockError::Short { length: device.length() }));
    }
    let mut head = AlignedBuffer::new(HEAD);
    device.read(0, &mut head)?;
    if let Some(mark) = BackMark::parse(&head) {
        return Err(OpenError::InSecondTier { path: path(), cache: mark.cache });
    }
    let size = Superblock::peek_page_size(&head).map_err(no_store)?;
    let found = device.length();
    if found < size.bytes_u64() {
        return Err(OpenError::Truncated { path: path(), expected: size.bytes_u64(), found });
    }
    let mut page = AlignedBuffer::new(size.bytes());
    device.read(0, &mut page)?;
    Superblock::read(&page).map_err(no_store)
}

pub(super) fn write_superblock(
    device: &dyn Device,
    superblock: &Superblock,
) -> Result<(), DeviceError> {
    debug_assert!(!superblock.clean || superblock.pid == 0, "no process has a closed store open");
    let mut page = AlignedBuffer::new(superblock.page_size.bytes());
    superblock.write(&mut page);
    device.write(0, &page)
}

pub(super) fn write_free_map(
    device: &dyn Device,
    page_size: PageSize,
    free: &Bitmap,
) -> Result<(), DeviceError> {
    let mut bytes = AlignedBuffer::new(page_size.bytes());
    let words_per_map = (free_map::pages_per_map(page_size) / 64) as usize;
    for group in 0..free_map::maps(page_size, free.pages()) {
        let words = free.words(group as usize * words_per_map);
        free_map::write(page_size, group, words, &mut bytes);
        let page = free_map::map_page(page_size, group);
        debug_assert!(page.0 < free.pages(), "a map is a page of the store");
        device.write(page.0 * page_size.bytes_u64(), &bytes)?;
    }
    Ok(())
}
