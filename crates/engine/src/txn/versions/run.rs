//! A run: versions of one tree that did not fit into memory. It is a row of blocks in the spill
//! file, in the order of keys, each key's versions from the oldest to the newest.
//!
//! ```text
//! block: length of its first key, 4 bytes · that key's sum, 8 bytes · that key · versions
//! version: key · 0, commit timestamp, or 1 + number of a writer that was active · value
//! value: 0, or 1 and its bytes, or 2 and the number of a large one, in blocks of its own
//! ```
//! In memory are the offsets of the blocks and large values, and the stamps of writers that were
//! active when the run was written. That is 24 bytes for a block of up to 256 KiB, however long its
//! keys are: a binary search reads the blocks' first keys from the file. A run is immutable;
//! several of them are merged into a larger one.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::io::{Blocks, SpillError, SpillFile};
use crate::page::varint::{put_bytes, put_varint, take_bytes, take_varint};
use crate::txn::before_image::{BeforeImage, Pieces};
use crate::txn::bounds::Bounds;
use crate::txn::commit_stamp::CommitStamp;
use crate::txn::versions::version::{Image, Stamp, Version};

/// Bytes of memory charged for a run, besides its content.
const RUN_BYTES: usize = 256;
/// Bytes before a block's first key: its length and its sum.
const HEAD: usize = 12;
/// Bytes of a block that are read to find its first key.
const START: usize = 256;
/// Bytes of memory charged for a stamp.
const STAMP_BYTES: usize = 48;

/// Returns the bytes per block in a run of this level.
fn block_bytes(level: u32) -> usize {
    (16 << 10) << (2 * level.min(2))
}

/// A version, and its key.
pub(super) type Keyed = (Arc<[u8]>, Version);

/// A run.
pub(super) struct Run {
    blocks: Blocks,
    last: Box<[u8]>,
    /// Stamps of the writers that were active.
    stamps: Vec<Arc<CommitStamp>>,
    large: Vec<Arc<Pieces>>,
    /// Number of runs merged into this one, as a logarithm.
    pub(super) level: u32,
    /// Bytes that it takes in memory.
    pub(super) bytes: usize,
}

/// A run that is being written.
pub(super) struct RunWriter {
    run: Run,
    numbers: HashMap<*const CommitStamp, u64>,
    last: Vec<u8>,
    buffer: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(file: &Arc<SpillFile>, level: u32) -> RunWriter {
        let (blocks, stamps, last) = (Blocks::new(file), Vec::new(), Box::default());
        let run = Run { blocks, last, stamps, large: Vec::new(), level, bytes: RUN_BYTES };
        RunWriter { run, numbers: HashMap::new(), last: vec![], buffer: vec![] }
    }

    /// Appends a version. Keys must come in order.
    pub(super) fn push(
        &mut self,
        key: &[u8],
        stamp: &Stamp,
        before: Option<Image<'_>>,
    ) -> Result<(), SpillError> {
        debug_assert!(self.run.blocks.is_empty() || *self.last <= *key, "keys come in order");
        if self.buffer.is_empty() {
            self.buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
            self.buffer.extend_from_slice(&xxh3_64(key).to_le_bytes());
            self.buffer.extend_from_slice(key);
        }
        key.clone_into(&mut self.last);
        put_bytes(&mut self.buffer, key);
        match stamp.clone().ended() {
            Stamp::Ended(timestamp) => {
                put_varint(&mut self.buffer, 0);
                put_varint(&mut self.buffer, timestamp);
            }
            Stamp::Active(stamp) => {
                let stamps = &mut self.run.stamps;
                let number = self.numbers.entry(Arc::as_ptr(&stamp)).or_insert_with(|| {
                    stamps.push(stamp);
                    stamps.len() as u64
                });
                put_varint(&mut self.buffer, *number);
            }
        }
        match before {
            None => self.buffer.push(0),
            Some(Image::Apart(BeforeImage::Spilled(pieces))) => {
                self.buffer.push(2);
                put_varint(&mut self.buffer, self.run.large.len() as u64);
                self.run.bytes += pieces.bytes();
                self.run.large.push(pieces.clone());
            }
            Some(Image::Bytes(value)) => self.put_value(value),
            Some(Image::Apart(BeforeImage::Here(value))) => self.put_value(value),
        }
        if self.buffer.len() < block_bytes(self.run.level) { Ok(()) } else { self.end_block() }
    }

