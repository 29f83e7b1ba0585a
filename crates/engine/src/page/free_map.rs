//! The map of free pages, in FREE_MAP pages at fixed places.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type FREE_MAP
//!     32       one bit per page of the group, lowest bit of the lowest byte first:
//!              1 allocated, 0 free
//!
//! group 0:   | 0 super | 1 map | 2 … N−1                 |
//! group k:   | kN map  | kN+1 … (k+1)N−1                 |      N = (page size − 32) · 8
//! ```
//! A map covers its own page as well, always as allocated. With 4 KiB pages a map covers 127 MiB,
//! with 64 KiB pages nearly 32 GiB. The place of a map follows from the page size alone. So there
//! is no chain of maps to walk, and the maps of a store with a lost superblock can still be found.
//!
//! The maps are written when the store is closed and read when it is opened; in between, the store
//! keeps them in memory. Bits beyond the store's length are 0.

use millpond_base::{Lsn, PageId};

use super::header::PAGE_HEADER;
use super::header::PageHeader;
use super::header::PageType;
use super::size::PageSize;

/// Returns the number of pages that one map covers, including its own.
pub const fn pages_per_map(page_size: PageSize) -> u64 {
    (page_size.bytes_u64() - PAGE_HEADER as u64) * 8
}

/// Returns the number of maps of a store of `pages` pages.
pub const fn maps(page_size: PageSize, pages: u64) -> u64 {
    pages.div_ceil(pages_per_map(page_size))
}

/// Returns the page of the map of group `group`.
pub const fn map_page(page_size: PageSize, group: u64) -> PageId {
    if group == 0 { PageId(1) } else { PageId(group * pages_per_map(page_size)) }
}

/// Returns whether `page` belongs to the store itself: the superblock or a map. Such pages are
/// never handed out and never freed.
pub const fn is_reserved(page_size: PageSize, page: PageId) -> bool {
    page.0 == 1 || page.0.is_multiple_of(pages_per_map(page_size))
}

/// Fills `page` with a map and seals it. `bits` are 64-bit words of the whole store's map, from the
/// first word of this group on. Words beyond the group are not used; missing ones count as 0.
pub fn write(page_size: PageSize, group: u64, bits: impl Iterator<Item = u64>, page: &mut [u8]) {
    debug_assert_eq!(page.len(), page_size.bytes(), "a map is one page");
    let id = map_page(page_size, group);
    debug_assert!(is_reserved(page_size, id), "a map lies on a page of the store's own");
    page.fill(0);
    PageHeader { checksum: 0, lsn: Lsn(0), page: id, owner: 0, kind: PageType::FREE_MAP, level: 0 }
        .write(page);
    let body = page.get_mut(PAGE_HEADER..).unwrap_or(&mut []);
    for (place, word) in body.chunks_exact_mut(8).zip(bits) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    PageHeader::seal(id, page);
}

/// Returns the 64-bit words of a map page, which the caller has verified.
pub fn words(page: &[u8]) -> impl Iterator<Item = u64> {
    page.get(PAGE_HEADER..).unwrap_or(&[]).chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_stand_where_the_drawing_says() {
        for size in PageSize::ALL {
            let n = pages_per_map(size);
            assert_eq!(n % 64, 0, "groups begin at whole words");
            assert_eq!(map_page(size, 0), PageId(1));
            assert_eq!(map_page(size, 3), PageId(3 * n));
            let reserved: Vec<u64> =
                (0..3 * n + 2).filter(|&p| is_reserved(size, PageId(p))).collect();
            assert_eq!(reserved, [0, 1, n, 2 * n, 3 * n]);
            assert_eq!(maps(size, 1), 1);
            assert_eq!(maps(size, n), 1);
            assert_eq!(maps(size, n + 1), 2);
        }
    }

    #[test]
    fn a_map_comes_back_as_it_was_written() {
        let size = PageSize::KIB_8;
        let mut page = vec![0xAA; size.bytes()];
        let bits: Vec<u64> = (0..5000).map(|i| i * 0x9E37_79B9).collect();
        write(size, 2, bits.iter().copied(), &mut page);
        assert!(PageHeader::is_sound(map_page(size, 2), &page));
        let back: Vec<u64> = words(&page).collect();
        assert_eq!(back.len() as u64 * 64, pages_per_map(size));
        assert_eq!(back[..], bits[..back.len()]);
        write(size, 0, [7].into_iter(), &mut page);
        assert_eq!(words(&page).sum::<u64>(), 7);
    }
}
