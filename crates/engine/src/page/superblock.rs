//! The superblock, page 0 of a store: its identity, its format, and whether it was closed.
//!
//! ```text
//! offset size
//!      0   32  the common page header (page id 0, type SUPER); its checksum covers the page
//!     32    8  magic: "MILLPOND"
//!     40    4  format version
//!     44    4  page size in bytes
//!     48   16  uuid, drawn when the store was created
//!     64    8  number of page ids, as of the last time that this page was written: the length in
//!              pages where pages are written in place
//!     72    8  root page of the catalog, 2⁶⁴−1 if there is none yet
//!     80    8  log position: where the last checkpoint begins, 0 without a log
//!     88    4  flags: bit 0 is set while the store is closed cleanly, bit 1 if pages are written
//!              out of place, bit 2 if they are compressed (`page::packed`)
//!     92    4  id of the process that has the store open for writing, 0 if none
//!     96    8  no page has an LSN beyond this one, as of the last clean close
//!    104    8  entry of the page map's root (`page::page_map`), 0 without one
//!    112    8  generation, higher with each change: the log says which is durable
//!              (`recovery/generation.rs`)
//!    120       reserved, 0
//! ```
//! All integers are little-endian. Magic, version and page size keep their places in every
//! version to come, so that any version can name any other.
//!
//! Everything that ever changes is in the first 512 bytes. Drives write a sector of 512 bytes whole
//! or not at all, so a crash while page 0 is written leaves the old superblock or the new one; no
//! second copy is needed.

use millpond_base::little_endian::{u32_at, u64_at};
use millpond_base::{Lsn, PageId};

use super::header::PageHeader;
use super::header::PageType;
use super::page_map::MapEntry;
use super::size::PageSize;

/// The version of the file format that this code reads and writes.
///
/// Version 2: record headers of the log have variable length, some 18 bytes for most instead of 32,
/// and a check of their own. Version 3: pages out of place and their map; the LSN floor in the
/// superblock (a new log begins behind the LSNs of the one before); one way to name the record that
/// another is chained to. Version 4: a value in overflow pages begins in its page of level 1,
/// behind the references, where that spares a page; an entry may take half a leaf. Version 5:
/// superblocks have generations, and a log record of its own kind names the durable one.
pub const FORMAT_VERSION: u32 = 5;

/// Bytes of page 0 that hold the whole superblock: enough to read before the page size is known.
pub const SUPERBLOCK_BYTES: usize = 120;

const MAGIC: [u8; 8] = *b"MILLPOND";
const NO_CATALOG: u64 = u64::MAX;
const CLEAN: u32 = 1;
const OUT_OF_PLACE: u32 = 2;
const COMPRESSED: u32 = 4;

/// The superblock, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Size of the store's pages.
    pub page_size: PageSize,
    /// Unique id of the store.
    pub uuid: [u8; 16],
    /// Number of page ids when the superblock was written.
    pub pages: u64,
    /// Root page of the catalog of trees.
    pub catalog_root: Option<PageId>,
    /// Position of the last checkpoint's record in the log (0 without a log).
    pub log_position: Lsn,
    /// True if the store was closed, with everything written.
    pub clean: bool,
    /// The process that has the store open for writing, 0 if none.
    pub pid: u32,
    /// Placement of written pages.
    pub placement: Placement,
    /// Compression of pages.
    pub compression: Compression,
    /// Upper bound of the pages' LSNs when the store was closed: a new log begins behind it.
    pub lsn_floor: Lsn,
    /// Entry of the page map's root; [`MapEntry::NONE`] if no page was written out of place yet.
    pub map_root: MapEntry,
    /// Generation of the superblock; older ones have lower generations.
    pub generation: u64,
}

/// Place to which the new version of a page is written.
///
/// ```
/// use millpond::{Options, Placement};
/// assert_eq!(Options::new().lab.placement, Placement::OutOfPlace);
/// let as_before = Options::new().lab(|lab| lab.placement = Placement::InPlace);
/// as_before.check().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Placement {
    /// Over the old version; the log compensates with page images.
    #[default]
    InPlace,
    /// To a free place: versions that the last checkpoint needs are never overwritten.
    OutOfPlace,
}

