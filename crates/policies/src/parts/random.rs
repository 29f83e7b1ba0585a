//! Random numbers for policies: seeded, quick, and usable by many threads without a lock.

use millpond_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A generator that any number of threads may draw from: a Weyl sequence, finished by SplitMix's
/// mixer. Each draw is one atomic addition; concurrent draws never give the same number twice in
/// 2⁶⁴, and one thread alone repeats exactly.
pub struct Random(AtomicU64);

impl Random {
    /// The generator with that seed.
    pub fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    /// 64 random bits.
    #[inline(always)]
    pub fn bits(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias is below `bound`/2³².
    #[inline(always)]
    pub fn below(&self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_repeat_and_spread_evenly() {
        let (a, b) = (Random::new(5), Random::new(5));
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            let draw = a.below(10);
            assert_eq!(draw, b.below(10));
            counts[draw as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        assert_eq!(a.below(0), 0);
    }
}
