//! Taking checkpoints: they bound how much of the log a recovery has to read, and how much is kept.
//!
//! A thread of the store calls [`Checkpointer::round`] from time to time
//! (`store/checkpoint_thread.rs`). A round writes the pages whose recLSNs are three eighths of the
//! allowed *LSN gap* (li 2.1) behind the log's end, little by little as the log grows (`sweep.rs`);
//! and when the gap, from where recovery would begin to the log's end, exceeds half of what the
//! options allow, it takes a checkpoint. A log whose disk is full refuses changes long before that:
//! then it takes one at once, if that frees a segment. Checkpoints are fuzzy: no thread waits for
//! one, unless they fall behind (`txn/log_room.rs`). Rules 1 to 3 of `README.md` say what a
//! checkpoint holds and in which order it is taken.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use millpond_base::sync::unmodelled::Mutex;
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::{planted, unless_planted};

use super::checkpoint::{Active, Checkpoint};
use super::error::CheckpointError;
use super::generation;
use super::sweep::Sweep;
use crate::io::PageStore;
use crate::io::PlacesPin;
use crate::log::{Log, LogError, Record};
use crate::page::MapEntry;
use crate::pool::mini_transaction::kind;
use crate::pool::{Pool, PoolError, PoolStrategy, SyncMode};
use crate::stats::counters::{Counter, Timing};
use crate::txn::TransactionManager;

/// Writers are not held up for less of the log than this, and eight checkpoints.
const LEAST_GAP: u64 = 256 << 10;

/// Eighths of the allowed gap by which the log grows before a page is written that got dirty.
const PAGE_AGE: u64 = 3;

/// Steps of the allowed gap in which the frames are looked at once.
const STEPS: u64 = 8;

/// A transaction that is older than this number of gaps keeps so much of the log that it is
/// reported.
const KEPT_GAPS: u64 = 4;

/// Bytes of the log that a checkpoint takes besides its content: headers of records, and the note
/// of its generation.
const CHECKPOINT_BESIDES: u64 = 1 << 10;

/// Rounds that pass after a checkpoint that did not free the log of a full disk before the next one
/// is taken to free it: a second.
const REST_ROUNDS: u32 = 50;

/// Bytes of the data file that may wait for a checkpoint to be used again: an eighth of it, but
/// this at least.
const WAITING_LEAST: u64 = 16 << 20;
const WAITING_PART: u64 = 8;

/// Takes the checkpoints of a store, and holds what they are taken of.
pub(crate) struct Checkpointer<M: PoolStrategy> {
    pub(crate) pool: Arc<Pool<M>>,
    pub(crate) pages: Arc<PageStore>,
    pub(crate) log: Arc<Log>,
    pub(crate) txns: Arc<TransactionManager>,
    pub(crate) catalog_root: Option<PageId>,
    /// Bytes of the log that a recovery may have to read, about.
    pub(crate) gap_bytes: u64,
    /// Position at which recovery begins, according to the last checkpoint. Held while one is
    /// taken.
    pub(crate) redo: Mutex<Lsn>,
    /// Which pages are due. Held while dirty pages are written for the log's sake: one that another
    /// thread is writing would keep what the log has of it.
    pub(crate) sweep: Mutex<Sweep>,
    /// Positions from which copiers of the log still need it, by the copiers' numbers.
    pub(crate) pins: Mutex<BTreeMap<u64, Lsn>>,
    /// Bytes that the log keeps for the next checkpoint.
    pub(crate) next_bytes: AtomicU64,
    /// Rounds before a checkpoint is taken to free the log.
    pub(crate) rests: AtomicU32,
}

/// A checkpoint that was taken.
pub(crate) struct Taken {
    pub(crate) checkpoint: Checkpoint,
    /// Position of the checkpoint's last record.
    pub(crate) at: Lsn,
    /// Position from which a recovery reads the log: for pages, and for transactions to undo.
    pub(crate) kept: Lsn,
    /// Root of its page map, and the page ids that it is of.
    pub(crate) map_root: (MapEntry, u64),
}

