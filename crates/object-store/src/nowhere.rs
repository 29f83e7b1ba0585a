//! The device below the tier, which stores nothing: on a miss the caller asks the object store.

use std::path::{Path, PathBuf};

use millpond_device::{Alignment, Device, DeviceError, Errno, Operation};

/// Discards writes, which the object store already has; reads fail.
#[derive(Debug)]
pub(crate) struct Nowhere {
    pub path: PathBuf,
}

impl Device for Nowhere {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> u64 {
        u64::MAX
    }

    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Err(DeviceError::Io {
            operation: Operation::Read,
            path: self.path.clone(),
            offset,
            length: bytes.len() as u64,
            errno: Errno::NO_DEVICE,
        })
    }

    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn grow(&self, _length: u64) -> Result<(), DeviceError> {
        Ok(())
    }
}
