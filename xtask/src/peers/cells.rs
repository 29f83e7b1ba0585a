//! Compared policies: those that both sides have, with the same parameters.

/// One policy on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Policy as `millpond sim --policy` takes it.
    pub ours: &'static str,
    /// Class of libCacheSim's Python module.
    pub theirs: &'static str,
    /// Set if both sides have the same definition, so that both should miss equally often.
    pub is_exact: bool,
}

/// libCacheSim's defaults where it has parameters: clock enters with the bit off, 2Q has Kin 25 %
/// and Kout 50 %, LRU-K is LRU-2 without history, hyperbolic draws 64 samples (no switch for it).
pub const PAIRS: [Pair; 11] = [
    Pair { ours: "lru", theirs: "LRU", is_exact: true },
    Pair { ours: "fifo", theirs: "FIFO", is_exact: true },
    Pair { ours: "clock(variant=fix)", theirs: "Clock", is_exact: true },
    Pair { ours: "sieve", theirs: "Sieve", is_exact: true },
    Pair { ours: "s3-fifo", theirs: "S3FIFO", is_exact: false },
    Pair { ours: "arc", theirs: "ARC", is_exact: true },
    Pair { ours: "lirs", theirs: "LIRS", is_exact: false },
    Pair { ours: "lru-k", theirs: "LRUK", is_exact: true },
    Pair { ours: "2q", theirs: "TwoQ", is_exact: true },
    Pair { ours: "hyperbolic(sample=64)", theirs: "Hyperbolic", is_exact: false },
    Pair { ours: "hyperbolic(sample=10)", theirs: "Hyperbolic", is_exact: false },
];

/// Sizes as shares of the trace's distinct pages.
pub const PERCENTS: [u64; 2] = [1, 10];

/// The hash table's size that libCacheSim's Python classes take by default.
pub const HASHPOWER_DEFAULT: u32 = 24;

/// Returns the frames for a share of the pages, rounded up.
pub fn frames(pages: u64, percent: u64) -> u64 {
    (pages * percent).div_ceil(100).max(1)
}

/// Returns the hash table sizes to try for a cache of `frames` frames.
///
/// The default of 2^24 buckets misses the processor's caches on every lookup of a small cache;
/// a fitted table is up to three times as fast.
pub fn hashpowers(frames: u64, is_default_table: bool) -> Vec<u32> {
    if is_default_table {
        return vec![HASHPOWER_DEFAULT];
    }
    let fitted = frames.next_power_of_two().trailing_zeros().max(8);
    vec![HASHPOWER_DEFAULT, fitted + 1, fitted + 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_and_never_zero() {
        assert_eq!((frames(3_153_310, 1), frames(3_153_310, 10)), (31_534, 315_331));
        assert_eq!((frames(1, 1), frames(0, 10)), (1, 1));
    }

    #[test]
    fn a_fitted_table_has_two_to_eight_buckets_per_frame() {
        assert_eq!(hashpowers(31_534, false), [24, 16, 17]);
        assert_eq!(hashpowers(1, false), [24, 9, 10]);
        assert_eq!(hashpowers(31_534, true), [24]);
    }
}
