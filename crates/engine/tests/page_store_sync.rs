//! Syncs of the page store that run beside each other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond_device::{Alignment, Device, DeviceError, Errno, MemoryDevice, Operation};

use crate::page_store::write;

/// A device that loses a write and tells of it once, as a kernel does: to the first sync, which
/// returns only after others had time to begin and end.
struct TellsOnce {
    inner: MemoryDevice,
    told: AtomicBool,
    ended: AtomicBool,
}

impl Device for TellsOnce {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn length(&self) -> u64 {
        self.inner.length()
    }
    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner.write(offset, bytes)
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.inner.grow(length)
    }
    fn sync(&self) -> Result<(), DeviceError> {
        if self.told.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        for _ in 0..100_000 {
            if self.ended.load(Ordering::Acquire) {
                break;
            }
            std::thread::yield_now();
        }
        Err(DeviceError::Io {
            operation: Operation::Sync,
            path: self.path().to_path_buf(),
            offset: 0,
            length: self.length(),
            errno: Errno::IO,
        })
    }
}

#[test]
fn a_sync_beside_one_that_fails_confirms_nothing() {
    let device = Arc::new(TellsOnce {
        inner: MemoryDevice::new(),
        told: AtomicBool::new(true),
        ended: AtomicBool::new(false),
    });
    let store = PageStore::create_on(device.clone(), PageSize::KIB_4).unwrap();
    let id = store.allocate().unwrap();
    write(&store, id, 1).unwrap();
    device.told.store(false, Ordering::Release);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| store.sync());
        while !device.told.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let second = store.sync();
        device.ended.store(true, Ordering::Release);
        assert!(second.is_err(), "what the kernel lost was confirmed");
        assert!(first.join().unwrap().is_err());
    });
}
