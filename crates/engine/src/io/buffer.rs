//! Heap memory that begins at a page boundary, as direct I/O asks for.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Address alignment of every [`AlignedBuffer`], in bytes: enough for any device in use.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// Bytes whose address is a multiple of [`BUFFER_ALIGNMENT`]. Zero-filled when made.
pub struct AlignedBuffer {
    // Invariant: points to `length` initialised bytes, allocated with `Self::layout(length)` and
    // owned by this buffer alone; dangling but aligned if `length` is 0.
    start: NonNull<u8>,
    length: usize,
}

impl AlignedBuffer {
    fn layout(length: usize) -> Option<Layout> {
        Layout::from_size_align(length, BUFFER_ALIGNMENT).ok()
    }

    /// A buffer of `length` zero bytes. As with `Vec`, a length that memory cannot hold aborts.
    pub fn new(length: usize) -> AlignedBuffer {
        if length == 0 {
            return AlignedBuffer { start: NonNull::<Block>::dangling().cast(), length };
        }
        let Some(layout) = Self::layout(length) else {
            handle_alloc_error(Layout::new::<Block>());
        };
        // SAFETY: `layout` has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => AlignedBuffer { start, length },
            None => handle_alloc_error(layout),
        }
    }
}

#[repr(align(4096))]
struct Block;

// SAFETY: the buffer owns its bytes as a `Box<[u8]>` does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: through `&AlignedBuffer` the bytes can only be read.
unsafe impl Sync for AlignedBuffer {}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: by the invariant of `start`, for as long as `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the invariant of `start`; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.length).filter(|layout| layout.size() > 0) {
            // SAFETY: by the invariant of `start`, allocated with this very layout.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_apart() {
        for length in [0, 1, 512, 4096, 5000, 65536] {
            let mut one = AlignedBuffer::new(length);
            let two = AlignedBuffer::new(length);
            assert_eq!(one.as_ptr() as usize % BUFFER_ALIGNMENT, 0);
            assert_eq!(one.len(), length);
            assert!(one.iter().all(|&b| b == 0));
            one.fill(9);
            assert!(two.iter().all(|&b| b == 0));
            assert!(one.iter().all(|&b| b == 9));
        }
    }

    #[test]
    fn a_buffer_moves_between_threads_with_its_bytes() {
        let mut buffer = AlignedBuffer::new(4096);
        buffer[4095] = 3;
        let back = std::thread::spawn(move || buffer).join().unwrap();
        assert_eq!(back[4095], 3);
    }
}