    fn put_value(&mut self, value: &[u8]) {
        self.buffer.push(1);
        put_bytes(&mut self.buffer, value);
    }

    fn end_block(&mut self) -> Result<(), SpillError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.run.blocks.push(&self.buffer)?;
        self.run.bytes += Blocks::EACH;
        self.buffer.clear();
        // The room for a large value is not kept.
        self.buffer.shrink_to(block_bytes(2));
        Ok(())
    }

    /// Returns the run, or `None` if nothing was pushed.
    pub(super) fn finish(mut self) -> Result<Option<Run>, SpillError> {
        self.end_block()?;
        self.run.blocks.end();
        self.run.bytes += self.last.len();
        self.run.last = self.last.into();
        self.run.bytes += self.run.stamps.len() * STAMP_BYTES;
        Ok((!self.run.blocks.is_empty()).then_some(self.run))
    }
}

/// A version in a block: its key, its stamp, and the entry's former value.
type Stored<'b> = (&'b [u8], Stamp, Option<StoredValue<'b>>);

/// A value in a block.
enum StoredValue<'b> {
    Here(&'b [u8]),
    Large(&'b Arc<Pieces>),
}

impl From<StoredValue<'_>> for BeforeImage {
    fn from(value: StoredValue<'_>) -> BeforeImage {
        match value {
            StoredValue::Here(bytes) => BeforeImage::Here(bytes.into()),
            StoredValue::Large(pieces) => BeforeImage::Spilled(pieces.clone()),
        }
    }
}

/// Takes the next version off a block; `None` at its end, or if it cannot be decoded.
fn take<'b>(run: &'b Run, rest: &mut &'b [u8]) -> Option<Stored<'b>> {
    let key = take_bytes(rest)?;
    let stamp = match take_varint(rest)? {
        0 => Stamp::Ended(take_varint(rest)?),
        number => Stamp::Active(run.stamps.get(usize::try_from(number - 1).ok()?)?.clone()),
    };
    let before = match take_varint(rest)? {
        0 => None,
        1 => Some(StoredValue::Here(take_bytes(rest)?)),
        _ => {
            let number = usize::try_from(take_varint(rest)?).ok()?;
            Some(StoredValue::Large(run.large.get(number)?))
        }
    };
    Some((key, stamp, before))
}

/// Returns the first key of a block, of which `start` is the beginning, or else the number of bytes
/// needed to find it.
fn first_key(start: &[u8]) -> Result<&[u8], usize> {
    let (len, rest) = start.split_first_chunk::<4>().ok_or(HEAD)?;
    let (sum, rest) = rest.split_first_chunk::<8>().ok_or(HEAD)?;
    let len = u32::from_le_bytes(*len) as usize;
    let key = rest.get(..len).ok_or(HEAD + len)?;
    // A key with a wrong sum is not one; the error asks for more bytes than there are.
    if xxh3_64(key) == u64::from_le_bytes(*sum) { Ok(key) } else { Err(usize::MAX) }
}

impl Run {
    /// Returns the number of blocks, counted from the first, whose first key satisfies `is_it`.
    fn blocks_of(&self, is_it: impl Fn(&[u8]) -> bool) -> Result<usize, SpillError> {
        let (mut from, mut to, mut start) = (0, self.blocks.len(), Vec::new());
        while from < to {
            let middle = from + (to - from) / 2;
            let holds = is_it(self.first_of(middle, &mut start)?);
            if holds { from = middle + 1 } else { to = middle }
        }
        Ok(from)
    }

