//! The pool type and its parts.
//!
//! One type for every strategy: translation, latching and the policy's hot half are types
//! ([`PoolStrategy`]), so that each combination is compiled for itself and a run pays only for what
//! it names. `store/combinations.rs` lists the combinations that exist.
//!
//! The pool's work is in separate files, as methods of [`Pool`]: `translation` follows swips and
//! loads pages, `replacement` finds victims and free frames, `writeback` writes, `allocation.rs`
//! creates and deletes pages, `logging.rs` logs changes, and `pool_pages.rs` implements the
//! interface that data structures see.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{self, Access, HitHook, HitOn, TickSource};

use crate::log::Log;
use crate::page::PageType;
use crate::pool::anchors::Anchors;
use crate::pool::error::PoolError;
use crate::pool::frame::{FrameHeader, POLICY_LINE, State};
use crate::pool::kind::Kind;
use crate::pool::latch::Latching;
use crate::pool::memory::frames::Frames;
use crate::pool::mini_transaction::RedoLog;
use crate::pool::options::{EvictionMode, FRAMES_MIN, PoolOptions, PoolStrategy};
use crate::pool::page_ids::PageIds;
use crate::pool::recording::recorder::Recorder;
use crate::pool::recording::storage_recorder::StorageRecorder;
use crate::pool::replacement::cleaning::PageCleaners;
use crate::pool::replacement::clock::PolicyClock;
use crate::pool::replacement::evictor_threads::EvictorThreads;
use crate::pool::replacement::policy_host::{HostedPolicy, PolicyHost};
use crate::pool::replacement::scanned::Scanned;
use crate::pool::starvation::StarvationGuard;
use crate::pool::storage::Storage;
use crate::pool::sync::event::Event;
use crate::pool::translation::translation::Translation;
use crate::pool::writeback::writeback::Writeback;
use crate::stats::Statistics;
use crate::stats::counters::{Counter, Counters};
use crate::stats::histogram::Latencies;
use crate::stats::thread_slot::thread_slot;

/// The buffer pool.
pub struct Pool<M: PoolStrategy> {
    // Read, or may be read, by each reference to a page.
    /// The memory of all frames, and those without a page.
    pub(in crate::pool) frames: Frames,
    /// Parameters of the policy's hot half; those of the cold half in `policy_host`.
    pub(crate) params: <M::Hook as HitHook>::Params,
    /// Which end of an access the policy counts.
    pub(crate) hit_on: HitOn,
    /// The time that the policy sees.
    pub(crate) clock: PolicyClock,
    pub(crate) statistics: Statistics,
    /// Finds the frames of pages, and loads pages.
    pub(in crate::pool) translation: Translation<M>,
    /// The redo log, if changes are logged, and the page space at its end.
    pub(crate) redo: RedoLog,

    // Needed only when a page is loaded, created, evicted or deleted.
    /// The cold half of the policy. It knows the pages in state hot or cooling, and no others.
    pub(crate) policy_host: PolicyHost<M::Hook>,
    policy: &'static str,
    /// Frames that only scans have referenced: victims before the policy is asked.
    pub(crate) scanned: Scanned,
    /// The one operation for which pages are held, so that it ends.
    pub(crate) starvation: StarvationGuard,
    /// Dirty pages on their way to storage.
    pub(in crate::pool) writeback: Writeback,
    /// State of the page cleaners, if there are any.
    pub(crate) cleaners: PageCleaners,
    /// Ids of the next new pages.
    pub(crate) ids: PageIds,
    /// The parents of roots.
    pub(crate) anchors: Anchors,
    /// Events on which threads wait for work, or for a frame.
    pub(crate) sleep: Sleep,

    // Options of a run, and its reports.
    pub(crate) options: PoolOptions,
    pub(crate) recorder: Recorder,
    pub(crate) storage_recorder: StorageRecorder,
}

