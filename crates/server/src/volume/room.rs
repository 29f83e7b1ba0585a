//! Memory for the bytes of a request.

use std::ops::{Deref, DerefMut, Range};

use millpond_device::AlignedBuffer;

/// Bytes of a request, in a buffer of whole blocks. Blocks that the request covers in part are
/// completed in place, and direct I/O needs no copy. Dereferences to the request's bytes.
#[derive(Debug)]
pub struct Room {
    buffer: AlignedBuffer,
    /// Position of the request's bytes in the buffer.
    bytes: Range<usize>,
    first_block: u64,
}

impl Room {
    /// Returns zeros for `length` bytes at `offset` of a volume with blocks of `block` bytes.
    pub(super) fn new(offset: u64, length: u32, block: u32) -> Room {
        let (block, head) = (u64::from(block), offset % u64::from(block));
        let all = (head + u64::from(length)).next_multiple_of(block);
        let head = head as usize;
        Room {
            buffer: AlignedBuffer::new(all as usize),
            bytes: head..head + length as usize,
            first_block: offset / block,
        }
    }

    /// Returns the most bytes of memory that a request of `length` bytes can take.
    pub fn bytes_max(length: u32, block: u32) -> u64 {
        u64::from(length) + 2 * u64::from(block)
    }

    /// Returns all blocks, including the bytes around the request.
    pub(super) fn whole(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Returns all blocks, including the bytes around the request.
    pub(super) fn whole_ref(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the byte ranges of the buffer before and behind the request.
    pub(super) fn others(&self) -> (Range<usize>, Range<usize>) {
        (0..self.bytes.start, self.bytes.end..self.buffer.len())
    }

    pub(super) fn first_block(&self) -> u64 {
        self.first_block
    }

    /// Numbers of the blocks.
    pub(super) fn blocks(&self, block: u32) -> Range<u64> {
        let count = self.buffer.len() as u64 / u64::from(block.max(1));
        self.first_block..self.first_block + count
    }
}

impl Deref for Room {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.get(self.bytes.clone()).unwrap_or(&[])
    }
}

impl DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.bytes.clone()).unwrap_or(&mut [])
    }
}
