//! Free units of a file with compressed pages: one bit per unit.
//!
//! A *region* is 64 units, a word of the map, and nothing crosses from one into another. Regions
//! are sorted by their longest run of free units, up to a page. A page goes into the region that it
//! fits best, and among equals into the one nearest the front of the file.

use millpond_base::PageId;

use super::bitmap::Bitmap;
use crate::page::{PageSize, Spot};

/// Units per region.
const REGION: u64 = 64;

/// Map of the free units.
#[derive(Debug)]
pub(in crate::io) struct UnitMap {
    /// Units per page.
    page: u64,
    /// Units by region: bit u is 1 if unit u is taken, or behind the file's end.
    taken: Vec<u64>,
    /// Regions by the length of their longest free run; the last entry also has longer ones. A
    /// region is "free" in its map. Entry 0 is unused.
    by_run: Vec<Bitmap>,
    /// Number of places.
    places: u64,
    /// Number of disjoint free runs as long as a page.
    free_pages: u64,
    /// Number of free units.
    free_units: u64,
}

/// Returns the bits of `units` units of a region from `first` on.
fn bits(first: u64, units: u64) -> u64 {
    let run = if units >= REGION { u64::MAX } else { (1 << units) - 1 };
    run << first
}

/// Returns the length of the longest run of ones, up to `most`.
fn longest_run(free: u64, most: u64) -> usize {
    let (mut left, mut run) = (free, 0);
    while left != 0 && run < most {
        left &= left << 1;
        run += 1;
    }
    run as usize
}

/// Returns the position of the first run of `units` ones.
fn first_run(free: u64, units: u64) -> Option<u64> {
    let begins = (1..units).fold(free, |begins, _| begins & begins >> 1);
    (begins != 0).then(|| u64::from(begins.trailing_zeros()))
}

/// Counts the disjoint runs of `units` ones.
fn count_runs(mut free: u64, units: u64) -> u64 {
    let mut runs = 0;
    while let Some(first) = first_run(free, units) {
        free &= !bits(0, first + units);
        runs += 1;
    }
    runs
}

impl UnitMap {
    /// Returns a map of no places.
    pub(in crate::io) fn new(size: PageSize) -> UnitMap {
        let page = size.units();
        let by_run = (0..=page).map(|_| Bitmap::default()).collect();
        UnitMap { page, taken: Vec::new(), by_run, places: 0, free_pages: 0, free_units: 0 }
    }

    /// Returns the places per region.
    pub(in crate::io) fn region(size: PageSize) -> u64 {
        REGION / size.units()
    }

    pub(in crate::io) fn places(&self) -> u64 {
        self.places
    }

    /// Returns the number of pages that find room whatever their length.
    pub(in crate::io) fn free_pages(&self) -> u64 {
        self.free_pages
    }

    /// Returns the number of taken units.
    pub(in crate::io) fn taken_units(&self) -> u64 {
        self.places * self.page - self.free_units
    }

    /// Returns the bytes of memory.
    pub(in crate::io) fn bytes(&self) -> u64 {
        // Each region has a bit in each map.
        self.taken.capacity() as u64 * (8 + (self.page + 1).div_ceil(8))
    }

    /// Extends the map to `places` places; new places are free.
    pub(in crate::io) fn extend(&mut self, places: u64) {
        let old = self.places * self.page;
        if places <= self.places {
            return;
        }
        self.places = places;
        let units = places * self.page;
        let regions = units.div_ceil(REGION);
        self.taken.resize(regions as usize, u64::MAX);
        self.by_run.iter_mut().for_each(|map| map.extend(regions, |_| true));
        for region in old / REGION..regions {
            let begin = region * REGION;
            let (from, to) = (old.max(begin) - begin, units.min(begin + REGION) - begin);
            self.set(region, self.of(region) & !bits(from, to - from));
        }
    }

    /// Ends the map behind the last taken unit, at a multiple of `unit` places and not before
    /// `least`. Returns the new number of places.
    pub(in crate::io) fn cut(&mut self, least: u64, unit: u64) -> u64 {
        let there = |region: u64| bits(0, (self.places * self.page - region * REGION).min(REGION));
        let regions = self.taken.len() as u64;
        let last = (0..regions).rev().find(|region| self.of(*region) & there(*region) != 0);
        let used = last.map_or(0, |region| {
            region * REGION + REGION - u64::from((self.of(region) & there(region)).leading_zeros())
        });
        let places = used.div_ceil(self.page).max(least).next_multiple_of(unit.max(1));
        if places < self.places {
            let units = places * self.page;
            for region in units / REGION..regions {
                let kept = units.saturating_sub(region * REGION).min(REGION);
                let behind = if kept == REGION { 0 } else { u64::MAX << kept };
                self.set(region, self.of(region) | behind);
            }
            self.taken.truncate(units.div_ceil(REGION) as usize);
            self.places = places;
        }
        self.places
    }