/// Events on which background threads wait for work, and workers for frames.
#[derive(Default)]
pub(crate) struct Sleep {
    /// Set once, before all events are signalled; background threads then end.
    pub(crate) stop: AtomicBool,
    /// Free frames that a worker waits for; 0 if none waits.
    pub(crate) demand: AtomicU32,
    /// Signalled when there is something to evict.
    pub(crate) work: Event,
    /// Evictors that are called one by one.
    pub(crate) evictor_threads: EvictorThreads,
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
        let evictions_per_tick = hosted.policy_host.evictions_per_tick();
        Ok(Pool {
            frames,
            params: hosted.params,
            hit_on: hosted.policy_host.hit_on(),
            clock: PolicyClock::new(options.references_per_tick, evictions_per_tick),
            statistics: Statistics::new(options.sample_period),
            translation: Translation::new(storage.clone(), options.frames),
            redo: RedoLog::default(),
            policy_host: hosted.policy_host,
            policy: hosted.name,
            scanned: Scanned::default(),
            cleaners: PageCleaners::default(),
            starvation: StarvationGuard::default(),
            writeback: Writeback::new(storage.clone(), &options),
            ids: PageIds::new(storage.clone()),
            anchors: Anchors::new(page_size)?,
            sleep: Sleep::default(),
            recorder: Recorder::default(),
            storage_recorder: StorageRecorder::default(),
            options,
        })
    }

    /// Returns this pool with its changes logged to `log`.
    #[must_use]
    pub fn logged(mut self, log: Arc<Log>) -> Pool<M> {
        self.redo = RedoLog::to(log);
        self
    }

    /// Registers `kind` to find the swips of pages of type `page_type`; the first call counts.
    pub fn register(&self, page_type: PageType, kind: &'static dyn Kind) {
        self.translation.kinds().register(page_type, kind);
    }

    /// Returns the page ids that were allocated in storage ahead of need.
    pub fn ids(&self) -> &PageIds {
        &self.ids
    }

    /// Makes writes to frames fatal, or allows them again. A test proves with it that reads write
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
        self.sleep.stop.load(Ordering::Acquire)
    }

    /// Returns the pages that wait to be written.
    pub(crate) fn writeback(&self) -> &Writeback {
        &self.writeback
    }

    /// Returns the policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy
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
        &self.recorder
    }

    /// Returns the recorder of requests to storage.
    pub fn storage_recorder(&self) -> &StorageRecorder {
        &self.storage_recorder
    }

    /// Returns the policy lines of all frames.
    #[inline(always)]
    pub(crate) fn metas(&self) -> contract::Frames<'_, M::Hook> {
        // SAFETY: every frame's policy line holds a `Meta`, written or zeros that are one, which is
        // shared only; the memory stays mapped while the pool is borrowed. A `Meta` without size
        // needs none.
        unsafe {
            let first = self.frames.memory().start().add(POLICY_LINE);
            contract::Frames::strided(
                first.as_ptr(),
                self.frames.memory().stride(),
                self.frames.memory().frames(),
            )
        }
    }

    /// Returns the time of the policy's clock. With `reference`, the clock counts one more
    /// reference first.
    #[inline(always)]
    pub(crate) fn now(&self, reference: bool) -> u32 {
        match M::Hook::tick_source(&self.params) {
            TickSource::None => 0,
            TickSource::PerAccess if reference => self.clock.reference(thread_slot()),
            TickSource::PerAccess | TickSource::PerEviction => self.clock.now(),
        }
    }

    /// Returns an access as the policy sees it.
    #[inline(always)]
    pub(crate) fn access(&self, page: PageId, mark: Mark, reference: bool) -> Access {
        Access { page, mark, now: self.now(reference), next: 0, next_read: 0 }
    }

    /// Counts `count` evictions, which may advance the policy's clock.
    pub(crate) fn count_evictions(&self, count: u32) {
        self.statistics.counters.add(Counter::Evictions, u64::from(count));
        let counts = M::Hook::tick_source(&self.params) == TickSource::PerEviction;
        self.clock.count_evictions(count, counts);
    }

    /// Returns the header of frame `id`.
    pub(crate) fn frame(&self, id: FrameId) -> Option<&FrameHeader> {
        self.frames.memory().header(id)
    }

    /// Returns the frames that hold a page, in order: for checks, when nothing else runs.
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
        self.frames.headers().filter(|(_, header)| header.is_dirty()).count() as u32
    }

    /// Checks the policy's invariants, when nothing else runs.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check_policy(&self) -> Result<(), String> {
        self.policy_host.check(self.metas(), &self.resident())
    }
}
