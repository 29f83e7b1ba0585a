//! Data loaded once, with which many runs start.

use millpond_base::PageId;
use millpond_device::MemoryDevice;

/// The device of a store after loading: see
/// [`Instance::image`](crate::instance::Instance::image).
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The trees.
    pub(crate) roots: Vec<(String, PageId)>,
    pub(crate) page_size: u32,
    pub(crate) pages: u64,
    pub(crate) rows: u64,
}

impl Image {
    /// Returns a new device with the data, for one run.
    pub(crate) fn device(&self) -> MemoryDevice {
        MemoryDevice::from_bytes(&self.bytes)
    }

    /// Returns the number of pages of the data.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the bytes per page.
    pub fn page_size(&self) -> u32 {
        self.page_size
    }
}
