//! Places that are used in parts: compressed pages lie beside each other in one.

use millpond_base::PageId;

use super::bitmap::Bitmap;
use crate::page::{PageSize, Spot};

/// Which units of places are taken, of places that are used in parts.
#[derive(Debug)]
pub(in crate::io) struct Parts {
    units: u64,
    /// By place: bit u is 1 if unit u is taken. 0 where a place is not used in parts.
    taken: Vec<u16>,
    /// By length: the places whose longest free run has it; those are "free" in the map.
    by_run: Vec<Bitmap>,
    /// Places that are used in parts.
    places: u64,
    /// Units of them that are taken.
    taken_units: u64,
}

impl Parts {
    pub(in crate::io) fn new(size: PageSize) -> Parts {
        let by_run = (0..size.units()).map(|_| Bitmap::default()).collect();
        Parts { units: size.units(), taken: Vec::new(), by_run, places: 0, taken_units: 0 }
    }

    /// Places that are used in parts.
    pub(in crate::io) fn places(&self) -> u64 {
        self.places
    }

    /// Units of them that are taken.
    pub(in crate::io) fn taken_units(&self) -> u64 {
        self.taken_units
    }

    /// Bytes of memory.
    pub(in crate::io) fn bytes(&self) -> u64 {
        // A bit of each map, and some for their summaries.
        2 * self.taken.capacity() as u64 * 2
    }

    /// Whether `place` is used in parts.
    pub(in crate::io) fn has(&self, place: u64) -> bool {
        self.of(place) != 0
    }

    fn of(&self, place: u64) -> u16 {
        self.taken.get(place as usize).copied().unwrap_or(0)
    }

    /// The units of a part, as bits.
    fn bits(first: u64, units: u64) -> u16 {
        (((1u32 << units) - 1) << first) as u16
    }

    /// Free units of a place, as bits.
    fn free(&self, place: u64) -> u16 {
        !self.of(place) & Self::bits(0, self.units)
    }

    fn longest_run(free: u16) -> usize {
        let (mut left, mut run) = (free, 0);
        while left != 0 {
            left &= left << 1;
            run += 1;
        }
        run
    }

    /// The first of `units` free units that lie beside each other.
    fn first_run(free: u16, units: u64) -> Option<u64> {
        let begins = (1..units).fold(free, |begins, _| begins & begins >> 1);
        (begins != 0).then(|| u64::from(begins.trailing_zeros()))
    }

    /// Sets which units of a place are taken; none: it is not used in parts any more.
    fn set(&mut self, place: u64, taken: u16) {
        if self.taken.len() as u64 <= place {
            let places = (place + 1).next_multiple_of(1024);
            self.taken.resize(places as usize, 0);
            self.by_run.iter_mut().for_each(|map| map.extend(places, |_| true));
        }
        let old = self.of(place);
        let class = |free: u16, taken: u16| if taken == 0 { 0 } else { Self::longest_run(free) };
        let was = class(self.free(place), old);
        if let Some(of) = self.taken.get_mut(place as usize) {
            *of = taken;
        }
        let is = class(self.free(place), taken);
        if was != is {
            if let Some(map) = self.by_run.get_mut(was).filter(|_| was > 0) {
                let was_there = map.take_this(place);
                debug_assert!(was_there, "place {place} has a run of {was}");
            }
            if let Some(map) = self.by_run.get_mut(is).filter(|_| is > 0) {
                let is_new = map.give(PageId(place));
                debug_assert_eq!(is_new, Ok(()), "place {place} has a run of {is}");
            }
        }
        self.places += u64::from(taken != 0);
        self.places -= u64::from(old != 0);
        self.taken_units += u64::from(taken.count_ones());
        self.taken_units -= u64::from(old.count_ones());
    }

    /// Takes units that fit best of places below `bound` that are used in parts.
    pub(in crate::io) fn take(&mut self, units: u64, bound: u64) -> Option<Spot> {
        let place = (units as usize..self.by_run.len())
            .find_map(|run| self.by_run.get_mut(run)?.lowest_below(bound))?;
        let first = Self::first_run(self.free(place), units)?;
        self.set(place, self.of(place) | Self::bits(first, units));
        Some(Spot::part(place, first, units))
    }

