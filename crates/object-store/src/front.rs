//! Asynchronous access to the tier: blocking threads do its device I/O.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use millpond_base::{PageId, Reason};
use millpond_device::{AlignedBuffer, Device, Tag, WriteRequest};
use millpond_tier::{Answer, Asked, SecondTier, Ticket};
use object_store::PutPayload;

/// Alignment of the lengths of copies, enough for direct I/O.
const BLOCK: u64 = 4096;
/// Parts per write.
const BATCH: usize = 16;

/// Result of a request for a part.
pub(crate) enum Part {
    Copy(Bytes),
    Absent(Option<Ticket>),
}

/// A tier whose pages are parts.
#[derive(Clone)]
pub(crate) struct Front {
    pub tier: Arc<SecondTier>,
    pub part: u64,
}

struct Owned(AlignedBuffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Runs work that may wait for a device; `None` if it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.ok(),
        Err(_) => Some(work()),
    }
}

impl Front {
    /// Returns the length of part `index` in an object of `size` bytes.
    pub fn length(&self, size: u64, index: u64) -> u64 {
        size.saturating_sub(index * self.part).min(self.part)
    }

    fn place(&self, number: u64, length: u64) -> Range<u64> {
        let start = number * self.part;
        start..start + length.next_multiple_of(BLOCK).min(self.part)
    }

    /// Asks the cache for parts, each given as its number and length.
    pub async fn ask(&self, parts: Vec<(u64, u64)>, is_quiet: bool) -> Vec<Part> {
        let (front, count) = (self.clone(), parts.len());
        let work = move || {
            let asked: Vec<Asked> = (parts.iter())
                .map(|(number, length)| Asked {
                    page: PageId(*number),
                    range: front.place(*number, *length),
                    is_quiet,
                })
                .collect();
            let answers = front.tier.ask(&asked).into_iter().zip(parts);
            let part = |(answer, (_, length))| match answer {
                Answer::Copy(bytes) => {
                    let bytes = Bytes::from_owner(Owned(bytes));
                    Part::Copy(bytes.slice(..(length as usize).min(bytes.len())))
                }
                Answer::Absent(ticket) => Part::Absent(ticket),
            };
            answers.map(part).collect()
        };
        let answers = blocking(work).await;
        answers.unwrap_or_else(|| (0..count).map(|_| Part::Absent(None)).collect())
    }

    /// Keeps parts that were fetched.
    pub async fn keep(&self, fetched: Vec<(Ticket, Bytes)>) {
        if fetched.is_empty() {
            return;
        }
        let front = self.clone();
        let work = move || {
            let padded: Vec<(Ticket, AlignedBuffer)> = (fetched.into_iter())
                .map(|(ticket, bytes)| {
                    let length = (bytes.len() as u64).next_multiple_of(BLOCK).min(front.part);
                    let mut copy = AlignedBuffer::new(length as usize);
                    if let Some(place) = copy.get_mut(..bytes.len()) {
                        place.copy_from_slice(&bytes);
                    }
                    (ticket, copy)
                })
                .collect();
            let (tickets, copies): (Vec<Ticket>, Vec<AlignedBuffer>) = padded.into_iter().unzip();
            front.tier.keep(tickets.into_iter().zip(copies.iter().map(|copy| &copy[..])).collect());
        };
        blocking(work).await;
    }

    /// Copies written bytes into the cache on the calling thread; see `Reservation::offer`.
    pub fn offer_now(&self, first: u64, payload: &PutPayload, reason: Reason) {
        let mut parts = Parts { chunks: payload.iter().collect(), at: 0, offset: 0 };
        let mut number = first;
        loop {
            let copies: Vec<AlignedBuffer> =
                std::iter::from_fn(|| parts.next(self.part)).take(BATCH).collect();
            if copies.is_empty() {
                return;
            }
            let slices: Vec<IoSlice<'_>> = copies.iter().map(|copy| IoSlice::new(copy)).collect();
            let tags: Vec<Tag> = (number..)
                .take(copies.len())
                .map(|number| Tag { page: PageId(number), reason })
                .collect();
            let request = WriteRequest::new(number * self.part, &slices).tagged(&tags);
            self.tier.write_batch(&mut [request]);
            number += copies.len() as u64;
        }
    }

    /// Forgets parts that are no longer needed.
    pub fn forget_parts(&self, numbers: Range<u64>) {
        self.tier.forget(numbers);
    }

    /// Forgets parts of several objects.
    pub fn forget(&self, numbers: impl IntoIterator<Item = Range<u64>>) {
        numbers.into_iter().for_each(|numbers| self.forget_parts(numbers));
    }
}

/// Cuts chunks of any length into parts.
struct Parts<'p> {
    chunks: Vec<&'p Bytes>,
    at: usize,
    offset: usize,
}

impl Parts<'_> {
    fn next(&mut self, part: u64) -> Option<AlignedBuffer> {
        let ahead = self.chunks.get(self.at..).unwrap_or(&[]);
        let left = ahead.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        let length = left.saturating_sub(self.offset as u64).min(part);
        if length == 0 {
            return None;
        }
        let mut copy = AlignedBuffer::new(length.next_multiple_of(BLOCK).min(part) as usize);
        let mut rest = copy.get_mut(..length as usize).unwrap_or(&mut []);
        while !rest.is_empty() {
            let chunk = self.chunks.get(self.at)?.get(self.offset..)?;
            let (now, later) = rest.split_at_mut(chunk.len().min(rest.len()));
            now.copy_from_slice(chunk.get(..now.len())?);
            self.offset += now.len();
            if now.len() == chunk.len() {
                (self.at, self.offset) = (self.at + 1, 0);
            }
            rest = later;
        }
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_any_length_are_cut_into_padded_parts() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let chunks: Vec<Bytes> = (0..random.usize(0..6))
                .map(|_| (0..random.usize(0..20_000)).map(|_| random.u8(..)).collect())
                .collect();
            let all: Vec<u8> = chunks.iter().flatten().copied().collect();
            let mut parts = Parts { chunks: chunks.iter().collect(), at: 0, offset: 0 };
            let cut: Vec<AlignedBuffer> = std::iter::from_fn(|| parts.next(8192)).collect();
            assert_eq!(cut.len(), all.len().div_ceil(8192));
            for (copy, bytes) in cut.iter().zip(all.chunks(8192)) {
                assert_eq!(copy.len(), bytes.len().next_multiple_of(4096));
                assert_eq!(&copy[..bytes.len()], bytes);
                assert!(copy[bytes.len()..].iter().all(|byte| *byte == 0));
            }
        }
    }
}