/// Keeps, until it is dropped, the part of the log that a recovery from one checkpoint needs; the
/// pages in its page map stay in place.
pub(crate) struct Pin<'c, M: PoolStrategy> {
    checkpointer: &'c Checkpointer<M>,
    number: u64,
    _places: PlacesPin<'c>,
}

impl<M: PoolStrategy> Drop for Pin<'_, M> {
    fn drop(&mut self) {
        // The next checkpoint lets the log go.
        self.checkpointer.pins().remove(&self.number);
    }
}

impl<M: PoolStrategy> Checkpointer<M> {
    fn redo(&self) -> MutexGuard<'_, Lsn> {
        self.redo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a checkpoint; returns where recovery would begin.
    ///
    /// # Errors
    /// Log or data could not be made durable. The last checkpoint stands.
    pub(crate) fn take(&self) -> Result<Lsn, CheckpointError> {
        Ok(self.take_locked(&mut self.redo())?.checkpoint.redo)
    }

    /// Writes what is dirty, takes a checkpoint, and keeps what a recovery from it needs of the
    /// log, as long as the guard lives. Other checkpoints may be taken meanwhile.
    ///
    /// # Errors
    /// As [`Checkpointer::take_here`].
    pub(crate) fn take_pinned(&self) -> Result<(Taken, Pin<'_, M>), CheckpointError> {
        self.write_dirty()?;
        let mut last = self.redo();
        let number = {
            let mut pins = self.pins();
            let number = pins.last_key_value().map_or(0, |(number, _)| number + 1);
            // Nothing is forgotten before it is known what is needed.
            pins.insert(number, Lsn(0));
            number
        };
        let pin = Pin { checkpointer: self, number, _places: self.pages.pin_places() };
        let taken = self.take_locked(&mut last)?;
        debug_assert!(taken.kept >= self.log.oldest(), "the log keeps what a pin is for");
        self.pins().insert(number, taken.kept);
        planted!(BackupLogNotKept, self.pins().remove(&number));
        Ok((taken, pin))
    }

    /// Gives the free end of the data file back; returns its bytes.
    ///
    /// # Errors
    /// A backup is under way; or as [`Checkpointer::take_here`].
    pub(crate) fn cut(&self) -> Result<u64, CheckpointError> {
        self.write_dirty()?;
        let mut last = self.redo();
        if !self.pins().is_empty() {
            return Err(CheckpointError::LogPinned);
        }
        self.pages.forget_tail()?;
        // It says that they are free: from it on, no recovery knows of anything in them.
        self.take_locked(&mut last)?;
        Ok(self.pages.cut_off()?)
    }

    /// Gives back of the log what is not needed, room for what comes next included; returns its
    /// bytes. A log that goes on far behind the beginning of its file goes on there first, unless
    /// that would take the room that transactions may need to be undone. That room is kept.
    ///
    /// # Errors
    /// The log could not be cut, or as [`Checkpointer::take`].
    pub(crate) fn give_log_back(&self) -> Result<u64, CheckpointError> {
        self.txns.end_idle_claims();
        // A record that changes no page. The next segment may have its place already.
        let nothing = Record { kind: kind::PAGES, tx: 0, prev: Lsn(0), parts: &[] };
        for _ in 0..2 {
            if self.log.reserved() > self.checkpoint_bytes() || !self.log.go_forward(&nothing) {
                break;
            }
            // What lies before is forgotten.
            self.take_here()?;
        }
        Ok(self.log.give_back(0)?)
    }

    /// Returns `true` if an old transaction keeps far more of the log than checkpoints do.
    pub(crate) fn keeps_much(&self) -> bool {
        let oldest = self.txns.active().oldest();
        let kept = oldest.map_or(0, |oldest| self.log.tail().0.saturating_sub(oldest.0));
        kept > KEPT_GAPS * self.gap_bytes.max(LEAST_GAP)
    }

