//! The first 32 bytes of every page of a store.
//!
//! ```text
//! offset size
//!      0    8  checksum: xxh3-64, seeded with the page id, of bytes 8 to the page's end
//!      8    8  page LSN: end of the last log record about the page, 0 without a log
//!     16    8  page id: a page that landed in the wrong place is found out
//!     24    4  owner: the id of the structure (tree, heap, …) the page belongs to
//!     28    1  type of the content, see `PageType`
//!     29    1  level: 0 for a leaf, one more for each level above
//!     30    2  reserved, 0
//! ```
//! All integers are little-endian.

use millpond_base::little_endian::u64_at;
use millpond_base::{Lsn, PageId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::page::View;

/// Upper bound of page ids: all ids are below it. Where pages are written out of place, the bound
/// is lower, [`MapEntry::PLACES`](super::MapEntry::PLACES).
pub const PAGES_MAX: u64 = 1 << 40;

/// Bytes of the common page header.
pub const PAGE_HEADER: usize = 32;

/// Type of a page's content, which identifies the structure that can read it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct PageType(pub u8);

impl PageType {
    /// Never written, or zero-filled.
    pub const NONE: PageType = PageType(0);
    /// The superblock.
    pub const SUPER: PageType = PageType(1);
    /// A map of free pages.
    pub const FREE_MAP: PageType = PageType(2);
    /// An inner node of a B⁺-tree.
    pub const BTREE_INNER: PageType = PageType(3);
    /// A leaf of a B⁺-tree.
    pub const BTREE_LEAF: PageType = PageType(4);
    /// A part of a value too large for a leaf.
    pub const OVERFLOW: PageType = PageType(5);
    /// The root of a hash index.
    pub const HASH_ROOT: PageType = PageType(6);
    /// A bucket page of a hash index.
    pub const HASH_BUCKET: PageType = PageType(7);
    /// A directory page of a heap.
    pub const HEAP_DIRECTORY: PageType = PageType(8);
    /// A page of records of a heap.
    pub const HEAP_DATA: PageType = PageType(9);
    /// A node of the page map.
    pub const PAGE_MAP: PageType = PageType(10);
    /// In memory only: the page of an anchor.
    pub const ANCHOR: PageType = PageType(255);
}

/// The common header, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// Checksum as stored.
    pub checksum: u64,
    /// LSN of the last change, 0 without a log.
    pub lsn: Lsn,
    /// The page's own id.
    pub page: PageId,
    /// Id of the structure that owns the page.
    pub owner: u32,
    /// Type of the page's content.
    pub kind: PageType,
    /// Height above the leaves.
    pub level: u8,
}

impl PageHeader {
    /// Decodes the header of `page`; missing bytes count as 0.
    pub fn read(page: &[u8]) -> PageHeader {
        let tail = u64_at(page, 24).to_le_bytes();
        PageHeader {
            checksum: u64_at(page, 0),
            lsn: Lsn(u64_at(page, 8)),
            page: PageId(u64_at(page, 16)),
            owner: u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]),
            kind: PageType(tail[4]),
            level: tail[5],
        }
    }

    /// Returns the type of the page that `view` shows.
    #[inline(always)]
    pub fn type_in(view: View<'_>) -> PageType {
        PageType(view.u8(28))
    }

    /// Returns the level of the page that `view` shows.
    #[inline(always)]
    pub fn level_in(view: View<'_>) -> u8 {
        view.u8(29)
    }

    /// Returns the owner of the page that `view` shows.
    #[inline(always)]
    pub fn owner_in(view: View<'_>) -> u32 {
        view.u32(24)
    }

    /// Returns the header of an anchor's page of the structure `owner`, which is never written to
    /// storage.
    pub fn of_anchor(owner: u32) -> PageHeader {
        let (lsn, page, kind) = (Lsn(0), PageId(u64::MAX), PageType::ANCHOR);
        PageHeader { checksum: 0, lsn, page, owner, kind, level: u8::MAX }
    }

    /// Writes the header except the checksum, which [`PageHeader::seal`] sets when the page is
    /// written to storage. A page shorter than the header is left alone.
    pub fn write(&self, page: &mut [u8]) {
        if page.len() < PAGE_HEADER {
            return;
        }
        page[8..16].copy_from_slice(&self.lsn.0.to_le_bytes());
        page[16..24].copy_from_slice(&self.page.0.to_le_bytes());
        page[24..28].copy_from_slice(&self.owner.to_le_bytes());
        page[28] = self.kind.0;
        page[29] = self.level;
        page[30..32].fill(0);
    }

    /// Returns the checksum that `page` must carry as page `id`.
    pub fn checksum_of(id: PageId, page: &[u8]) -> u64 {
        xxh3_64_with_seed(page.get(8..).unwrap_or(&[]), id.0)
    }

    /// Stores the checksum in `page`, which is about to be written as page `id`.
    pub fn seal(id: PageId, page: &mut [u8]) {
        let sum = Self::checksum_of(id, page).to_le_bytes();
        if let Some(place) = page.get_mut(..8) {
            place.copy_from_slice(&sum);
        }
    }

    /// Returns whether `page`, which was read as page `id`, was once sealed as that page.
    pub fn is_sound(id: PageId, page: &[u8]) -> bool {
        let header = Self::read(page);
        header.page == id && header.checksum == Self::checksum_of(id, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let mut page = vec![0xAB; 4096];
        let header = PageHeader {
            checksum: 0,
            lsn: Lsn(77),
            page: PageId(1 << 40),
            owner: 9,
            kind: PageType::BTREE_LEAF,
            level: 3,
        };
        header.write(&mut page);
        PageHeader::seal(header.page, &mut page);
        let back = PageHeader::read(&page);
        assert_eq!(PageHeader { checksum: 0, ..back }, header);
        assert!(PageHeader::is_sound(header.page, &page));
    }

    #[test]
    fn any_flipped_bit_and_any_other_place_is_found_out() {
        let mut page = vec![7; 4096];
        let id = PageId(12);
        PageHeader {
            checksum: 0,
            lsn: Lsn(1),
            page: id,
            owner: 2,
            kind: PageType::OVERFLOW,
            level: 0,
        }
        .write(&mut page);
        PageHeader::seal(id, &mut page);
        assert!(!PageHeader::is_sound(PageId(13), &page));
        for at in [0, 7, 8, 16, 30, 31, 32, 2000, 4095] {
            page[at] ^= 0x10;
            assert!(!PageHeader::is_sound(id, &page), "byte {at}");
            page[at] ^= 0x10;
        }
        assert!(PageHeader::is_sound(id, &page));
        assert!(!PageHeader::is_sound(id, &[]));
    }
}
