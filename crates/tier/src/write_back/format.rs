//! Contents of the file of a write-back tier: headers, two snapshots of the directory, a journal of
//! later changes, and copies.
//!
//! ```text
//!      0        the header, 4096 bytes, twice: one after the other, so that one is whole; the
//!               sound one with the higher sequence number counts
//!   8192        two snapshots of the directory, each 48 bytes for each slot, rounded up to 4096
//!      …        journal
//!      …        slots, each as long as a page
//!
//! header        offset size
//!                    0    8  checksum of the rest, xxh3
//!                    8    8  magic: "MILLBACK"
//!                   16    4  format version
//!                   20    4  bytes of a slot
//!                   24    4  what pages' places are multiples of, in bytes
//!                   28    4  state: 1 it is being opened, 2 open, 3 closed, 4 it is given up,
//!                             5 of no use
//!                   32    8  slots
//!                   40    8  bytes of the journal
//!                   48    8  sequence number
//!                   56    8  epoch: batches of the journal are of this one, or do not count
//!                   64    8  generation, as in the mark of the device below
//!                   72    8  which snapshot, 0 or 1
//!                   80    8  its records
//!                   88    8  their checksum, xxh3
//!                   96   16  uuid, as in the mark of the device below
//!                  112    8  bytes of the file at most, as it was asked for
//!
//! batch              0    8  checksum of the rest, up to its end
//!                    8    8  magic: "MILLJRNL"
//!                   16    8  epoch
//!                   24    8  number, from 0 in each epoch
//!                   32    4  records
//!                   36    4  bytes of the batch: a multiple of 4096
//!                   40   24  0
//!                   64       records
//!
//! record             as an entry of `directory`, with its kind in the last four bytes:
//!                    0 a copy of what storage has, 1 a copy that storage has not,
//!                    2 there is none at that place, 3 as 1, and stays
//! ```
//! All integers are little-endian. A batch is written once every copy that it names is durable.

use millpond_base::little_endian::{u32_at, u64_at};
use millpond_device::{AlignedBuffer, Device, DeviceError};
use xxhash_rust::xxh3::xxh3_64;

use crate::back_layout::{BLOCK, BackLayout};
use crate::directory::{BACK_MAGIC, ENTRY_BYTES, Entry, Layout, put};
use crate::error::TierError;

const VERSION: u32 = 1;
const BATCH_MAGIC: &[u8; 8] = b"MILLJRNL";
const BATCH_HEADER: usize = 64;

/// Kind of a record about a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
    Clean = 0,
    Dirty = 1,
    Gone = 2,
    Pinned = 3,
}

/// A record about a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub kind: Kind,
    pub entry: Entry,
}

impl Record {
    /// Returns the record of a copy at `offset` that is gone.
    pub fn gone(offset: u64) -> Record {
        Record { kind: Kind::Gone, entry: Entry { offset, ..Entry::default() } }
    }

    fn write(&self, bytes: &mut [u8]) {
        self.entry.write(bytes);
        put(bytes, 44, &(self.kind as u32).to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Record> {
        let kind = match u32_at(bytes, 44) {
            0 => Kind::Clean,
            1 => Kind::Dirty,
            2 => Kind::Gone,
            3 => Kind::Pinned,
            _ => return None,
        };
        Some(Record { kind, entry: Entry::read(bytes) })
    }
}

/// State of a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum State {
    /// The device below may have this generation's mark, or the last one's.
    Opening = 1,
    Open = 2,
    /// Clean copies equal the bytes of the device below.
    Closed = 3,
    /// The device below has everything, and is about to get its first sector back.
    Leaving = 4,
    /// The device below has its first sector back.
    Over = 5,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub layout: BackLayout,
    pub state: State,
    pub sequence: u64,
    pub epoch: u64,
    pub generation: u64,
    pub uuid: [u8; 16],
    which: u64,
    records: u64,
    checksum: u64,
}

impl Header {
    /// Returns the header of a new pair.
    pub fn new(layout: BackLayout, uuid: [u8; 16]) -> Header {
        let state = State::Opening;
        // The journal may still hold batches of another pair.
        let epoch = u64_at(&uuid, 0) >> 1;
        let (sequence, generation) = (0, 1);
        let (which, records, checksum) = (0, 0, 0);
        Header { layout, state, sequence, epoch, generation, uuid, which, records, checksum }
    }

