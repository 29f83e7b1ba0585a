//! Where ranges are, as far as a writer has to know before it asks: a counting filter over the
//! prefixes that ranges have.
//!
//! All keys between two bounds begin with what the bounds have in common, their *prefix*. A range,
//! also one that waits or is just being asked for, counts in the cell that its prefix and its tree
//! hash to. Who writes a key looks at the cells of those of the key's prefixes whose lengths ranges
//! of the tree have: a key with a range around it finds that one's cell above zero, and nearly all
//! other keys find zeros, however many ranges there are elsewhere in the tree.
//!
//! Cells are shared by all trees of a manager, each in a cache line of its own: a line is written
//! by those who ask for ranges with its prefix, and read by those who write keys with it. Lengths
//! are never forgotten, so that the word with them is hardly ever written.

use std::ops::Bound;

use millpond_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::range::Range;

/// Cells of a filter; a power of two.
const CELLS: usize = if cfg!(feature = "model") { 4 } else { 1024 };

/// Longest prefix that is told apart from shorter ones; a bit for each length in one word.
const PREFIX_MAX: usize = 63;

#[derive(Default)]
#[repr(align(64))]
struct Cell(AtomicU32);

/// The filter of a manager.
pub(super) struct RangeFilter(Box<[Cell]>);

/// The lengths that prefixes of a tree's ranges ever had, a bit each.
#[derive(Default)]
pub(super) struct PrefixLengths(AtomicU64);

/// Where a range counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    length: u8,
    cell: u16,
}

impl Prefix {
    /// Of a range with both bounds, what they have in common.
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

    /// Of every range of `tree`.
    pub fn everywhere(tree: u32) -> Prefix {
        Prefix::new(tree, &[])
    }

    fn new(tree: u32, prefix: &[u8]) -> Prefix {
        debug_assert!(prefix.len() <= PREFIX_MAX, "longer prefixes are cut");
        let cell = hash(tree, prefix) as usize & (CELLS - 1);
        Prefix { length: prefix.len() as u8, cell: cell as u16 }
    }
}

/// A few multiplications: a prefix is a few bytes long, and a writer may look at several.
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
    /// Whether a range may be around `key`: asked by a writer whose key is among its writes.
    #[inline]
    pub fn may_be_around(&self, filter: &RangeFilter, tree: u32, key: &[u8]) -> bool {
        // Whoever looked through the caller's writes before it had written the key has counted its
        // range before that, and the mutex of the writes has made it known to the caller.
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

    /// A range is no more.
    pub fn lower(&self, prefix: Prefix) {
        let before = self.0[usize::from(prefix.cell)].0.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a range that goes was counted");
    }

    /// How many ranges are counted; one that grew may count several times.
    pub fn counted(&self) -> u64 {
        self.0.iter().map(|cell| u64::from(cell.0.load(Ordering::Relaxed))).sum()
    }
}
