//! The rows: keys by number, values by key.

use millpond_base::Seed;

/// Bytes of a key.
pub const KEY_LEN: usize = 24;

/// Bytes of a value.
pub const VALUE_LEN: usize = 150;

/// Step between the states of SplitMix64, which also makes the words of one key or value differ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word by SplitMix64's output function, a bijection of 64-bit words in which each bit of
/// the result depends on all bits of `x`.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Keys of a run, by row number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    start: u64,
}

impl Rows {
    /// Returns the rows of `seed`.
    pub fn new(seed: Seed) -> Rows {
        Rows { start: seed.derive("rows").0 }
    }

    /// Returns the first eight bytes of a row's key as a number, which differs for all rows.
    pub fn head(&self, row: u64) -> u64 {
        mix(self.start.wrapping_add(row.wrapping_mul(STEP)))
    }

    /// Returns a row's key, which differs for all rows.
    pub fn key(&self, row: u64) -> [u8; KEY_LEN] {
        let head = self.head(row);
        let mut key = [0; KEY_LEN];
        for (word, bytes) in (0u64..).zip(key.chunks_exact_mut(8)) {
            let word = if word == 0 { head } else { mix(head ^ STEP.wrapping_mul(word)) };
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        key
    }
}

/// Returns the value of a key, which depends on all bytes of the key.
pub fn value_of(key: &[u8]) -> [u8; VALUE_LEN] {
    let mut state = key.len() as u64;
    for bytes in key.chunks(8) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        state = mix(state.wrapping_add(STEP) ^ u64::from_le_bytes(word));
    }
    let mut value = [0; VALUE_LEN];
    for bytes in value.chunks_mut(8) {
        state = state.wrapping_add(STEP);
        bytes.copy_from_slice(&mix(state).to_le_bytes()[..bytes.len()]);
    }
    value
}

/// Returns `true` if all of `value` is the value of `key`.
pub fn is_value_of(key: &[u8], value: &[u8]) -> bool {
    value == value_of(key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_differ_by_row_and_seed_and_are_scattered_evenly() {
        let rows = Rows::new(Seed(1));
        let keys: BTreeSet<_> = (0..10_000).map(|row| rows.key(row)).collect();
        assert_eq!(keys.len(), 10_000);
        assert_ne!(Rows::new(Seed(2)).key(0), rows.key(0));
        assert_eq!(rows.key(7)[..8], rows.head(7).to_be_bytes());
        // A sixteenth of them in each sixteenth of the key space, give or take five deviations.
        for sixteenth in 0..16 {
            let count = keys.iter().filter(|key| key[0] >> 4 == sixteenth).count();
            assert!((500..=750).contains(&count), "{count} keys begin with {sixteenth:x}");
        }
        // Neighbours by number are no neighbours by key: half of the steps go up.
        let ups = (0..10_000).filter(|row| rows.key(*row) < rows.key(row + 1)).count();
        assert!((4_700..=5_300).contains(&ups), "{ups}");
    }

    #[test]
    fn a_value_is_its_key_s_and_no_byte_of_either_may_change() {
        let key = Rows::new(Seed(1)).key(3);
        let value = value_of(&key);
        assert!(is_value_of(&key, &value));
        for at in 0..VALUE_LEN {
            let mut other = value;
            other[at] ^= 1;
            assert!(!is_value_of(&key, &other), "byte {at} of the value");
        }
        for at in 0..KEY_LEN {
            let mut other = key;
            other[at] ^= 1;
            assert!(!is_value_of(&other, &value), "byte {at} of the key");
        }
        assert!(!is_value_of(&key, &value[1..]) && !is_value_of(&key, &[]));
    }
}
