//! A device that keeps writes in memory, over a read-only one. It shows the effect of a recovery on
//! a store, without changing the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::RwLock;

use super::device::Alignment;
use super::device::Device;
use super::error::DeviceError;

/// Bytes of a piece of memory. A partial write copies the rest from below.
const PIECE: u64 = 4096;

/// A device that keeps writes in memory, above a read-only device.
pub struct OverlayDevice {
    below: Arc<dyn Device>,
    /// Pieces by number. `None` means zeros, so that a log that is cut needs no memory.
    pieces: RwLock<HashMap<u64, Option<Box<[u8]>>>>,
    length: AtomicU64,
}

impl std::fmt::Debug for OverlayDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OverlayDevice").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl OverlayDevice {
    /// Creates a device with the contents of `below`, which must not change in the meantime.
    pub fn new(below: Arc<dyn Device>) -> OverlayDevice {
        let length = AtomicU64::new(below.length());
        OverlayDevice { below, pieces: RwLock::default(), length }
    }

    /// Returns the bytes in memory.
    pub fn bytes_kept(&self) -> u64 {
        let pieces = self.pieces.read().past_poison();
        pieces.values().flatten().count() as u64 * PIECE
    }

    fn check(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let device_length = self.length();
        if offset.checked_add(length).is_none_or(|end| end > device_length) {
            let path = self.path().to_path_buf();
            return Err(DeviceError::PastEnd { path, offset, length, device_length });
        }
        Ok(())
    }

    /// Reads piece `at` of `below`, with zeros past its end.
    fn piece_below(&self, at: u64) -> Result<Box<[u8]>, DeviceError> {
        let mut piece = vec![0; PIECE as usize].into_boxed_slice();
        let there = self.below.length().saturating_sub(at * PIECE).min(PIECE);
        if there > 0 {
            self.below.read(at * PIECE, &mut piece[..there as usize])?;
        }
        Ok(piece)
    }

    /// Calls `each` with every piece that the range touches: its number, the range in it, and the
    /// bytes before it.
    fn visit(
        offset: u64,
        length: u64,
        mut each: impl FnMut(u64, std::ops::Range<usize>, usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let (at, from) = ((offset + done) / PIECE, (offset + done) % PIECE);
            let count = (PIECE - from).min(length - done);
            each(at, from as usize..(from + count) as usize, done as usize)?;
            done += count;
        }
        Ok(())
    }
}

impl Device for OverlayDevice {
    fn path(&self) -> &Path {
        self.below.path()
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    fn alignment(&self) -> Alignment {
        self.below.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check(offset, bytes.len() as u64)?;
        let pieces = self.pieces.read().past_poison();
        Self::visit(offset, bytes.len() as u64, |at, range, done| {
            let place = &mut bytes[done..done + range.len()];
            match pieces.get(&at) {
                Some(Some(piece)) => place.copy_from_slice(&piece[range]),
                Some(None) => place.fill(0),
                None => place.copy_from_slice(&self.piece_below(at)?[range]),
            }
            Ok(())
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check(offset, bytes.len() as u64)?;
        let mut pieces = self.pieces.write().past_poison();
        Self::visit(offset, bytes.len() as u64, |at, range, done| {
            let source = &bytes[done..done + range.len()];
            if range.len() as u64 == PIECE && source.iter().all(|byte| *byte == 0) {
                pieces.insert(at, None);
                return Ok(());
            }
            let piece = match pieces.entry(at) {
                Entry::Occupied(piece) => piece.into_mut(),
                Entry::Vacant(place) => place.insert(Some(self.piece_below(at)?)),
            };
            let piece = piece.get_or_insert_with(|| vec![0; PIECE as usize].into_boxed_slice());
            piece[range].copy_from_slice(source);
            Ok(())
        })
    }

    fn sync(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.length.fetch_max(length, Ordering::AcqRel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn what_is_written_is_read_and_nothing_of_it_is_below() {
        let below = Arc::new(MemoryDevice::from_bytes(&[7; 10_000]));
        let overlay = OverlayDevice::new(below.clone());
        overlay.write(4090, &[1; 20]).unwrap();
        overlay.grow(20_000).unwrap();
        overlay.write(15_000, &[2; 5000]).unwrap();
        let mut bytes = vec![0; 20_000];
        overlay.read(0, &mut bytes).unwrap();
        let expected = |at: usize| match at {
            4090..4110 => 1,
            0..10_000 => 7,
            15_000.. => 2,
            _ => 0,
        };
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
        assert_eq!(below.to_bytes(), [7; 10_000]);
        assert!(overlay.read(19_999, &mut [0; 2]).is_err() && overlay.write(20_000, &[1]).is_err());
        assert_eq!(overlay.bytes_kept(), 4 * PIECE);
        overlay.write(4096, &[0; 8192]).unwrap();
        assert_eq!(overlay.bytes_kept(), 3 * PIECE, "zeros take no memory");
        overlay.write(5000, &[3]).unwrap();
        overlay.read(0, &mut bytes).unwrap();
        assert!(bytes[4096..12288].iter().enumerate().all(|(i, b)| (i == 904) == (*b != 0)));
        assert_eq!((overlay.bytes_kept(), bytes[4095]), (4 * PIECE, 1));
    }
}
