//! Copies of entries that lie together in an unordered structure: of a bucket, or of a data page.

use crate::page::PageBuffer;

/// A copy of an entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BatchEntry {
    /// Beginning of its key, in the order in which the structure keeps its entries: the hash of a
    /// key, the id of a record.
    pub position: u64,
    /// The rest of its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// Entries that were copied together, and memory for the next copy.
#[derive(Default)]
pub struct Batch {
    /// The entries.
    pub entries: Vec<BatchEntry>,
    page: Option<PageBuffer>,
    /// Batches so far: now and then those that follow are prefetched.
    steps: usize,
}

impl Batch {
    /// Begins the next one; returns a buffer for a page, and how many there were before.
    pub(crate) fn begin(&mut self, page_size: usize) -> (PageBuffer, usize) {
        self.entries.clear();
        let step = self.steps;
        self.steps += 1;
        (self.page.take().unwrap_or_else(|| PageBuffer::new(page_size)), step)
    }

    /// Takes the buffer back.
    pub(crate) fn end(&mut self, page: PageBuffer) {
        self.page = Some(page);
    }
}
