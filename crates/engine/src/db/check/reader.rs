//! Reading many pages of a store at once, each with its own result.

use millpond_base::PageId;

use crate::io::{AlignedBuffer, PageRead, PageStore, ReadError};
use crate::page::View;

/// Pages read together.
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

    /// Reads up to [`BATCH`] pages; answers in the order of `pages`.
    pub(crate) fn read(
        &mut self,
        store: &PageStore,
        pages: &[PageId],
    ) -> Vec<Result<(), ReadError>> {
        while self.buffers.len() < pages.len() {
            self.buffers.push(AlignedBuffer::new(self.page_size));
        }
        // The batch comes back in the order of pages; where a buffer lies tells which it was.
        let mut places = Vec::with_capacity(pages.len());
        let mut batch: Vec<PageRead<'_>> = Vec::with_capacity(pages.len());
        for (i, (buffer, &page)) in self.buffers.iter_mut().zip(pages).enumerate() {
            let bytes = &mut buffer[..];
            places.push((bytes.as_ptr().addr(), i));
            batch.push(PageRead::new(page, bytes));
        }
        store.read_batch(&mut batch);
        places.sort_unstable();
        let mut results = vec![Ok(()); pages.len()];
        for read in batch {
            let place = places.binary_search_by_key(&read.bytes.as_ptr().addr(), |place| place.0);
            if let Some((_, i)) = place.ok().and_then(|at| places.get(at)) {
                results[*i] = read.result;
            }
        }
        results
    }

    /// Page `i` of the last batch.
    pub(crate) fn view(&self, i: usize) -> View<'_> {
        View::of(&self.buffers[i])
    }

    /// The bytes of page `i` of the last batch.
    pub(crate) fn bytes(&self, i: usize) -> &[u8] {
        &self.buffers[i]
    }
}
