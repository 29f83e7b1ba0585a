//! Notation of bytes as text.
//!
//! Text is unchanged UTF-8, except for `\\` (a backslash), `\t`, `\n`, `\r`, and `\xHH` for every
//! other control character and every byte that is not UTF-8. So a key or value never contains a tab
//! or the end of a line, and every sequence of bytes has one notation.

/// Text that is not a valid notation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotationError {
    /// A backslash before an unknown character.
    #[error(
        "at byte {at}: after a backslash comes one of \\ t n r xHH; write \\\\ for a backslash"
    )]
    Escape {
        /// Offset of the backslash.
        at: usize,
    },
    /// A character that is not a hexadecimal digit.
    #[error("at byte {at}: not a hexadecimal digit")]
    Digit {
        /// Offset of the fault.
        at: usize,
    },
    /// An odd number of digits.
    #[error("{digits} hexadecimal digits are no whole bytes: two make one")]
    Half {
        /// Number of digits.
        digits: usize,
    },
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        _ => {
            out.extend_from_slice(b"\\x");
            push_hex(byte, out);
        }
    }
}

/// Appends the notation of `bytes`.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' || letter.is_control() {
                let mut place = [0; 4];
                letter.encode_utf8(&mut place).bytes().for_each(|byte| escape_byte(byte, out));
            } else {
                let mut place = [0; 4];
                out.extend_from_slice(letter.encode_utf8(&mut place).as_bytes());
            }
        }
        chunk.invalid().iter().for_each(|byte| escape_byte(*byte, out));
    }
}

/// Returns the notation of `bytes`.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    escape(bytes, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn digit(text: &[u8], at: usize) -> Result<u8, NotationError> {
    match text.get(at) {
        Some(byte @ b'0'..=b'9') => Ok(byte - b'0'),
        Some(byte @ b'a'..=b'f') => Ok(byte - b'a' + 10),
        Some(byte @ b'A'..=b'F') => Ok(byte - b'A' + 10),
        _ => Err(NotationError::Digit { at }),
    }
}

/// Appends the bytes with the notation `text`.
///
/// # Errors
/// [`NotationError`]: text that [`escape`] never writes.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), NotationError> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if *byte != b'\\' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let (byte, len) = match text.get(at + 1) {
            Some(b'\\') => (b'\\', 2),
            Some(b't') => (b'\t', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b'x') => (digit(text, at + 2)? << 4 | digit(text, at + 3)?, 4),
            _ => return Err(NotationError::Escape { at }),
        };
        out.push(byte);
        at += len;
    }
    Ok(())
}

/// Appends two hexadecimal digits per byte.
pub fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.iter().for_each(|byte| push_hex(*byte, out));
}

/// Appends the bytes of hexadecimal digits, with or without `0x` before them.
///
/// # Errors
/// [`NotationError`]: other characters, or an odd number of digits.
pub fn unhex(text: &[u8], out: &mut Vec<u8>) -> Result<(), NotationError> {
    let start = if text.starts_with(b"0x") { 2 } else { 0 };
    let digits = text.len() - start;
    if let Some(at) = (start..text.len()).find(|at| digit(text, *at).is_err()) {
        return Err(NotationError::Digit { at });
    }
    if !digits.is_multiple_of(2) {
        return Err(NotationError::Half { digits });
    }
    for at in (start..text.len()).step_by(2) {
        out.push(digit(text, at)? << 4 | digit(text, at + 1)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(bytes: &[u8]) -> String {
        let text = escaped(bytes);
        let mut back = Vec::new();
        unescape(text.as_bytes(), &mut back).unwrap();
        assert_eq!(back, bytes, "{text}");
        let (mut digits, mut back) = (Vec::new(), Vec::new());
        hex(bytes, &mut digits);
        unhex(&digits, &mut back).unwrap();
        assert_eq!(back, bytes);
        assert!(!text.contains(['\t', '\n', '\r', '\0']));
        text
    }

    #[test]
    fn all_bytes_come_back_and_text_stays_readable() {
        assert_eq!(there_and_back("Zürich, 雨 \"quoted\"".as_bytes()), "Zürich, 雨 \"quoted\"");
        assert_eq!(there_and_back(b"a\tb\nc\rd\\e\0f\x7f\xff"), r"a\tb\nc\rd\\e\x00f\x7f\xff");
        assert_eq!(there_and_back("\u{85}".as_bytes()), r"\xc2\x85");
        let all: Vec<u8> = (0..=u8::MAX).collect();
        there_and_back(&all);
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..500 {
            let bytes: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
            there_and_back(&bytes);
        }
    }

    #[test]
    fn what_stands_for_nothing_says_where() {
        let mut out = Vec::new();
        for (text, at) in [(r"ab\q", 2), (r"\", 0), ("abc\\", 3)] {
            assert_eq!(unescape(text.as_bytes(), &mut out), Err(NotationError::Escape { at }));
        }
        assert_eq!(unescape(br"\x0g", &mut out), Err(NotationError::Digit { at: 3 }));
        assert_eq!(unescape(br"\xa", &mut out), Err(NotationError::Digit { at: 3 }));
        assert_eq!(unhex(b"0xabc", &mut out), Err(NotationError::Half { digits: 3 }));
        assert_eq!(unhex(b"0xzz", &mut out), Err(NotationError::Digit { at: 2 }));
        out.clear();
        unhex(b"0xAb00", &mut out).unwrap();
        assert_eq!(out, [0xab, 0]);
    }
}
