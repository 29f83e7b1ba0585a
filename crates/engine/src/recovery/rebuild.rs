//! Redo by one thread: it applies sections of log records to pages, and writes each finished page
//! to the store.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::AlignedBuffer;

use super::error::RecoveryError;
use super::generation;
use crate::io::{PageRead, PageStore, PageWrite, WriteError};
use crate::log::Log;
use crate::page::PageHeader;
use crate::page::record_body::{Section, sections};

/// Number of pages read together.
const READS: usize = 64;

/// Applies a structure's physiological redo record to a page. Returns `false` if the record does
/// not fit the page, whose content is then undefined.
pub type ApplyRedoNote = fn(page: &mut [u8], note: &[u8]) -> bool;

/// One section of a log record, about one page.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) page: PageId,
    /// Start of the record; `end` is its end.
    pub(super) start: Lsn,
    pub(super) end: Lsn,
    /// Start of the section in the batch's bytes; `to` is its end.
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if this is the page's first section and the page must first be read from storage.
    pub(super) needs_page: bool,
    /// True if no later record changes the page.
    pub(super) is_last: bool,
}

/// Progress of redo.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Number of pages that have reached their state at the end of the log.
    pub(super) done: AtomicU64,
    /// Number of pages that had to be written.
    pub(super) written: AtomicU64,
}

/// A page that is being rebuilt.
struct Growing {
    bytes: AlignedBuffer,
    /// LSN of the version read from storage; 0 once an image has replaced it.
    stored: Lsn,
    /// True if a record has been applied to the page.
    is_changed: bool,
}

/// Sections for one thread, in the order of the log. A record's sections are never split between
/// batches.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

/// The pages of one redo thread.
pub(super) struct Rebuild<'a> {
    store: &'a PageStore,
    log: &'a Log,
    note: ApplyRedoNote,
    /// Progress of all redo threads.
    tally: &'a Tally,
    /// Number of finished pages to gather before a write, so that adjacent pages are written
    /// together.
    whole_max: usize,
    growing: HashMap<PageId, Growing>,
    whole: Vec<(PageId, AlignedBuffer)>,
    spare: Vec<AlignedBuffer>,
}

impl<'a> Rebuild<'a> {
    pub(super) fn new(
        store: &'a PageStore,
        log: &'a Log,
        note: ApplyRedoNote,
        tally: &'a Tally,
        whole_max: usize,
    ) -> Rebuild<'a> {
        let (growing, whole, spare) = (HashMap::new(), Vec::new(), Vec::new());
        Rebuild { store, log, note, tally, whole_max, growing, whole, spare }
    }

    /// Applies the pieces of `batch`, and writes the finished pages once enough have gathered.
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<(), RecoveryError> {
        self.read(batch)?;
        for piece in &batch.pieces {
            let what = self.apply_piece(piece, &batch.bytes);
            what.map_err(|what| RecoveryError::Damaged {
                lsn: piece.start,
                page: piece.page,
                what,
            })?;
        }
        for piece in batch.pieces.iter().filter(|piece| piece.is_last) {
            // One record may have several pieces about a page; only the first finds the page here.
            debug_assert!(piece.from <= piece.to, "a piece has its section in the batch");
            match self.growing.remove(&piece.page) {
                Some(Growing { bytes, is_changed: true, .. }) => {
                    self.whole.push((piece.page, bytes));
                }
                Some(Growing { bytes, .. }) => {
                    self.tally.done.fetch_add(1, Ordering::Relaxed);
                    self.spare.push(bytes);
                }
                None => {}
            }
        }
        if self.whole.len() >= self.whole_max { self.write() } else { Ok(()) }
    }

    /// Reads from storage the pages whose rebuilding begins in the batch without an image.
    fn read(&mut self, batch: &Batch) -> Result<(), RecoveryError> {
        let wanted: Vec<PageId> =
            batch.pieces.iter().filter(|piece| piece.needs_page).map(|piece| piece.page).collect();
        let size = self.store.page_size().bytes();
        for pages in wanted.chunks(READS) {
            let spare = &mut self.spare;
            let mut buffers: Vec<AlignedBuffer> = pages
                .iter()
                .map(|_| spare.pop().unwrap_or_else(|| AlignedBuffer::new(size)))
                .collect();
            let mut reads: Vec<PageRead<'_>> = pages
                .iter()
                .zip(&mut buffers)
                .map(|(page, bytes)| PageRead::new(*page, bytes))
                .collect();
            self.store.read_batch(&mut reads);
            let failed = reads.into_iter().find_map(|read| read.result.err());
            if let Some(error) = failed {
                return Err(RecoveryError::Page(error));
            }
            for (page, bytes) in pages.iter().zip(buffers) {
                let stored = PageHeader::read(&bytes).lsn;
                self.growing.insert(*page, Growing { bytes, stored, is_changed: false });
            }
        }
        Ok(())
    }

    fn apply_piece(&mut self, piece: &Piece, bytes: &[u8]) -> Result<(), &'static str> {
        let body = bytes.get(piece.from..piece.to).unwrap_or(&[]);
        let Some(Ok(section)) = sections(body).next() else { return Err("it cannot be decoded") };
        if let Section::Image { page, pieces } = section {
            let size = self.store.page_size().bytes();
            let spare = &mut self.spare;
            let growing = self.growing.entry(page).or_insert_with(|| {
                let bytes = spare.pop().unwrap_or_else(|| AlignedBuffer::new(size));
                Growing { bytes, stored: Lsn(0), is_changed: true }
            });
            (growing.stored, growing.is_changed) = (Lsn(0), true);
            if !pieces.apply_image(&mut growing.bytes) {
                return Err("its image is longer than a page");
            }
        }
        let Some(growing) = self.growing.get_mut(&piece.page) else {
            return Err("nothing before it says what the page was");
        };
        // Rule 8: storage has it already.
        if piece.end <= growing.stored {
            return Ok(());
        }
        growing.is_changed = true;
        let page = &mut growing.bytes;
        match section {
            Section::Difference { pieces, .. } if !pieces.apply(page) => {
                return Err("its difference is longer than a page");
            }
            Section::Physiological { bytes, .. } if !(self.note)(page, bytes) => {
                return Err("its redo record does not fit the page");
            }
            // No operation of a structure changes the id of its page.
            Section::Physiological { .. } => {}
            _ if PageHeader::read(page).page != piece.page => {
                return Err("it gives the page another id");
            }
            _ => {}
        }
        debug_assert!(PageHeader::read(page).lsn <= piece.end, "the LSNs of a page grow");
        // Rule 9.
        if let Some(lsn) = page.get_mut(8..16) {
            lsn.copy_from_slice(&piece.end.0.to_le_bytes());
        }
        Ok(())
    }

    /// Writes all finished pages. At the end of a pass no other pages are left.
    pub(super) fn write(&mut self) -> Result<(), RecoveryError> {
        let mut writes: Vec<PageWrite<'_>> = self
            .whole
            .iter_mut()
            .map(|(page, bytes)| PageWrite::new(*page, Reason::Recov, bytes))
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        match self.store.write_batch(&mut writes) {
            // A durable map without the superseded versions makes their places free.
            Err(WriteError::NoPlace(_)) => {
                generation::save_map(self.store, self.log)?;
                self.store.write_batch(&mut writes)?;
            }
            other => other?,
        }
        self.tally.done.fetch_add(writes.len() as u64, Ordering::Relaxed);
        self.tally.written.fetch_add(writes.len() as u64, Ordering::Relaxed);
        drop(writes);
        self.spare.extend(self.whole.drain(..).map(|(_, bytes)| bytes));
        Ok(())
    }
}
