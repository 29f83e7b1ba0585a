//! A counting filter over the prefixes of ranges. It shows a writer, before it requests a lock,
//! whether a range may contain its key.
//!
//! All keys between two bounds share a *prefix*, the one that the bounds have in common. A range
//! counts in the cell that its prefix and its tree hash to, even while it waits or is only being
//! requested. The writer of a key checks the cells of the key's prefixes, for the lengths that
//! prefixes of the tree's ranges have. If a range contains the key, its cell is above zero. Nearly
//! all other keys find zeros, however many ranges there are elsewhere in the tree.
//!
//! Cells are shared by all trees of a manager, each in a cache line of its own. Requests for ranges
//! with a prefix write its line, and writers of keys with that prefix read it. Lengths are never
//! forgotten, so the word that holds them is rarely written.

use std::ops::Bound;

use millpond_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::range::Range;

/// Number of cells of a filter; a power of two.
const CELLS: usize = if cfg!(feature = "model") { 4 } else { 1024 };

/// Longest prefix that is distinguished from shorter ones; each length has a bit in one word.
const PREFIX_MAX: usize = 63;

#[derive(Default)]
#[repr(align(64))]
struct Cell(AtomicU32);

/// The filter of a manager.
pub(super) struct RangeFilter(Box<[Cell]>);

/// Lengths that prefixes of a tree's ranges ever had, one bit each.
#[derive(Default)]
pub(super) struct PrefixLengths(AtomicU64);

/// The cell in which a range counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    length: u8,
    cell: u16,
}

impl Prefix {
    /// Returns the prefix of a range of `tree`: the common part of both bounds, or the empty one.
    pub fn of(tree: u32, range: &Range) -> Prefix {
        let common = match (&range.lower, &range.upper) {
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => {
                let same = lower.iter().zip(upper).take(PREFIX_MAX).take_while(|(a, b)| a == b);
                &lower[..same.count()]
            }
            _ => &[],
        };
        Prefix::new(tree, common)
    }

    /// Returns the empty prefix, which every range of `tree` has.
    pub fn everywhere(tree: u32) -> Prefix {
        Prefix::new(tree, &[])
    }

    fn new(tree: u32, prefix: &[u8]) -> Prefix {
        debug_assert!(prefix.len() <= PREFIX_MAX, "longer prefixes are cut");
        let cell = hash(tree, prefix) as usize & (CELLS - 1);
        Prefix { length: prefix.len() as u8, cell: cell as u16 }
    }
}

/// Hashes a prefix with a few multiplications: it is a few bytes long, and a writer may check
/// several.
#[inline]
fn hash(tree: u32, prefix: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = (u64::from(tree) << 8 ^ prefix.len() as u64).wrapping_mul(FACTOR);
    let mut mix = |word: u64| {
        hash = (hash ^ word).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    };
    let (words, rest) = prefix.as_chunks::<8>();
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    hash.wrapping_mul(FACTOR) >> 32
}

impl PrefixLengths {
    /// Returns whether a range may contain `key`. The caller is a writer that has recorded `key`
    /// among its writes.
    #[inline]
    pub fn may_be_around(&self, filter: &RangeFilter, tree: u32, key: &[u8]) -> bool {
        // A scanner that looked through the caller's writes before the key was among them had
        // counted its range earlier, and their mutex has made that visible to the caller.
        let mut lengths = self.0.load(Ordering::Relaxed);
        while lengths != 0 {
            let length = lengths.trailing_zeros() as usize;
            let Some(prefix) = key.get(..length) else { return false };
            let Prefix { cell, .. } = Prefix::new(tree, prefix);
            if filter.0[usize::from(cell)].0.load(Ordering::Relaxed) != 0 {
                return true;
            }
            lengths &= lengths - 1;
        }
        false
    }
}

impl RangeFilter {
    pub fn new() -> RangeFilter {
        RangeFilter((0..CELLS).map(|_| Cell::default()).collect())
    }

    /// Counts a range of a tree with `lengths`.
    pub fn raise(&self, lengths: &PrefixLengths, prefix: Prefix) {
        let bit = 1 << prefix.length;
        if lengths.0.load(Ordering::Relaxed) & bit == 0 {
            lengths.0.fetch_or(bit, Ordering::SeqCst);
        }
        let before = self.0[usize::from(prefix.cell)].0.fetch_add(1, Ordering::SeqCst);
        debug_assert!(before < u32::MAX, "ranges are fewer than a count can hold");
    }

    /// Removes a range from the count.
    pub fn lower(&self, prefix: Prefix) {
        let before = self.0[usize::from(prefix.cell)].0.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a range that goes was counted");
    }

    /// Returns the number of counted ranges; one that grew may count several times.
    pub fn counted(&self) -> u64 {
        self.0.iter().map(|cell| u64::from(cell.0.load(Ordering::Relaxed))).sum()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn key(rng: &mut fastrand::Rng) -> Vec<u8> {
        // Few letters and many lengths, also beyond the longest prefix.
        let len = if rng.u8(0..4) == 0 { rng.usize(60..70) } else { rng.usize(0..6) };
        let letters = if len > 6 { 1 } else { 3 };
        (0..len).map(|_| rng.u8(0..letters)).collect()
    }

    fn bound(rng: &mut fastrand::Rng) -> Bound<Vec<u8>> {
        match rng.u8(0..8) {
            0 => Bound::Unbounded,
            1..4 => Bound::Excluded(key(rng)),
            _ => Bound::Included(key(rng)),
        }
    }

    #[test]
    fn a_key_with_a_range_around_it_is_told_so() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut inside = 0;
        for _ in 0..2000 {
            let (filter, lengths) = (RangeFilter::new(), PrefixLengths::default());
            let range = Range { lower: bound(&mut rng), upper: bound(&mut rng) };
            filter.raise(&lengths, Prefix::of(3, &range));
            for _ in 0..50 {
                let key = key(&mut rng);
                if range.has(&key) {
                    assert!(lengths.may_be_around(&filter, 3, &key), "{key:?} in {range:?}");
                    inside += 1;
                }
            }
            filter.lower(Prefix::of(3, &range));
            assert!(!lengths.may_be_around(&filter, 3, &key(&mut rng)));
        }
        assert!(inside > 10_000, "{inside}");
    }

    #[test]
    fn ranges_elsewhere_concern_hardly_any_key() {
        let (filter, lengths) = (RangeFilter::new(), PrefixLengths::default());
        let key = |place: u32, n: u32| [place.to_be_bytes(), n.to_be_bytes()].concat();
        for place in 0..16 {
            let (lower, upper) = (Bound::Included(key(place, 0)), Bound::Included(key(place, 9)));
            filter.raise(&lengths, Prefix::of(3, &Range { lower, upper }));
        }
        let told =
            (16..10_016).filter(|place| lengths.may_be_around(&filter, 3, &key(*place, 5))).count();
        assert!(told < 10_000 / 30, "{told} of 10,000");
        assert!(!PrefixLengths::default().may_be_around(&filter, 4, &key(0, 5)));
    }
}
