//! Takes checkpoints, which bound how much of the log a recovery reads and how much of it is kept.
//!
//! A thread of the store calls [`Checkpointer::round`] from time to time
//! (`store/checkpoint_thread.rs`). A round writes the pages whose recLSNs are three eighths of the
//! allowed *LSN gap* (li 2.1) behind the log's end, little by little as the log grows (`sweep.rs`).
//! The gap reaches from the point at which recovery would begin to the log's end. Once it is half
//! of the allowed gap, the round takes a checkpoint. A log whose disk is full refuses changes long
//! before that; the round then takes a checkpoint at once, if that frees a segment.
//!
//! Checkpoints are fuzzy: no thread waits for one, unless checkpoints fall behind
//! (`txn/log_room.rs`). Rules 1 to 3 of `README.md` define the content of a checkpoint and the
//! order of its steps.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_base::{Lsn, PageId, Reason};

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

/// Writers are not held up while the LSN gap is below this plus eight checkpoints.
const LEAST_GAP: u64 = 256 << 10;

/// Age at which a dirty page is written, in eighths of the allowed gap.
const PAGE_AGE: u64 = 3;

/// Number of frame scans per allowed gap.
const STEPS: u64 = 8;

/// Number of allowed gaps that a transaction may keep of the log before it is reported.
const KEPT_GAPS: u64 = 4;

/// Bytes of the log that a checkpoint takes besides its content: headers of records, and the note
/// of its generation.
const CHECKPOINT_BESIDES: u64 = 1 << 10;

/// Number of rounds before another attempt after a checkpoint did not free the log of a full disk.
/// They last a second.
const REST_ROUNDS: u32 = 50;

/// Bytes of the data file that may wait for a checkpoint to be used again: an eighth of the file,
/// but at least this.
const WAITING_LEAST: u64 = 16 << 20;
const WAITING_PART: u64 = 8;

/// Takes the checkpoints of a store.
pub(crate) struct Checkpointer<M: PoolStrategy> {
    pub(crate) pool: Arc<Pool<M>>,
    pub(crate) pages: Arc<PageStore>,
    pub(crate) log: Arc<Log>,
    pub(crate) txns: Arc<TransactionManager>,
    pub(crate) catalog_root: Option<PageId>,
    /// Allowed LSN gap: the bytes of the log that a recovery may have to read, roughly.
    pub(crate) gap_bytes: u64,
    /// Position at which recovery begins, according to the last checkpoint. The mutex is held while
    /// a checkpoint is taken.
    pub(crate) redo: Mutex<Lsn>,
    /// Dirty pages that are due. The mutex is held while dirty pages are written for the log's
    /// sake: a page that another thread is still writing would hold back the redo point.
    pub(crate) sweep: Mutex<Sweep>,
    /// Positions from which copiers still need the log, by the numbers of their pins.
    pub(crate) pins: Mutex<BTreeMap<u64, Lsn>>,
    /// Bytes that the log keeps for the next checkpoint.
    pub(crate) next_bytes: AtomicU64,
    /// Number of rounds before another checkpoint may be taken to free the log.
    pub(crate) rests: AtomicU32,
}

/// A checkpoint that was taken.
pub(crate) struct Taken {
    pub(crate) checkpoint: Checkpoint,
    /// Position of the checkpoint's last record.
    pub(crate) at: Lsn,
    /// Position from which a recovery reads the log, for pages and for transactions to undo.
    pub(crate) kept: Lsn,
    /// Root of the page map, and the number of page ids that it covers.
    pub(crate) map_root: (MapEntry, u64),
}

/// Keeps the part of the log that a recovery from one checkpoint needs, and the places of the pages
/// in its page map, until the pin is dropped.
pub(crate) struct Pin<'c, M: PoolStrategy> {
    checkpointer: &'c Checkpointer<M>,
    number: u64,
    _places: PlacesPin<'c>,
}

impl<M: PoolStrategy> Drop for Pin<'_, M> {
    fn drop(&mut self) {
        // The next checkpoint releases that part of the log.
        self.checkpointer.pins().remove(&self.number);
    }
}

