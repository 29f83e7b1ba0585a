//! Spreading popular ranks over the rows.

/// Mixes the bits of `x` bijectively (the finaliser of SplitMix64).
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Mapping from ranks to row numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scramble {
    /// Rank k is row k, so popular rows are neighbours.
    Off,
    /// A fixed permutation: every rank has its own row, so the distribution is unchanged.
    Permute,
    /// YCSB's way: the row is the 64-bit FNV-1a hash of the rank, modulo the rows. Ranks may share
    /// a row, and a quarter to a third of the rows are never drawn.
    Hash,
}

impl Scramble {
    /// Returns the row of `rank`; both are below `n`, which is at least 1.
    #[inline]
    pub fn row(self, rank: u64, n: u64) -> u64 {
        match self {
            Scramble::Off => rank,
            Scramble::Permute => permute(rank, n),
            Scramble::Hash => fnv(rank) % n,
        }
    }
}

/// Hashes the bytes of `x` by FNV-1a, with the absolute value as in YCSB's signed arithmetic.
#[inline]
fn fnv(x: u64) -> u64 {
    let hash = x.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // Java's `Math.abs` of the signed hash.
    (hash as i64).unsigned_abs()
}

/// Permutes 0 to `n` − 1.
///
/// A bijection over the next power of two is repeated until the result is below `n` ("cycle
/// walking"), which takes fewer than two rounds on average.
#[inline]
fn permute(rank: u64, n: u64) -> u64 {
    permute_by([0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0x5851_f42d_4c95_7f2d], rank, n)
}

/// Permutes 0 to `n` − 1 by a key; `n` is at least 1. Neighbours under one key, or under
/// [`Scramble::Permute`], are neighbours under another key only by chance.
#[inline]
pub fn permute_keyed(key: u64, at: u64, n: u64) -> u64 {
    let [first, second, added] = [1, 2, 3].map(|k| mix(key ^ mix(k)));
    permute_by([first | 1, second | 1, added], at, n)
}

/// Permutes like [`permute`], by two odd factors and a summand.
#[inline]
fn permute_by([first, second, added]: [u64; 3], rank: u64, n: u64) -> u64 {
    debug_assert!(rank < n);
    let bits = (u64::BITS - (n - 1).leading_zeros()).max(1);
    let mask = u64::MAX >> (u64::BITS - bits);
    let shift = bits / 2 + 1;
    let mut x = rank;
    // The loop ends, since a bijection's cycle through `rank` returns to it, and `rank` is below
    // `n`.
    loop {
        // Odd factors and right shifts are each invertible within `bits` bits.
        x = x.wrapping_mul(first) & mask;
        x ^= x >> shift;
        x = x.wrapping_mul(second) & mask;
        x ^= x >> shift;
        x = x.wrapping_add(added) & mask;
        if x < n {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permutation_gives_every_rank_a_row_of_its_own() {
        for n in [1u64, 2, 3, 4, 5, 7, 8, 1000, 1023, 1024, 1025, 100_000] {
            let mut hit = vec![false; n as usize];
            for rank in 0..n {
                let row = Scramble::Permute.row(rank, n) as usize;
                assert!(!std::mem::replace(&mut hit[row], true), "n {n}: row {row} twice");
            }
        }
    }

    #[test]
    fn keyed_permutations_are_permutations_and_each_key_has_another_one() {
        for n in [1u64, 2, 3, 7, 8, 1000, 1025] {
            let of = |key| {
                let mut rows: Vec<u64> = (0..n).map(|at| permute_keyed(key, at, n)).collect();
                let as_drawn = rows.clone();
                rows.sort_unstable();
                assert!(rows.into_iter().eq(0..n), "n {n}, key {key}");
                as_drawn
            };
            let all = [of(1), of(2)];
            assert!(n < 7 || all[0] != all[1], "n {n}");
        }
    }

    #[test]
    fn neighbouring_ranks_land_far_apart() {
        let n = 1_000_000u64;
        let far = (0..1000).filter(|rank| {
            let step = Scramble::Permute.row(*rank, n).abs_diff(Scramble::Permute.row(rank + 1, n));
            step > n / 100
        });
        assert!(far.count() > 950);
    }

    #[test]
    fn ycsb_s_hash_is_fnv_1a_and_leaves_rows_out() {
        // The published hash of eight zero bytes.
        assert_eq!(fnv(0), (0xa8c7_f832_281a_39c5u64 as i64).unsigned_abs());
        let n = 10_000u64;
        let mut rows: Vec<u64> = (0..n).map(|rank| Scramble::Hash.row(rank, n)).collect();
        rows.sort_unstable();
        rows.dedup();
        let share = rows.len() as f64 / n as f64;
        // A random function would leave out 1/e; FNV-1a spreads consecutive ranks a little better.
        assert!((0.6..0.8).contains(&share), "{share}");
    }

    #[test]
    fn mix_is_the_published_finaliser() {
        // SplitMix64's first output for seed 0 is the finaliser of the golden gamma.
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0xe220_a839_7b1d_cdaf);
    }
}
