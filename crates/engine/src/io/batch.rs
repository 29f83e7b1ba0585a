//! Requests of a batch of pages.

use millpond_base::{PageId, Reason};

use super::store_error::ReadError;

/// A page to be read by [`PageStore::read_batch`](crate::io::PageStore::read_batch).
#[derive(Debug)]
pub struct PageRead<'a, T = ()> {
    /// The page.
    pub page: PageId,
    /// Where it goes: one page long.
    pub bytes: &'a mut [u8],
    /// How it went: written by `read_batch`.
    pub result: Result<(), ReadError>,
    /// What the caller wants to find beside the result. It travels with the request, so that no
    /// order of a batch can give one page's result to another.
    pub tag: T,
}

impl<'a> PageRead<'a> {
    /// Page `page`, to be read into `bytes`.
    pub fn new(page: PageId, bytes: &'a mut [u8]) -> PageRead<'a> {
        PageRead::tagged(page, bytes, ())
    }
}

impl<'a, T> PageRead<'a, T> {
    /// Page `page`, to be read into `bytes`; `tag` comes back with it.
    pub fn tagged(page: PageId, bytes: &'a mut [u8], tag: T) -> PageRead<'a, T> {
        PageRead { page, bytes, result: Ok(()), tag }
    }
}

/// A page to be written by [`PageStore::write_batch`](crate::io::PageStore::write_batch).
#[derive(Debug)]
pub struct PageWrite<'a> {
    /// The page.
    pub page: PageId,
    /// Why it is written.
    pub reason: Reason,
    /// The page's bytes; its checksum is set.
    pub bytes: &'a mut [u8],
    /// Whether the page was written; set by `write_batch`.
    pub written: bool,
}

impl<'a> PageWrite<'a> {
    /// Page `page`, to be written from `bytes`.
    pub fn new(page: PageId, reason: Reason, bytes: &'a mut [u8]) -> PageWrite<'a> {
        PageWrite { page, reason, bytes, written: false }
    }
}
