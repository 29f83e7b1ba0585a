//! Writes little-endian words into a page that is latched, or that is a draft.
//!
//! The counterpart of [`crate::page::View`]. Writes outside the page are ignored, so that an offset
//! read from a damaged page does no harm.

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    let place = at.checked_add(bytes.len()).and_then(|end| page.get_mut(at..end));
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}

/// Writes a 16-bit word at `at`.
#[inline]
pub fn put_u16(page: &mut [u8], at: usize, word: u16) {
    put(page, at, &word.to_le_bytes());
}

/// Writes a 32-bit word at `at`.
#[inline]
pub fn put_u32(page: &mut [u8], at: usize, word: u32) {
    put(page, at, &word.to_le_bytes());
}

/// Writes a 64-bit word at `at`.
#[inline]
pub fn put_u64(page: &mut [u8], at: usize, word: u64) {
    put(page, at, &word.to_le_bytes());
}

/// Writes `bytes` at `at`.
#[inline]
pub fn put_bytes(page: &mut [u8], at: usize, bytes: &[u8]) {
    put(page, at, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{PageBuffer, View};

    #[test]
    fn words_come_back_and_nothing_is_written_outside() {
        let mut page = PageBuffer::new(64);
        put_u16(page.bytes_mut(), 2, 0x0201);
        put_u32(page.bytes_mut(), 4, 0x0403_0201);
        put_u64(page.bytes_mut(), 8, 0x0807_0605_0403_0201);
        let view: View<'_> = page.view();
        assert_eq!((view.u16(2), view.u32(4)), (0x0201, 0x0403_0201));
        assert_eq!(view.u64(8), 0x0807_0605_0403_0201);
        let before = page.bytes().to_vec();
        put_u16(page.bytes_mut(), 63, 7);
        put_u64(page.bytes_mut(), usize::MAX, 7);
        assert_eq!(page.bytes(), before);
    }
}
