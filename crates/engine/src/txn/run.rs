//! Versions of one tree that did not fit into memory: a row of blocks in the spill file, in the
//! order of keys, and of one key from the oldest to the newest.
//!
//! ```text
//! key · 0, place of the writer's end, or 1 + number of a writer under way · value
//! value: 0, or 1 and its bytes, or 2 and the number of a large one, which lies apart in the file
//! ```
//! In memory are the first key of each block, where large values are, and the stamps of writers
//! that were under way when the run was written. A run never changes; several of them are merged
//! into one larger.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::io::{Extent, SpillError, SpillFile};
use crate::page::change::{put_bytes, put_varint, take_bytes, take_varint};
use crate::txn::stamp::Stamp;
use crate::txn::versions::Version;
use crate::txn::was::{Pieces, Was};

/// Bytes in memory that a block is charged with, besides its key.
const BLOCK_BYTES: usize = 128;
/// Bytes in memory that a stamp is charged with.
const STAMP_BYTES: usize = 48;

/// Bytes of a block of a run that was merged so many times.
fn block_bytes(level: u32) -> usize {
    (16 << 10) << (2 * level.min(2))
}

struct Block {
    first: Box<[u8]>,
    extent: Extent,
}

/// A version, and its key.
pub(super) type Keyed = (Arc<[u8]>, Version);

/// A run.
pub(super) struct Run {
    blocks: Vec<Block>,
    last: Box<[u8]>,
    /// Of writers that were under way.
    stamps: Vec<Arc<Stamp>>,
    large: Vec<Arc<Pieces>>,
    /// How many runs were merged into it, as a logarithm.
    pub(super) level: u32,
    /// What it takes in memory.
    pub(super) bytes: usize,
}

/// A run that is being written.
pub(super) struct RunWriter<'f> {
    file: &'f Arc<SpillFile>,
    run: Run,
    numbers: HashMap<*const Stamp, u64>,
    first: Vec<u8>,
    last: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'f> RunWriter<'f> {
    pub(super) fn new(file: &'f Arc<SpillFile>, level: u32) -> RunWriter<'f> {
        let (blocks, stamps, last) = (Vec::new(), Vec::new(), Box::default());
        let run = Run { blocks, last, stamps, large: Vec::new(), level, bytes: 0 };
        let numbers = HashMap::new();
        RunWriter { file, run, numbers, first: vec![], last: vec![], buffer: vec![] }
    }

    /// Appends a version. Keys come in order.
    pub(super) fn push(&mut self, key: &[u8], version: &Version) -> Result<(), SpillError> {
        if self.buffer.is_empty() {
            key.clone_into(&mut self.first);
        }
        key.clone_into(&mut self.last);
        put_bytes(&mut self.buffer, key);
        match version.stamp.ended() {
            Some(place) => {
                put_varint(&mut self.buffer, 0);
                put_varint(&mut self.buffer, place);
            }
            None => {
                let stamps = &mut self.run.stamps;
                let number = self.numbers.entry(Arc::as_ptr(&version.stamp)).or_insert_with(|| {
                    stamps.push(version.stamp.clone());
                    stamps.len() as u64
                });
                put_varint(&mut self.buffer, *number);
            }
        }
        match &version.before {
            None => self.buffer.push(0),
            Some(Was::Spilled(pieces)) => {
                self.buffer.push(2);
                put_varint(&mut self.buffer, self.run.large.len() as u64);
                self.run.bytes += pieces.bytes();
                self.run.large.push(pieces.clone());
            }
            Some(Was::Here(value)) => {
                self.buffer.push(1);
                put_bytes(&mut self.buffer, value);
            }
        }
        if self.buffer.len() < block_bytes(self.run.level) { Ok(()) } else { self.end_block() }
    }

    fn end_block(&mut self) -> Result<(), SpillError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let (first, extent) = (self.first.as_slice().into(), self.file.put(&self.buffer)?);
        self.run.bytes += BLOCK_BYTES + self.first.len();
        self.run.blocks.push(Block { first, extent });
        self.buffer.clear();
        // A large value is not kept room for.
        self.buffer.shrink_to(block_bytes(2));
        Ok(())
    }

    /// The run; `None` if nothing was pushed.
    pub(super) fn finish(mut self) -> Result<Option<Run>, SpillError> {
        self.end_block()?;
        self.run.last = self.last.into();
        self.run.bytes += self.run.stamps.len() * STAMP_BYTES;
        Ok((!self.run.blocks.is_empty()).then_some(self.run))
    }
}