    fn pins(&self) -> MutexGuard<'_, BTreeMap<u64, Lsn>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable what has been written to the data file: all of it or, where ranges are
    /// synced, the pages with updates before `redo` (rule 2b).
    fn sync_data(&self, redo: Lsn) -> Result<(), CheckpointError> {
        let recorder = self.pool.storage_recorder();
        if self.pool.writeback().sync_mode() != SyncMode::Ranges {
            recorder.note_dsync(self.log.tail());
            return Ok(self.pages.sync()?);
        }
        let overdue = self.pool.writeback().take_overdue(redo);
        recorder.note_dsync_of(&overdue, self.log.tail());
        let mut ranges: Vec<Range<PageId>> = Vec::new();
        let forgotten = usize::from(planted!(RangeForgotten));
        for page in overdue.into_iter().skip(forgotten) {
            let next = PageId(page.0 + 1);
            match ranges.last_mut() {
                Some(last) if last.end == page => last.end = next,
                _ => ranges.push(page..next),
            }
        }
        Ok(self.pages.sync_pages(&ranges)?)
    }

    /// Takes a checkpoint; `last` is where the last one says that recovery begins.
    fn take_locked(&self, last: &mut Lsn) -> Result<Taken, CheckpointError> {
        let store = self.pages.path().display();
        let _span = tracing::debug_span!("checkpoint", %store).entered();
        let statistics = self.pool.statistics();
        let begun = statistics.latencies.start(Timing::CheckpointTime);
        let taken = self.take_behind(last);
        statistics.latencies.stop(Timing::CheckpointTime, begun);
        statistics.count(match taken {
            Ok(_) => Counter::Checkpoints,
            Err(_) => Counter::CheckpointFailures,
        });
        taken
    }

    fn take_behind(&self, last: &mut Lsn) -> Result<Taken, CheckpointError> {
        let redo = self.pool.redo_bound();
        planted!(MapNotSynced, self.sync_data(redo)?);
        let map = self.pages.write_map()?;
        let redo = if planted!(RedoBoundAfterMap) { self.pool.redo_bound() } else { redo };
        if !planted!(MapNotSynced) {
            unless_planted!(DataNotSynced, self.sync_data(redo)?);
        }
        let redo = if planted!(RedoBoundAfterSync) { self.pool.redo_bound() } else { redo };
        // Rule 2a: nothing before the last redo is needed, and the log may have forgotten it.
        let redo = redo.max(*last);
        let redo_log = self.pool.redo_log();
        let at_tail = || {
            redo_log.space_at_tail(|begin, space| Checkpoint {
                redo: redo.min(begin),
                begin,
                taken: space.taken().to_vec(),
                orphans: space.orphans().iter().map(|(page, root)| (*page, *root)).collect(),
                ..Checkpoint::default()
            })
        };
        let (mut checkpoint, rows) = redo_log.rows().at_rest(at_tail);
        planted!(RowsCountedLate, dawdle);
        checkpoint.rows =
            if planted!(RowsCountedLate) { redo_log.rows().at_rest(|| ()).1 } else { rows };
        let active = self.txns.active().last_records();
        let had_records = active.into_iter().filter(|(_, last)| *last != Lsn(0));
        let had_records = had_records.filter(|_| !planted!(ActiveNotRecorded));
        checkpoint.active = had_records.map(|(tx, last)| Active { tx, last }).collect();
        checkpoint.next_tx = self.txns.active().next_id();
        debug_assert!(
            checkpoint.active.iter().all(|active| active.tx < checkpoint.next_tx),
            "ids of active transactions are below the next one"
        );
        checkpoint.pages = self.pages.pages();
        checkpoint.catalog_root = self.catalog_root;
        // Checkpoints are in the log, too: they must not take more than they give back.
        let listed = checkpoint.active.len() + checkpoint.rows.len() + checkpoint.orphans.len();
        let bytes = 8 * checkpoint.taken.len() as u64 + 256 * listed as u64;
        // Before the checkpoint is: what a transaction that is under way needs stays.
        let oldest = self.txns.active().oldest().unwrap_or(checkpoint.begin);
        let at = checkpoint.write_if(&self.log, |bytes| self.make_checkpoint_room(bytes))?;
        debug_assert!(
            checkpoint.redo <= checkpoint.begin,
            "redo begins at the map's LSN or before"
        );
        debug_assert!(at >= checkpoint.begin, "a checkpoint is logged behind what it describes");
        let generation = self.pages.set_log_position(at, self.catalog_root, map.as_ref())?;
        generation::note(&self.log, generation)?;
        if let Some(map) = map {
            map.release();
        }
        let mut kept = checkpoint.redo.min(checkpoint.begin);
        // Rule 2a again: a transaction's bound may be from before the last checkpoint.
        unless_planted!(LogForgottenEarly, kept = kept.min(oldest).max(self.log.oldest()));
        let pinned = self.pins().values().min().copied().unwrap_or(kept);
        self.log.forget_before(kept.min(pinned));
        *last = checkpoint.redo;
        self.txns.room().begins_at(checkpoint.redo, self.gap_bytes.max(LEAST_GAP + 8 * bytes));
        Ok(Taken { checkpoint, at, kept, map_root: self.pages.map_root() })
    }

