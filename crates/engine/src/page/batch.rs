//! Copies of entries that are stored together in an unordered structure: those of a bucket or of a
//! data page.

use crate::page::PageBuffer;

/// A copy of an entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BatchEntry {
    /// First part of the entry's key, in the order in which the structure keeps its entries: the
    /// hash of a key, or the id of a record.
    pub position: u64,
    /// Rest of the entry's key.
    pub key: Vec<u8>,
    /// Value of the entry.
    pub value: Vec<u8>,
}

/// Entries that were copied together, and memory for the next copy.
#[derive(Default)]
pub struct Batch {
    /// The entries.
    pub entries: Vec<BatchEntry>,
    page: Option<PageBuffer>,
    /// Number of batches so far. Every few batches the following ones are prefetched.
    steps: usize,
}

impl Batch {
    /// Begins the next batch; returns a buffer for a page, and the number of batches before this
    /// one.
    pub(crate) fn begin(&mut self, page_size: usize) -> (PageBuffer, usize) {
        self.entries.clear();
        let step = self.steps;
        self.steps += 1;
        (self.page.take().unwrap_or_else(|| PageBuffer::new(page_size)), step)
    }

    /// Ends the batch, and keeps the buffer for the next one.
    pub(crate) fn end(&mut self, page: PageBuffer) {
        self.page = Some(page);
    }
}
