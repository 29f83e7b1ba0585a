//! Random numbers for policies: seeded, fast, and usable by many threads without a lock.

use millpond_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A generator that any number of threads may draw from: a Weyl sequence, finished by SplitMix's
/// mixer. Each draw is one atomic addition; concurrent draws never give the same number twice in
/// 2⁶⁴, and one thread alone repeats exactly.
pub struct Random(AtomicU64);

/// Step of the sequence.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes bits by SplitMix's finisher.
#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Scales 64 random bits to a number below `bound`; 0 if `bound` is 0.
#[inline(always)]
fn scale(bits: u64, bound: u32) -> u32 {
    (((bits >> 32) * u64::from(bound)) >> 32) as u32
}

/// Returns `count` numbers of the sequence, the first one at `first`.
#[inline(always)]
fn from(first: u64, count: usize, bound: u32) -> impl Iterator<Item = u32> + use<> {
    (0..count as u64).map(move |i| scale(mix(first.wrapping_add(STEP.wrapping_mul(i))), bound))
}

impl Random {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    /// Draws 64 random bits.
    #[inline(always)]
    pub fn bits(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Relaxed))
    }

    /// Draws a number below `bound`; 0 if `bound` is 0. The bias is below `bound`/2³².
    #[inline(always)]
    pub fn below(&self, bound: u32) -> u32 {
        scale(self.bits(), bound)
    }

    /// Draws the next `count` numbers of `below` with one atomic addition in all.
    #[inline(always)]
    pub fn sample(&self, count: usize, bound: u32) -> impl Iterator<Item = u32> + use<> {
        from(self.0.fetch_add(STEP.wrapping_mul(count as u64), Relaxed), count, bound)
    }

    /// Like `sample`, for a single thread, without a locked instruction.
    #[inline(always)]
    pub fn sample_alone(&mut self, count: usize, bound: u32) -> impl Iterator<Item = u32> + use<> {
        let at = self.0.load(Relaxed);
        self.0.store(at.wrapping_add(STEP.wrapping_mul(count as u64)), Relaxed);
        from(at, count, bound)
    }

    /// Like `below`, for a single thread, without a locked instruction.
    #[inline(always)]
    pub fn below_alone(&mut self, bound: u32) -> u32 {
        let at = self.0.load(Relaxed);
        self.0.store(at.wrapping_add(STEP), Relaxed);
        scale(mix(at), bound)
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

    #[test]
    fn however_numbers_are_drawn_they_are_the_same() {
        let (a, b, mut c) = (Random::new(9), Random::new(9), Random::new(9));
        for count in [1, 7, 0, 64] {
            let drawn: Vec<u32> = a.sample(count, 1_000).collect();
            assert_eq!(drawn, (0..count).map(|_| b.below(1_000)).collect::<Vec<_>>());
            assert_eq!(drawn, (0..count).map(|_| c.below_alone(1_000)).collect::<Vec<_>>());
            let more: Vec<u32> = a.sample(count, 77).collect();
            assert_eq!(more, c.sample_alone(count, 77).collect::<Vec<_>>());
            assert_eq!(more, (0..count).map(|_| b.below(77)).collect::<Vec<_>>());
        }
    }
}
