//! Reads the page map of a store during opening, or rebuilds it from the file's pages if no map is
//! usable.

use std::collections::HashMap;
use std::fmt;
use std::io::IoSliceMut;
use std::ops::ControlFlow;
use std::path::PathBuf;

use millpond_base::{Lsn, PageId};
use millpond_device::{AlignedBuffer, DeviceError};

use super::page_map::PageMap;
use super::units::UnitMap;
use crate::page::packed::{units_of, unpack};
use crate::page::page_map::{entries, node_id, nodes_by_level, per_node};
use crate::page::superblock::{Compression, Superblock};
use crate::page::{MapEntry, PageHeader, PageSize, PageType, Spot};
use millpond_device::device::{Device, ReadRequest};

/// Number of nodes read together.
const BATCH: usize = 64;

/// Bytes read at a time during a scan of the file.
const SCAN_BYTES: usize = 1 << 20;

/// Damage of a page map.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MapError {
    /// Path of the store.
    pub path: PathBuf,
    /// Level of the node, 0 for those with pages.
    pub level: u8,
    /// Index of the node within its level.
    pub index: u64,
    /// Offset of the node in the file, in bytes.
    pub offset: u64,
    /// The damage.
    pub damage: MapDamage,
}

/// Damage of one node of a page map.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MapDamage {
    /// The node cannot be read.
    Device(DeviceError),
    /// The node's checksum is wrong, or another page is in its place.
    Unsound,
    /// The node is not the version that its parent names: a write was lost.
    Stale,
    /// An entry names a place that the file does not have, or that another entry names, too.
    Place {
        /// The place, in pages from the file's beginning.
        place: u64,
    },
    /// The superblock counts more page ids than a store can have, or than fit into memory.
    Ids {
        /// Number of page ids in the superblock.
        ids: u64,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MapError { path, level, index, offset, damage } = self;
        write!(
            f,
            "the page map of {} is damaged (level {level}, node {index}, offset {offset}): ",
            path.display()
        )?;
        match damage {
            MapDamage::Device(error) => error.fmt(f),
            MapDamage::Unsound => f.write_str("what is there is no such node"),
            MapDamage::Stale => f.write_str("an older version is there: a write was lost"),
            MapDamage::Place { place } => write!(
                f,
                "place {place} belongs to more than one page, or lies behind the file's end"
            ),
            MapDamage::Ids { ids } => write!(
                f,
                "the superblock counts {ids} page ids, which is more than {} or than memory holds",
                MapEntry::PLACES
            ),
        }?;
        f.write_str("; `millpond dump --salvage` finds pages without it")
    }
}

impl std::error::Error for MapError {}

/// Reads the page map that `superblock` names.
pub(in crate::io) fn read_map(
    device: &dyn Device,
    superblock: &Superblock,
    waits: bool,
) -> Result<PageMap, Box<MapError>> {
    read_map_within(device, superblock, waits, MapEntry::PLACES)
}

/// Reads the page map that `superblock` names, of at most `most` page ids.
pub(in crate::io) fn read_map_within(
    device: &dyn Device,
    superblock: &Superblock,
    waits: bool,
    most: u64,
) -> Result<PageMap, Box<MapError>> {
    let size = superblock.page_size;
    let places = device.length() / size.bytes_u64();
    let ids = superblock.pages;
    let fail = |level: usize, index: u64, entry: MapEntry, damage: MapDamage| {
        let offset = entry.spot().map_or(0, |spot| spot.offset(size));
        let (path, level) = (device.path().to_path_buf(), level as u8);
        Box::new(MapError { path, level, index, offset, damage })
    };
    if ids > most || !has_memory(ids) {
        return Err(fail(0, 0, MapEntry::NONE, MapDamage::Ids { ids }));
    }
    let compresses = superblock.compression != Compression::None;
    let mut map = PageMap::new(size, compresses, places, ids, waits);
    if superblock.map_root == MapEntry::NONE {
        return Ok(map);
    }
    let n = per_node(size);
    let mut level = nodes_by_level(size, ids).len() - 1;
    let mut nodes = vec![(0, superblock.map_root)];
    loop {
        let mut below = Vec::new();
        for batch in nodes.chunks(BATCH) {
            let mut buffer = AlignedBuffer::new(batch.len() * size.bytes());
            let results = read_nodes(device, size, batch, &mut buffer);
            let pages = buffer.chunks(size.bytes());
            for ((&(index, entry), result), page) in batch.iter().zip(results).zip(pages) {
                result
                    .map_err(MapDamage::Device)
                    .and_then(|()| proof(level, index, entry, page))
                    .map_err(|damage| fail(level, index, entry, damage))?;
                if !map.load_node(level, index, entry) {
                    let place = entry.place().unwrap_or(0);
                    return Err(fail(level, index, entry, MapDamage::Place { place }));
                }
                for (child, of) in (index * n..).zip(entries(page)) {
                    if of == MapEntry::NONE {
                        continue;
                    }
                    if level > 0 {
                        below.push((child, of));
                        continue;
                    }
                    // A superblock written before 28 November 2026 may count fewer ids than the
                    // last leaf has: pages that were allocated while the map was written.
                    if child >= map.ids() {
                        map.set_ids(child + 1);
                    }
                    if !map.load_page(PageId(child), of) {
                        let place = of.place().unwrap_or(0);
                        return Err(fail(level, index, entry, MapDamage::Place { place }));
                    }
                }
            }
        }
        match level.checked_sub(1) {
            None => return Ok(map),
            Some(next) => (level, nodes) = (next, below),
        }
    }
}

