//! Large values as streams: reads a value piece by piece, and builds one from a source.

use std::io::{self, SeekFrom};

use crate::btree::error::StreamError;
use crate::btree::lookup::Lookup;
use crate::btree::node::edit::Reference;
use crate::btree::tree::BTree;
use crate::btree::value::large::Detached;
use crate::btree::value::layout::{data_max, part_at};
use crate::page::Scratch;
use crate::pool::{Pages, PoolError};

/// Number of bytes that a reader fetches at once.
const CHUNK: usize = 64 << 10;

/// A value that is read piece by piece. No latch is held between two calls: if the value is changed
/// or removed in the meantime, the next read that fetches fails with a [`StreamError::Changed`]
/// inside.
pub struct ValueReader<'t, P: Pages> {
    tree: &'t BTree<P>,
    key: Vec<u8>,
    /// Reference to the value; `None` if the value is in `chunk`.
    reference: Option<Reference>,
    len: u64,
    at: u64,
    chunk: Vec<u8>,
    /// Offset of the chunk's first byte in the value.
    chunk_at: u64,
}

/// A value that was read from a source, and that no entry has yet.
pub(crate) enum Streamed {
    Inline(Vec<u8>),
    Detached(Detached),
}

/// A value that is being read from a user's source. It is freed on drop if the source panics.
struct Unfinished<'v, P: Pages> {
    tree: &'v BTree<P>,
    value: &'v Detached,
    is_over: bool,
}

impl<P: Pages> Drop for Unfinished<'_, P> {
    fn drop(&mut self) {
        if !self.is_over
            && let Err(error) = self.tree.free_below(self.value)
        {
            tracing::warn!(%error, "the pages of a value whose source panicked are lost");
        }
    }
}

impl<P: Pages> BTree<P> {
    /// Opens the value of `key` as a stream, or returns `None` if there is no such key.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn reader(&self, key: &[u8]) -> Result<Option<ValueReader<'_, P>>, PoolError> {
        let mut scratch = Scratch::default();
        let (reference, chunk) = match self.look(key, &mut scratch)? {
            Lookup::Missing => return Ok(None),
            Lookup::Inline => (None, scratch.bytes().to_vec()),
            Lookup::Overflow(reference) => (Some(reference), Vec::new()),
        };
        let len = reference.map_or(chunk.len() as u64, |reference| reference.len);
        let key = key.to_vec();
        Ok(Some(ValueReader { tree: self, key, reference, len, at: 0, chunk, chunk_at: 0 }))
    }

    /// Reads a value of `len` bytes for `key` from `source`; no entry is changed.
    ///
    /// # Errors
    /// The source failed or ended early, key or value are too long, or the memory behind the tree
    /// failed. No page of the value is left then.
    pub(crate) fn read_streamed(
        &self,
        key: &[u8],
        len: u64,
        source: &mut impl io::Read,
    ) -> Result<Streamed, StreamError> {
        self.check_sizes(key, len)?;
        if self.fits_inline(key, len) {
            let mut value = vec![0; usize::try_from(len).unwrap_or(0)];
            let read = fill(source, &mut value, 0)?;
            return if read as u64 == len {
                Ok(Streamed::Inline(value))
            } else {
                Err(StreamError::Short { read: read as u64, len })
            };
        }
        let value = self.begin_value(len)?;
        let mut unfinished = Unfinished { tree: self, value: &value, is_over: false };
        let written = self.write_all(&value, source);
        unfinished.is_over = true;
        drop(unfinished);
        if let Err(error) = written {
            self.free_below(&value)?;
            return Err(error);
        }
        Ok(Streamed::Detached(value))
    }

    /// Frees the pages of a value that no entry will have.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub(crate) fn discard_streamed(&self, value: Streamed) -> Result<(), PoolError> {
        match value {
            Streamed::Inline(_) => Ok(()),
            Streamed::Detached(value) => self.free_below(&value),
        }
    }

    fn write_all(&self, value: &Detached, source: &mut impl io::Read) -> Result<(), StreamError> {
        let size = self.pages.page_size();
        let mut part = vec![0; data_max(size)];
        let mut offset = 0;
        while offset < value.len {
            let wanted = part_at(size, value.len, offset).len;
            let read = fill(source, &mut part[..wanted], offset)?;
            if read < wanted {
                return Err(StreamError::Short { read: offset + read as u64, len: value.len });
            }
            self.write_part(value, offset, &part[..wanted])?;
            offset += wanted as u64;
        }
        Ok(())
    }
}

/// Reads until `out` is full or the source ends; `before` bytes were read from the source already.
fn fill(source: &mut impl io::Read, out: &mut [u8], before: u64) -> Result<usize, StreamError> {
    let mut read = 0;
    while read < out.len() {
        match source.read(&mut out[read..]) {
            Ok(0) => break,
            Ok(n) => read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(StreamError::Source { read: before + read as u64, error }),
        }
    }
    Ok(read)
}

impl<P: Pages> ValueReader<'_, P> {
    /// Returns the number of bytes of the value.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the fetched bytes from the present offset on; fetches more if there are none.
    fn chunk(&mut self) -> Result<&[u8], StreamError> {
        let inside = self.at.checked_sub(self.chunk_at).and_then(|d| usize::try_from(d).ok());
        let have = inside.is_some_and(|from| from < self.chunk.len());
        if !have && self.at < self.len {
            let Some(reference) = self.reference else { return Ok(&[]) };
            self.chunk.clear();
            self.chunk_at = self.at;
            if !self.tree.read_some(&self.key, reference, self.at, CHUNK, &mut self.chunk)? {
                return Err(StreamError::Changed);
            }
        }
        debug_assert!(self.at >= self.chunk_at || self.at >= self.len);
        let from = usize::try_from(self.at.saturating_sub(self.chunk_at)).unwrap_or(usize::MAX);
        Ok(self.chunk.get(from..).unwrap_or(&[]))
    }
}

impl<P: Pages> io::Read for ValueReader<'_, P> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.len || out.is_empty() {
            return Ok(0);
        }
        let mut chunk = self.chunk().map_err(io::Error::other)?;
        let n = chunk.read(out)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl<P: Pages> io::Seek for ValueReader<'_, P> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.len.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        match target {
            Some(at) => {
                self.at = at;
                Ok(at)
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "seek before the start")),
        }
    }
}
