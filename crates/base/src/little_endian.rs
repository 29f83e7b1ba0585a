//! Little-endian integers in byte strings.

/// Returns the little-endian 32-bit integer at `at` of `bytes`, or 0 if it is not all there.
///
/// ```
/// use millpond_base::little_endian::u32_at;
/// assert_eq!(u32_at(&[9, 1, 2, 0, 0], 1), 0x201);
/// assert_eq!(u32_at(&[9, 1, 2, 0, 0], 2), 0);
/// ```
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// Returns the little-endian 64-bit integer at `at` of `bytes`, or 0 if it is not all there.
///
/// ```
/// use millpond_base::little_endian::u64_at;
/// assert_eq!(u64_at(&[9, 1, 2, 0, 0, 0, 0, 0, 0], 1), 0x201);
/// assert_eq!(u64_at(&[9, 1, 2, 0, 0, 0, 0, 0, 0], 2), 0);
/// ```
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}
