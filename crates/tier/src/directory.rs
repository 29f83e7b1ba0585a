//! Contents of a second tier's file: a header, a directory of the pages, and their copies.
//!
//! ```text
//!      0        header, 4096 bytes
//!   4096        directory, 48 bytes for each slot, rounded up to 4096
//!      …        slots, each as long as a page
//!
//! header        offset size
//!                    0    8  checksum of the rest, xxh3
//!                    8    8  magic: "MILLTIER"
//!                   16    4  format version
//!                   20    4  bytes of a slot
//!                   24    4  what pages' places are multiples of, in bytes
//!                   28    4  1 if the tier was closed, and the directory is whole
//!                   32    8  slots
//!                   40    8  entries of the directory
//!                   48    8  their checksum, xxh3
//!                   56   32  what the storage below was when the tier was closed
//!
//! entry              0    8  page
//!                    8    8  where the page lies on the storage below, in bytes
//!                   16    8  checksum of the copy, xxh3
//!                   24    8  order of the last request
//!                   32    4  bytes of the copy
//!                   36    4  slot
//!                   40    4  mark of the last request
//!                   44    4  0
//! ```
//! All integers are little-endian. While the tier is open its header states so, durably, before
//! anything else is written: after a crash the cache is empty.

use millpond_base::little_endian::{u32_at, u64_at};
use millpond_device::{AlignedBuffer, Device};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::TierError;

/// The version that this code reads and writes.
const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"MILLTIER";
/// Magic of a write-back tier. The caller has checked whether it has data to lose.
pub(super) const BACK_MAGIC: [u8; 8] = *b"MILLBACK";
const HEADER_BYTES: u64 = 4096;
pub(super) const ENTRY_BYTES: u64 = 48;
/// Bytes of the header in use.
const USED: usize = 88;

/// Identity of the storage below a tier. A copy is valid only above the storage it was made of.
pub type Identity = [u8; 32];

/// Offsets of the parts of a tier's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// Offsets of pages are multiples of this.
    pub unit: u32,
    pub slots: u32,
}

impl Layout {
    /// Returns the layout with the most slots that fit into `bytes`.
    pub fn within(bytes: u64, slot_bytes: u32, unit: u32) -> Layout {
        let room = bytes.saturating_sub(2 * HEADER_BYTES);
        let slots = room / (u64::from(slot_bytes) + ENTRY_BYTES);
        Layout { slot_bytes, unit, slots: u32::try_from(slots).unwrap_or(u32::MAX >> 1) }
    }

    /// Returns the bytes of a file with `slots` slots.
    pub fn bytes_of(slots: u64, slot_bytes: u32) -> u64 {
        2 * HEADER_BYTES + slots * (u64::from(slot_bytes) + ENTRY_BYTES)
    }

    pub fn slots_begin(&self) -> u64 {
        HEADER_BYTES + (u64::from(self.slots) * ENTRY_BYTES).next_multiple_of(HEADER_BYTES)
    }

    pub fn slot_offset(&self, slot: u32) -> u64 {
        self.slots_begin() + u64::from(slot) * u64::from(self.slot_bytes)
    }

    pub fn end(&self) -> u64 {
        self.slot_offset(self.slots)
    }
}

/// A page in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    pub page: u64,
    pub offset: u64,
    pub checksum: u64,
    pub order: u64,
    pub length: u32,
    pub slot: u32,
    pub mark: u32,
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

impl Entry {
    pub fn write(&self, bytes: &mut [u8]) {
        for (at, word) in [self.page, self.offset, self.checksum, self.order].iter().enumerate() {
            put(bytes, 8 * at, &word.to_le_bytes());
        }
        for (at, word) in [self.length, self.slot, self.mark, 0].iter().enumerate() {
            put(bytes, 32 + 4 * at, &word.to_le_bytes());
        }
    }

    pub fn read(bytes: &[u8]) -> Entry {
        Entry {
            page: u64_at(bytes, 0),
            offset: u64_at(bytes, 8),
            checksum: u64_at(bytes, 16),
            order: u64_at(bytes, 24),
            length: u32_at(bytes, 32),
            slot: u32_at(bytes, 36),
            mark: u32_at(bytes, 40),
        }
    }
}

