//! The page map of a store whose pages are written out of place: it locates the latest version of
//! each page.
//!
//! ```text
//! an entry, 8 bytes
//!   bits 0–31   place: it begins at place · page size; 0: the page was never written, or is free
//!   bits 32–35  unit of the place where the page begins, 0 where pages are not compressed
//!   bits 36–39  units that it takes (`page::packed`); 0: it is not compressed
//!   bits 40–63  the low 24 bits of the checksum in the page's header
//!
//! a node, one page
//!   offset size
//!        0   32  the common page header, type PAGE_MAP; page id 2⁶³ + level · 2⁵⁶ + index
//!       32       N entries, N = (page size − 32) / 8
//!
//! level 0, index i    entries of the pages i·N to (i+1)·N − 1
//! level l, index i    entries of the nodes i·N to (i+1)·N − 1 of level l − 1
//! ```
//! A node whose entries are all 0 is not written, and its own entry is 0. The number of levels
//! follows from the number of page ids: it is the lowest at which one node is above all of them.
//! The entry of that node, the root, is in the superblock. The checksum bits in an entry
//! distinguish the mapped version from every other one, so a lost write is detected.

use millpond_base::{Lsn, PageId};

use super::header::{PAGE_HEADER, PageHeader, PageType};
use super::size::PageSize;

/// Number of bits of an entry's place.
const PLACE_BITS: u32 = 32;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
/// Number of bits of the first unit, and of the number of units.
const UNIT_BITS: u32 = 4;
const UNIT: u64 = (1 << UNIT_BITS) - 1;
const COUNT_SHIFT: u32 = PLACE_BITS + UNIT_BITS;
const CHECK_SHIFT: u32 = COUNT_SHIFT + UNIT_BITS;
/// The bit that is set in page ids of nodes, and in no other page id.
const NODE: u64 = 1 << 63;
const LEVEL_SHIFT: u32 = 56;

/// Location of a page in the file. A place is as long as a page. A compressed page takes units of
/// one place, or of two adjacent ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spot(u64);

impl Spot {
    /// Returns the spot from unit `first` of `place` on, of `units` units of a compressed page, or,
    /// for `None`, of an uncompressed page.
    pub fn new(place: u64, first: u64, units: Option<u64>) -> Spot {
        let count = units.unwrap_or(0);
        debug_assert!(place < MapEntry::PLACES && first <= UNIT, "{place}, unit {first}");
        debug_assert!(count <= UNIT && units != Some(0), "{units:?} units");
        Spot(place & PLACE | (first & UNIT) << PLACE_BITS | (count & UNIT) << COUNT_SHIFT)
    }

    /// Returns the place in which the spot begins.
    #[inline]
    pub fn place(self) -> u64 {
        self.0 & PLACE
    }

    /// Returns the unit of that place in which the spot begins.
    #[inline]
    pub fn first(self) -> u64 {
        self.0 >> PLACE_BITS & UNIT
    }

    /// Returns the number of units of a compressed page, or `None` for an uncompressed one.
    #[inline]
    pub fn units(self) -> Option<u64> {
        Some(self.0 >> COUNT_SHIFT & UNIT).filter(|units| *units > 0)
    }

    /// Returns whether the spot is a whole place.
    #[inline]
    pub fn is_place(self) -> bool {
        self.0 <= PLACE
    }

    /// Returns the spot's offset, in bytes, in a file of pages of `size`.
    #[inline]
    pub fn offset(self, size: PageSize) -> u64 {
        self.place() * size.bytes_u64() + self.first() * size.unit() as u64
    }

    /// Returns the spot's length, in bytes.
    #[inline]
    pub fn bytes(self, size: PageSize) -> usize {
        self.units().map_or(size.bytes(), |units| units as usize * size.unit())
    }

    /// Returns the spot's length, in units.
    #[inline]
    pub fn length(self, size: PageSize) -> u64 {
        self.units().unwrap_or_else(|| size.units())
    }
}

/// Location of a page, with checksum bits that identify the version stored there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct MapEntry(pub u64);

impl MapEntry {
    /// Entry of a page that has no location.
    pub const NONE: MapEntry = MapEntry(0);

    /// Upper bound of places.
    pub const PLACES: u64 = 1 << PLACE_BITS;

    /// Returns the entry of a page at `spot`, with `checksum` in its header.
    pub fn new(spot: Spot, checksum: u64) -> MapEntry {
        MapEntry(checksum << CHECK_SHIFT | spot.0)
    }

    /// Returns the page's location, or `None` if it has none.
    #[inline]
    pub fn spot(self) -> Option<Spot> {
        self.place().map(|_| Spot(self.0 & ((1 << CHECK_SHIFT) - 1)))
    }

    /// Returns the place, in pages from the file's beginning, or `None` if the page has no
    /// location.
    #[inline]
    pub fn place(self) -> Option<u64> {
        Some(self.0 & PLACE).filter(|place| *place > 0)
    }

    /// Returns whether the mapped version may have `checksum` in its header: 24 bits of it are
    /// compared.
    #[inline]
    pub fn is_of(self, checksum: u64) -> bool {
        self.check() == Self::check_of(checksum)
    }

    /// Returns the 24 checksum bits.
    #[inline]
    pub fn check(self) -> u64 {
        self.0 >> CHECK_SHIFT
    }

