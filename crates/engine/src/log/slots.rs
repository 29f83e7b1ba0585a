//! The log's file: a block that identifies its store, then slots, each a header block and a
//! segment.
//!
//! ```text
//!  offset 0             log header, one block
//!  4096                 slot 0: header, one block
//!  8192                         segment, S bytes of records
//!  8192 + S             slot 1: header …
//!
//!  log header                            slot header
//!  byte  0  magic "MPONDLOG"             byte  0  magic "MPONDSEG"
//!        8  format u32                         8  format u32
//!       12  block u32 = 4096                  12  0 u32
//!       16  store id, 16 bytes                16  store id, 16 bytes
//!       32  segment size S u64                32  sequence number u64
//!       40  checksum u64 of bytes 0 to 39     40  checksum u64 of bytes 0 to 39
//! ```
//!
//! Numbers are little-endian, checksums are XXH3-64, and the rest of both blocks is zeros. The
//! segment with sequence number q holds the LSNs from q·S to (q+1)·S. A slot whose header is all
//! zeros was never used. Each header lies in one sector, so a crash leaves the old one or the new
//! one (rule 6); any other content is damage.

use std::collections::BTreeMap;
use std::path::Path;

use millpond_base::little_endian::{u32_at, u64_at};
use millpond_device::AlignedBuffer;
use xxhash_rust::xxh3::xxh3_64;

use super::error::LogError;
use super::options::BLOCK;
use super::options::is_segment_size;

/// The format that this version reads and writes.
pub(super) const FORMAT: u32 = 3;

const LOG_MAGIC: [u8; 8] = *b"MPONDLOG";
const SLOT_MAGIC: [u8; 8] = *b"MPONDSEG";
/// Number of bytes that the checksum covers.
const COVERED: usize = 40;

/// Returns the offset of slot `slot`, with segments of `segment` bytes.
pub(super) fn slot_offset(slot: usize, segment: u64) -> u64 {
    debug_assert!(segment.is_multiple_of(BLOCK), "a segment consists of whole blocks");
    BLOCK + slot as u64 * (BLOCK + segment)
}

fn block(magic: [u8; 8], word: u32, uuid: &[u8; 16], number: u64) -> AlignedBuffer {
    let mut block = AlignedBuffer::new(BLOCK as usize);
    block[0..8].copy_from_slice(&magic);
    block[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    block[12..16].copy_from_slice(&word.to_le_bytes());
    block[16..32].copy_from_slice(uuid);
    block[32..40].copy_from_slice(&number.to_le_bytes());
    let sum = xxh3_64(&block[..COVERED]);
    block[40..48].copy_from_slice(&sum.to_le_bytes());
    block
}

fn uuid_at(bytes: &[u8], at: usize) -> [u8; 16] {
    std::array::from_fn(|i| bytes[at + i])
}

/// Returns the log's first block.
pub(super) fn log_header(uuid: &[u8; 16], segment: u64) -> AlignedBuffer {
    block(LOG_MAGIC, BLOCK as u32, uuid, segment)
}

/// Returns the segment size that the log's first block names, if the block is a sound one of this
/// store.
pub(super) fn read_log_header(bytes: &[u8], uuid: &[u8; 16], path: &Path) -> Result<u64, LogError> {
    let path = || path.to_path_buf();
    if bytes.len() < BLOCK as usize || bytes[0..8] != LOG_MAGIC {
        return Err(LogError::NotALog { path: path() });
    }
    let (found, known) = (u32_at(bytes, 8), FORMAT);
    if found != known {
        return Err(LogError::Version { path: path(), found, known });
    }
    let segment = u64_at(bytes, 32);
    let is_sound = u64_at(bytes, 40) == xxh3_64(&bytes[..COVERED])
        && u64::from(u32_at(bytes, 12)) == BLOCK
        && is_segment_size(segment);
    if !is_sound {
        return Err(LogError::NotALog { path: path() });
    }
    let found = uuid_at(bytes, 16);
    if found != *uuid {
        let (expected, found) = (u128::from_be_bytes(*uuid), u128::from_be_bytes(found));
        return Err(LogError::OtherStore { path: path(), expected, found });
    }
    Ok(segment)
}

/// Returns the id of the store that the log's first block names.
pub(super) fn store_id(bytes: &[u8]) -> [u8; 16] {
    uuid_at(bytes, 16)
}

/// Returns the header of a slot that holds segment `sequence`.
pub(super) fn slot_header(uuid: &[u8; 16], sequence: u64) -> AlignedBuffer {
    block(SLOT_MAGIC, 0, uuid, sequence)
}

/// Content of a slot's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotState {
    /// Never used, or used by another log.
    Empty,
    /// Holds this segment.
    Holds(u64),
    /// Not readable.
    Damaged,
}

pub(super) fn read_slot_header(bytes: &[u8], uuid: &[u8; 16]) -> SlotState {
    let sector = &bytes[..512];
    if sector.iter().all(|&byte| byte == 0) {
        return SlotState::Empty;
    }
    let is_sound = sector[0..8] == SLOT_MAGIC && u64_at(sector, 40) == xxh3_64(&sector[..COVERED]);
    match is_sound {
        true if uuid_at(sector, 16) != *uuid => SlotState::Empty,
        true if u32_at(sector, 8) == FORMAT => SlotState::Holds(u64_at(sector, 32)),
        _ => SlotState::Damaged,
    }
}

