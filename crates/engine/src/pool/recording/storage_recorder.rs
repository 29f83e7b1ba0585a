//! Records the pool's requests to storage, as a second tier below it would see them (li 2.1).
//!
//! Page reads and writes are recorded when storage has completed them, each write with its reason.
//! *Dsync* requests (li 4.3.2) are recorded when a checkpoint is about to make earlier writes
//! durable. One mutex puts all of them in order. Its cost is negligible beside a read or a write,
//! and it is not taken while nothing is recorded.
//!
//! The order is right for each page. A write is recorded before its frame can be evicted, and so
//! before the page can be read again. A read is recorded before a thread sees the page. Between
//! pages it is the order in which storage completed them.
//!
//! Memory is one batch, and one bit per page, set if the page was written since the last dsync.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond_base::{Lsn, Mark, PageId, PageKind, Reason};

use crate::page::{PageHeader, PageType};

/// Number of requests that are handed to the sink at a time.
const BATCH: usize = 4096;

/// A request to storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StorageRequest {
    /// The page.
    pub page: PageId,
    /// Kind of request (read, write or dsync), its reason, and the page's kind, without a depth.
    pub mark: Mark,
    /// The end of the log at that time; 0 without a log.
    pub lsn: Lsn,
    /// Of a read or write, the end of the last record about the page; 0 if it was never logged.
    pub page_lsn: Lsn,
    /// Of a write, the start of the records without which the page could not have been recovered
    /// before; 0 without a log.
    pub rec_lsn: Lsn,
}

impl StorageRequest {
    /// Bytes of [`StorageRequest::to_bytes`].
    pub const BYTES: usize = 40;

    /// Returns the request as bytes.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mark = u64::from(self.mark.to_bits());
        let words = [self.page.0, mark, self.lsn.0, self.page_lsn.0, self.rec_lsn.0];
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads the bytes of [`StorageRequest::to_bytes`].
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> StorageRequest {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        StorageRequest {
            page: PageId(word(0)),
            mark: Mark::from_bits(word(1) as u32),
            lsn: Lsn(word(2)),
            page_lsn: Lsn(word(3)),
            rec_lsn: Lsn(word(4)),
        }
    }

    /// Returns the request to make `page` durable, as of the log's end `lsn`.
    fn dsync(page: PageId, lsn: Lsn) -> StorageRequest {
        let mark = Mark::WRITE.with_reason(Reason::Dsync);
        StorageRequest { page, mark, lsn, page_lsn: Lsn(0), rec_lsn: Lsn(0) }
    }

    /// Returns a request for a page whose header is `header`.
    pub(crate) fn of(header: &PageHeader, mark: Mark, lsn: Lsn, rec_lsn: Lsn) -> StorageRequest {
        let kind = match header.kind {
            PageType::BTREE_INNER => PageKind::BTREE_INNER,
            PageType::BTREE_LEAF => PageKind::BTREE_LEAF,
            _ => PageKind::OTHER,
        };
        let mark = mark.with_kind(kind, 0);
        StorageRequest { page: header.page, mark, lsn, page_lsn: header.lsn, rec_lsn }
    }
}

/// Receives requests: one batch at a time, in their order.
pub trait StorageSink: Send {
    /// Takes requests; an error ends the recording.
    ///
    /// # Errors
    /// The reason why they could not be written, in words.
    fn take(&mut self, requests: &[StorageRequest]) -> Result<(), String>;
}

/// Recorded requests, and their sink.
struct Drain {
    sink: Box<dyn StorageSink>,
    batch: Vec<StorageRequest>,
    recorded: u64,
    /// One bit per page that was written and not asked to be durable since.
    written: Vec<u64>,
    error: Option<String>,
}

impl Drain {
    fn push(&mut self, request: StorageRequest) {
        if self.error.is_some() {
            return;
        }
        if request.mark.is_write() && !request.mark.is_dsync() {
            let at = (request.page.0 / 64) as usize;
            if at >= self.written.len() {
                self.written.resize(at + 1, 0);
            }
            if let Some(word) = self.written.get_mut(at) {
                *word |= 1 << (request.page.0 % 64);
            }
        }
        self.batch.push(request);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        match self.sink.take(&self.batch) {
            Ok(()) => self.recorded += self.batch.len() as u64,
            Err(error) => self.error = Some(error),
        }
        self.batch.clear();
    }
}

/// Records the pool's requests to storage while it is on.
#[derive(Default)]
pub struct StorageRecorder {
    is_on: AtomicBool,
    drain: Mutex<Option<Drain>>,
}

impl StorageRecorder {
    fn drain(&self) -> MutexGuard<'_, Option<Drain>> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to record into `sink`. Operations may run: requests that storage completes from now
    /// on are recorded.
    pub fn start(&self, sink: Box<dyn StorageSink>) {
        let (batch, written) = (Vec::with_capacity(BATCH), Vec::new());
        *self.drain() = Some(Drain { sink, batch, recorded: 0, written, error: None });
        self.is_on.store(true, Ordering::Release);
    }

