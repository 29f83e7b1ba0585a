//! Creation of a page store, and detection of files that hold none.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use millpond_base::uuid::new_uuid;
use millpond_base::{Lsn, PageId};
use millpond_device::{AlignedBuffer, Device, DeviceError, FileDevice, FileOptions};

use super::open::{HEAD, store_file, write_free_map, write_superblock};
use super::placement::bitmap::Bitmap;
use super::placement::page_map::PageMap;
use super::store::{Access, PageStore};
use super::store_error::CreateError;
use crate::page::superblock::{Compression, Placement, Superblock};
use crate::page::{MapEntry, PageSize, free_map};

/// Size of a new store, and the minimum size of any store, in bytes.
pub(super) const FIRST_BYTES: u64 = 512 << 10;

/// Minimum number of places of a new out-of-place store: for its first pages, and the reserve.
const FIRST_PLACES: u64 = 16;

/// Maximum size of a new store, in bytes.
const FIRST_BYTES_MOST: u64 = FIRST_PLACES * PageSize::KIB_64.bytes_u64();

impl PageStore {
    /// Creates a store in the file at `path`, which must not exist or be empty, and opens it for
    /// writing.
    ///
    /// # Errors
    /// The file holds something, cannot be created, or the first pages cannot be written.
    pub fn create(
        path: &Path,
        page_size: PageSize,
        options: &FileOptions,
    ) -> Result<PageStore, CreateError> {
        let device = FileDevice::create(path, &store_file(options))?;
        device.sync_directory()?;
        Self::create_on(Arc::new(device), page_size)
    }

    /// Creates a store on `device`, which must be empty, and opens it for writing.
    ///
    /// # Errors
    /// The device holds something, or the first pages cannot be written.
    pub fn create_on(
        device: Arc<dyn Device>,
        page_size: PageSize,
    ) -> Result<PageStore, CreateError> {
        let length = device.length();
        if !is_probe(&*device, length)? {
            let path = device.path().to_path_buf();
            return Err(CreateError::NotEmpty { path, length });
        }
        device.grow(FIRST_BYTES)?;
        let mut free = Bitmap::default();
        let is_reserved = |page| free_map::is_reserved(page_size, page);
        free.extend(FIRST_BYTES / page_size.bytes_u64(), is_reserved);
        write_free_map(&*device, page_size, &free)?;
        // The superblock comes last, so that a file with a superblock holds a complete store.
        device.sync()?;
        let superblock = first_superblock(page_size, &free, Placement::InPlace, Compression::None);
        write_superblock(&*device, &superblock)?;
        device.sync()?;
        Ok(Self::over(device, page_size, Access::Write, Some(superblock), free, None))
    }

    /// Creates a store on `device` without a superblock: it can be opened only after its first
    /// [`PageStore::set_log_position`]. The device may hold a store that never got that far. Pages
    /// that are written in place are not compressed.
    ///
    /// # Errors
    /// The device holds something else, the first pages cannot be written, or the device does not
    /// take requests as short as compressed pages.
    pub fn create_unmarked_on(
        device: Arc<dyn Device>,
        page_size: PageSize,
        placement: Placement,
        compression: Compression,
    ) -> Result<PageStore, CreateError> {
        let compression = match placement {
            Placement::InPlace => Compression::None,
            Placement::OutOfPlace => compression,
        };
        let (unit, block) = (page_size.unit() as u64, device.alignment().offset);
        if compression != Compression::None && !unit.is_multiple_of(block) {
            let path = device.path().to_path_buf();
            return Err(CreateError::Unit { path, unit, block });
        }
        let length = device.length();
        if length != 0 && !PageStore::is_unmarked(&*device)? {
            let path = device.path().to_path_buf();
            return Err(CreateError::NotEmpty { path, length });
        }
        let bytes = match placement {
            Placement::InPlace => FIRST_BYTES,
            Placement::OutOfPlace => FIRST_BYTES.max(FIRST_PLACES * page_size.bytes_u64()),
        };
        device.grow(bytes)?;
        let pages = device.length() / page_size.bytes_u64();
        let mut free = Bitmap::default();
        let map = match placement {
            Placement::InPlace => {
                free.extend(pages, |page| free_map::is_reserved(page_size, page));
                None
            }
            Placement::OutOfPlace => {
                free.extend(pages, |page| page == PageId(0));
                let compresses = compression != Compression::None;
                Some(PageMap::new(page_size, compresses, pages, pages, true))
            }
        };
        let superblock = Some(first_superblock(page_size, &free, placement, compression));
        Ok(Self::over(device, page_size, Access::Write, superblock, free, map))
    }

    /// Returns `true` if `device` is empty or holds the remains of an interrupted creation. Such
    /// remains have the length of a new store. They are zeros except in the two pages after the
    /// superblock, for the catalog's root and the first node of the page map. A superblock of zeros
    /// alone is not enough: a store whose superblock is lost, or is read as zeros, must never be
    /// created again.
    ///
    /// # Errors
    /// The device fails.
    pub fn is_unmarked(device: &dyn Device) -> Result<bool, DeviceError> {
        let length = device.length();
        if length > FIRST_BYTES_MOST {
            return Ok(false);
        }
        if length < HEAD as u64 {
            return is_probe(device, length);
        }
        let mut block = AlignedBuffer::new(HEAD);
        let mut used: Option<Range<u64>> = None;
        for offset in (0..=length - HEAD as u64).step_by(HEAD) {
            device.read(offset, &mut block)?;
            let is_set = |byte: &u8| *byte != 0;
            let Some(first) = block.iter().position(is_set) else { continue };
            let last = block.iter().rposition(is_set).unwrap_or(first);
            if offset == 0 {
                return Ok(false);
            }
            let begin = used.map_or(offset + first as u64, |used| used.start);
            used = Some(begin..offset + last as u64 + 1);
        }
        let Some(used) = used else { return Ok(true) };
        // The page size is unknown: the creation may have used any.
        Ok(PageSize::ALL.into_iter().any(|size| {
            let size = size.bytes_u64();
            size <= used.start && used.end <= 3 * size
        }))
    }
}

/// Returns the superblock of a new store.
fn first_superblock(
    page_size: PageSize,
    free: &Bitmap,
    placement: Placement,
    compression: Compression,
) -> Superblock {
    Superblock {
        page_size,
        uuid: new_uuid(),
        pages: free.pages(),
        catalog_root: None,
        log_position: Lsn(0),
        clean: false,
        pid: std::process::id(),
        placement,
        compression,
        lsn_floor: Lsn(0),
        map_root: MapEntry::NONE,
        generation: 0,
    }
}

/// Returns `true` if `device` is empty, or holds one block of zeros. A process that is killed while
/// it tries a direct read of an empty file leaves such a block.
///
/// # Errors
/// The device fails.
pub(crate) fn is_probe(device: &dyn Device, length: u64) -> Result<bool, DeviceError> {
    if length == 0 {
        return Ok(true);
    }
    if length > HEAD as u64 || !length.is_multiple_of(device.alignment().offset.max(1)) {
        return Ok(false);
    }
    let mut block = AlignedBuffer::new(length as usize);
    device.read(0, &mut block)?;
    Ok(block.iter().all(|byte| *byte == 0))
}