impl<M: PoolStrategy> Checkpointer<M> {
    fn redo(&self) -> MutexGuard<'_, Lsn> {
        self.redo.lock().past_poison()
    }

    /// Takes a checkpoint; returns the position at which recovery would begin.
    ///
    /// # Errors
    /// Log or data could not be made durable. The last checkpoint remains valid.
    pub(crate) fn take(&self) -> Result<Lsn, CheckpointError> {
        Ok(self.take_locked(&mut self.redo())?.checkpoint.redo)
    }

    /// Writes all dirty pages, takes a checkpoint, and keeps the part of the log that a recovery
    /// from it needs until the pin is dropped. Other checkpoints may be taken in the meantime.
    ///
    /// # Errors
    /// As [`Checkpointer::take_here`].
    pub(crate) fn take_pinned(&self) -> Result<(Taken, Pin<'_, M>), CheckpointError> {
        self.write_dirty()?;
        let mut last = self.redo();
        let number = {
            let mut pins = self.pins();
            let number = pins.last_key_value().map_or(0, |(number, _)| number + 1);
            // The whole log is pinned until the needed part is known.
            pins.insert(number, Lsn(0));
            number
        };
        let pin = Pin { checkpointer: self, number, _places: self.pages.pin_places() };
        let taken = self.take_locked(&mut last)?;
        debug_assert!(taken.kept >= self.log.oldest(), "the log keeps what a pin is for");
        self.pins().insert(number, taken.kept);
        Ok((taken, pin))
    }

    /// Truncates the free end of the data file; returns the number of bytes by which the file
    /// shrank.
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
        // This checkpoint records that the tail is free: a recovery from it expects no page there.
        self.take_locked(&mut last)?;
        Ok(self.pages.cut_off()?)
    }

    /// Shrinks the log's file to the segments and the room that the log needs; returns the number
    /// of bytes by which it shrank.
    ///
    /// If the log is being written far behind the start of its file, it first moves on to a free
    /// slot near the start. It does not move if that would take the room reserved for undoing
    /// transactions.
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
            // This checkpoint lets the log forget the segments before it.
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
        self.pins.lock().past_poison()
    }

    /// Syncs the data file: all of it or, where ranges are synced, only the pages with updates
    /// before `redo` (rule 2b).
    fn sync_data(&self, redo: Lsn) -> Result<(), CheckpointError> {
        let recorder = self.pool.storage_recorder();
        if self.pool.writeback().sync_mode() != SyncMode::Ranges {
            recorder.note_dsync(self.log.tail());
            return Ok(self.pages.sync()?);
        }
        let overdue = self.pool.writeback().take_overdue(redo);
        recorder.note_dsync_of(&overdue, self.log.tail());
        let mut ranges: Vec<Range<PageId>> = Vec::new();
        for page in overdue {
            let next = PageId(page.0 + 1);
            match ranges.last_mut() {
                Some(last) if last.end == page => last.end = next,
                _ => ranges.push(page..next),
            }
        }
        Ok(self.pages.sync_pages(&ranges)?)
    }

    /// Takes a checkpoint. `last` is the redo point of the last checkpoint, and becomes that of the
    /// new one.
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
        let map = self.pages.write_map()?;
        self.sync_data(redo)?;
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
        checkpoint.rows = rows;
        let active = self.txns.active().last_records();
        let had_records = active.into_iter().filter(|(_, last)| *last != Lsn(0));
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
        // Read before the checkpoint is written, so that the log keeps the records of active
        // transactions.
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
        kept = kept.min(oldest).max(self.log.oldest());
        let pinned = self.pins().values().min().copied().unwrap_or(kept);
        self.log.forget_before(kept.min(pinned));
        *last = checkpoint.redo;
        self.txns.room().begins_at(checkpoint.redo, self.gap_bytes.max(LEAST_GAP + 8 * bytes));
        Ok(Taken { checkpoint, at, kept, map_root: self.pages.map_root() })
    }

    fn sweep(&self) -> MutexGuard<'_, Sweep> {
        self.sweep.lock().past_poison()
    }

    /// Writes all dirty pages. Waits a while for pages whose latches are held or that other threads
    /// are writing: they would hold back the redo point.
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

    /// Writes all dirty pages of a store that nobody else uses.
    ///
    /// # Errors
    /// As [`Checkpointer::take_here`].
    pub(crate) fn flush(&self) -> Result<(), CheckpointError> {
        self.making_places(|| self.pool.flush(Reason::Recov).map(drop))
    }

    /// Calls `write`, which writes pages. If the disk is full, a checkpoint frees the places of
    /// superseded versions, and `write` is called again, as long as each call leaves fewer dirty
    /// pages.
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

    /// Writes all dirty pages and takes a checkpoint, so that a recovery would begin about here.
    ///
    /// # Errors
    /// As [`Checkpointer::take`], or a page could not be written.
    pub(crate) fn take_here(&self) -> Result<Lsn, CheckpointError> {
        self.write_dirty()?;
        self.take()
    }

    /// Writes all dirty pages, returns the ids that no page has, and takes a checkpoint.
    ///
    /// # Errors
    /// As [`Checkpointer::take`], or a page could not be written.
    pub(crate) fn take_last(&self) -> Result<Taken, CheckpointError> {
        self.write_dirty()?;
        self.pool.ids().return_all()?;
        self.take_locked(&mut self.redo())
    }

    /// Returns whether a recovery from the checkpoint would do nothing: no transaction was active,
    /// and from its begin on the log has only records of checkpoints and superblocks.
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

    /// Fails if the data file or the log is no longer where it was opened. A checkpoint would let
    /// the log forget changes that no file of the store has.
    ///
    /// # Errors
    /// [`CheckpointError::Displaced`].
    pub(crate) fn confirm_place(&self) -> Result<(), CheckpointError> {
        let displaced = [self.pages.displaced(), self.log.displaced()].into_iter().flatten();
        displaced.take(1).try_for_each(|path| Err(CheckpointError::Displaced { path }))
    }

    /// Makes room for a checkpoint with a content of `bytes` bytes, including the room already
    /// reserved for it, and reserves room for the next one. Only one checkpoint is taken at a time.
    fn make_checkpoint_room(&self, bytes: u64) -> Result<(), LogError> {
        let (before, bytes) = (self.checkpoint_bytes(), bytes + bytes / 16 + CHECKPOINT_BESIDES);
        self.log.make_reserved_room(bytes, before)?;
        self.log.reserve(bytes);
        self.log.release(self.next_bytes.swap(bytes, Ordering::Relaxed));
        Ok(())
    }

    /// Returns the number of bytes that the log keeps for the next checkpoint.
    fn checkpoint_bytes(&self) -> u64 {
        self.next_bytes.load(Ordering::Relaxed)
    }

    /// Takes a checkpoint to free segments of a log whose disk is full. If it frees none, the next
    /// attempt has to wait.
    fn free_log(&self) -> Result<(), CheckpointError> {
        let oldest = self.log.oldest();
        let taken = self.confirm_place().and_then(|()| self.take_here());
        let rest = if self.log.oldest() > oldest { 0 } else { REST_ROUNDS };
        self.rests.store(rest, Ordering::Relaxed);
        self.log.forget_refusal();
        taken.map(drop)
    }

    /// Counts down the rounds of waiting; returns `true` if none was left.
    fn has_rested(&self) -> bool {
        let less = |rounds: u32| rounds.checked_sub(1);
        self.rests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Returns whether a checkpoint would free a segment of the log, given the transactions and
    /// copiers that need it.
    fn frees_log(&self) -> bool {
        let oldest = self.txns.active().oldest().unwrap_or(self.log.tail());
        let pinned = self.pins().values().min().copied().unwrap_or(oldest);
        self.log.frees_a_segment(oldest.min(pinned))
    }

    /// Writes the pages that are due, and takes a checkpoint if one is needed.
    ///
    /// A checkpoint is needed in three cases:
    /// - The LSN gap reaches half of `gap_bytes`.
    /// - So much of the data file waits for a checkpoint that the file would grow needlessly.
    /// - The log refused a write, and a checkpoint would free some of it.
    ///
    /// # Errors
    /// As [`Checkpointer::take_here`].
    pub(crate) fn round(&self) -> Result<(), CheckpointError> {
        if self.log.is_refusing() && self.has_rested() && self.frees_log() {
            return self.free_log();
        }
        let (begin, tail) = (*self.redo(), self.log.tail());
        let lead = tail.0.saturating_sub(begin.0);
        // Pages written now do not hold back the redo point for a while.
        let bound = Lsn(tail.0.saturating_sub(self.gap_bytes / 8 * PAGE_AGE));
        let mut sweep = self.sweep();
        let due = sweep.advance(bound, self.gap_bytes / STEPS, |until| self.pool.older(until));
        let mut written = self.pool.write_overdue(&due, bound);
        let is_far = lead >= self.gap_bytes / 2;
        if is_far {
            // Writes the pages whose latches were held.
            written = written.and(self.pool.write_older(bound));
        }
        drop(sweep);
        // If no place is free for a page, the checkpoint frees some.
        if is_far || self.pages.wants_map(self.places_waiting()) {
            self.confirm_place()?;
            self.take()?;
        }
        // The next scan lists the pages that could not be written.
        Ok(written.map(drop)?)
    }

    /// Returns the number of bytes of the file that may wait for a checkpoint to become free.
    fn places_waiting(&self) -> u64 {
        (self.pages.file_bytes() / WAITING_PART).max(WAITING_LEAST)
    }
}