/// A version as a block holds it: its key, its stamp, and what the entry was before.
type Stored<'b> = (&'b [u8], Arc<Stamp>, Option<StoredValue<'b>>);

/// A value as a block holds it.
enum StoredValue<'b> {
    Here(&'b [u8]),
    Large(&'b Arc<Pieces>),
}

impl From<StoredValue<'_>> for Was {
    fn from(value: StoredValue<'_>) -> Was {
        match value {
            StoredValue::Here(bytes) => Was::Here(bytes.into()),
            StoredValue::Large(pieces) => Was::Spilled(pieces.clone()),
        }
    }
}

/// The next version of a block; `None` at its end, or if it makes no sense.
fn take<'b>(run: &'b Run, rest: &mut &'b [u8]) -> Option<Stored<'b>> {
    let key = take_bytes(rest)?;
    let stamp = match take_varint(rest)? {
        0 => Stamp::at(take_varint(rest)?),
        number => run.stamps.get(usize::try_from(number - 1).ok()?)?.clone(),
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

impl Run {
    /// The first block that may hold `key`, or keys behind it.
    fn block_of(&self, key: &[u8]) -> usize {
        self.blocks.partition_point(|block| &*block.first < key).saturating_sub(1)
    }

    /// The first version of `key` for which `is_it` holds.
    pub(super) fn find(
        &self,
        key: &[u8],
        is_it: impl Fn(&Stamp) -> bool,
    ) -> Result<Option<Version>, SpillError> {
        if key > &*self.last {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        for block in self.blocks.iter().skip(self.block_of(key)) {
            if &*block.first > key {
                break;
            }
            block.extent.read(&mut bytes)?;
            let mut rest = bytes.as_slice();
            while let Some((found, stamp, before)) = take(self, &mut rest) {
                if found > key {
                    return Ok(None);
                }
                if found == key && is_it(&stamp) {
                    return Ok(Some(Version { before: before.map(Was::from), stamp }));
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
    /// Blocks that were not read yet.
    blocks: std::ops::Range<usize>,
    /// Read, and not taken; the next one last.
    at_hand: Vec<Keyed>,
    bytes: Vec<u8>,
}

impl RunCursor {
    pub(super) fn new(
        run: &Arc<Run>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        forward: bool,
    ) -> RunCursor {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => run.block_of(key),
        };
        let to = match upper {
            Bound::Unbounded => run.blocks.len(),
            Bound::Included(key) => run.blocks.partition_point(|block| &*block.first <= key),
            Bound::Excluded(key) => run.blocks.partition_point(|block| &*block.first < key),
        };
        RunCursor {
            run: run.clone(),
            forward,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            blocks: from..to.max(from),
            at_hand: Vec::new(),
            bytes: Vec::new(),
        }
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

    /// The key that comes next; `None` at the end.
    pub(super) fn key(&mut self) -> Result<Option<&[u8]>, SpillError> {
        while self.at_hand.is_empty() {
            let next = if self.forward { self.blocks.next() } else { self.blocks.next_back() };
            let Some(block) = next.and_then(|next| self.run.blocks.get(next)) else {
                return Ok(None);
            };
            block.extent.read(&mut self.bytes)?;
            let mut rest = self.bytes.as_slice();
            let mut found: Vec<Keyed> = Vec::new();
            while let Some((key, stamp, before)) = take(&self.run, &mut rest) {
                if self.has(key) {
                    let version = Version { before: before.map(Was::from), stamp };
                    match found.last() {
                        Some((last, _)) if **last == *key => found.push((last.clone(), version)),
                        _ => found.push((key.into(), version)),
                    }
                }
            }
            if self.forward {
                found.reverse();
            }
            self.at_hand = found;
        }
        Ok(self.at_hand.last().map(|(key, _)| &**key))
    }

    /// Appends the versions of the key that comes next, if it is `key`, the oldest first.
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