/// Returns `true` if memory has room for the entries of `ids` page ids. The file's length is not a
/// bound: ids stay when a large structure is dropped and the file is cut.
fn has_memory(ids: u64) -> bool {
    Vec::<MapEntry>::new().try_reserve_exact(ids as usize).is_ok()
}

fn read_nodes(
    device: &dyn Device,
    size: PageSize,
    batch: &[(u64, MapEntry)],
    buffer: &mut AlignedBuffer,
) -> Vec<Result<(), DeviceError>> {
    let mut parts: Vec<[IoSliceMut<'_>; 1]> =
        buffer.chunks_mut(size.bytes()).map(|page| [IoSliceMut::new(page)]).collect();
    let mut requests: Vec<ReadRequest<'_, '_>> = batch
        .iter()
        .zip(&mut parts)
        .map(|((_, entry), parts)| {
            ReadRequest::new(entry.spot().map_or(0, |spot| spot.offset(size)), parts)
        })
        .collect();
    device.read_batch(&mut requests);
    requests.into_iter().map(|request| request.result).collect()
}

fn proof(level: usize, index: u64, entry: MapEntry, page: &[u8]) -> Result<(), MapDamage> {
    let header = PageHeader::read(page);
    if header.kind != PageType::PAGE_MAP || !PageHeader::is_sound(node_id(level as u8, index), page)
    {
        return Err(MapDamage::Unsound);
    }
    if entry.is_of(header.checksum) { Ok(()) } else { Err(MapDamage::Stale) }
}

/// Searches bytes read for pages, compressed or not.
struct Finder {
    size: PageSize,
    page: Vec<u8>,
}

impl Finder {
    fn new(size: PageSize) -> Finder {
        Finder { size, page: vec![0; size.bytes()] }
    }

    /// Calls `found` with the header and the spot of each sound page in `bytes`, which begin at
    /// `place` in the file.
    fn look(&mut self, place: u64, bytes: &[u8], found: &mut dyn FnMut(PageHeader, Spot)) {
        let mut unit = 0;
        while let Some(rest) =
            bytes.get(unit as usize * self.size.unit()..).filter(|r| !r.is_empty())
        {
            let (at, first) = (place + unit / self.size.units(), unit % self.size.units());
            let page = rest.get(..self.size.bytes()).filter(|page| is_page(page));
            unit += if let Some(page) = page {
                found(PageHeader::read(page), Spot::new(at, first, None));
                self.size.units()
            } else if let Some(units) = units_of(self.size, rest)
                && unpack(rest, &mut self.page)
                && is_page(&self.page)
            {
                found(PageHeader::read(&self.page), Spot::new(at, first, Some(units)));
                units
            } else {
                1
            };
        }
    }
}

/// Returns `true` if `page` belongs to a structure and was sealed under the id in its header.
fn is_page(page: &[u8]) -> bool {
    let header = PageHeader::read(page);
    let is_own = matches!(
        header.kind,
        PageType::NONE | PageType::SUPER | PageType::FREE_MAP | PageType::PAGE_MAP
    );
    !is_own && header.page.0 < MapEntry::PLACES && PageHeader::is_sound(header.page, page)
}

/// Calls `look` with each readable piece of the file and its first place, until it breaks. No page
/// crosses from one piece into another.
fn scan(
    device: &dyn Device,
    size: PageSize,
    places: u64,
    look: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) {
    let region = UnitMap::region(size);
    let at_once = (SCAN_BYTES as u64 / size.bytes_u64()).max(region).next_multiple_of(region);
    let mut buffer = AlignedBuffer::new(at_once as usize * size.bytes());
    let mut first = 0;
    while first < places {
        let count = at_once.min(places - first);
        let bytes = &mut buffer[..count as usize * size.bytes()];
        if device.read(first * size.bytes_u64(), bytes).is_err() {
            // Unreadable pages are skipped.
            for (place, page) in (first..).zip(bytes.chunks_exact_mut(size.bytes())) {
                if device.read(place * size.bytes_u64(), page).is_err() {
                    page.fill(0);
                }
            }
        }
        let mut pieces = (0..).zip(bytes.chunks(region as usize * size.bytes()));
        if pieces.any(|(at, piece)| look(first + at * region, piece).is_break()) {
            return;
        }
        first += count;
    }
}

/// Makes a page map of the pages in the file, each in the version with the highest LSN. Pages whose
/// ids are too high for memory to hold the map are skipped.
pub(in crate::io) fn find_pages(device: &dyn Device, size: PageSize) -> PageMap {
    find_pages_within(device, size, has_memory)
}

/// Like [`find_pages`]; `has_memory` returns `true` if there is room for that many page ids.
fn find_pages_within(
    device: &dyn Device,
    size: PageSize,
    has_memory: impl Fn(u64) -> bool,
) -> PageMap {
    let places = device.length() / size.bytes_u64();
    let mut newest: HashMap<PageId, (Lsn, MapEntry)> = HashMap::new();
    let mut finder = Finder::new(size);
    scan(device, size, places, &mut |place, stored| {
        finder.look(place, stored, &mut |header, spot| {
            let found = (header.lsn, MapEntry::new(spot, header.checksum));
            let best = newest.entry(header.page).or_insert(found);
            if best.0 <= found.0 {
                *best = found;
            }
        });
        ControlFlow::Continue(())
    });
    let mut found: Vec<u64> = newest.keys().map(|page| page.0 + 1).collect();
    found.sort_unstable();
    let ids = found.into_iter().rev().find(|ids| has_memory(*ids)).unwrap_or(0);
    newest.retain(|page, _| page.0 < ids);
    let compresses =
        newest.values().any(|(_, entry)| entry.spot().is_some_and(|spot| !spot.is_place()));
    let mut map = PageMap::new(size, compresses, places, ids, true);
    for (page, (_, entry)) in newest {
        map.load_page(page, entry);
    }
    map
}

/// Finds the page size with which there are pages in the file. A backup may begin with many
/// megabytes of zeros, so this reads on until it finds one.
pub(in crate::io) fn page_size_by_pages(device: &dyn Device) -> Option<PageSize> {
    PageSize::ALL.into_iter().chain([PageSize::TINY]).find(|size| {
        let places = device.length() / size.bytes_u64();
        let mut is_found = false;
        let mut finder = Finder::new(*size);
        scan(device, *size, places, &mut |place, stored| {
            finder.look(place, stored, &mut |_, _| is_found = true);
            if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        is_found
    })
}

/// Returns `true` if page 1 is a sound free map, as in each store with free maps.
pub(in crate::io) fn has_free_map(device: &dyn Device, size: PageSize) -> bool {
    let mut page = AlignedBuffer::new(size.bytes());
    device.read(size.bytes_u64(), &mut page).is_ok()
        && PageHeader::is_sound(PageId(1), &page)
        && PageHeader::read(&page).kind == PageType::FREE_MAP
}

/// Finds the page size with which page 1 is the first free map.
pub(in crate::io) fn page_size_by_free_map(device: &dyn Device) -> Option<PageSize> {
    let mut sizes = PageSize::ALL.into_iter().chain([PageSize::TINY]);
    sizes.find(|size| has_free_map(device, *size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_device::MemoryDevice;

    #[test]
    fn a_page_whose_id_is_the_highest_of_all_costs_the_others_nothing() {
        let size = PageSize::TINY;
        let ids = [5, MapEntry::PLACES - 1, MapEntry::PLACES];
        let pages = ids.map(|id| {
            let (page, kind) = (PageId(id), PageType::HEAP_DATA);
            let header = PageHeader { checksum: 0, lsn: Lsn(8), page, owner: 3, kind, level: 0 };
            let mut bytes = vec![0; size.bytes()];
            header.write(&mut bytes);
            PageHeader::seal(page, &mut bytes);
            bytes
        });
        let device = MemoryDevice::from_bytes(&[vec![0; size.bytes()], pages.concat()].concat());
        let asked = std::cell::RefCell::new(Vec::new());
        let map = find_pages_within(&device, size, |ids| {
            asked.borrow_mut().push(ids);
            ids <= 1 << 20
        });
        assert_eq!((map.ids(), map.placed()), (6, 1));
        assert_eq!(map.entry(PageId(5)).place(), Some(1));
        // One id beyond the highest is not a page, and the highest is one.
        assert_eq!(asked.into_inner(), [MapEntry::PLACES, 6]);
    }
}
