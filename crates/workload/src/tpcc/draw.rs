//! The random values of TPC-C: NURand, last names, texts (clauses 2.1.6 and 4.3.2).

use millpond_base::Seed;

use super::keys::NAME_LEN;
use crate::generate::Random;

/// Constant of the last names' NURand while loading. The clause allows any value. A fixed one need
/// not be stored with the data for later runs to keep the required distance.
const LAST_LOADING: u64 = 123;

/// The run's constants C of NURand (clause 2.1.6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constants {
    /// For last names, A = 255.
    pub last: u64,
    /// For customer numbers, A = 1023.
    pub customer: u64,
    /// For item numbers, A = 8191.
    pub item: u64,
}

impl Constants {
    /// Returns the constants for loading.
    pub fn loading(seed: Seed) -> Constants {
        let mut random = Random::new(seed.derive("tpcc loading constants"));
        Constants { last: LAST_LOADING, customer: random.below(1024), item: random.below(8192) }
    }

    /// Returns the constants of a run, the same for all its workers. The constant of last names
    /// differs from the loading one by 65 to 119, but neither by 96 nor by 112.
    pub fn running(seed: Seed) -> Constants {
        let mut random = Random::new(seed.derive("tpcc constants"));
        let is_allowed = |c: &u64| {
            let apart = c.abs_diff(LAST_LOADING);
            (65..=119).contains(&apart) && apart != 96 && apart != 112
        };
        let count = (0..256).filter(is_allowed).count() as u64;
        let nth = random.below(count) as usize;
        Constants {
            last: (0..256).filter(is_allowed).nth(nth).unwrap_or(LAST_LOADING + 65),
            customer: random.below(1024),
            item: random.below(8192),
        }
    }
}

/// Draws NURand(A, x, y) with constant `c`: skewed numbers from `x` to `y`.
#[inline]
pub fn nurand(random: &mut Random, a: u64, x: u64, y: u64, c: u64) -> u64 {
    let skewed = random.below(a + 1) | between(random, x, y);
    (skewed + c) % (y - x + 1) + x
}

/// Draws uniformly from `low` to `high`, both included.
#[inline]
pub fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// Picks customers of a district, and items, as transactions do.
#[derive(Clone, Copy, Debug)]
pub struct Picker {
    constants: Constants,
    customers: u64,
    items: u64,
}

impl Picker {
    /// Creates a picker for a district of `customers` customers and a catalogue of `items` items,
    /// at least 1 each.
    pub fn new(constants: Constants, customers: u32, items: u32) -> Picker {
        Picker { constants, customers: u64::from(customers.max(1)), items: u64::from(items.max(1)) }
    }

    /// Draws a customer's number.
    #[inline]
    pub fn customer(&self, random: &mut Random) -> u32 {
        nurand(random, 1023, 1, self.customers, self.constants.customer) as u32
    }

    /// Draws an item's number.
    #[inline]
    pub fn item(&self, random: &mut Random) -> u32 {
        nurand(random, 8191, 1, self.items, self.constants.item) as u32
    }

    /// Draws the number of a last name that some customer of the district bears.
    ///
    /// The first 1000 customers bear the names 0 to 999; a smaller district has fewer names.
    #[inline]
    pub fn last_name(&self, random: &mut Random) -> u32 {
        nurand(random, 255, 0, self.customers.min(1000) - 1, self.constants.last) as u32
    }
}

const SYLLABLES: [&[u8]; 10] =
    [b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING"];

/// Returns the last name of a number from 0 to 999: a syllable for each of its digits (clause
/// 4.3.2.3).
#[inline]
pub fn last_name(number: u32) -> [u8; NAME_LEN] {
    let mut name = [0; NAME_LEN];
    let mut at = 0;
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize];
        name[at..at + syllable.len()].copy_from_slice(syllable);
        at += syllable.len();
    }
    name
}

/// 64 letters and digits, so that six bits draw one; `a` and `e` come twice.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ae";

