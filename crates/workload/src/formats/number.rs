//! Decimal numbers from bytes, eight digits at a time.
//!
//! Decoding is in the critical path of every simulation from a text file. A loop over single
//! digits mispredicts once per number, at its end. Reading eight bytes as one word avoids that.

const ZEROS: u64 = 0x3030_3030_3030_3030;
const TENS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the decimal number at the start of `bytes` and its number of digits.
///
/// `None` if there is no digit, or the number does not fit into 64 bits.
#[inline(always)]
pub(crate) fn digits(bytes: &[u8]) -> Option<(u64, usize)> {
    if let Some(word) = bytes.first_chunk::<8>() {
        let (value, len) = up_to_eight(u64::from_le_bytes(*word));
        if len < 8 {
            return if len == 0 { None } else { Some((value, len)) };
        }
        if let Some(word) = bytes[8..].first_chunk::<8>() {
            let (low, more) = up_to_eight(u64::from_le_bytes(*word));
            if more < 8 {
                return Some((value * TENS[more] + low, 8 + more));
            }
        }
    }
    digits_slowly(bytes)
}

/// Returns the value and number of the leading digits among eight bytes.
#[inline(always)]
fn up_to_eight(word: u64) -> (u64, usize) {
    let nibbles = word ^ ZEROS;
    // A byte above 9 sets its own high bit; carries only disturb the bytes after it.
    let other = (nibbles.wrapping_add(0x7676_7676_7676_7676) | nibbles) & HIGH;
    let len = (other.trailing_zeros() / 8) as usize;
    if len == 0 {
        return (0, 0);
    }
    // The first digit is the lowest byte: shift so that the last digit is the highest.
    let v = nibbles << (8 * (8 - len));
    let v = (v & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let v = (v & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    let v = (v & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32;
    (v, len)
}

/// Decodes long numbers, and numbers at the end of a buffer.
#[inline(never)]
fn digits_slowly(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut len = 0;
    while let Some(digit) = bytes.get(len).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        len += 1;
    }
    if len == 0 { None } else { Some((value, len)) }
}

/// Returns the number in `token`, if it is all digits and fits.
#[inline]
pub(crate) fn whole(token: &[u8]) -> Option<u64> {
    digits(token).filter(|(_, len)| *len == token.len()).map(|(value, _)| value)
}

/// Formats a byte string for a message: printable, and cut at 40 bytes.
pub(crate) fn shown(token: &[u8]) -> String {
    let cut = &token[..token.len().min(40)];
    let more = if cut.len() < token.len() { "…" } else { "" };
    format!("'{}{more}'", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_number_is_read_and_its_end_found() {
        let mut n = 0u64;
        for i in 0..20u32 {
            n = n.wrapping_mul(10).wrapping_add(u64::from(i % 9 + 1));
            for tail in ["", "\n", " W\n", "\r\n1234567890", ":;/!ab99999999"] {
                let text = format!("{n}{tail}");
                let len = n.to_string().len();
                assert_eq!(digits(text.as_bytes()), Some((n, len)), "{text}");
            }
        }
        assert_eq!(whole(u64::MAX.to_string().as_bytes()), Some(u64::MAX));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", " 1", "x", "-1", "18446744073709551616", "99999999999999999999999"] {
            assert_eq!(digits(text.as_bytes()), None, "{text}");
        }
        assert_eq!(whole(b"12x"), None);
        assert_eq!(digits(&[b'1', 0xff, 0xff, b'2', b'3', b'4', b'5', b'6']), Some((1, 1)));
    }

    #[test]
    fn all_numbers_below_a_million_agree_with_the_standard_library() {
        let mut text = String::new();
        for n in (0..1_000_000u64).step_by(7) {
            text.clear();
            text.push_str(&format!("{n}\n00000000"));
            assert_eq!(digits(text.as_bytes()), Some((n, n.to_string().len())));
        }
    }
}
