//! The mark at the beginning of a device whose second tier writes back.
//!
//! Such a device is incomplete: its tier's cache has the last writes. The cache therefore also
//! holds the first sector, which describes the store, and this mark takes its place. A program
//! that opens the device alone finds no store, but a message that says where the rest is.
//!
//! ```text
//! offset size
//!      0    8  checksum of the rest of the 512 bytes, xxh3
//!      8    8  magic: "MILLBASE"
//!     16    4  format version
//!     20    4  bytes of a page
//!     24    4  what pages' places are multiples of, in bytes
//!     28    4  bytes of the name of the cache
//!     32   16  uuid of the pair
//!     48    8  generation: how often the pair was opened
//!     56  456  the cache's name, where it was opened last; cut off
//! ```
//! Integers are little-endian. A drive writes a sector of 512 bytes whole or not at all, and
//! nothing else changes when the mark is set or removed: the device has its own first sector or
//! the mark.

use std::path::PathBuf;

use millpond_base::little_endian::{u32_at, u64_at};
use millpond_device::{AlignedBuffer, Device, DeviceError};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a mark.
pub const MARK_BYTES: usize = 512;
const MAGIC: &[u8; 8] = b"MILLBASE";
const VERSION: u32 = 1;
const NAME: usize = 56;

/// States that a cache has the rest of a device's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackMark {
    /// Id of the pair of a device and a cache.
    pub uuid: [u8; 16],
    /// Number of times the pair was opened.
    pub generation: u64,
    /// Maximum bytes of a page.
    pub page_bytes: u32,
    /// Places and lengths of pages are multiples of this number of bytes.
    pub unit: u32,
    /// Path of the cache when it was last open.
    pub cache: PathBuf,
}

impl BackMark {
    /// Writes the mark over the first sector of `sector`, which may be longer.
    pub fn write(&self, sector: &mut [u8]) {
        let Some(sector) = sector.get_mut(..MARK_BYTES) else { return };
        let name = self.cache.as_os_str().as_encoded_bytes();
        let name = name.get(..MARK_BYTES - NAME).unwrap_or(name);
        sector.fill(0);
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = sector.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(8, MAGIC);
        put(16, &VERSION.to_le_bytes());
        put(20, &self.page_bytes.to_le_bytes());
        put(24, &self.unit.to_le_bytes());
        put(28, &(name.len() as u32).to_le_bytes());
        put(32, &self.uuid);
        put(48, &self.generation.to_le_bytes());
        put(NAME, name);
        let checksum = xxh3_64(sector.get(8..).unwrap_or(&[]));
        if let Some(place) = sector.get_mut(..8) {
            place.copy_from_slice(&checksum.to_le_bytes());
        }
    }

    /// Returns the mark in these bytes, if there is one.
    pub fn parse(sector: &[u8]) -> Option<BackMark> {
        let sector = sector.get(..MARK_BYTES)?;
        let is_one = sector.get(8..16)? == MAGIC && u32_at(sector, 16) == VERSION;
        if !is_one || u64_at(sector, 0) != xxh3_64(sector.get(8..)?) {
            return None;
        }
        let name = sector.get(NAME..)?.get(..u32_at(sector, 28) as usize)?;
        Some(BackMark {
            uuid: sector.get(32..48)?.try_into().ok()?,
            generation: u64_at(sector, 48),
            page_bytes: u32_at(sector, 20),
            unit: u32_at(sector, 24),
            cache: PathBuf::from(String::from_utf8_lossy(name).into_owned()),
        })
    }

    /// Reads the mark of `device`, if it has one.
    ///
    /// # Errors
    /// The device fails.
    pub fn of(device: &dyn Device) -> Result<Option<BackMark>, DeviceError> {
        let bytes = (MARK_BYTES as u64).next_multiple_of(device.alignment().offset.max(1));
        if device.length() < bytes {
            return Ok(None);
        }
        let mut block = AlignedBuffer::new(bytes as usize);
        device.read(0, &mut block)?;
        Ok(BackMark::parse(&block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(cache: &str) -> BackMark {
        let (uuid, cache) = ([9; 16], PathBuf::from(cache));
        BackMark { uuid, generation: 77, page_bytes: 4096, unit: 512, cache }
    }

    #[test]
    fn a_mark_is_what_was_written_and_any_damage_makes_it_none() {
        let mut sector = [1; MARK_BYTES];
        assert_eq!(BackMark::parse(&sector), None);
        mark("/nvme/shop.tier").write(&mut sector);
        assert_eq!(BackMark::parse(&sector), Some(mark("/nvme/shop.tier")));
        for at in 0..MARK_BYTES {
            sector[at] ^= 4;
            assert_eq!(BackMark::parse(&sector), None, "byte {at}");
            sector[at] ^= 4;
        }
        mark(&"long".repeat(300)).write(&mut sector);
        let name = BackMark::parse(&sector).unwrap().cache;
        assert_eq!(name.as_os_str().len(), MARK_BYTES - NAME);
    }
}
