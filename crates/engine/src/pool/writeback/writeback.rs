//! Pages that wait to be written, to be freed or to be durable, and the storage for them.

use std::sync::Arc;
use std::time::Duration;

use millpond_base::sync::Mutex;
use millpond_base::sync_list::SyncList;
use millpond_base::{FrameId, Lsn, PageId, Reason};
use millpond_device::AlignedBuffer;

use crate::pool::error::PoolError;
use crate::pool::memory::frames::Frames;
use crate::pool::options::{PoolOptions, SyncMode};
use crate::pool::storage::{PageOut, Storage};
use crate::pool::sync::event::Event;
use crate::pool::sync::locked::locked;
use crate::pool::writeback::buffer::{BATCH_MAX, WriteBuffer};

/// Buffers that are kept for the next write.
const BUFFERS_KEPT: usize = 2;

/// The pages of a pool that wait to be written, and the storage that they are written to.
///
/// # Invariants
/// 1. Only a [`Writer`](super::write::Writer) writes a page, from a copy of it.
/// 2. A frame whose page was deleted while it was written is in `deferred`, once, until the write
///    is over.
/// 3. Where ranges are synced, a page that was written and is not durable is in `sync_list` before
///    its write counts as over.
pub struct Writeback {
    storage: Arc<dyn Storage>,
    page_size: usize,
    /// `true` if new versions of pages are written over old ones.
    is_in_place: bool,
    /// `true` if pages are compressed when they are written.
    compresses: bool,
    sync_mode: SyncMode,
    /// The write buffer of dirty victims.
    buffer: WriteBuffer,
    /// Deleted pages whose write is not over: frames in state evicted that still have their page.
    deferred: Mutex<Vec<(FrameId, PageId)>>,
    /// Pages that were written and are not durable, where ranges are synced.
    sync_list: Mutex<SyncList>,
    /// Buffers for the next writes, at most [`BUFFERS_KEPT`].
    buffers: Mutex<Vec<AlignedBuffer>>,
    /// Signalled when there is work for the background writer.
    work: Event,
}

impl Writeback {
    /// Returns the write-back to `storage`; no page waits yet.
    pub(crate) fn new(storage: Arc<dyn Storage>, options: &PoolOptions) -> Writeback {
        Writeback {
            page_size: storage.page_size(),
            is_in_place: storage.is_in_place(),
            compresses: storage.compresses(),
            storage,
            sync_mode: options.sync_mode,
            buffer: WriteBuffer::default(),
            deferred: Mutex::default(),
            sync_list: Mutex::default(),
            buffers: Mutex::default(),
            work: Event::default(),
        }
    }

    /// Returns the bytes of write buffers that a pool with pages of `page_size` bytes keeps.
    pub fn bytes(page_size: usize) -> u64 {
        (BUFFERS_KEPT * BATCH_MAX * page_size) as u64
    }

    /// Returns whether new versions of pages are written over old ones, so that the first record
    /// about a page that was clean holds all of it.
    #[inline]
    pub(crate) fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    /// Returns whether pages are compressed when they are written.
    #[inline]
    pub(crate) fn compresses(&self) -> bool {
        self.compresses
    }

    /// Returns the moment at which writes are made durable (li 4.4.1.2).
    pub(crate) fn sync_mode(&self) -> SyncMode {
        self.sync_mode
    }

    /// Returns whether the next checkpoint will free places to which pages can be written.
    pub(crate) fn waits_for_checkpoint(&self) -> bool {
        self.storage.waits_for_checkpoint()
    }

    /// Returns the write buffer of dirty victims.
    pub(crate) fn buffer(&self) -> &WriteBuffer {
        &self.buffer
    }

    /// Leaves dirty frames to the background writer. Returns the number of frames that the buffer
    /// did not have before.
    pub(crate) fn hand_over(&self, frames: &Frames, dirty: &[FrameId]) -> u32 {
        if dirty.is_empty() {
            return 0;
        }
        let put = self.buffer.put(frames, dirty);
        self.work.signal();
        put
    }

    /// Wakes the background writer.
    pub(crate) fn wake(&self) {
        self.work.signal();
    }

    /// Sleeps until there is work for the background writer, or for `longest`; returns at once if
    /// `is_due` returns `true`.
    pub(crate) fn wait(&self, longest: Duration, is_due: impl FnOnce() -> bool) {
        self.work.wait(longest, is_due);
    }

    /// Defers a deletion until the write of its page is over.
    pub(crate) fn defer(&self, frame: FrameId, page: PageId) {
        let mut deferred = locked(&self.deferred);
        debug_assert!(deferred.iter().all(|(other, _)| *other != frame), "a page is deleted once");
        deferred.push((frame, page));
    }

    /// Returns whether a deletion is deferred.
    pub(crate) fn has_deferred(&self) -> bool {
        !locked(&self.deferred).is_empty()
    }

    /// Takes the deletions that were deferred.
    pub(crate) fn take_deferred(&self) -> Vec<(FrameId, PageId)> {
        std::mem::take(&mut *locked(&self.deferred))
    }

    /// Removes the pages whose updates begin before `bound` from the sync list, and returns them in
    /// the order of their ids.
    pub(crate) fn take_overdue(&self, bound: Lsn) -> Vec<PageId> {
        let mut list = locked(&self.sync_list);
        let mut overdue: Vec<PageId> = std::iter::from_fn(|| list.take_before(bound)).collect();
        overdue.sort_unstable();
        overdue
    }

    /// Lists a page that was written and is not durable, where ranges are synced.
    pub(super) fn list(&self, page: PageId, rec_lsn: Lsn) {
        if self.sync_mode == SyncMode::Ranges {
            locked(&self.sync_list).add(page, rec_lsn);
        }
    }

    /// Returns a buffer for a batch.
    pub(super) fn take_bytes(&self) -> AlignedBuffer {
        let kept = locked(&self.buffers).pop();
        let size = BATCH_MAX * self.page_size;
        debug_assert!(kept.as_ref().is_none_or(|kept| kept.len() == size), "a buffer has a batch");
        kept.unwrap_or_else(|| AlignedBuffer::new(size))
    }

    /// Keeps a buffer for the next batch.
    pub(super) fn keep_bytes(&self, buffer: AlignedBuffer) {
        let mut buffers = locked(&self.buffers);
        if buffers.len() < BUFFERS_KEPT {
            buffers.push(buffer);
        }
    }

    /// Writes pages to storage.
    pub(super) fn store(&self, pages: &mut [PageOut<'_>]) -> Result<(), PoolError> {
        self.storage.write(pages)
    }

    /// Makes writes durable, if the sync mode asks for it at once (li 4.4.1.2). Returns `true` for
    /// each page that counts as written: for none if that fails.
    pub(super) fn synced_after(
        &self,
        reason: Reason,
        is_written: Vec<bool>,
        error: &mut Option<PoolError>,
    ) -> Vec<bool> {
        let is_due = match self.sync_mode {
            SyncMode::EachWrite => true,
            SyncMode::EachRecov => reason == Reason::Recov,
            SyncMode::Checkpoint | SyncMode::Ranges => false,
        };
        if !is_due || !is_written.contains(&true) {
            return is_written;
        }
        match self.storage.sync() {
            Ok(()) => is_written,
            Err(failed) => {
                error.get_or_insert(failed);
                vec![false; is_written.len()]
            }
        }
    }
}
