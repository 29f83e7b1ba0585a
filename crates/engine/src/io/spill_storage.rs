//! The bytes of a spill file: in a file, or in memory for a store without a folder.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::RwLock;

/// Bytes that are allocated at a time.
const CHUNK: usize = 256 << 10;

/// The storage of a spill file.
pub(super) enum SpillStorage {
    /// In a file.
    File(File),
    /// In memory, by chunks; unused chunks are empty.
    Memory(RwLock<Vec<Box<[u8]>>>),
}

fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Calls `each` with the pieces of `len` bytes at `offset`: the chunk, the piece's beginning in the
/// chunk, and its position in the whole.
fn pieces(
    offset: u64,
    len: usize,
    mut each: impl FnMut(usize, usize, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut at = 0;
    while at < len {
        let begin = offset + at as u64;
        let (chunk, from) = ((begin / CHUNK as u64) as usize, (begin % CHUNK as u64) as usize);
        let end = len.min(at + CHUNK - from);
        each(chunk, from, at..end)?;
        at = end;
    }
    Ok(())
}

impl SpillStorage {
    /// Returns an empty storage in memory.
    pub(super) fn in_memory() -> SpillStorage {
        SpillStorage::Memory(RwLock::default())
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let chunks = match self {
            SpillStorage::File(file) => return file.write_all_at(bytes, offset),
            SpillStorage::Memory(chunks) => chunks,
        };
        let mut chunks = chunks.write().past_poison();
        pieces(offset, bytes.len(), |number, from, piece| {
            if chunks.len() <= number {
                chunks.resize_with(number + 1, Box::default);
            }
            let chunk = chunks.get_mut(number).ok_or_else(ended)?;
            if chunk.is_empty() {
                let mut fresh = Vec::new();
                // A lack of memory fails this write instead of the process.
                fresh.try_reserve_exact(CHUNK).map_err(|_| io::ErrorKind::OutOfMemory)?;
                fresh.resize(CHUNK, 0);
                *chunk = fresh.into_boxed_slice();
            }
            let bytes = bytes.get(piece.clone()).ok_or_else(ended)?;
            let place = chunk.get_mut(from..from + piece.len()).ok_or_else(ended)?;
            place.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Reads all of `out` from `offset` on.
    pub(super) fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let chunks = match self {
            SpillStorage::File(file) => return file.read_exact_at(out, offset),
            SpillStorage::Memory(chunks) => chunks,
        };
        let chunks = chunks.read().past_poison();
        pieces(offset, out.len(), |number, from, piece| {
            let chunk = chunks.get(number).ok_or_else(ended)?;
            let bytes = chunk.get(from..from + piece.len()).ok_or_else(ended)?;
            out.get_mut(piece).ok_or_else(ended)?.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Releases everything behind `end`. A file is cut once next to nothing is left.
    pub(super) fn cut(&self, end: u64, least: u64) -> io::Result<()> {
        match self {
            SpillStorage::File(file) if end <= least => file.set_len(least),
            SpillStorage::File(_) => Ok(()),
            SpillStorage::Memory(chunks) => {
                let mut chunks = chunks.write().past_poison();
                chunks.truncate(end.div_ceil(CHUNK as u64) as usize);
                let most = 2 * chunks.len();
                chunks.shrink_to(most);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_bytes_across_chunks_until_it_is_cut() {
        let memory = SpillStorage::in_memory();
        let bytes: Vec<u8> = (0..3 * CHUNK as u32).map(|n| n as u8 ^ (n >> 8) as u8).collect();
        memory.write_all_at(&bytes, 1000).unwrap();
        let mut out = vec![0; bytes.len()];
        memory.read_exact_at(&mut out, 1000).unwrap();
        assert!(out == bytes);
        memory.cut(CHUNK as u64 + 1, 8).unwrap();
        memory.read_exact_at(&mut out[..2 * CHUNK - 1000], 1000).unwrap();
        assert!(memory.read_exact_at(&mut out[..2 * CHUNK], 1000).is_err());
        let SpillStorage::Memory(chunks) = &memory else { panic!("it is in memory") };
        assert_eq!(chunks.read().unwrap().len(), 2);
    }
}