struct Closed {
    entries: u64,
    checksum: u64,
    identity: Identity,
}

fn write_header(
    device: &dyn Device,
    layout: &Layout,
    closed: Option<&Closed>,
) -> Result<(), TierError> {
    let mut bytes = AlignedBuffer::new(HEADER_BYTES as usize);
    put(&mut bytes, 8, &MAGIC);
    put(&mut bytes, 16, &VERSION.to_le_bytes());
    put(&mut bytes, 20, &layout.slot_bytes.to_le_bytes());
    put(&mut bytes, 24, &layout.unit.to_le_bytes());
    put(&mut bytes, 32, &u64::from(layout.slots).to_le_bytes());
    if let Some(Closed { entries, checksum, identity }) = closed {
        put(&mut bytes, 28, &1u32.to_le_bytes());
        put(&mut bytes, 40, &entries.to_le_bytes());
        put(&mut bytes, 48, &checksum.to_le_bytes());
        put(&mut bytes, 56, identity);
    }
    let checksum = xxh3_64(&bytes[8..]);
    put(&mut bytes, 0, &checksum.to_le_bytes());
    device.write(0, &bytes)?;
    Ok(())
}

/// Marks the file as one of an open tier, durably: after a crash its content is void.
pub(super) fn mark_open(device: &dyn Device, layout: &Layout) -> Result<(), TierError> {
    if device.length() < layout.slots_begin() {
        device.grow(layout.slots_begin())?;
    }
    write_header(device, layout, None)?;
    device.sync()?;
    // An earlier tier in the same file may have been larger.
    device.shrink(layout.end())?;
    Ok(())
}

/// Writes the directory and marks the file as one of a closed tier, durably. Every copy must have
/// been written.
pub(super) fn mark_closed(
    device: &dyn Device,
    layout: &Layout,
    entries: &[Entry],
    identity: Identity,
) -> Result<(), TierError> {
    let length = (entries.len() * ENTRY_BYTES as usize).next_multiple_of(HEADER_BYTES as usize);
    let mut bytes = AlignedBuffer::new(length);
    for (entry, place) in entries.iter().zip(bytes.chunks_exact_mut(ENTRY_BYTES as usize)) {
        entry.write(place);
    }
    for (at, piece) in bytes.chunks(1 << 20).enumerate() {
        device.write(HEADER_BYTES + ((at as u64) << 20), piece)?;
    }
    // The header comes last: a file whose header states this has a complete directory.
    device.sync()?;
    let (entries, checksum) = (entries.len() as u64, xxh3_64(&bytes));
    write_header(device, layout, Some(&Closed { entries, checksum, identity }))?;
    device.sync()?;
    Ok(())
}

/// Reads the directory of a tier that was closed above the same storage contents. Returns an empty
/// one if it is invalid.
///
/// # Errors
/// The device fails, or the file belongs to something else.
pub(super) fn load(
    device: &dyn Device,
    layout: &Layout,
    identity: Option<Identity>,
) -> Result<Vec<Entry>, TierError> {
    let path = || device.path().to_path_buf();
    if device.length() == 0 {
        return Ok(Vec::new());
    }
    if is_unmarked(device)? {
        return Ok(Vec::new());
    }
    if device.length() < HEADER_BYTES {
        return Err(TierError::NotATier { path: path() });
    }
    let mut header = AlignedBuffer::new(HEADER_BYTES as usize);
    device.read(0, &mut header)?;
    if header.get(8..16) == Some(&BACK_MAGIC[..]) {
        return Ok(Vec::new());
    }
    if header.get(8..16) != Some(&MAGIC[..]) {
        return Err(TierError::NotATier { path: path() });
    }
    let found = u32_at(&header, 16);
    if found > VERSION {
        return Err(TierError::Version { path: path(), found, known: VERSION });
    }
    let is_sound = u64_at(&header, 0) == xxh3_64(&header[8..]);
    let slots = u64_at(&header, 32);
    let is_same = (u32_at(&header, 20), u32_at(&header, 24), slots)
        == (layout.slot_bytes, layout.unit, u64::from(layout.slots));
    let is_closed = u32_at(&header, 28) == 1;
    let was: Option<Identity> = header.get(56..USED).and_then(|id| id.try_into().ok());
    let entries = u64_at(&header, 40);
    let is_at_its_time = was == identity;
    let is_of_use = is_sound && is_same && is_closed && identity.is_some() && is_at_its_time;
    if !is_of_use || entries > slots {
        return Ok(Vec::new());
    }
    let length = (entries * ENTRY_BYTES).next_multiple_of(HEADER_BYTES);
    if HEADER_BYTES + length > device.length() {
        return Ok(Vec::new());
    }
    let mut bytes = AlignedBuffer::new(length as usize);
    for (at, piece) in bytes.chunks_mut(1 << 20).enumerate() {
        device.read(HEADER_BYTES + ((at as u64) << 20), piece)?;
    }
    if xxh3_64(&bytes) != u64_at(&header, 48) {
        let path = path().display().to_string();
        tracing::warn!(path, "the second tier's directory is damaged: it starts empty");
        return Ok(Vec::new());
    }
    let all = bytes.chunks_exact(ENTRY_BYTES as usize).take(entries as usize).map(Entry::read);
    let is_possible = |entry: &Entry| {
        let end = layout.slot_offset(entry.slot).checked_add(u64::from(layout.slot_bytes));
        entry.slot < layout.slots
            && entry.length <= layout.slot_bytes
            && entry.length > 0
            && end.is_some_and(|end| end <= device.length())
            && entry.offset.is_multiple_of(u64::from(layout.unit).max(1))
    };
    Ok(all.filter(is_possible).collect())
}

