//! Reads of many pages at once, each with its own result.

use millpond_base::PageId;
use millpond_device::AlignedBuffer;

use crate::io::{PageRead, PageStore, ReadError};
use crate::page::View;

/// Number of pages read together.
pub(crate) const BATCH: usize = 64;

/// Buffers for a batch of pages.
pub(crate) struct PageReader {
    buffers: Vec<AlignedBuffer>,
    page_size: usize,
}

impl PageReader {
    pub(crate) fn new(page_size: usize) -> PageReader {
        PageReader { buffers: Vec::new(), page_size }
    }

    /// Reads up to [`BATCH`] pages; the results are in the order of `pages`.
    pub(crate) fn read(
        &mut self,
        store: &PageStore,
        pages: &[PageId],
    ) -> Vec<Result<(), ReadError>> {
        while self.buffers.len() < pages.len() {
            self.buffers.push(AlignedBuffer::new(self.page_size));
        }
        let buffers = self.buffers.iter_mut().zip(pages);
        let mut batch: Vec<PageRead<'_>> =
            buffers.map(|(buffer, &page)| PageRead::new(page, &mut buffer[..])).collect();
        store.read_batch(&mut batch);
        batch.into_iter().map(|read| read.result).collect()
    }

    /// Returns page `i` of the last batch.
    pub(crate) fn view(&self, i: usize) -> View<'_> {
        View::of(&self.buffers[i])
    }

    /// Returns the bytes of page `i` of the last batch.
    pub(crate) fn bytes(&self, i: usize) -> &[u8] {
        &self.buffers[i]
    }
}