    /// Returns the first key of a block, read into `start`.
    fn first_of<'b>(&self, block: usize, start: &'b mut Vec<u8>) -> Result<&'b [u8], SpillError> {
        self.blocks.read_start(block, START, start)?;
        if let Err(most) = first_key(start)
            && most != usize::MAX
        {
            self.blocks.read_start(block, most, start)?;
        }
        first_key(start).map_err(|_| self.blocks.damaged(block))
    }

    /// Returns the first block that may hold `key`, or keys behind it.
    fn block_of(&self, key: &[u8]) -> Result<usize, SpillError> {
        Ok(self.blocks_of(|first| first < key)?.saturating_sub(1))
    }

    /// Reads a block into `out` and returns its versions.
    fn versions<'b>(&self, block: usize, out: &'b mut Vec<u8>) -> Result<&'b [u8], SpillError> {
        self.blocks.read(block, out)?;
        let Ok(first) = first_key(out) else { return Err(self.blocks.damaged(block)) };
        let from = HEAD + first.len();
        Ok(out.get(from..).unwrap_or(&[]))
    }

    /// Finds the first version of `key` for which `is_it` holds.
    pub(super) fn find(
        &self,
        key: &[u8],
        is_it: impl Fn(u64) -> bool,
    ) -> Result<Option<Version>, SpillError> {
        if key > &*self.last {
            return Ok(None);
        }
        let (begin, mut start, mut bytes) = (self.block_of(key)?, Vec::new(), Vec::new());
        for block in begin..self.blocks.len() {
            if block > begin && self.first_of(block, &mut start)? > key {
                break;
            }
            let mut rest = self.versions(block, &mut bytes)?;
            while let Some((found, stamp, before)) = take(self, &mut rest) {
                if found > key {
                    return Ok(None);
                }
                if found == key && is_it(stamp.timestamp()) {
                    return Ok(Some(Version { before: before.map(BeforeImage::from), stamp }));
                }
            }
        }
        Ok(None)
    }
}

/// The versions of a run between two bounds, in either direction.
pub(super) struct RunCursor {
    run: Arc<Run>,
    forward: bool,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// Blocks that are not read yet.
    blocks: std::ops::Range<usize>,
    /// Versions that were read and not taken; the next one last.
    at_hand: Vec<Keyed>,
    bytes: Vec<u8>,
}

impl RunCursor {
    pub(super) fn new(
        run: &Arc<Run>,
        bounds: Bounds<'_>,
        forward: bool,
    ) -> Result<RunCursor, SpillError> {
        let Bounds { lower, upper } = bounds;
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => run.block_of(key)?,
        };
        let to = match upper {
            Bound::Unbounded => run.blocks.len(),
            Bound::Included(key) => run.blocks_of(|first| first <= key)?,
            Bound::Excluded(key) => run.blocks_of(|first| first < key)?,
        };
        Ok(RunCursor {
            run: run.clone(),
            forward,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            blocks: from..to.max(from),
            at_hand: Vec::new(),
            bytes: Vec::new(),
        })
    }

    fn has(&self, key: &[u8]) -> bool {
        let is_behind = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
        };
        is_behind
            && match &self.upper {
                Bound::Unbounded => true,
                Bound::Included(upper) => key <= upper.as_slice(),
                Bound::Excluded(upper) => key < upper.as_slice(),
            }
    }

    /// Returns the next key; `None` at the end.
    pub(super) fn key(&mut self) -> Result<Option<&[u8]>, SpillError> {
        while self.at_hand.is_empty() {
            let next = if self.forward { self.blocks.next() } else { self.blocks.next_back() };
            let Some(block) = next else { return Ok(None) };
            let mut bytes = std::mem::take(&mut self.bytes);
            let mut rest = self.run.versions(block, &mut bytes)?;
            let mut found: Vec<Keyed> = Vec::new();
            while let Some((key, stamp, before)) = take(&self.run, &mut rest) {
                if self.has(key) {
                    let version = Version { before: before.map(BeforeImage::from), stamp };
                    match found.last() {
                        Some((last, _)) if **last == *key => found.push((last.clone(), version)),
                        _ => found.push((key.into(), version)),
                    }
                }
            }
            if self.forward {
                found.reverse();
            }
            (self.at_hand, self.bytes) = (found, bytes);
        }
        Ok(self.at_hand.last().map(|(key, _)| &**key))
    }

    /// Appends the versions of the next key, if it is `key`, the oldest first.
    pub(super) fn take(&mut self, key: &[u8], out: &mut Vec<Version>) -> Result<(), SpillError> {
        let from = out.len();
        while self.key()? == Some(key) {
            out.extend(self.at_hand.pop().map(|(_, version)| version));
        }
        if !self.forward
            && let Some(new) = out.get_mut(from..)
        {
            new.reverse();
        }
        Ok(())
    }
}