    fn of(&self, region: u64) -> u64 {
        self.taken.get(region as usize).copied().unwrap_or(u64::MAX)
    }

    /// Sets the taken units of a region.
    fn set(&mut self, region: u64, taken: u64) {
        let Some(here) = self.taken.get_mut(region as usize) else { return };
        let (was, is) = (!std::mem::replace(here, taken), !taken);
        let (was_run, is_run) = (longest_run(was, self.page), longest_run(is, self.page));
        if was_run != is_run {
            if let Some(map) = self.by_run.get_mut(was_run).filter(|_| was_run > 0) {
                let was_there = map.take_this(region);
                debug_assert!(was_there, "region {region} had a run of {was_run}");
            }
            if let Some(map) = self.by_run.get_mut(is_run).filter(|_| is_run > 0) {
                let is_new = map.give(PageId(region));
                debug_assert_eq!(is_new, Ok(()), "region {region} has a run of {is_run}");
            }
        }
        self.free_pages += count_runs(is, self.page);
        self.free_pages -= count_runs(was, self.page);
        self.free_units += u64::from(is.count_ones());
        self.free_units -= u64::from(was.count_ones());
    }

    /// Takes room for a page before place `bound`: these units, or with `None` those of an
    /// uncompressed page; and leaves room for `reserve` pages.
    pub(in crate::io) fn take(
        &mut self,
        units: Option<u64>,
        reserve: u64,
        bound: u64,
    ) -> Option<Spot> {
        let length = units.unwrap_or(self.page);
        let below = bound.saturating_mul(self.page) / REGION;
        // Shorter runs are useless for uncompressed pages.
        let most = if self.free_pages > reserve { self.page } else { self.page - 1 };
        let region = (length..=most)
            .find_map(|run| self.by_run.get_mut(run as usize)?.lowest_below(below))?;
        let first = first_run(!self.of(region), length)?;
        self.set(region, self.of(region) | bits(first, length));
        let begin = region * REGION + first;
        Some(Spot::new(begin / self.page, begin % self.page, units))
    }

    /// Returns the region of a spot, and its bits; `None` if it crosses into another one.
    fn bits_of(&self, spot: Spot) -> Option<(u64, u64)> {
        let begin = spot.place() * self.page + spot.first();
        let length = spot.units().unwrap_or(self.page);
        let (region, first) = (begin / REGION, begin % REGION);
        (first + length <= REGION).then(|| (region, bits(first, length)))
    }

    /// Frees room that was taken.
    pub(in crate::io) fn give(&mut self, spot: Spot) {
        let Some((region, bits)) = self.bits_of(spot) else { return };
        debug_assert_eq!(self.of(region) & bits, bits, "{spot:?} was taken");
        self.set(region, self.of(region) & !bits);
    }

    /// Takes this room. Returns `false` if some of it is taken, or does not exist.
    pub(in crate::io) fn claim(&mut self, spot: Spot) -> bool {
        let Some((region, bits)) = self.bits_of(spot) else { return false };
        let is_free = self.of(region) & bits == 0;
        if is_free {
            self.set(region, self.of(region) | bits);
        }
        is_free
    }

