//! Requests of a batch of pages.

use millpond_base::{PageId, Reason};

use super::store_error::ReadError;
/// A page to be read by [`PageStore::read_batch`](crate::io::PageStore::read_batch).
#[derive(Debug)]
pub struct PageRead<'a, T = ()> {
    /// The page.
    pub page: PageId,
    /// Buffer for the page: one page long.
    pub bytes: &'a mut [u8],
    /// Result of the read: written by `read_batch`.
    pub result: Result<(), ReadError>,
    /// Data of the caller, returned with the result. It is a part of the request, so that
    /// reordering a batch cannot mix up the results of pages.
    pub tag: T,
}

impl<'a> PageRead<'a> {
    /// Returns a request to read `page` into `bytes`.
    pub fn new(page: PageId, bytes: &'a mut [u8]) -> PageRead<'a> {
        PageRead::tagged(page, bytes, ())
    }
}

impl<'a, T> PageRead<'a, T> {
    /// Returns a request to read `page` into `bytes`; `tag` comes back with it.
    pub fn tagged(page: PageId, bytes: &'a mut [u8], tag: T) -> PageRead<'a, T> {
        PageRead { page, bytes, result: Ok(()), tag }
    }
}

/// A page to be written by [`PageStore::write_batch`](crate::io::PageStore::write_batch).
#[derive(Debug)]
pub struct PageWrite<'a> {
    /// The page.
    pub page: PageId,
    /// Reason of the write.
    pub reason: Reason,
    /// The page's bytes; its checksum is set.
    pub bytes: &'a mut [u8],
    /// `true` if the page was written; set by `write_batch`.
    pub written: bool,
}

impl<'a> PageWrite<'a> {
    /// Returns a request to write `page` from `bytes`.
    pub fn new(page: PageId, reason: Reason, bytes: &'a mut [u8]) -> PageWrite<'a> {
        PageWrite { page, reason, bytes, written: false }
    }
}

/// Maximum bytes of one request; further adjacent pages go into another one.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Adjacent pages.
pub(super) struct Run {
    /// Offset of the first page in bytes.
    pub(super) offset: u64,
    pub(super) count: usize,
    bytes: usize,
}

/// Joins adjacent pages into requests of bounded length; offsets and lengths come in ascending
/// order.
pub(super) fn runs(extents: impl Iterator<Item = (u64, usize)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (offset, bytes) in extents {
        debug_assert!(
            runs.last().is_none_or(|run| run.offset + run.bytes as u64 <= offset + bytes as u64),
            "the extents are in ascending order"
        );
        match runs.last_mut() {
            Some(run)
                if run.offset + run.bytes as u64 == offset
                    && run.bytes + bytes <= REQUEST_BYTES_MAX =>
            {
                run.count += 1;
                run.bytes += bytes;
            }
            _ => runs.push(Run { offset, count: 1, bytes }),
        }
    }
    runs
}