/// Compression of a store's pages.
///
/// ```
/// use millpond::{Compression, Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let options = Options::new().memory(16 << 20).compression(Compression::Lz4);
/// let db = Db::open(folder.path().join("pond.mp"), options)?;
/// let lines = db.tree::<u32, String>("lines")?;
/// (0..5000).try_for_each(|n| lines.put(&n, "one like the other").map(drop))?;
/// db.shrink()?;
/// let stats = db.stats();
/// assert!(stats.stored_bytes > 0);
/// assert!(stats.stored_bytes < (stats.store_pages - stats.free_pages) * stats.page_size / 2);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Compression {
    /// Pages are not compressed.
    #[default]
    None,
    /// Each page is compressed by itself, with LZ4, when it is written. It takes a number of units
    /// of 512 bytes (a sixteenth of a page, if that is more).
    Lz4,
}

/// Reason why page 0 is no usable superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// The magic is missing.
    #[error("it is no Millpond store (it begins with {found:02x?} at byte 32)")]
    Magic {
        /// The bytes in the magic's place.
        found: [u8; 8],
    },
    /// The file is too short for a superblock.
    #[error("it is no Millpond store: it has {length} bytes, fewer than a page")]
    Short {
        /// Length of the file.
        length: u64,
    },
    /// The store was written by another version of the format.
    #[error(
        "it has format version {found}, and this program reads version {known}: use a release \
         that knows version {found}, or `dump` there and `load` here"
    )]
    Version {
        /// The file's version.
        found: u32,
        /// The version that this code knows.
        known: u32,
    },
    /// The page size is not a possible one.
    #[error("its superblock names pages of {bytes} bytes, which do not exist: it is damaged")]
    PageSize {
        /// The size named.
        bytes: u32,
    },
    /// The checksum does not match.
    #[error(
        "its superblock is damaged (checksum stored {stored:#018x}, computed {computed:#018x}); \
         `millpond dump --salvage` reads what is intact"
    )]
    Checksum {
        /// The stored checksum.
        stored: u64,
        /// The computed checksum.
        computed: u64,
    },
}

impl Superblock {
    /// Returns the page size that the first bytes of page 0 name, whatever else is in them.
    ///
    /// `head` is at least [`SUPERBLOCK_BYTES`] long; bytes that are missing count as 0.
    ///
    /// # Errors
    /// If the magic is missing, the version is another, or pages have no such size.
    pub fn peek_page_size(head: &[u8]) -> Result<PageSize, SuperblockError> {
        let found = u64_at(head, 32).to_le_bytes();
        if found != MAGIC {
            return Err(SuperblockError::Magic { found });
        }
        let found = u32_at(head, 40);
        if found != FORMAT_VERSION {
            return Err(SuperblockError::Version { found, known: FORMAT_VERSION });
        }
        let bytes = u32_at(head, 44);
        PageSize::of_store(bytes).ok_or(SuperblockError::PageSize { bytes })
    }

    /// Returns the process that the first bytes of page 0 name as the writer, or `None` if they
    /// name none.
    pub fn peek_pid(head: &[u8]) -> Option<u32> {
        Self::peek_page_size(head).ok()?;
        Some(u32_at(head, 92)).filter(|&pid| pid != 0)
    }

    /// Decodes all of page 0.
    ///
    /// # Errors
    /// If the page is no superblock of this version, or damaged.
    pub fn read(page: &[u8]) -> Result<Superblock, SuperblockError> {
        let page_size = Self::peek_page_size(page)?;
        let stored = PageHeader::read(page).checksum;
        let computed = PageHeader::checksum_of(PageId(0), page);
        if stored != computed || page.len() != page_size.bytes() {
            return Err(SuperblockError::Checksum { stored, computed });
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&page[48..64]);
        let root = u64_at(page, 72);
        Ok(Superblock {
            page_size,
            uuid,
            pages: u64_at(page, 64),
            catalog_root: (root != NO_CATALOG).then_some(PageId(root)),
            log_position: Lsn(u64_at(page, 80)),
            clean: u32_at(page, 88) & CLEAN != 0,
            pid: u32_at(page, 92),
            placement: match u32_at(page, 88) & OUT_OF_PLACE {
                0 => Placement::InPlace,
                _ => Placement::OutOfPlace,
            },
            compression: match u32_at(page, 88) & COMPRESSED {
                0 => Compression::None,
                _ => Compression::Lz4,
            },
            lsn_floor: Lsn(u64_at(page, 96)),
            map_root: MapEntry(u64_at(page, 104)),
            generation: u64_at(page, 112),
        })
    }

