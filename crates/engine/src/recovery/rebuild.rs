//! Redo by one thread: sections of the log come in, whole pages are written to the store.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use millpond_base::{Lsn, PageId, Reason};

use super::error::RecoveryError;
use crate::io::{AlignedBuffer, PageStore, PageWrite};
use crate::page::PageHeader;
use crate::page::record_body::{Section, sections};

/// Applies a structure's physiological redo record to a page; returns `false`, and the page may be
/// anything, if it does not fit the page.
pub type ApplyRedoNote = fn(page: &mut [u8], note: &[u8]) -> bool;

/// A section of a record.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) page: PageId,
    /// The record.
    pub(super) start: Lsn,
    pub(super) end: Lsn,
    /// Where the section begins, and ends, in the batch's bytes.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether nothing behind the record is about the page.
    pub(super) is_last: bool,
}

/// Sections for one thread, in the order of the log. A record is not torn apart.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

/// The pages of one thread.
pub(super) struct Rebuild<'a> {
    store: &'a PageStore,
    note: ApplyRedoNote,
    /// Pages written by all threads.
    written: &'a AtomicU64,
    /// Number of whole pages that are kept until all of them are written: adjacent ones together.
    whole_max: usize,
    growing: HashMap<PageId, AlignedBuffer>,
    whole: Vec<(PageId, AlignedBuffer)>,
    spare: Vec<AlignedBuffer>,
}

impl<'a> Rebuild<'a> {
    pub(super) fn new(
        store: &'a PageStore,
        note: ApplyRedoNote,
        written: &'a AtomicU64,
        whole_max: usize,
    ) -> Rebuild<'a> {
        let (growing, whole, spare) = (HashMap::new(), Vec::new(), Vec::new());
        Rebuild { store, note, written, whole_max, growing, whole, spare }
    }

    /// Applies the pieces of `batch`, and writes what has become whole, if that is enough.
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<(), RecoveryError> {
        for piece in &batch.pieces {
            let what = self.apply_piece(piece, &batch.bytes);
            what.map_err(|what| RecoveryError::Damaged {
                lsn: piece.start,
                page: piece.page,
                what,
            })?;
        }
        for piece in batch.pieces.iter().filter(|piece| piece.is_last) {
            // One record may say several things about a page.
            debug_assert!(piece.from <= piece.to, "a piece has its section in the batch");
            if let Some(bytes) = self.growing.remove(&piece.page) {
                self.whole.push((piece.page, bytes));
            }
        }
        if self.whole.len() >= self.whole_max { self.write() } else { Ok(()) }
    }

    fn apply_piece(&mut self, piece: &Piece, bytes: &[u8]) -> Result<(), &'static str> {
        let body = bytes.get(piece.from..piece.to).unwrap_or(&[]);
        let Some(Ok(section)) = sections(body).next() else { return Err("it cannot be decoded") };
        if let Section::Image { page, pieces } = section {
            let size = self.store.page_size().bytes();
            let spare = &mut self.spare;
            let bytes = self
                .growing
                .entry(page)
                .or_insert_with(|| spare.pop().unwrap_or_else(|| AlignedBuffer::new(size)));
            if !pieces.apply_image(bytes) {
                return Err("its image is longer than a page");
            }
        }
        let Some(page) = self.growing.get_mut(&piece.page) else {
            return Err("nothing before it says what the page was");
        };
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

    /// Writes all that is whole. Nothing else is left at the end of a pass.
    pub(super) fn write(&mut self) -> Result<(), RecoveryError> {
        let mut writes: Vec<PageWrite<'_>> = self
            .whole
            .iter_mut()
            .map(|(page, bytes)| PageWrite::new(*page, Reason::Recov, bytes))
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        self.store.write_batch(&mut writes)?;
        self.written.fetch_add(writes.len() as u64, Ordering::Relaxed);
        drop(writes);
        self.spare.extend(self.whole.drain(..).map(|(_, bytes)| bytes));
        Ok(())
    }
}
