//! Memory as a device: for tests, and for stores that need not outlive their process.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::RwLock;

use super::device::Alignment;
use super::device::Device;
use super::error::DeviceError;

/// Bytes of a chunk, each with its own lock. A multiple of every page size, so that a page is in
/// one chunk and is read and written whole.
const CHUNK: u64 = 256 << 10;

type Chunk = RwLock<Box<[u8]>>;

/// A device in memory, which grows by chunks.
#[derive(Debug)]
pub struct MemoryDevice {
    /// Locked exclusively while chunks are added, shared otherwise.
    chunks: RwLock<Vec<Chunk>>,
    length: AtomicU64,
    capacity: u64,
}

impl MemoryDevice {
    /// Returns an empty device that is full at 1 TiB.
    pub fn new() -> MemoryDevice {
        Self::with_capacity(1 << 40)
    }

    /// Returns an empty device that is full at `capacity` bytes.
    pub fn with_capacity(capacity: u64) -> MemoryDevice {
        MemoryDevice { chunks: RwLock::default(), length: AtomicU64::new(0), capacity }
    }

    /// Returns a device with the content `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> MemoryDevice {
        let device = Self::new();
        device.extend(bytes.len() as u64);
        device.visit(0, bytes.len() as u64, |chunk, range, done| {
            let mut chunk = chunk.write().past_poison();
            let count = range.len();
            chunk[range].copy_from_slice(&bytes[done..done + count]);
        });
        device
    }

    /// Returns a copy of all bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length() as usize];
        self.copy_out(0, &mut bytes);
        bytes
    }

    fn copy_out(&self, offset: u64, bytes: &mut [u8]) {
        self.visit(offset, bytes.len() as u64, |chunk, range, done| {
            let chunk = chunk.read().past_poison();
            let count = range.len();
            bytes[done..done + count].copy_from_slice(&chunk[range]);
        });
    }

    /// Calls `each` with every chunk that bytes `offset` to `offset + length` touch, the range in
    /// the chunk, and the number of bytes already visited. The range must be within the device.
    fn visit(
        &self,
        offset: u64,
        length: u64,
        mut each: impl FnMut(&Chunk, std::ops::Range<usize>, usize),
    ) {
        let chunks = self.chunks.read().past_poison();
        let mut done = 0;
        while done < length {
            let at = offset + done;
            let from = at % CHUNK;
            let count = (CHUNK - from).min(length - done);
            if let Some(chunk) = chunks.get((at / CHUNK) as usize) {
                each(chunk, from as usize..(from + count) as usize, done as usize);
            }
            done += count;
        }
    }

    fn extend(&self, length: u64) {
        let mut chunks = self.chunks.write().past_poison();
        let count = length.div_ceil(CHUNK) as usize;
        if count > chunks.len() {
            let chunk = || RwLock::new(vec![0; CHUNK as usize].into_boxed_slice());
            chunks.resize_with(count, chunk);
        }
        self.length.store(length, Ordering::Release);
    }

    fn check(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        let device_length = self.length();
        if offset.checked_add(length).is_none_or(|end| end > device_length) {
            let path = self.path().to_path_buf();
            return Err(DeviceError::PastEnd { path, offset, length, device_length });
        }
        Ok(())
    }
}

impl Default for MemoryDevice {
    fn default() -> MemoryDevice {
        MemoryDevice::new()
    }
}

impl Device for MemoryDevice {
    fn path(&self) -> &Path {
        Path::new("(memory)")
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check(offset, bytes.len() as u64)?;
        self.copy_out(offset, bytes);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check(offset, bytes.len() as u64)?;
        self.visit(offset, bytes.len() as u64, |chunk, range, done| {
            let mut chunk = chunk.write().past_poison();
            let count = range.len();
            chunk[range].copy_from_slice(&bytes[done..done + count]);
        });
        Ok(())
    }

    fn sync(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        let old = self.length();
        if length > self.capacity {
            let path = self.path().to_path_buf();
            return Err(DeviceError::DiskFull { path, offset: old, needed: length - old });
        }
        if length > old {
            self.extend(length);
        }
        Ok(())
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        let mut chunks = self.chunks.write().past_poison();
        if length >= self.length() {
            return Ok(());
        }
        chunks.truncate(length.div_ceil(CHUNK) as usize);
        // New bytes read as zeros when it grows again.
        if let Some(last) = chunks.last_mut().filter(|_| !length.is_multiple_of(CHUNK)) {
            let last = last.get_mut().past_poison();
            last[(length % CHUNK) as usize..].fill(0);
        }
        self.length.store(length, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_across_chunks_come_back() {
        let device = MemoryDevice::new();
        device.grow(3 * CHUNK + 100).unwrap();
        let bytes: Vec<u8> = (0..2 * CHUNK).map(|i| (i % 251) as u8).collect();
        device.write(CHUNK - 7, &bytes).unwrap();
        let mut back = vec![0; bytes.len()];
        device.read(CHUNK - 7, &mut back).unwrap();
        assert_eq!(back, bytes);
        let all = device.to_bytes();
        assert_eq!(all.len() as u64, 3 * CHUNK + 100);
        assert!(all[..CHUNK as usize - 7].iter().all(|&b| b == 0));
        assert_eq!(MemoryDevice::from_bytes(&all).to_bytes(), all);
    }

    #[test]
    fn what_lies_outside_is_refused_and_a_full_device_stays_usable() {
        let device = MemoryDevice::with_capacity(8192);
        device.grow(8192).unwrap();
        device.write(4096, &[1; 4096]).unwrap();
        let error = device.grow(12288).unwrap_err();
        assert!(error.is_disk_full() && error.to_string().contains("4096 more bytes"), "{error}");
        let mut bytes = [0; 10];
        for offset in [8190, 8192, u64::MAX - 3] {
            let error = device.read(offset, &mut bytes).unwrap_err();
            assert!(matches!(error, DeviceError::PastEnd { .. }), "{error}");
            assert!(device.write(offset, &bytes).is_err());
        }
        device.read(8182, &mut bytes).unwrap();
        assert_eq!(bytes, [1; 10]);
    }
}
