//! Free space of the file: places of a page each, or units if pages are compressed.

use millpond_base::PageId;

use super::bitmap::Bitmap;
use super::units::UnitMap;
use crate::page::{PageSize, Spot};

/// Divisor of the room of compressed pages that gives the gaps in a packed file.
const GAPS: u64 = 16;

/// Place of the superblock.
const SUPERBLOCK: u64 = 0;

/// Map of the free space.
#[derive(Debug)]
pub(in crate::io) enum Space {
    /// Whole places.
    Places(Bitmap),
    /// Units of places.
    Units(UnitMap, PageSize),
}

impl Space {
    /// Returns the space of a file with `places` places; all but the superblock's are free.
    pub(in crate::io) fn new(size: PageSize, places: u64, compresses: bool) -> Space {
        if compresses {
            let mut units = UnitMap::new(size);
            units.extend(places);
            units.claim(Spot::new(SUPERBLOCK, 0, None));
            return Space::Units(units, size);
        }
        let mut free = Bitmap::default();
        free.extend(places, |place| place.0 == SUPERBLOCK);
        Space::Places(free)
    }

    /// Returns the number of places.
    pub(in crate::io) fn places(&self) -> u64 {
        match self {
            Space::Places(free) => free.pages(),
            Space::Units(units, _) => units.places(),
        }
    }

    /// Returns the number of pages that find room whatever their length.
    pub(in crate::io) fn free_places(&self) -> u64 {
        match self {
            Space::Places(free) => free.free_pages(),
            Space::Units(units, _) => units.free_pages(),
        }
    }

    /// Returns the bytes of memory beside one bit for each place.
    pub(in crate::io) fn bytes(&self) -> u64 {
        match self {
            Space::Places(_) => 0,
            Space::Units(units, _) => units.bytes(),
        }
    }

    /// Records that the file has `places` places now.
    pub(in crate::io) fn extend(&mut self, places: u64) {
        match self {
            Space::Places(free) => free.extend(places, |_| false),
            Space::Units(units, _) => units.extend(places),
        }
    }

    /// Takes room for a page before place `bound`: these units, or with `None` a whole place; and
    /// leaves `reserve` places free. Chooses the lowest room that fits, or the best fit.
    pub(in crate::io) fn take(
        &mut self,
        units: Option<u64>,
        reserve: u64,
        bound: u64,
    ) -> Option<Spot> {
        match self {
            Space::Places(free) => {
                let has_room = free.free_pages() > reserve;
                let place = has_room.then(|| free.take_below(bound)).flatten()?;
                Some(Spot::new(place.0, 0, None))
            }
            Space::Units(map, _) => map.take(units, reserve, bound),
        }
    }

    /// Frees room.
    pub(in crate::io) fn give(&mut self, spot: Spot) {
        match self {
            Space::Places(free) => {
                let given = free.give(PageId(spot.place()));
                debug_assert_eq!(given, Ok(()), "{spot:?} was taken");
            }
            Space::Units(map, _) => map.give(spot),
        }
    }

    /// Takes this room. Returns `false` if some of it is taken, or does not exist.
    pub(in crate::io) fn claim(&mut self, spot: Spot) -> bool {
        match self {
            Space::Places(free) => spot.is_place() && free.take_this(spot.place()),
            Space::Units(map, _) => map.claim(spot),
        }
    }

    /// Ends the file behind the last taken place, and returns its new number of places: a multiple
    /// of `unit`, and `least` or more.
    pub(in crate::io) fn cut(&mut self, least: u64, unit: u64) -> u64 {
        match self {
            Space::Places(free) => free.cut(least, unit, |_| false),
            Space::Units(map, _) => map.cut(least, unit),
        }
    }

    /// Returns the end that the file would have with no free space before it. Compressed pages do
    /// not all fit side by side, so a little is added for them.
    pub(in crate::io) fn packed(&self) -> u64 {
        match self {
            Space::Places(free) => free.pages() - free.free_pages(),
            Space::Units(map, size) => {
                let taken = map.taken_units().div_ceil(size.units());
                (taken + taken / GAPS + 1).next_multiple_of(UnitMap::region(*size))
            }
        }
    }

    /// Returns the grains in use, one bit for each, as words; and the number of places per grain.
    /// Nothing stored crosses from one grain into another.
    pub(in crate::io) fn used_grains(&self) -> (Vec<u64>, u64) {
        match self {
            Space::Places(free) => (free.words(0).collect(), 1),
            Space::Units(map, size) => (map.used_regions(), UnitMap::region(*size)),
        }
    }
}