    /// Returns the bits of `checksum` that an entry stores.
    #[inline]
    pub fn check_of(checksum: u64) -> u64 {
        checksum & (u64::MAX >> CHECK_SHIFT)
    }
}

/// Returns the number of entries of a node.
pub const fn per_node(page_size: PageSize) -> u64 {
    (page_size.bytes_u64() - PAGE_HEADER as u64) / 8
}

/// Returns the number of nodes at each level, the leaves first, for `pages` page ids.
pub fn nodes_by_level(page_size: PageSize, pages: u64) -> Vec<u64> {
    let mut levels = vec![pages.div_ceil(per_node(page_size)).max(1)];
    while let Some(last) = levels.last().copied().filter(|nodes| *nodes > 1) {
        levels.push(last.div_ceil(per_node(page_size)));
    }
    levels
}

/// Returns the page id in the header of a node.
pub const fn node_id(level: u8, index: u64) -> PageId {
    PageId(NODE | (level as u64) << LEVEL_SHIFT | index)
}

/// Returns whether `page` is the id of a node.
pub const fn is_node(page: PageId) -> bool {
    page.0 & NODE != 0
}

/// Fills `page` with a node and seals it. Returns the entry that the node has once it is written to
/// `spot`.
pub fn write_node(
    level: u8,
    index: u64,
    entries: impl Iterator<Item = MapEntry>,
    spot: Spot,
    page: &mut [u8],
) -> MapEntry {
    let id = node_id(level, index);
    page.fill(0);
    let (lsn, kind) = (Lsn(0), PageType::PAGE_MAP);
    PageHeader { checksum: 0, lsn, page: id, owner: 0, kind, level }.write(page);
    let body = page.get_mut(PAGE_HEADER..).unwrap_or(&mut []);
    for (to, entry) in body.chunks_exact_mut(8).zip(entries) {
        to.copy_from_slice(&entry.0.to_le_bytes());
    }
    PageHeader::seal(id, page);
    MapEntry::new(spot, PageHeader::read(page).checksum)
}

/// Returns the entries of a node, which the caller has verified.
pub fn entries(page: &[u8]) -> impl Iterator<Item = MapEntry> {
    page.get(PAGE_HEADER..).unwrap_or(&[]).chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        MapEntry(u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_as_many_as_the_pages_need() {
        let n = per_node(PageSize::KIB_4);
        assert_eq!(n, 508);
        for (pages, levels) in [
            (0, vec![1]),
            (1, vec![1]),
            (n, vec![1]),
            (n + 1, vec![2, 1]),
            (n * n, vec![n, 1]),
            (n * n + 1, vec![n + 1, 2, 1]),
        ] {
            assert_eq!(nodes_by_level(PageSize::KIB_4, pages), levels, "{pages} pages");
        }
    }

    #[test]
    fn a_spot_says_where_a_page_lies_and_how_long_it_is() {
        let size = PageSize::KIB_16;
        assert_eq!((size.unit(), size.units()), (1024, 16));
        let most = MapEntry::PLACES - 1;
        for (place, first, units) in [(1, 0, 15), (77, 12, 7), (most, 15, 1)] {
            let spot = Spot::new(place, first, Some(units));
            assert_eq!((spot.place(), spot.first(), spot.units()), (place, first, Some(units)));
            assert_eq!(spot.offset(size), place * 16384 + first * 1024);
            assert_eq!((spot.bytes(size) as u64, spot.length(size)), (units * 1024, units));
            let entry = MapEntry::new(spot, 0xABCD_EF01_2345_6789);
            assert_eq!((entry.spot(), entry.place()), (Some(spot), Some(place)));
            assert!(entry.is_of(0x0045_6789) && !entry.is_of(0x0045_6788));
            assert!(!spot.is_place() && !Spot::new(place, 1, None).is_place());
        }
        let whole = Spot::new(9, 0, None);
        assert_eq!(
            (whole.units(), whole.offset(size), whole.bytes(size)),
            (None, 9 << 14, 1 << 14)
        );
        assert!(whole.is_place() && whole.length(size) == 16 && MapEntry::NONE.spot().is_none());
    }

    #[test]
    fn a_node_comes_back_as_it_was_written_and_its_entry_knows_it_from_an_older_one() {
        let size = PageSize::KIB_4;
        let mut page = vec![0xEE; size.bytes()];
        let written: Vec<_> =
            (1..400).map(|i| MapEntry::new(Spot::new(i * 77, 0, None), i << 50 | i)).collect();
        let entry = write_node(2, 7, written.iter().copied(), Spot::new(99, 0, None), &mut page);
        assert!(PageHeader::is_sound(node_id(2, 7), &page));
        let back: Vec<_> = entries(&page).collect();
        assert_eq!(back[..399], written);
        assert!(back[399..].iter().all(|entry| *entry == MapEntry::NONE));
        assert_eq!(entry.place(), Some(99));
        assert!(entry.is_of(PageHeader::read(&page).checksum));
        write_node(2, 7, written[1..].iter().copied(), Spot::new(99, 0, None), &mut page);
        assert!(!entry.is_of(PageHeader::read(&page).checksum));
        assert_eq!(MapEntry::NONE.place(), None);
    }
}
