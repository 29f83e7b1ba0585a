//! A private page: a copy, or a draft.

use crate::page::View;

/// The bytes of one or more pages, aligned to 8 as pages are.
#[derive(Debug)]
pub struct PageBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl PageBuffer {
    /// Returns a zero-filled buffer of `len` bytes.
    pub fn new(len: usize) -> PageBuffer {
        let bytes = vec![0; len + 7];
        let start = bytes.as_ptr().align_offset(8);
        PageBuffer { start: if start > 7 { 0 } else { start }, bytes, len }
    }

    /// Returns a copy of `page`.
    pub fn copy_of(page: &[u8]) -> PageBuffer {
        let mut copy = PageBuffer::new(page.len());
        copy.bytes_mut().copy_from_slice(page);
        copy
    }

    /// Returns a copy of the bytes that `view` shows at this moment.
    pub fn of_view(view: View<'_>) -> PageBuffer {
        let mut copy = PageBuffer::new(view.len());
        let is_copied = view.copy_into(0, copy.bytes_mut());
        debug_assert!(is_copied, "the copy is as long as the page");
        copy
    }

    /// Returns the bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// Returns the bytes for writing.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    /// Returns a view of the bytes, to read them like a page.
    #[inline(always)]
    pub fn view(&self) -> View<'_> {
        View::of(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_aligned_and_equal() {
        for len in [0, 1, 512, 4096] {
            let page: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let copy = PageBuffer::copy_of(&page);
            assert_eq!(copy.bytes(), page);
            assert_eq!(copy.bytes().as_ptr().addr() % 8, 0);
            assert_eq!(PageBuffer::of_view(copy.view()).bytes(), page);
        }
    }
}
