//! Pages that are written for the log's sake: a checkpoint chooses those whose recLSNs are old, so
//! that the log from there on is all that a recovery reads.
//!
//! Time passes between the choice and the write. A page that another thread wrote meanwhile, and
//! that changed again, is young: it keeps nothing of the log, and is passed by. The log is cut at
//! [`Pool::redo_bound`], which looks at all frames again, and not by that choice.

use millpond_base::{FrameId, Lsn, Reason};
use millpond_device::planted;

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;
use crate::pool::options::PoolStrategy;
use crate::pool::writeback::buffer::BATCH_MAX;

impl<M: PoolStrategy> Pool<M> {
    /// Returns the frames that are dirty and whose recLSN is before `bound`, with it.
    pub fn older(&self, bound: Lsn) -> Vec<(Lsn, FrameId)> {
        let used = self.frames.used_headers();
        let dirty = used.filter_map(|(id, header)| Some((header.dirty_since()?, id)));
        dirty.filter(|(rec_lsn, _)| *rec_lsn < bound).collect()
    }

    /// Writes the pages whose recLSN is before `bound`, to bound the time of a recovery.
    ///
    /// # Errors
    /// A page that could not be written.
    pub fn write_older(&self, bound: Lsn) -> Result<u32, PoolError> {
        let mut written = 0;
        let mut frames: Vec<FrameId> = self.older(bound).into_iter().map(|(_, id)| id).collect();
        // A page whose latch is held at the moment gets a second chance, no more: the next round
        // finds it again.
        for _ in 0..2 {
            if frames.is_empty() {
                break;
            }
            written += self.write_overdue(&frames, bound)?;
            frames.retain(|id| self.is_older(*id, bound));
        }
        Ok(written)
    }

    /// Returns a bound of the log below which no page in memory needs it: the least recLSN of all
    /// pages that are dirty or being written, and not beyond the tail of the log as it is now.
    pub fn redo_bound(&self) -> Lsn {
        let mut bound = self.redo.tail();
        // A frame that is handed out from now on gets dirty behind that.
        for (_, header) in self.frames.used_headers() {
            if header.is_dirty_or_writing()
                && (header.is_dirty() || !planted!(WritingCountsAsClean))
            {
                bound = bound.min(header.rec_lsn());
            }
        }
        bound
    }

    /// Writes, for the log's sake, those of `frames` whose recLSN is before `bound` when it is
    /// their turn, and that can be latched then; returns their number, neighbours included. A
    /// chosen page that another thread wrote since keeps nothing of the log, even if it is dirty
    /// again.
    ///
    /// # Errors
    /// See [`Pool::write_frames`].
    pub fn write_overdue(&self, frames: &[FrameId], bound: Lsn) -> Result<u32, PoolError> {
        self.kinds.all_registered()?;
        let (mut written, mut first) = (0, None);
        for chosen in frames.chunks(BATCH_MAX) {
            let overdue: Vec<FrameId> =
                chosen.iter().copied().filter(|id| self.is_older(*id, bound)).collect();
            // Neighbours of a page go with it however young they are.
            let is_due = |id: FrameId, rec_lsn: Lsn| rec_lsn < bound || !overdue.contains(&id);
            let all = self.with_neighbours(&overdue, Reason::Recov);
            let (count, error) = self.write_all(&all, Reason::Recov, &is_due);
            written += count;
            let is_hopeless = count == 0 && error.is_some();
            first = first.or(error);
            if is_hopeless {
                break;
            }
        }
        self.reap();
        first.map_or(Ok(written), Err)
    }

    /// Returns whether the page in frame `id` is dirty, and has a recLSN before `bound`.
    fn is_older(&self, id: FrameId, bound: Lsn) -> bool {
        let since = self.frames.memory().header(id).and_then(FrameHeader::dirty_since);
        since.is_some_and(|rec_lsn| rec_lsn < bound)
    }
}