    /// Returns whether the recorder is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Ends the recording: hands the rest to the sink and drops the sink. Returns the number of
    /// recorded requests.
    ///
    /// # Errors
    /// The error that ended the recording before its time.
    pub fn stop(&self) -> Result<u64, String> {
        self.is_on.store(false, Ordering::Release);
        let Some(mut drain) = self.drain().take() else { return Ok(0) };
        if drain.error.is_none() && !drain.batch.is_empty() {
            drain.hand_over();
        }
        drain.error.map_or(Ok(drain.recorded), Err)
    }

    /// Records requests that storage has completed.
    pub(crate) fn note(&self, requests: impl Iterator<Item = StorageRequest>) {
        if let Some(drain) = self.drain().as_mut() {
            requests.for_each(|request| drain.push(request));
        }
    }

    /// Records a dsync for each of `pages`, which are about to be made durable, when the log ends
    /// at `lsn`.
    pub(crate) fn note_dsync_of(&self, pages: &[PageId], lsn: Lsn) {
        if !self.is_on() {
            return;
        }
        let mut drain = self.drain();
        let Some(drain) = drain.as_mut() else { return };
        for page in pages {
            if let Some(word) = drain.written.get_mut((page.0 / 64) as usize) {
                *word &= !(1 << (page.0 % 64));
            }
            drain.push(StorageRequest::dsync(*page, lsn));
        }
    }

    /// Records a dsync for each page written since the last time, as all writes are about to be
    /// made durable, when the log ends at `lsn`.
    pub(crate) fn note_dsync(&self, lsn: Lsn) {
        if !self.is_on() {
            return;
        }
        let mut drain = self.drain();
        let Some(drain) = drain.as_mut() else { return };
        let words = std::mem::take(&mut drain.written);
        for (at, mut word) in words.into_iter().enumerate() {
            while word != 0 {
                let page = PageId(at as u64 * 64 + u64::from(word.trailing_zeros()));
                word &= word - 1;
                drain.push(StorageRequest::dsync(page, lsn));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Into(Arc<Mutex<Vec<StorageRequest>>>, usize);

    impl StorageSink for Into {
        fn take(&mut self, requests: &[StorageRequest]) -> Result<(), String> {
            let mut all = self.0.lock().unwrap();
            if all.len() + requests.len() > self.1 {
                return Err("full".to_string());
            }
            all.extend_from_slice(requests);
            Ok(())
        }
    }

    fn request(page: u64, mark: Mark) -> StorageRequest {
        let (lsn, page_lsn, rec_lsn) = (Lsn(7), Lsn(1 << 50), Lsn(page * 3));
        StorageRequest { page: PageId(page), mark, lsn, page_lsn, rec_lsn }
    }

    #[test]
    fn a_request_comes_back_from_its_bytes() {
        for reason in [Reason::None, Reason::Synch, Reason::Dsync] {
            let mark = Mark::WRITE.with_reason(reason).with_kind(PageKind::BTREE_LEAF, 0);
            let request = request(u64::MAX >> 3, mark);
            assert_eq!(StorageRequest::from_bytes(&request.to_bytes()), request);
        }
    }

    #[test]
    fn a_dsync_names_each_page_once_that_was_written_since_the_last() {
        let all = Arc::new(Mutex::new(Vec::new()));
        let recorder = StorageRecorder::default();
        recorder.note_dsync(Lsn(1));
        recorder.start(Box::new(Into(all.clone(), usize::MAX)));
        let write = Mark::WRITE.with_reason(Reason::Recov);
        let requests = [(700, write), (3, write), (5, Mark::READ), (3, write)];
        recorder.note(requests.into_iter().map(|(page, mark)| request(page, mark)));
        recorder.note_dsync(Lsn(9));
        recorder.note_dsync(Lsn(10));
        recorder.note([request(5, write)].into_iter());
        recorder.note_dsync(Lsn(11));
        assert_eq!(recorder.stop(), Ok(8));
        recorder.note([request(5, write)].into_iter());
        let all = all.lock().unwrap();
        let asked: Vec<_> = all.iter().filter(|request| request.mark.is_dsync()).collect();
        let asked: Vec<_> = asked.iter().map(|request| (request.page.0, request.lsn.0)).collect();
        assert_eq!(asked, [(3, 9), (700, 9), (5, 11)]);
    }

    #[test]
    fn a_sink_that_fails_ends_the_recording_and_says_so() {
        let all = Arc::new(Mutex::new(Vec::new()));
        let recorder = StorageRecorder::default();
        recorder.start(Box::new(Into(all.clone(), BATCH)));
        for page in 0..3 * BATCH as u64 {
            recorder.note([request(page, Mark::READ)].into_iter());
        }
        assert_eq!(recorder.stop(), Err("full".to_string()));
        assert_eq!(all.lock().unwrap().len(), BATCH);
    }
}