/// Returns `true` if `device` holds something other than a tier.
pub(super) fn is_other_file(device: &dyn Device) -> Result<bool, TierError> {
    if is_unmarked(device)? {
        return Ok(false);
    }
    if device.length() < HEADER_BYTES {
        return Ok(true);
    }
    let mut header = AlignedBuffer::new(HEADER_BYTES as usize);
    device.read(0, &mut header)?;
    Ok(![MAGIC, BACK_MAGIC].iter().any(|magic| header.get(8..16) == Some(&magic[..])))
}

/// Returns `true` if `device` holds only zeros, which an interrupted creation leaves. An end of
/// less than a block cannot be read, and might hold a tier made on a device of smaller blocks.
fn is_unmarked(device: &dyn Device) -> Result<bool, TierError> {
    let mut block = AlignedBuffer::new(HEADER_BYTES as usize);
    let length = device.length();
    if !length.is_multiple_of(device.alignment().offset.max(1)) {
        return Ok(false);
    }
    for offset in (0..length).step_by(block.len()) {
        let there = (length - offset).min(HEADER_BYTES) as usize;
        let block = block.get_mut(..there).unwrap_or(&mut []);
        device.read(offset, block)?;
        if block.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_device::{Alignment, DeviceError, MemoryDevice};

    fn layout() -> Layout {
        Layout::within(1 << 20, 4096, 512)
    }

    fn closed(entries: &[Entry]) -> Vec<u8> {
        let device = MemoryDevice::from_bytes(&[]);
        mark_open(&device, &layout()).unwrap();
        device.grow(layout().end()).unwrap();
        mark_closed(&device, &layout(), entries, [7; 32]).unwrap();
        device.to_bytes()
    }

    fn entries() -> Vec<Entry> {
        let entry = |at: u32| Entry {
            page: u64::from(at) << 33,
            offset: u64::from(at) * 512,
            checksum: 5,
            order: u64::from(at),
            length: 512,
            slot: at,
            mark: 1,
        };
        (0..200).map(entry).collect()
    }

    #[test]
    fn a_directory_comes_back_as_it_was_closed_above_the_same_storage_only() {
        let bytes = closed(&entries());
        let device = MemoryDevice::from_bytes(&bytes);
        assert_eq!(load(&device, &layout(), Some([7; 32])).unwrap(), entries());
        for identity in [None, Some([8; 32])] {
            assert_eq!(load(&device, &layout(), identity).unwrap(), []);
        }
        let others = [
            Layout { slots: layout().slots - 1, ..layout() },
            Layout { slot_bytes: 8192, ..layout() },
            Layout { unit: 4096, ..layout() },
        ];
        for other in others {
            assert_eq!(load(&device, &other, Some([7; 32])).unwrap(), []);
        }
        mark_open(&device, &layout()).unwrap();
        assert_eq!(load(&device, &layout(), Some([7; 32])).unwrap(), []);
        let small = Layout { slots: 20, ..layout() };
        mark_open(&device, &small).unwrap();
        assert!(device.length() <= small.end(), "{}", device.length());
    }

    #[test]
    fn any_damage_gives_an_empty_cache_or_the_whole_one_or_an_error() {
        let bytes = closed(&entries());
        let mut random = fastrand::Rng::with_seed(20);
        let end = layout().slots_begin() as usize;
        for _ in 0..3000 {
            let mut damaged = bytes.clone();
            let at = if random.bool() { random.usize(..end) } else { random.usize(..USED) };
            damaged[at] ^= 1 << random.u32(..8);
            let found = load(&MemoryDevice::from_bytes(&damaged), &layout(), Some([7; 32]));
            if let Ok(found) = found {
                assert!(found.is_empty() || found == entries(), "byte {at}");
            }
        }
        for length in [1, 100, 4095, 4096, 4097, 8192, end - 1] {
            let device = MemoryDevice::from_bytes(&bytes[..length]);
            if let Ok(found) = load(&device, &layout(), Some([7; 32])) {
                assert!(found.is_empty());
            }
        }
    }

    #[test]
    fn what_is_no_tier_is_left_alone() {
        for length in [0, 10, 4096, 8200] {
            let zeros = MemoryDevice::from_bytes(&vec![0; length]);
            assert_eq!(load(&zeros, &layout(), Some([7; 32])).unwrap(), []);
        }
        let late = [vec![0; 8192], vec![1]].concat();
        for bytes in [vec![1; 10], late, b"MILLPOND".repeat(1024)] {
            let error = load(&MemoryDevice::from_bytes(&bytes), &layout(), None).unwrap_err();
            assert!(matches!(error, TierError::NotATier { .. }), "{error}");
        }
    }

    /// A device that can only be read in whole blocks.
    struct Blocks(MemoryDevice, u64);

    impl Device for Blocks {
        fn path(&self) -> &std::path::Path {
            self.0.path()
        }

        fn length(&self) -> u64 {
            self.0.length()
        }

        fn alignment(&self) -> Alignment {
            Alignment { memory: 1, offset: self.1 }
        }

        fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
            let (length, alignment) = (bytes.len() as u64, self.1);
            if !offset.is_multiple_of(alignment) || !length.is_multiple_of(alignment) {
                let path = self.path().to_path_buf();
                return Err(DeviceError::Misaligned { path, offset, length, alignment });
            }
            self.0.read(offset, bytes)
        }

        fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
            self.0.write(offset, bytes)
        }

        fn sync(&self) -> Result<(), DeviceError> {
            self.0.sync()
        }

        fn grow(&self, length: u64) -> Result<(), DeviceError> {
            self.0.grow(length)
        }
    }

    /// A drive with blocks of 512 bytes was replaced by one with 4096: the tier's own file was "no
    /// second tier".
    #[test]
    fn a_tier_of_small_slots_is_known_on_a_device_of_larger_blocks() {
        let layout = Layout { slot_bytes: 512, unit: 512, slots: 203 };
        let device = MemoryDevice::from_bytes(&[]);
        mark_open(&device, &layout).unwrap();
        device.grow(layout.end()).unwrap();
        mark_closed(&device, &layout, &entries(), [7; 32]).unwrap();
        let bytes = device.to_bytes();
        assert!(!bytes.len().is_multiple_of(4096));
        let blocks = |bytes: &[u8]| Blocks(MemoryDevice::from_bytes(bytes), 4096);
        assert_eq!(load(&blocks(&bytes), &layout, Some([7; 32])).unwrap(), entries());
        assert!(!is_other_file(&blocks(&bytes)).unwrap());
        // Anything that is not a tier, or may not be one, is left alone there, too.
        for other in [&[7; 5000][..], &[0; 5000], &[7; 100], &[0; 100]] {
            let error = load(&blocks(other), &layout, None).unwrap_err();
            assert!(matches!(error, TierError::NotATier { .. }), "{error}");
            assert!(is_other_file(&blocks(other)).unwrap());
        }
    }
}
