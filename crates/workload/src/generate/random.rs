//! Random numbers of the generators: xoshiro256++, and fixed conversions from bits to values.
//!
//! A trace must be the same for the same seed on every machine and in every later version. So the
//! conversions from 64 random bits to a number are written here, not taken from a library whose
//! next version may convert differently.

use millpond_base::Seed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A repeatable stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Creates the stream of `seed`.
    pub fn new(seed: Seed) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed.0))
    }

    /// Draws uniformly from [0, 1), in steps of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws uniformly from [0, `n`); 0 if `n` is 0. The bias is less than n/2⁶⁴.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns `true` with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Returns the numbers 0 to `n` − 1 in random order.
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for i in (1..n as usize).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one_of_xoshiro256_plus_plus() {
        // First output for the state (1, 2, 3, 4): rotl(1 + 4, 23) + 1.
        let mut seed = [0u8; 32];
        for (i, word) in (1u64..5).enumerate() {
            seed[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let mut raw = Xoshiro256PlusPlus::from_seed(seed);
        assert_eq!(raw.next_u64(), 5u64.rotate_left(23) + 1);
    }

    #[test]
    fn a_seed_leads_to_the_state_that_splitmix64_makes_of_it() {
        // The four first outputs of splitmix64 from 7 are the state: a trace must not change with
        // the version of a crate.
        let mut x = 7u64;
        let mut seed = [0u8; 32];
        for word in seed.chunks_exact_mut(8) {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        let mut raw = Xoshiro256PlusPlus::from_seed(seed);
        let mut random = Random::new(Seed(7));
        assert!((0..100).all(|_| random.0.next_u64() == raw.next_u64()));
    }

    #[test]
    fn values_stay_in_their_range_and_permutations_are_complete() {
        let mut random = Random::new(Seed(7));
        for _ in 0..10_000 {
            assert!(random.below(3) < 3);
            assert!((0.0..1.0).contains(&random.unit()));
        }
        let mut order = random.permutation(1000);
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, v)| i == *v as usize));
    }
}
