//! The twin's memory: frames one after the other, in chunks that are freed only with the twin. This
//! file needs `unsafe`.
//!
//! Chunks are plain memory, or shared mappings of a file. With a file, the operating system itself
//! pages data that outgrow memory, without a swap device. Under a memory limit the kernel writes
//! pages of the file out and reads them again as it sees fit (leanstore V-C, fig. 9).

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use millpond_base::FrameId;

use crate::pool::error::PoolError;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader};

/// Bytes allocated at a time: one piece with huge-page advice, like the pool's memory.
const CHUNK_BYTES: usize = 64 << 20;
/// Alignment of chunks, which is that of huge pages.
const CHUNK_ALIGN: usize = 2 << 20;
// Pages lie as in the pool.
const _: () = assert!(CHUNK_ALIGN.is_multiple_of(align_of::<FrameHeader>()));

/// A piece of memory, and the data that freeing it needs.
enum Chunk {
    Plain(NonNull<u8>, Layout),
    Mapped(NonNull<u8>, usize),
}

/// Source of the twin's memory.
enum Source {
    Plain,
    /// A file whose name was removed, and its length.
    File(File, u64),
}

/// All frames of a twin.
pub(in crate::pool) struct TwinMemory {
    stride: usize,
    source: Source,
    chunks: Vec<Chunk>,
    /// Frames that were given back.
    free: Vec<NonNull<FrameHeader>>,
    /// The first frame of the last chunk that was never handed out, and the number of frames from
    /// it on.
    fresh: Option<(NonNull<u8>, usize)>,
}

impl TwinMemory {
    /// Returns plain memory for frames with pages of `page_size` bytes.
    pub fn plain(page_size: usize) -> TwinMemory {
        TwinMemory::from(Source::Plain, page_size)
    }

    /// Returns shared mappings of a new file in `folder`, which has no name and is deleted with the
    /// twin.
    pub fn in_file(page_size: usize, folder: &Path) -> Result<TwinMemory, PoolError> {
        let file = unnamed(folder).map_err(|error| PoolError::Memory {
            bytes: CHUNK_BYTES as u64,
            reason: format!("a file in {}: {error}", folder.display()),
        })?;
        Ok(TwinMemory::from(Source::File(file, 0), page_size))
    }

    fn from(source: Source, page_size: usize) -> TwinMemory {
        let stride = FRAME_HEADER_BYTES + page_size;
        TwinMemory { stride, source, chunks: Vec::new(), free: Vec::new(), fresh: None }
    }

    /// Takes a frame that no swip refers to: the one given back last, or a fresh one.
    pub fn take(&mut self) -> Result<NonNull<FrameHeader>, PoolError> {
        if let Some(frame) = self.free.pop() {
            return Ok(frame);
        }
        let (start, left) = match self.fresh {
            Some((start, left)) if left > 0 => (start, left),
            _ => self.grow()?,
        };
        let frame = start.cast::<FrameHeader>();
        // SAFETY: `left` frames lie behind `start`, inside a chunk, aligned as headers are since
        // the chunk and the stride are; no thread knows this one yet. The next one lies inside
        // the chunk or at its end.
        unsafe {
            frame.write(FrameHeader::new(FrameId::NONE));
            self.fresh = Some((start.add(self.stride), left - 1));
        }
        Ok(frame)
    }

    /// Puts a frame of this twin on the free list.
    pub fn give_back(&mut self, frame: NonNull<FrameHeader>) {
        self.free.push(frame);
    }

    /// Adds a chunk, and returns its first frame and number of frames.
    fn grow(&mut self) -> Result<(NonNull<u8>, usize), PoolError> {
        let frames = (CHUNK_BYTES / self.stride).max(1);
        let bytes = frames * self.stride;
        let chunk = match &mut self.source {
            Source::Plain => plain_chunk(bytes),
            Source::File(file, length) => {
                let refused = |error: io::Error| PoolError::Memory {
                    bytes: bytes as u64,
                    reason: format!("the file that it is mapped from: {error}"),
                };
                mapped_chunk(file, length, bytes).map_err(refused)?
            }
        };
        let start = match &chunk {
            Chunk::Plain(start, _) | Chunk::Mapped(start, _) => *start,
        };
        self.chunks.push(chunk);
        Ok((start, frames))
    }
}

