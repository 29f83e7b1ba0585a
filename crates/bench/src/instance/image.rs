//! Data that were loaded once, for many runs to begin with.

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
    /// A device of its own for each run.
    pub(crate) fn device(&self) -> MemoryDevice {
        MemoryDevice::from_bytes(&self.bytes)
    }

    /// Pages of the data.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> u32 {
        self.page_size
    }
}