    fn sweep(&self) -> MutexGuard<'_, Sweep> {
        self.sweep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is dirty; pages whose latches are held, or that others are writing, are waited
    /// for a while: they would keep what the log has of them.
    fn write_dirty(&self) -> Result<(), CheckpointError> {
        const TRIES: u32 = 100;
        const NAP: Duration = Duration::from_millis(1);
        let _sweep = self.sweep();
        let tail = self.log.tail();
        for _ in 0..TRIES {
            self.making_places(|| self.pool.write_older(tail).map(drop))?;
            if self.pool.redo_bound() >= tail {
                break;
            }
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    /// Writes all dirty pages, of a store that nobody else uses.
    ///
    /// # Errors
    /// As [`Checkpointer::take_here`].
    pub(crate) fn flush(&self) -> Result<(), CheckpointError> {
        self.making_places(|| self.pool.flush(Reason::Recov).map(drop))
    }

    /// Does `write`, which writes pages. If the disk is full, a checkpoint makes the places free of
    /// what was written over, and `write` goes on, as long as it leaves fewer dirty pages.
    fn making_places(
        &self,
        mut write: impl FnMut() -> Result<(), PoolError>,
    ) -> Result<(), CheckpointError> {
        let mut least = None;
        loop {
            let Err(error) = write() else { return Ok(()) };
            let dirty = self.pool.frames_dirty();
            if !error.is_disk_full() || least.is_some_and(|least| dirty >= least) {
                return Err(error.into());
            }
            least = Some(dirty);
            self.take()?;
        }
    }

    /// Writes what is dirty, and takes a checkpoint, so that a recovery would begin about here.
    ///
    /// # Errors
    /// As [`Checkpointer::take`], or a page could not be written.
    pub(crate) fn take_here(&self) -> Result<Lsn, CheckpointError> {
        self.write_dirty()?;
        self.take()
    }

    /// Writes what is dirty, gives back ids that no page has, and takes a checkpoint.
    ///
    /// # Errors
    /// As [`Checkpointer::take`], or a page could not be written.
    pub(crate) fn take_last(&self) -> Result<Taken, CheckpointError> {
        self.write_dirty()?;
        self.pool.ids().return_all()?;
        self.take_locked(&mut self.redo())
    }

    /// Returns whether a recovery from the checkpoint would do nothing: no transaction was active,
    /// and the log has no record that changes pages from where it begins.
    pub(crate) fn is_last(&self, Taken { checkpoint, .. }: &Taken) -> bool {
        let own = [kind::CHECKPOINT, kind::CHECKPOINT_PART, kind::SUPERBLOCK];
        if checkpoint.redo < checkpoint.begin || !checkpoint.active.is_empty() {
            return false;
        }
        let mut reader = self.log.reader(checkpoint.begin);
        loop {
            match reader.next_record() {
                Ok(Some((_, header, _))) if own.contains(&header.kind) => {}
                Ok(None) => return true,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Fails if the data file or the log is no longer where it was opened: a checkpoint would let
    /// the log forget what no file of the store has.
    ///
    /// # Errors
    /// [`CheckpointError::Displaced`].
    pub(crate) fn confirm_place(&self) -> Result<(), CheckpointError> {
        let displaced = [self.pages.displaced(), self.log.displaced()].into_iter().flatten();
        displaced.take(1).try_for_each(|path| Err(CheckpointError::Displaced { path }))
    }

    /// Makes room for a checkpoint whose content has `bytes` bytes, beside what is reserved, and
    /// reserves room for the next one. Only one checkpoint is taken at a time.
    fn make_checkpoint_room(&self, bytes: u64) -> Result<(), LogError> {
        let (before, bytes) = (self.checkpoint_bytes(), bytes + bytes / 16 + CHECKPOINT_BESIDES);
        self.log.make_reserved_room(bytes, before)?;
        self.log.reserve(bytes);
        self.log.release(self.next_bytes.swap(bytes, Ordering::Relaxed));
        Ok(())
    }

    /// Bytes that the log keeps for the next checkpoint.
    fn checkpoint_bytes(&self) -> u64 {
        self.next_bytes.load(Ordering::Relaxed)
    }

    /// Takes the checkpoint that frees segments of a log whose disk is full. If it frees none, the
    /// next one has to wait.
    fn free_log(&self) -> Result<(), CheckpointError> {
        let oldest = self.log.oldest();
        let taken = self.confirm_place().and_then(|()| self.take_here());
        let rest = if self.log.oldest() > oldest { 0 } else { REST_ROUNDS };
        self.rests.store(rest, Ordering::Relaxed);
        self.log.forget_refusal();
        taken.map(drop)
    }

    /// Returns whether the rounds are over for which no checkpoint is taken to free the log.
    fn has_rested(&self) -> bool {
        let less = |rounds: u32| rounds.checked_sub(1);
        self.rests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Returns whether a checkpoint would free a segment of the log, as far as transactions and
    /// copies let it.
    fn frees_log(&self) -> bool {
        let oldest = self.txns.active().oldest().unwrap_or(self.log.tail());
        let pinned = self.pins().values().min().copied().unwrap_or(oldest);
        self.log.frees_a_segment(oldest.min(pinned))
    }

    /// Writes the pages that are due, and takes a checkpoint if the LSN gap exceeds half of
    /// `gap_bytes`; or if so much of the file waits for one that it would grow for nothing; or if
    /// the log refused a write, and a checkpoint would free some of it.
    ///
    /// # Errors
    /// As [`Checkpointer::take_here`].
    pub(crate) fn round(&self) -> Result<(), CheckpointError> {
        if self.log.is_refusing() && self.has_rested() && self.frees_log() {
            return self.free_log();
        }
        let (begin, tail) = (*self.redo(), self.log.tail());
        let lead = tail.0.saturating_sub(begin.0);
        // Pages that are written now are not in the way for a while.
        let bound = Lsn(tail.0.saturating_sub(self.gap_bytes / 8 * PAGE_AGE));
        let mut sweep = self.sweep();
        let due = sweep.advance(bound, self.gap_bytes / STEPS, |until| self.pool.older(until));
        let mut written = self.pool.write_overdue(&due, bound);
        let is_far = lead >= self.gap_bytes / 2;
        if is_far {
            // Those whose latches were held.
            written = written.and(self.pool.write_older(bound));
        }
        drop(sweep);
        // Where no place is free for a page, it is the checkpoint that makes some so.
        if is_far || self.pages.wants_map(self.places_waiting()) {
            self.confirm_place()?;
            self.take()?;
        }
        // What could not be written is listed again.
        Ok(written.map(drop)?)
    }

    /// Bytes of the file that may wait for a checkpoint to become free.
    fn places_waiting(&self) -> u64 {
        (self.pages.file_bytes() / WAITING_PART).max(WAITING_LEAST)
    }
}