/// Writes a random text of `low` to `high` letters and digits to the front of `into`; returns its
/// length.
pub fn letters(random: &mut Random, into: &mut [u8], low: usize, high: usize) -> usize {
    let len = between(random, low as u64, high as u64) as usize;
    let len = len.min(into.len());
    for chunk in into[..len].chunks_mut(10) {
        let mut bits = random.below(1 << 60);
        for byte in chunk {
            *byte = LETTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
    into[len..].fill(0);
    len
}

/// Fills `into` with random digits.
pub fn digits(random: &mut Random, into: &mut [u8]) {
    for byte in into {
        *byte = b'0' + random.below(10) as u8;
    }
}

/// The text that marks a tenth of the items and stocks.
pub const ORIGINAL: &[u8] = b"ORIGINAL";

/// Writes a random text of 26 to 50 letters; a tenth of the texts contain [`ORIGINAL`].
pub fn data(random: &mut Random, into: &mut [u8]) {
    let len = letters(random, into, 26, 50);
    if random.below(10) == 0 && len >= ORIGINAL.len() {
        let at = random.below((len - ORIGINAL.len() + 1) as u64) as usize;
        into[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks NURand by χ² against its exact distribution, found by counting all pairs.
    fn nurand_is_exact(a: u64, x: u64, y: u64, c: u64) {
        let n = (y - x + 1) as usize;
        let mut pairs = vec![0u64; n];
        for low in 0..=a {
            for number in x..=y {
                pairs[(((low | number) + c) % n as u64) as usize] += 1;
            }
        }
        let draws = 400_000u64;
        let mut counts = vec![0u64; n];
        let mut random = Random::new(Seed(3));
        for _ in 0..draws {
            counts[(nurand(&mut random, a, x, y, c) - x) as usize] += 1;
        }
        let total = ((a + 1) * n as u64) as f64;
        let (mut sum, mut cells) = (0.0, 0.0);
        for (count, ways) in counts.iter().zip(&pairs) {
            let expected = *ways as f64 / total * draws as f64;
            if *ways == 0 {
                assert_eq!(*count, 0);
            } else if expected >= 5.0 {
                sum += (*count as f64 - expected).powi(2) / expected;
                cells += 1.0;
            }
        }
        let freedom: f64 = cells - 1.0;
        assert!(freedom > 100.0);
        assert!(sum < freedom + 5.0 * (2.0 * freedom).sqrt(), "χ² {sum}, {freedom} degrees");
    }

    #[test]
    fn nurand_has_its_exact_distribution() {
        nurand_is_exact(255, 0, 999, 91);
        nurand_is_exact(1023, 1, 3000, 259);
        nurand_is_exact(255, 0, 299, 17);
    }

    #[test]
    fn run_constants_keep_their_distance_and_vary() {
        let all: Vec<u64> = (0..200).map(|seed| Constants::running(Seed(seed)).last).collect();
        for last in &all {
            let apart = last.abs_diff(Constants::loading(Seed(1)).last);
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112 && *last < 256);
        }
        assert!(all.iter().any(|last| *last < 123) && all.iter().any(|last| *last > 123));
    }

    #[test]
    fn last_names_are_the_syllables_of_their_digits() {
        let name = |number| {
            let bytes = last_name(number);
            String::from_utf8(bytes.to_vec()).unwrap().trim_end_matches('\0').to_owned()
        };
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!(name(0), "BARBARBAR");
        assert_eq!(name(40), "BARPRESBAR");
        assert_eq!(name(777), "CALLYCALLYCALLY");
        let mut all: Vec<_> = (0..1000).map(last_name).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
    }

    #[test]
    fn texts_have_their_lengths_and_a_tenth_are_original() {
        let mut random = Random::new(Seed(4));
        let mut text = [0u8; 50];
        let (mut originals, mut lens) = (0, [0u32; 51]);
        for _ in 0..20_000 {
            data(&mut random, &mut text);
            let len = text.iter().take_while(|byte| **byte != 0).count();
            assert!(text[..len].iter().all(u8::is_ascii_alphanumeric));
            assert!(text[len..].iter().all(|byte| *byte == 0));
            lens[len] += 1;
            originals += u32::from(text.windows(8).any(|window| window == ORIGINAL));
        }
        assert!((1800..2200).contains(&originals), "{originals}");
        assert!(lens[..26].iter().all(|count| *count == 0));
        assert!(lens[26..].iter().all(|count| *count > 600));
    }

    #[test]
    fn pickers_stay_within_their_district() {
        let mut random = Random::new(Seed(5));
        for (customers, items) in [(1, 1), (30, 100), (3000, 100_000)] {
            let picker = Picker::new(Constants::running(Seed(1)), customers, items);
            for _ in 0..2000 {
                assert!((1..=customers).contains(&picker.customer(&mut random)));
                assert!((1..=items).contains(&picker.item(&mut random)));
                assert!(picker.last_name(&mut random) < customers.min(1000));
            }
        }
    }
}
