//! The shape of rows: keys and self-checking values.
//!
//! ```text
//! key      8 bytes    row number, big-endian          or, scattered:
//!         10 bytes    mix(row) big-endian | 2 more bytes of it
//! value   fields × field_len
//!   field  8 bytes    version, little-endian
//!          rest       words of a multiplicative stream seeded with row, field and version
//! ```

use millpond_base::little_endian::u64_at;

use crate::keys::mix;

/// Lengths of keys and values, and the rule that derives keys from row numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// If true, keys are 10 bytes at random places instead of 8 bytes in the rows' order.
    pub scattered_keys: bool,
    /// Fields of a value; at least 1.
    pub fields: u32,
    /// Bytes of a field; at least 8.
    pub field_len: u32,
}

/// The longest key, in bytes.
pub(crate) const KEY_LEN_MAX: usize = 10;

/// Step of the stream after a field's version: odd, without a simple pattern in binary.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const SPREAD: u128 = 0xd1b5_4a32_d192_ed03;

#[inline]
fn word(at: u64) -> u64 {
    let product = u128::from(at) * SPREAD;
    (product as u64) ^ ((product >> 64) as u64)
}

impl Shape {
    /// leanstore VI-B: 8-byte keys, 120-byte values.
    pub const LEANSTORE: Shape = Shape { scattered_keys: false, fields: 1, field_len: 120 };

    /// gilbert 2.3.1.1: 10-byte random keys, ten fields of 100 bytes.
    pub const GILBERT: Shape = Shape { scattered_keys: true, fields: 10, field_len: 100 };

    /// Returns the bytes per key.
    #[inline]
    pub fn key_len(&self) -> usize {
        if self.scattered_keys { 10 } else { 8 }
    }

    /// Returns the bytes per value.
    #[inline]
    pub fn value_len(&self) -> usize {
        self.fields as usize * self.field_len as usize
    }

    /// Returns the bytes per field, never 0, so that a shape refused by
    /// [`super::Config::validate`] causes no panic either.
    #[inline]
    fn field_step(&self) -> usize {
        self.field_len.max(1) as usize
    }

    /// Writes the key of `row` to the front of `into` and returns it.
    #[inline]
    pub(crate) fn key<'k>(&self, row: u64, into: &'k mut [u8; KEY_LEN_MAX]) -> &'k [u8] {
        if self.scattered_keys {
            // The first eight bytes are a bijection of the row, so keys differ.
            let place = mix(row.wrapping_add(STEP));
            into[..8].copy_from_slice(&place.to_be_bytes());
            into[8..].copy_from_slice(&(mix(place) as u16).to_be_bytes());
            &into[..]
        } else {
            into[..8].copy_from_slice(&row.to_be_bytes());
            &into[..8]
        }
    }

    /// Returns the key of `row`, for lookups by hand.
    pub fn key_of(&self, row: u64) -> Vec<u8> {
        self.key(row, &mut [0; KEY_LEN_MAX]).to_vec()
    }

    /// Fills `bytes`, a field of `row`, with `version`.
    #[inline]
    pub(crate) fn fill_field(bytes: &mut [u8], row: u64, field: u32, version: u64) {
        let mut at = stream(row, field, version);
        let (head, rest) = bytes.split_at_mut(bytes.len().min(8));
        head.copy_from_slice(&version.to_le_bytes()[..head.len()]);
        let mut chunks = rest.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&word(at).to_le_bytes());
            at = at.wrapping_add(STEP);
        }
        let tail = chunks.into_remainder();
        tail.copy_from_slice(&word(at).to_le_bytes()[..tail.len()]);
    }

    /// Fills a whole value of `row`, with `version` in every field.
    #[inline]
    pub(crate) fn fill(&self, bytes: &mut [u8], row: u64, version: u64) {
        for (field, part) in bytes.chunks_exact_mut(self.field_step()).enumerate() {
            Shape::fill_field(part, row, field as u32, version);
        }
    }

    /// Returns `true` if a driver could have written `value` to `row`: every field's bytes
    /// follow from the row, the field and the version at the field's start.
    pub fn check(&self, row: u64, value: &[u8]) -> bool {
        value.len() == self.value_len()
            && value
                .chunks_exact(self.field_step())
                .enumerate()
                .all(|(field, part)| check_field(part, row, field as u32))
    }

    /// Returns the version of a field of `value`; 0 if the value is too short.
    #[inline]
    pub fn version(&self, value: &[u8], field: u32) -> u64 {
        let at = field as usize * self.field_len as usize;
        u64_at(value, at)
    }
}

/// Returns the start of the stream of a field.
#[inline]
fn stream(row: u64, field: u32, version: u64) -> u64 {
    mix(row ^ mix(version ^ (u64::from(field) << 56)))
}

fn check_field(bytes: &[u8], row: u64, field: u32) -> bool {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return false };
    let mut at = stream(row, field, u64::from_le_bytes(*head));
    rest.chunks(8).all(|chunk| {
        let right = chunk == &word(at).to_le_bytes()[..chunk.len()];
        at = at.wrapping_add(STEP);
        right
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_shapes_have_their_lengths() {
        assert_eq!((Shape::LEANSTORE.key_len(), Shape::LEANSTORE.value_len()), (8, 120));
        assert_eq!((Shape::GILBERT.key_len(), Shape::GILBERT.value_len()), (10, 1000));
    }

    #[test]
    fn plain_keys_keep_the_rows_order_and_scattered_ones_differ() {
        let plain = Shape::LEANSTORE;
        assert!(plain.key_of(255) < plain.key_of(256));
        let mut keys: Vec<_> = (0..10_000).map(|row| Shape::GILBERT.key_of(row)).collect();
        assert!(!keys.is_sorted());
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key.len() == 10));
    }

    #[test]
    fn a_value_passes_for_its_row_and_any_version_and_for_no_other_row() {
        for shape in [Shape::LEANSTORE, Shape { scattered_keys: false, fields: 3, field_len: 13 }] {
            let mut value = vec![0; shape.value_len()];
            for version in [0, 1, u64::MAX] {
                shape.fill(&mut value, 42, version);
                assert!(shape.check(42, &value));
                assert_eq!(shape.version(&value, shape.fields - 1), version);
                assert!(!shape.check(43, &value));
            }
        }
    }

    #[test]
    fn any_damaged_byte_is_found() {
        let shape = Shape::GILBERT;
        let mut value = vec![0; shape.value_len()];
        shape.fill(&mut value, 7, 3);
        for at in 0..value.len() {
            value[at] ^= 0x10;
            assert!(!shape.check(7, &value), "byte {at}");
            value[at] ^= 0x10;
        }
        assert!(!shape.check(7, &value[..999]));
        // Two fields are swapped.
        let (a, b) = value.split_at_mut(100);
        a.swap_with_slice(&mut b[..100]);
        assert!(!shape.check(7, &value));
    }
}
