//! A look-aside cache: on a miss the caller fetches the page from its own storage, which is not a
//! device. So no thread blocks on remote storage.
//!
//! In such a tier each page has one place forever: another version of it is another page. The
//! device below only needs to accept writes.

use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;

use millpond_base::PageId;
use millpond_device::{AlignedBuffer, ReadRequest, Tag};

use crate::cache::{Fill, Found, PageLocation};
use crate::parts::{FromCache, ToCache};
use crate::second_tier::SecondTier;

/// A requested page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The page.
    pub page: PageId,
    /// Place of the page on storage, in bytes.
    pub range: Range<u64>,
    /// Set if the policy is not notified; on a miss the page is then not kept.
    pub is_quiet: bool,
}

/// Result of a lookup of a page.
#[derive(Debug)]
pub enum Answer {
    /// Copy of the page, verified by its checksum.
    Copy(AlignedBuffer),
    /// The caller reads the page from storage; with a ticket, it then offers the page to be kept.
    Absent(Option<Ticket>),
}

/// Reserved room for a page, used by [`SecondTier::keep`]. Dropping it releases the room.
pub struct Ticket {
    tier: Arc<SecondTier>,
    range: Range<u64>,
    fill: Option<Fill>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("range", &self.range).finish_non_exhaustive()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(fill) = self.fill.take() {
            self.tier.cache().filled(fill, self.range.clone(), None);
        }
    }
}

impl SecondTier {
    /// Asks for pages; the answers have the same order. Copies are read from the cache's device,
    /// and a copy with a wrong checksum counts as absent.
    pub fn ask(self: &Arc<Self>, pages: &[Asked]) -> Vec<Answer> {
        let mut found = Vec::new();
        let mut answers = self.look_for(pages, &mut found);
        if found.is_empty() {
            return answers;
        }
        let buffer = |(at, _): &(usize, Found)| {
            let range = pages.get(*at).map_or(0..0, |asked| asked.range.clone());
            (range.start, AlignedBuffer::new((range.end - range.start) as usize))
        };
        let mut buffers: Vec<(u64, AlignedBuffer)> = found.iter().map(buffer).collect();
        let mut parts: Vec<(u64, [IoSliceMut<'_>; 1])> = (buffers.iter_mut())
            .map(|(offset, bytes)| (*offset, [IoSliceMut::new(&mut bytes[..])]))
            .collect();
        let mut requests: Vec<ReadRequest<'_, '_>> = (parts.iter_mut())
            .map(|(offset, parts)| ReadRequest::new(*offset, &mut parts[..]))
            .collect();
        let copies = found.iter().enumerate();
        let copies =
            copies.map(|(at, (_, found))| FromCache { request: at, part: 0, found: *found });
        let lost = self.read_copies(&mut requests, copies.collect());
        drop(requests);
        drop(parts);
        for (number, ((at, _), (_, bytes))) in found.into_iter().zip(buffers).enumerate() {
            if let Some(answer) = answers.get_mut(at).filter(|_| !lost.contains(&(number, 0))) {
                *answer = Answer::Copy(bytes);
            }
        }
        answers
    }

    /// Consults the policy for [`SecondTier::ask`]; `found` gets the copies, each with its page's
    /// index in `pages`.
    fn look_for(self: &Arc<Self>, pages: &[Asked], found: &mut Vec<(usize, Found)>) -> Vec<Answer> {
        if self.is_off() {
            return pages.iter().map(|_| Answer::Absent(None)).collect();
        }
        let mut cache = self.cache();
        let look = |(at, asked): (usize, &Asked)| {
            let range = asked.range.clone();
            let location = match (self.has_slot(&range), asked.is_quiet) {
                (false, _) => PageLocation::Storage(None),
                (true, true) => {
                    let copy = cache.peek(asked.page, range.clone());
                    copy.map_or(PageLocation::Storage(None), PageLocation::Cache)
                }
                (true, false) => cache.read(Tag::read(asked.page), range.clone()),
            };
            match location {
                PageLocation::Cache(copy) => {
                    found.push((at, copy));
                    Answer::Absent(None)
                }
                PageLocation::Storage(fill) => {
                    let ticket = |fill| Ticket { tier: self.clone(), range, fill: Some(fill) };
                    Answer::Absent(fill.map(ticket))
                }
            }
        };
        pages.iter().enumerate().map(look).collect()
    }

    /// Keeps pages that were read from storage, each with the requested length.
    pub fn keep(&self, kept: Vec<(Ticket, &[u8])>) {
        let mut bytes = Vec::with_capacity(kept.len());
        let mut fills = Vec::with_capacity(kept.len());
        for (mut ticket, copy) in kept {
            let range = ticket.range.clone();
            let is_whole = copy.len() as u64 == range.end - range.start;
            if let Some(fill) = ticket.fill.take_if(|_| is_whole) {
                fills.push(ToCache { request: bytes.len(), part: 0, range, fill });
                bytes.push(copy);
            }
        }
        self.fill(fills, |to| bytes.get(to.request).copied());
    }

    /// Frees the room of pages that are no longer needed.
    pub fn forget(&self, pages: Range<u64>) {
        let mut cache = self.cache();
        for page in cache.pages_within(pages) {
            cache.forget(page);
        }
    }
}