    /// Takes the first units of a place that was not used in parts.
    pub(in crate::io) fn begin(&mut self, place: u64, units: u64) -> Spot {
        debug_assert!(!self.has(place), "place {place} was taken as a whole");
        self.set(place, Self::bits(0, units));
        Spot::part(place, 0, units)
    }

    /// Gives a part back. Returns whether it was the last one of its place.
    pub(in crate::io) fn give(&mut self, place: u64, first: u64, units: u64) -> bool {
        let (old, bits) = (self.of(place), Self::bits(first, units));
        debug_assert_eq!(old & bits, bits, "the part {first} + {units} of {place} was taken");
        self.set(place, old & !bits);
        !self.has(place)
    }

    /// Takes this part, of a place that is used in parts or begins to be. Returns `false` if some
    /// of it is taken, or not there.
    pub(in crate::io) fn claim(&mut self, place: u64, first: u64, units: u64) -> bool {
        let (old, bits) = (self.of(place), Self::bits(first, units));
        let is_free = first + units <= self.units && old & bits == 0;
        if is_free {
            self.set(place, old | bits);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Take(u64, u64),
        Begin(u64, u64),
        Give(usize),
        Claim(u64, u64, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (1..8u64, 0..3000u64).prop_map(|(units, bound)| Step::Take(units, bound)),
            2 => (1..2500u64, 1..8u64).prop_map(|(place, units)| Step::Begin(place, units)),
            4 => any::<usize>().prop_map(Step::Give),
            1 => (1..2500u64, 0..9u64, 1..8u64).prop_map(|(p, f, u)| Step::Claim(p, f, u)),
        ];
        proptest::collection::vec(step, 0..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn parts_never_overlap_and_the_best_fit_is_found(steps in steps()) {
            let size = PageSize::KIB_4;
            let mut parts = Parts::new(size);
            // By place, which units are taken.
            let mut model: BTreeMap<u64, [bool; 8]> = BTreeMap::new();
            let mut spots: Vec<Spot> = Vec::new();
            let longest = |taken: &[bool; 8]| {
                taken.split(|taken| *taken).map(<[bool]>::len).max().unwrap_or(0) as u64
            };
            for step in steps {
                let taken = match step {
                    Step::Take(units, bound) => {
                        let fits = model.range(..bound).map(|(_, taken)| longest(taken));
                        let best = fits.filter(|run| *run >= units).min();
                        let spot = parts.take(units, bound);
                        prop_assert_eq!(spot.map(|spot| longest(&model[&spot.place()])), best);
                        spot
                    }
                    Step::Begin(place, units) if !model.contains_key(&place) => {
                        model.insert(place, [false; 8]);
                        Some(parts.begin(place, units))
                    }
                    Step::Claim(place, first, units) => {
                        let taken = model.get(&place).copied().unwrap_or_default();
                        let run = taken.get(first as usize..(first + units) as usize);
                        let is_free = run.is_some_and(|run| !run.contains(&true));
                        prop_assert_eq!(parts.claim(place, first, units), is_free);
                        if is_free {
                            model.insert(place, taken);
                        }
                        is_free.then(|| Spot::part(place, first, units))
                    }
                    Step::Give(at) if !spots.is_empty() => {
                        let spot = spots.swap_remove(at % spots.len());
                        let (first, units) = spot.units().unwrap();
                        let of = model.get_mut(&spot.place()).unwrap();
                        of[first as usize..][..units as usize].fill(false);
                        let is_empty = !of.contains(&true);
                        if is_empty {
                            model.remove(&spot.place());
                        }
                        prop_assert_eq!(parts.give(spot.place(), first, units), is_empty);
                        None
                    }
                    _ => None,
                };
                if let Some(spot) = taken {
                    let (first, units) = spot.units().unwrap();
                    let of = model.get_mut(&spot.place()).unwrap();
                    let run = &mut of[first as usize..][..units as usize];
                    prop_assert!(!run.contains(&true), "{:?} was taken", spot);
                    run.fill(true);
                    spots.push(spot);
                }
                prop_assert_eq!(parts.places(), model.len() as u64);
                let units: usize =
                    model.values().map(|of| of.iter().filter(|taken| **taken).count()).sum();
                prop_assert_eq!(parts.taken_units(), units as u64);
            }
            for place in 0..2600 {
                prop_assert_eq!(parts.has(place), model.contains_key(&place));
            }
        }
    }
}
