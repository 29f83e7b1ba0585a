//! Heap memory that begins at a page boundary, as direct I/O requires; and reads through it into
//! memory that does not.
//!
//! Frame headers are as small as possible, so that a pool of a given size has more frames. Hence
//! their pages begin at multiples of 64 bytes, where most drives require 512. Copying a page takes
//! a tenth of a microsecond, reading it a hundred microseconds.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::fmt;
use std::io::IoSliceMut;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::device::{Device, ReadRequest};

/// Address alignment of every [`AlignedBuffer`], in bytes: enough for any device in use.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// Bytes whose address is a multiple of [`BUFFER_ALIGNMENT`]. Zero-filled when created.
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

    /// Returns a buffer of `length` zero bytes. Like `Vec`, it aborts if memory cannot hold the
    /// length.
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

/// Maximum bytes that a thread keeps for its next read.
const KEPT: usize = 128 << 10;

thread_local! {
    static ROOM: Cell<Option<AlignedBuffer>> = const { Cell::new(None) };
}

/// Calls `read` with `length` aligned bytes of undefined contents.
pub(super) fn with_aligned<R>(length: usize, read: impl FnOnce(&mut [u8]) -> R) -> R {
    // A thread that is ending has dropped its own already.
    let mut room = ROOM
        .try_with(Cell::take)
        .ok()
        .flatten()
        .filter(|room| room.len() >= length)
        .unwrap_or_else(|| AlignedBuffer::new(length));
    let result = read(room.get_mut(..length).unwrap_or(&mut []));
    if room.len() <= KEPT {
        let _ = ROOM.try_with(|kept| kept.set(Some(room)));
    }
    result
}

/// Carries out `requests` as `device` does with aligned memory, whose addresses are multiples of
/// `alignment`, and copies the bytes read.
pub(super) fn read_batch_aligned(
    device: &impl Device,
    alignment: usize,
    requests: &mut [ReadRequest<'_, '_>],
) {
    let room_of = |request: &ReadRequest<'_, '_>| request.length().next_multiple_of(alignment);
    let length = requests.iter().map(room_of).sum();
    with_aligned(length, |mut room| {
        let mut pieces = Vec::with_capacity(requests.len());
        for request in requests.iter() {
            let (piece, rest) = room.split_at_mut(room_of(request));
            room = rest;
            pieces.push([IoSliceMut::new(piece.get_mut(..request.length()).unwrap_or(&mut []))]);
        }
        let request =
            |(piece, request): (_, &ReadRequest<'_, '_>)| ReadRequest::new(request.offset, piece);
        let mut aligned: Vec<_> = pieces
            .iter_mut()
            .map(|piece| &mut piece[..])
            .zip(requests.iter())
            .map(request)
            .collect();
        device.read_batch(&mut aligned);
        let results: Vec<_> = aligned.into_iter().map(|request| request.result).collect();
        for ((request, [piece]), result) in requests.iter_mut().zip(&pieces).zip(results) {
            request.result = result;
            let mut read = &piece[..];
            for part in request.parts.iter_mut().filter(|_| request.result.is_ok()) {
                let (bytes, rest) = read.split_at(part.len());
                part.copy_from_slice(bytes);
                read = rest;
            }
        }
    });
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
    fn a_thread_that_ends_gets_memory_to_read_into() {
        struct Last;
        impl Drop for Last {
            fn drop(&mut self) {
                with_aligned(8192, |room| assert_eq!(room.as_ptr() as usize % BUFFER_ALIGNMENT, 0));
            }
        }
        thread_local! {
            static LAST: Last = const { Last };
        }
        let ends = || {
            LAST.with(|_| {});
            // Created later, dropped earlier.
            with_aligned(4096, |room| assert_eq!(room.len(), 4096));
        };
        std::thread::spawn(ends).join().unwrap();
    }

    #[test]
    fn a_buffer_moves_between_threads_with_its_bytes() {
        let mut buffer = AlignedBuffer::new(4096);
        buffer[4095] = 3;
        let back = std::thread::spawn(move || buffer).join().unwrap();
        assert_eq!(back[4095], 3);
    }
}