/// Creates a file without a name: no other process can change or shorten the mapped part.
fn unnamed(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("millpond-twin-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn plain_chunk(bytes: usize) -> Chunk {
    // Cannot fail: a constant size and a power of two.
    let layout = Layout::from_size_align(bytes, CHUNK_ALIGN).expect("a valid layout");
    // SAFETY: the layout has a size.
    let Some(start) = NonNull::new(unsafe { alloc(layout) }) else {
        handle_alloc_error(layout);
    };
    // The advice must come before the first touch, which a zeroing allocation would be: small pages
    // would make the twin more than twice as slow as the pool.
    crate::pool::memory::huge::advise(start, layout.size());
    // SAFETY: allocated with that size just now.
    unsafe { start.as_ptr().write_bytes(0, layout.size()) };
    Chunk::Plain(start, layout)
}

/// Makes the file longer and maps the new part.
fn mapped_chunk(file: &File, length: &mut u64, bytes: usize) -> io::Result<Chunk> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    // Offsets of mappings are multiples of the system's page size, of which this is one.
    let mapped = bytes.next_multiple_of(CHUNK_ALIGN);
    // A full disk is then an error here, and not a signal at the first touch.
    fallocate(file, FallocateFlags::empty(), *length, mapped as u64)?;
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the system's choice, of a part of a file that is as
    // long, and that no other process can open.
    let start = unsafe { mmap(std::ptr::null_mut(), mapped, prot, flags, file.as_fd(), *length) }?;
    *length += mapped as u64;
    let start = NonNull::new(start.cast::<u8>());
    start.map(|start| Chunk::Mapped(start, mapped)).ok_or(io::ErrorKind::OutOfMemory.into())
}

impl Drop for TwinMemory {
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            match chunk {
                // SAFETY: allocated with this layout; the twin is dropped, so no guard is left.
                Chunk::Plain(start, layout) => unsafe { dealloc(start.as_ptr(), layout) },
                Chunk::Mapped(start, bytes) => {
                    // SAFETY: mapped with this length; the twin is dropped, so no guard is left.
                    let unmapped = unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) };
                    if let Err(error) = unmapped {
                        tracing::warn!(%error, "a twin's memory could not be given back");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_aligned_apart_and_used_again_last_first() {
        let folder = tempfile::tempdir().unwrap();
        for mut memory in [TwinMemory::plain(512), TwinMemory::in_file(512, folder.path()).unwrap()]
        {
            let frames: Vec<_> = (0..1000).map(|_| memory.take().unwrap()).collect();
            for pair in frames.windows(2) {
                assert_eq!(pair[0].as_ptr().addr() % 64, 0);
                assert_eq!(pair[1].as_ptr().addr() - pair[0].as_ptr().addr(), 192 + 512);
            }
            memory.give_back(frames[3]);
            memory.give_back(frames[7]);
            assert_eq!(memory.take().unwrap(), frames[7]);
            assert_eq!(memory.take().unwrap(), frames[3]);
        }
    }

    #[test]
    fn a_file_grows_by_chunks_and_keeps_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = TwinMemory::in_file(1 << 16, folder.path()).unwrap();
        let frames: Vec<_> = (0..1500).map(|_| memory.take().unwrap()).collect();
        assert!(memory.chunks.len() > 1, "more than a chunk was needed");
        let byte_of = |frame: &NonNull<FrameHeader>| {
            // SAFETY: a page of this memory, which is as long; only this thread knows it.
            unsafe { frame.cast::<u8>().add(FRAME_HEADER_BYTES + 65_535) }
        };
        for (at, frame) in frames.iter().enumerate() {
            // SAFETY: as above.
            unsafe { byte_of(frame).write(at as u8) };
        }
        for (at, frame) in frames.iter().enumerate() {
            // SAFETY: as above.
            assert_eq!(unsafe { byte_of(frame).read() }, at as u8);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = TwinMemory::in_file(4096, &folder.path().join("gone")).err().unwrap();
        assert!(error.to_string().contains("gone"), "{error}");
    }
}