    /// Returns the regions in use: one bit for each, as words.
    pub(in crate::io) fn used_regions(&self) -> Vec<u64> {
        let units = self.places * self.page;
        let is_used = |region: u64| {
            self.of(region) & bits(0, units.saturating_sub(region * REGION).min(REGION)) != 0
        };
        let regions: Vec<u64> = (0..self.taken.len() as u64).collect();
        let word = |regions: &[u64]| {
            let used = regions.iter().filter(|region| is_used(**region));
            used.fold(0, |word, region| word | 1 << (region % 64))
        };
        regions.chunks(64).map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: PageSize = PageSize::KIB_4;

    #[derive(Clone, Debug)]
    enum Step {
        Take(u64, u64, u64),
        Give(usize),
        Claim(u64, u64, u64),
        Extend(u64),
        Cut(u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (1..9u64, 0..3u64, 0..90u64).prop_map(|(u, r, b)| Step::Take(u, r, b)),
            5 => any::<usize>().prop_map(Step::Give),
            1 => (0..90u64, 0..8u64, 1..9u64).prop_map(|(p, f, u)| Step::Claim(p, f, u)),
            1 => (0..20u64).prop_map(Step::Extend),
            1 => (0..30u64, 1..4u64).prop_map(|(least, unit)| Step::Cut(least, unit)),
        ];
        proptest::collection::vec(step, 0..300)
    }

    /// Returns the free runs of a region.
    fn runs(region: &[bool]) -> Vec<u64> {
        region.split(|taken| *taken).map(|run| run.len() as u64).filter(|len| *len > 0).collect()
    }

    fn spot(place: u64, first: u64, units: u64) -> Spot {
        Spot::new(place, first, (units < 8).then_some(units))
    }

    fn units_of(spot: Spot) -> std::ops::Range<usize> {
        let begin = (spot.place() * 8 + spot.first()) as usize;
        begin..begin + spot.units().unwrap_or(8) as usize
    }

    fn is_as(map: &UnitMap, model: &[bool]) -> Result<(), TestCaseError> {
        prop_assert_eq!(map.places() * 8, model.len() as u64);
        let taken = model.iter().filter(|taken| **taken).count();
        prop_assert_eq!(map.taken_units(), taken as u64);
        let used = map.used_regions();
        for (region, of) in model.chunks(64).enumerate() {
            let is_used = used[region / 64] & 1 << (region % 64) != 0;
            prop_assert_eq!(is_used, of.contains(&true), "region {}", region);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn nothing_overlaps_and_the_best_fit_is_found(steps in steps(), places in 1..40u64) {
            let mut map = UnitMap::new(SIZE);
            map.extend(places);
            // Like the superblock.
            prop_assert!(map.claim(Spot::new(0, 0, None)));
            let mut model = vec![false; places as usize * 8];
            model[..8].fill(true);
            let mut spots: Vec<Spot> = Vec::new();
            for step in steps {
                let pages = |model: &[bool]| -> u64 {
                    model.chunks(64).flat_map(runs).map(|run| run / 8).sum()
                };
                match step {
                    Step::Take(units, reserve, bound) => {
                        let below = &model[..(bound as usize * 8 / 64 * 64).min(model.len())];
                        let most = if pages(&model) > reserve { 8 } else { 7 };
                        let longest = below.chunks(64).map(|of| runs(of).into_iter().max());
                        let fits = longest.map(|run| run.unwrap_or(0).min(8));
                        let best = fits.filter(|run| (units..=most).contains(run)).min();
                        let taken = map.take((units < 8).then_some(units), reserve, bound);
                        prop_assert_eq!(taken.is_some(), best.is_some());
                        if let Some(spot) = taken {
                            let region = units_of(spot).start / 64 * 64;
                            let of = &model[region..(region + 64).min(model.len())];
                            prop_assert_eq!(runs(of).into_iter().max().map(|r| r.min(8)), best);
                            prop_assert!(!model[units_of(spot)].contains(&true));
                            model[units_of(spot)].fill(true);
                            spots.push(spot);
                        }
                    }
                    Step::Claim(place, first, units) => {
                        let spot = spot(place, first, units);
                        let range = units_of(spot);
                        let one = range.start / 64 == (range.end - 1) / 64;
                        let is_free = one
                            && model.get(range.clone()).is_some_and(|of| !of.contains(&true));
                        prop_assert_eq!(map.claim(spot), is_free);
                        if is_free {
                            model[range].fill(true);
                            spots.push(spot);
                        }
                    }
                    Step::Give(at) if !spots.is_empty() => {
                        let spot = spots.swap_remove(at % spots.len());
                        model[units_of(spot)].fill(false);
                        map.give(spot);
                    }
                    Step::Give(_) => {}
                    Step::Extend(more) => {
                        map.extend(map.places() + more);
                        model.resize(map.places() as usize * 8, false);
                    }
                    Step::Cut(least, unit) => {
                        let last = model.iter().rposition(|taken| *taken);
                        let used = last.map_or(0, |at| at as u64 / 8 + 1);
                        let wanted = used.max(least).next_multiple_of(unit);
                        let places = wanted.min(map.places());
                        prop_assert_eq!(map.cut(least, unit), places);
                        model.truncate(places as usize * 8);
                    }
                }
                prop_assert_eq!(map.free_pages(), pages(&model));
                is_as(&map, &model)?;
            }
        }
    }
}