/// The segment in each slot of a log's file, and the free slots.
pub(super) struct SlotTable {
    /// Sequence number → slot.
    pub(super) held: BTreeMap<u64, usize>,
    pub(super) free: Vec<usize>,
    /// Number of bytes of the file that may be used. The file may be longer, where its growth is
    /// not durable yet.
    pub(super) ready: u64,
    /// Number of slots that begin in the ready part of the file.
    pub(super) count: usize,
    /// The oldest position that is kept.
    pub(super) oldest: u64,
    /// Slots whose header could not be read; they count as neither held nor free.
    pub(super) damaged: Vec<usize>,
    /// Slots that name a segment that a lower slot names, too (rule 7). They are free.
    pub(super) doubles: Vec<usize>,
}

impl SlotTable {
    /// Returns the table of a file of `length` bytes, with no slot held or free yet.
    pub(super) fn of(length: u64, size: u64) -> SlotTable {
        let ready = length - length % BLOCK;
        SlotTable {
            held: BTreeMap::new(),
            free: Vec::new(),
            ready,
            count: slots_in(ready, size),
            oldest: 0,
            damaged: Vec::new(),
            doubles: Vec::new(),
        }
    }

    /// Takes the first free slot of the file, so that slots at its end stay free.
    pub(super) fn take_free(&mut self) -> Option<usize> {
        let first = self.free.iter().enumerate().min_by_key(|(_, slot)| **slot);
        let (at, _) = first?;
        let slot = self.free.swap_remove(at);
        debug_assert!(slot < self.count, "a free slot lies in the file");
        debug_assert!(!self.held.values().any(|held| *held == slot), "a free slot holds nothing");
        Some(slot)
    }

    /// Allows the file to be used up to `ready`: slots that begin in the new part are free.
    pub(super) fn reach(&mut self, ready: u64, size: u64) {
        debug_assert!(ready.is_multiple_of(BLOCK), "a file is ready in whole blocks");
        self.ready = self.ready.max(ready);
        let count = slots_in(self.ready, size);
        debug_assert!(count >= self.count, "a file that grows keeps its slots");
        self.free.extend(self.count..count);
        self.count = self.count.max(count);
    }

    /// Returns whether each slot of the file is either held, free or damaged.
    pub(super) fn is_consistent(&self) -> bool {
        let mut seen = vec![false; self.count];
        let mut all = self.held.values().chain(&self.free).chain(&self.damaged);
        let is_once =
            all.all(|&slot| seen.get_mut(slot).is_some_and(|seen| !std::mem::replace(seen, true)));
        is_once && seen.iter().all(|seen| *seen)
    }

    /// Returns the number of bytes of records that the file has room for in slot `slot`.
    pub(super) fn room(&self, slot: usize, size: u64) -> u64 {
        debug_assert!(
            slot < self.count,
            "slot {slot} is not one of the {} of the file",
            self.count
        );
        self.ready.saturating_sub(slot_offset(slot, size) + BLOCK).min(size)
    }
}

/// Returns the number of slots whose header lies in a file of `length` bytes.
pub(super) fn slots_in(length: u64, size: u64) -> usize {
    (length.saturating_sub(2 * BLOCK) / (BLOCK + size)) as usize + usize::from(length >= 2 * BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 16] = [7; 16];

    #[test]
    fn the_first_block_tells_its_store_format_and_segment_size() {
        let path = Path::new("a-log");
        let good = log_header(&ID, 64 << 10);
        assert_eq!(read_log_header(&good, &ID, path), Ok(64 << 10));
        let other = read_log_header(&good, &[8; 16], path).unwrap_err();
        assert!(matches!(other, LogError::OtherStore { .. }), "{other}");
        assert!(other.to_string().contains("a-log"), "{other}");
        for at in 0..48 {
            let mut bad = log_header(&ID, 64 << 10);
            bad[at] ^= 4;
            let error = read_log_header(&bad, &ID, path).unwrap_err();
            let is_version = matches!(error, LogError::Version { .. });
            assert_eq!(is_version, (8..12).contains(&at), "byte {at}: {error}");
        }
    }

    #[test]
    fn a_log_has_segments_from_sixteen_kibibytes_to_one_gibibyte_and_no_others() {
        let read = |bytes| read_log_header(&log_header(&ID, bytes), &ID, Path::new("a-log"));
        for bytes in [16 << 10, 20 << 10, (1 << 30) - BLOCK, 1 << 30] {
            assert_eq!(read(bytes), Ok(bytes));
        }
        for bytes in [0, (16 << 10) - BLOCK, (16 << 10) + 512, (1 << 30) + BLOCK, u64::MAX] {
            assert_eq!(read(bytes), Err(LogError::NotALog { path: "a-log".into() }), "{bytes}");
        }
    }

    #[test]
    fn a_slot_is_empty_or_holds_a_segment_or_is_damaged() {
        let good = slot_header(&ID, 1234);
        assert_eq!(read_slot_header(&good, &ID), SlotState::Holds(1234));
        assert_eq!(read_slot_header(&good, &[8; 16]), SlotState::Empty);
        assert_eq!(read_slot_header(&[0; 4096], &ID), SlotState::Empty);
        for at in 0..48 {
            let mut bad = slot_header(&ID, 1234);
            bad[at] ^= 64;
            assert_eq!(read_slot_header(&bad, &ID), SlotState::Damaged, "byte {at}");
        }
    }
}