    /// Fills `page` with the superblock and seals it. A page of another size is left alone.
    pub fn write(&self, page: &mut [u8]) {
        if page.len() != self.page_size.bytes() {
            return;
        }
        page.fill(0);
        PageHeader {
            checksum: 0,
            lsn: Lsn(0),
            page: PageId(0),
            owner: 0,
            kind: PageType::SUPER,
            level: 0,
        }
        .write(page);
        let root = self.catalog_root.map_or(NO_CATALOG, |root| root.0);
        let mut flags = if self.clean { CLEAN } else { 0 };
        if self.placement == Placement::OutOfPlace {
            flags |= OUT_OF_PLACE;
        }
        if self.compression == Compression::Lz4 {
            flags |= COMPRESSED;
        }
        page[32..40].copy_from_slice(&MAGIC);
        page[40..44].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        page[44..48].copy_from_slice(&(self.page_size.bytes() as u32).to_le_bytes());
        page[48..64].copy_from_slice(&self.uuid);
        page[64..72].copy_from_slice(&self.pages.to_le_bytes());
        page[72..80].copy_from_slice(&root.to_le_bytes());
        page[80..88].copy_from_slice(&self.log_position.0.to_le_bytes());
        page[88..92].copy_from_slice(&flags.to_le_bytes());
        page[92..96].copy_from_slice(&self.pid.to_le_bytes());
        page[96..104].copy_from_slice(&self.lsn_floor.0.to_le_bytes());
        page[104..112].copy_from_slice(&self.map_root.0.to_le_bytes());
        page[112..120].copy_from_slice(&self.generation.to_le_bytes());
        PageHeader::seal(PageId(0), page);
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_map::Spot;
    use super::*;

    fn example(page_size: PageSize) -> Superblock {
        Superblock {
            page_size,
            uuid: *b"sixteen bytes it",
            pages: 1 << 33,
            catalog_root: Some(PageId(7)),
            log_position: Lsn(0),
            clean: false,
            pid: 4711,
            placement: Placement::OutOfPlace,
            compression: Compression::Lz4,
            lsn_floor: Lsn(1 << 41),
            map_root: MapEntry::new(Spot::new(8, 0, None), 9),
            generation: 1 << 50,
        }
    }

    #[test]
    fn a_superblock_comes_back_as_it_was_written() {
        for page_size in PageSize::ALL.into_iter().chain([PageSize::TINY]) {
            let mut page = vec![0xEE; page_size.bytes()];
            let block = example(page_size);
            block.write(&mut page);
            assert_eq!(Superblock::read(&page), Ok(block));
            assert_eq!(Superblock::peek_pid(&page[..SUPERBLOCK_BYTES]), Some(4711));
            assert!(page[512..].iter().all(|&b| b == 0), "all that changes is in one sector");
            let (placement, compression) = (Placement::InPlace, Compression::None);
            let (catalog_root, clean, pid) = (None, true, 0);
            let other = Superblock { catalog_root, clean, pid, placement, compression, ..block };
            other.write(&mut page);
            assert_eq!(Superblock::read(&page), Ok(other));
            assert_eq!(Superblock::peek_pid(&page), None);
        }
    }

    #[test]
    fn another_version_is_named_beside_ours_even_if_its_checksum_is_another() {
        let mut page = vec![0; 4096];
        example(PageSize::KIB_4).write(&mut page);
        for found in [FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
            page[40..44].copy_from_slice(&found.to_le_bytes());
            let error = Superblock::read(&page).unwrap_err();
            assert_eq!(error, SuperblockError::Version { found, known: FORMAT_VERSION });
            let text = error.to_string();
            assert!(text.contains(&format!("version {found}")), "{text}");
            assert!(text.contains(&format!("version {FORMAT_VERSION}")), "{text}");
        }
    }

    #[test]
    fn any_flipped_bit_of_a_superblock_is_an_error_and_no_panic() {
        let mut page = vec![0; 4096];
        example(PageSize::KIB_4).write(&mut page);
        for bit in 0..8 * SUPERBLOCK_BYTES + 128 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::read(&page).is_err(), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
        for length in [0, 1, 31, 40, 47, 119, 4095] {
            assert!(Superblock::read(&page[..length]).is_err(), "{length} bytes");
        }
    }
}
