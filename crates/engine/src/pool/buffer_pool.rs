//! The pool type and its parts.
//!
//! One generic type serves every strategy. [`PoolStrategy`] chooses translation, latching and the
//! policy's hot half at compile time, so a run pays only for the parts that it names.
//! `store/combinations.rs` lists the combinations that exist.
//!
//! The pool composes its parts; each part owns its fields and does not know the pool. The flows
//! between parts are methods of [`Pool`] in files of their own: `resolve.rs` follows swips,
//! `fault.rs` and `reading_ahead.rs` load pages, and `free_frames.rs` and `evicting.rs` find frames
//! and victims. `writing.rs` writes pages, `allocation.rs` creates and deletes them, `moving.rs`
//! moves them, and `logging.rs` logs their changes. `pool_pages.rs` implements the interface for
//! data structures.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_base::FrameId;

use crate::log::Log;
use crate::page::PageType;
use crate::pool::anchors::Anchors;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, State};
use crate::pool::kind::Kind;
use crate::pool::latch::Latching;
use crate::pool::memory::frames::Frames;
use crate::pool::mini_transaction::RedoLog;
use crate::pool::options::{EvictionMode, FRAMES_MIN, PoolOptions, PoolStrategy};
use crate::pool::page_ids::PageIds;
use crate::pool::recording::recorder::Recorder;
use crate::pool::recording::storage_recorder::StorageRecorder;
use crate::pool::replacement::evictors::Evictors;
use crate::pool::replacement::policy_host::HostedPolicy;
use crate::pool::replacement::replacement::Replacement;
use crate::pool::storage::Storage;
use crate::pool::translation::translation::Translation;
use crate::pool::writeback::writeback::Writeback;
use crate::stats::Statistics;
use crate::stats::counters::Counters;
use crate::stats::histogram::Latencies;

/// The buffer pool.
pub struct Pool<M: PoolStrategy> {
    // Read, or may be read, by each reference to a page.
    /// Memory of all frames, and the lists of free frames.
    pub(in crate::pool) frames: Frames,
    /// Chooses the pages to evict.
    pub(in crate::pool) replacement: Replacement<M>,
    pub(in crate::pool) statistics: Statistics,
    /// Finds the frames of pages, and loads pages.
    pub(in crate::pool) translation: Translation<M>,
    /// The redo log, if changes are logged, and the page space at its end.
    pub(in crate::pool) redo: RedoLog,

    // Needed only when a page is loaded, created, evicted or deleted.
    /// Calls evictor threads.
    pub(in crate::pool) evictors: Evictors,
    /// Dirty pages on their way to storage.
    pub(in crate::pool) writeback: Writeback,
    /// Ids of the next new pages.
    pub(in crate::pool) ids: PageIds,
    /// The parents of roots.
    pub(in crate::pool) anchors: Anchors,
    pub(in crate::pool) options: PoolOptions,
    pub(in crate::pool) storage_recorder: StorageRecorder,
    /// Set once, before all events are signalled; background threads then end.
    pub(in crate::pool) stop: AtomicBool,
}

impl<M: PoolStrategy> Pool<M> {
    /// Opens a pool over `storage`, with the policy in `hosted`.
    ///
    /// # Errors
    /// Too few frames, an unsupported page size, no memory, or a policy that does not fit.
    pub fn open(
        mut options: PoolOptions,
        storage: Arc<dyn Storage>,
        hosted: HostedPolicy<M::Hook>,
    ) -> Result<Pool<M>, PoolError> {
        let page_size = storage.page_size();
        if !page_size.is_power_of_two() || !(512..=1 << 16).contains(&page_size) {
            return Err(PoolError::PageSize { page_size: page_size as u64 });
        }
        if options.frames < FRAMES_MIN {
            return Err(PoolError::TooSmall { frames: options.frames, least: FRAMES_MIN });
        }
        if !M::Latching::THREADS {
            options.background_writer = false;
            options.evictors = EvictionMode::Worker;
        }
        let frames = Frames::map::<M::Hook>(&options, page_size, &hosted.params)?;
        Ok(Pool {
            frames,
            replacement: Replacement::new(hosted, &options),
            statistics: Statistics::new(options.sample_period),
            translation: Translation::new(storage.clone(), options.frames),
            redo: RedoLog::default(),
            evictors: Evictors::new(&options),
            writeback: Writeback::new(storage.clone(), &options),
            ids: PageIds::new(storage),
            anchors: Anchors::new(page_size)?,
            options,
            storage_recorder: StorageRecorder::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// Returns this pool with its changes logged to `log`.
    #[must_use]
    pub fn logged(mut self, log: Arc<Log>) -> Pool<M> {
        self.redo = RedoLog::to(log);
        self
    }

    /// Registers `kind` to find the swips of pages of type `page_type`; only the first call for a
    /// type has an effect.
    pub fn register(&self, page_type: PageType, kind: &'static dyn Kind) {
        self.translation.kinds().register(page_type, kind);
    }

    /// Returns the page ids that were allocated in storage ahead of need.
    pub fn ids(&self) -> &PageIds {
        &self.ids
    }

    /// Makes writes to frames fatal, or allows them again. Tests use it to prove that reads write
    /// to no frame.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn forbid_writes(&self, forbid: bool) -> std::io::Result<()> {
        self.frames.memory().forbid_writes(forbid)
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u32 {
        self.frames.memory().frames()
    }

    /// Returns the number of frames that hold no page, a moment ago.
    pub fn frames_free(&self) -> u32 {
        self.frames.free()
    }

    /// Returns whether the pool's threads are to end.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Returns the number of evictor threads at work now, if their number adapts; otherwise 0.
    pub fn evictors_awake(&self) -> u32 {
        self.evictors.awake()
    }

    /// Returns the pages that wait to be written.
    pub(crate) fn writeback(&self) -> &Writeback {
        &self.writeback
    }

    /// Returns the policy's name.
    pub fn policy(&self) -> &'static str {
        self.replacement.name()
    }

    /// Returns the counters of the pool and of everything that works on it.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the pool's counters.
    pub fn counters(&self) -> &Counters {
        &self.statistics.counters
    }

    /// Returns the pool's latency histograms.
    pub fn latencies(&self) -> &Latencies {
        &self.statistics.latencies
    }

    /// Returns the recorder of page references, where the pool was compiled for it.
    pub fn recorder(&self) -> &Recorder {
        self.replacement.recorder()
    }

    /// Returns the recorder of requests to storage.
    pub fn storage_recorder(&self) -> &StorageRecorder {
        &self.storage_recorder
    }

    /// Returns the header of frame `id`.
    pub(crate) fn frame(&self, id: FrameId) -> Option<&FrameHeader> {
        self.frames.memory().header(id)
    }

    /// Returns the frames that hold a page, in ascending order. For checks, while nothing else
    /// runs.
    pub fn resident(&self) -> Vec<FrameId> {
        let headers = self.frames.headers();
        let held = headers.filter(|(_, h)| matches!(h.state(), State::Hot | State::Cooling));
        held.map(|(id, _)| id).collect()
    }

    /// Counts the frames in each state: a walk over all headers.
    pub fn census(&self) -> HashMap<State, u32> {
        let mut census = HashMap::new();
        self.frames.headers().for_each(|(_, h)| *census.entry(h.state()).or_default() += 1);
        census
    }

    /// Counts the frames whose page must be written: a walk over all headers.
    pub fn frames_dirty(&self) -> u32 {
        self.frames.dirty()
    }

    /// Checks the policy's invariants, while nothing else runs.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check_policy(&self) -> Result<(), String> {
        self.replacement.check(&self.frames, &self.resident())
    }
}