    fn encode(&self) -> AlignedBuffer {
        let mut bytes = AlignedBuffer::new(BLOCK as usize);
        let Layout { slot_bytes, unit, slots } = self.layout.slots;
        put(&mut bytes, 8, &BACK_MAGIC);
        for (at, word) in [VERSION, slot_bytes, unit, self.state as u32].iter().enumerate() {
            put(&mut bytes, 16 + 4 * at, &word.to_le_bytes());
        }
        let longs = [
            u64::from(slots),
            self.layout.journal_bytes,
            self.sequence,
            self.epoch,
            self.generation,
            self.which,
            self.records,
            self.checksum,
        ];
        for (at, long) in longs.iter().enumerate() {
            put(&mut bytes, 32 + 8 * at, &long.to_le_bytes());
        }
        put(&mut bytes, 96, &self.uuid);
        put(&mut bytes, 112, &self.layout.bytes.to_le_bytes());
        let checksum = xxh3_64(&bytes[8..]);
        put(&mut bytes, 0, &checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Header> {
        if bytes.get(8..16)? != BACK_MAGIC || u64_at(bytes, 0) != xxh3_64(bytes.get(8..)?) {
            return None;
        }
        let state = match u32_at(bytes, 28) {
            1 => State::Opening,
            2 => State::Open,
            3 => State::Closed,
            4 => State::Leaving,
            5 => State::Over,
            _ => return None,
        };
        let slots = u32::try_from(u64_at(bytes, 32)).ok()?;
        let slots = Layout { slot_bytes: u32_at(bytes, 20), unit: u32_at(bytes, 24), slots };
        let (journal_bytes, bytes_asked) = (u64_at(bytes, 40), u64_at(bytes, 112));
        Some(Header {
            layout: BackLayout { slots, journal_bytes, bytes: bytes_asked },
            state,
            sequence: u64_at(bytes, 48),
            epoch: u64_at(bytes, 56),
            generation: u64_at(bytes, 64),
            which: u64_at(bytes, 72),
            records: u64_at(bytes, 80),
            checksum: u64_at(bytes, 88),
            uuid: bytes.get(96..112)?.try_into().ok()?,
        })
    }

    /// Writes this header, durably.
    pub fn store(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        self.sequence += 1;
        let bytes = self.encode();
        [0, BLOCK].into_iter().try_for_each(|offset| {
            device.write(offset, &bytes)?;
            device.sync()
        })
    }

    /// Reads the header of `device`, if it holds a write-back tier.
    ///
    /// # Errors
    /// The device fails, or a later version wrote it.
    pub fn load(device: &dyn Device) -> Result<Option<Header>, TierError> {
        if device.length() < 2 * BLOCK {
            return Ok(None);
        }
        let mut bytes = AlignedBuffer::new(2 * BLOCK as usize);
        device.read(0, &mut bytes)?;
        let mut best: Option<Header> = None;
        for block in bytes.chunks(BLOCK as usize) {
            let found = u32_at(block, 16);
            if block.get(8..16) == Some(&BACK_MAGIC[..]) && found > VERSION {
                let path = device.path().to_path_buf();
                return Err(TierError::Version { path, found, known: VERSION });
            }
            let header = Header::decode(block);
            let is_newer = |header: &Header| best.is_none_or(|b| b.sequence < header.sequence);
            best = header.filter(is_newer).or(best);
        }
        Ok(best)
    }

    /// Makes these records the directory, durably, and empties the journal. Every copy that they
    /// name must be durable.
    pub fn store_snapshot(
        &mut self,
        device: &dyn Device,
        records: &[Record],
    ) -> Result<(), DeviceError> {
        let length = (records.len() * ENTRY_BYTES as usize).next_multiple_of(BLOCK as usize);
        let mut bytes = AlignedBuffer::new(length);
        for (record, place) in records.iter().zip(bytes.chunks_exact_mut(ENTRY_BYTES as usize)) {
            record.write(place);
        }
        let which = 1 - self.which.min(1);
        for (at, piece) in bytes.chunks(1 << 20).enumerate() {
            device.write(self.layout.snapshot(which) + ((at as u64) << 20), piece)?;
        }
        device.sync()?;
        self.which = which;
        (self.records, self.checksum) = (records.len() as u64, xxh3_64(&bytes));
        self.epoch += 1;
        self.store(device)
    }

    fn load_snapshot(&self, device: &dyn Device) -> Result<Option<Vec<Record>>, DeviceError> {
        let length = self.records.saturating_mul(ENTRY_BYTES).next_multiple_of(BLOCK);
        let is_possible = self.which <= 1 && self.records <= u64::from(self.layout.slots.slots);
        let begin = self.layout.snapshot(self.which.min(1));
        if !is_possible || begin + length > device.length() {
            return Ok(None);
        }
        let mut bytes = AlignedBuffer::new(length as usize);
        for (at, piece) in bytes.chunks_mut(1 << 20).enumerate() {
            device.read(begin + ((at as u64) << 20), piece)?;
        }
        if self.records > 0 && xxh3_64(&bytes) != self.checksum {
            return Ok(None);
        }
        let all = bytes.chunks_exact(ENTRY_BYTES as usize).take(self.records as usize);
        Ok(all.map(Record::read).collect())
    }
}

/// Returns a batch of the journal, ready to be written.
pub(super) fn batch(epoch: u64, number: u64, records: &[Record]) -> AlignedBuffer {
    let used = BATCH_HEADER + records.len() * ENTRY_BYTES as usize;
    let mut bytes = AlignedBuffer::new(used.next_multiple_of(BLOCK as usize));
    let length = bytes.len() as u32;
    put(&mut bytes, 8, BATCH_MAGIC);
    put(&mut bytes, 16, &epoch.to_le_bytes());
    put(&mut bytes, 24, &number.to_le_bytes());
    put(&mut bytes, 32, &(records.len() as u32).to_le_bytes());
    put(&mut bytes, 36, &length.to_le_bytes());
    let places = bytes.get_mut(BATCH_HEADER..).unwrap_or(&mut []);
    for (record, place) in records.iter().zip(places.chunks_exact_mut(ENTRY_BYTES as usize)) {
        record.write(place);
    }
    let checksum = xxh3_64(&bytes[8..]);
    put(&mut bytes, 0, &checksum.to_le_bytes());
    bytes
}

fn read_batch(bytes: &[u8], epoch: u64, number: u64) -> Option<(Vec<Record>, usize)> {
    if bytes.get(8..16)? != BATCH_MAGIC {
        return None;
    }
    let length = u32_at(bytes, 36) as usize;
    let batch = bytes.get(..length).filter(|batch| batch.len() >= BATCH_HEADER)?;
    let is_next = (u64_at(batch, 16), u64_at(batch, 24)) == (epoch, number);
    if !is_next || u64_at(batch, 0) != xxh3_64(batch.get(8..)?) {
        return None;
    }
    let records = batch.get(BATCH_HEADER..)?.chunks_exact(ENTRY_BYTES as usize);
    let records: Option<Vec<Record>> =
        records.take(u32_at(batch, 32) as usize).map(Record::read).collect();
    Some((records?, length))
}

/// Returns the offset of a batch that is `position` bytes into the journal; `None` if it does not
/// fit.
pub(super) fn batch_offset(layout: &BackLayout, position: u64, length: u64) -> Option<u64> {
    let fits = position + length <= layout.journal_bytes;
    fits.then(|| layout.journal() + position)
}

/// The journal: its header and its filled part.
pub(super) struct Journal {
    pub header: Header,
    /// Bytes of the journal in use.
    pub position: u64,
    /// Number of batches in the journal.
    pub batches: u64,
    /// The error of a failed sync. Nothing can be made durable any more: no later sync covers the
    /// writes of a failed one.
    pub failed: Option<DeviceError>,
}

impl Journal {
    /// Returns an empty journal: the snapshot is the directory.
    pub fn new(header: Header) -> Journal {
        Journal { header, position: 0, batches: 0, failed: None }
    }
}

/// Reads the last durable directory: the record of each place.
///
/// # Errors
/// The device fails, or its contents are damaged.
pub(super) fn load_directory(
    device: &dyn Device,
    header: &Header,
) -> Result<Vec<Record>, TierError> {
    let damaged = || TierError::Damaged { path: device.path().to_path_buf() };
    let snapshot = header.load_snapshot(device)?.ok_or_else(damaged)?;
    let mut places: std::collections::BTreeMap<u64, Record> =
        snapshot.into_iter().map(|record| (record.entry.offset, record)).collect();
    let layout = &header.layout;
    let there = device.length().saturating_sub(layout.journal()).min(layout.journal_bytes);
    let mut journal = AlignedBuffer::new(there as usize);
    for (at, piece) in journal.chunks_mut(1 << 20).enumerate() {
        device.read(layout.journal() + ((at as u64) << 20), piece)?;
    }
    let (mut rest, mut number) = (&journal[..], 0);
    while let Some((records, length)) = read_batch(rest, header.epoch, number) {
        // The journal has no records of clean copies, and a tier with a journal was not closed.
        places.retain(|_, record| record.kind != Kind::Clean);
        for record in records {
            match record.kind {
                Kind::Gone => places.remove(&record.entry.offset),
                _ => places.insert(record.entry.offset, record),
            };
        }
        (rest, number) = (rest.get(length..).unwrap_or(&[]), number + 1);
    }
    // A batch is written once the one before is durable, so there is none behind a torn one.
    let is_later = |block: &[u8]| {
        let is_batch = block.get(8..16) == Some(&BATCH_MAGIC[..]);
        is_batch && u64_at(block, 16) == header.epoch && u64_at(block, 24) > number
    };
    if rest.chunks(BLOCK as usize).any(is_later) {
        return Err(damaged());
    }
    let mut slots = std::collections::HashSet::new();
    let mut end = 0;
    for record in places.values() {
        let Record { entry, kind } = record;
        let file_end = layout.slot_offset(entry.slot).saturating_add(u64::from(entry.length));
        let is_possible = entry.slot < layout.slots.slots
            && entry.length > 0
            && entry.length <= layout.slots.slot_bytes
            && file_end <= device.length()
            && (entry.offset >= end || *kind == Kind::Clean)
            && slots.insert(entry.slot);
        if !is_possible {
            return Err(damaged());
        }
        if *kind != Kind::Clean {
            end = entry.offset.saturating_add(u64::from(entry.length));
        }
    }
    Ok(places.into_values().collect())
}
