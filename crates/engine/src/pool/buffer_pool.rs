//! The pool itself: what it is made of, and what it is to data structures.
//!
//! One type for every strategy: translation, latching and the policy's hot half are types
//! ([`PoolStrategy`]), so that each combination is compiled for itself and a run pays only for what
//! it names. `db` lists the combinations that exist.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use millpond_base::sync::{Mutex, MutexGuard};
use millpond_base::{FrameId, Lsn, Mark, PageId};
use millpond_policies::contract::{Access, Frames, HitHook, HitOn, TickSource};

use crate::log::Log;
use crate::page::record_body::OrphanRoot;
use crate::page::{PageHeader, PageType, View};
use crate::pool::epoch::{Epochs, Reclamation};
use crate::pool::error::PoolError;
use crate::pool::event::Event;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader, State};
use crate::pool::guard::{Read, Write};
use crate::pool::jump::{Jump, Try};
use crate::pool::kind::{ANCHOR_STAMP, ANCHOR_SWIP, AnchorKind, Kind, OWNER_UNKNOWN};
use crate::pool::latch::Latching;
use crate::pool::memory::free_list::FreeLists;
use crate::pool::memory::numa::Nodes;
use crate::pool::memory::region::FrameMemory;
use crate::pool::mini_transaction::{ChangeSet, PageSpace};
use crate::pool::pages::{Anchor, MiniTransaction, NewPage, Pages, References};
use crate::pool::recording::recorder::Recorder;
use crate::pool::recording::storage_recorder::StorageRecorder;
use crate::pool::replacement::clock::PolicyClock;
use crate::pool::replacement::evictor_threads::EvictorThreads;
use crate::pool::replacement::policy_host::{HostedPolicy, PolicyHost};
use crate::pool::replacement::scanned::Scanned;
use crate::pool::starvation::StarvationGuard;
use crate::pool::stats::counters::{Counter, Counters};
use crate::pool::stats::histogram::Latencies;
use crate::pool::storage::Storage;
use crate::pool::swip::Swip;
use crate::pool::thread_slot::thread_slot;
use crate::pool::translation::in_flight::InFlight;
use crate::pool::translation::page_table::PageTable;
use crate::pool::writeback::write::Writes;

/// The strategies of one compiled pool.
pub trait PoolStrategy: Send + Sync + 'static {
    /// How reads are protected.
    type Latching: Latching;
    /// The hot half of the policies that can be seated.
    type Hook: HitHook;
    /// Whether references to pages in memory are pointers; else they go through a hash table.
    const SWIZZLES: bool;
    /// Whether page references can be recorded.
    const RECORDS: bool = false;
    /// Whether stores with these strategies have trees only, so that less is compiled.
    const TREES_ONLY: bool = false;
}

/// Who evicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evictors {
    /// The thread that needs a frame; a background thread only writes.
    Workers,
    /// So many threads of the pool's own; a worker that needs a frame waits for them.
    Threads(u32),
    /// As many threads of the pool's own as demand asks for; all sleep while enough frames are
    /// free. A worker that needs a frame when all of them are at work helps.
    Adaptive {
        /// How many there are.
        most: u32,
    },
}

/// How a pool shall be.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Number of frames, at least 8.
    pub frames: u32,
    /// When frames are used again.
    pub reclamation: Reclamation,
    /// Who evicts.
    pub evictors: Evictors,
    /// Free frames that evictor threads keep ready, and victims that a worker looks for at once.
    /// 1 evicts page by page, as a simulator does.
    pub batch: u32,
    /// Whether a thread writes dirty pages in the background.
    pub background_writer: bool,
    /// Whether memory is touched when the pool opens.
    pub prefault: bool,
    /// Memory nodes to pretend; `None` asks the machine.
    pub nodes: Option<u32>,
    /// Of the operations in memory, one in so many is timed; 0 times none.
    pub sample_period: u32,
    /// References by which a policy's clock of references moves at once: 1 is exact, and a word
    /// that all threads write at each reference.
    pub references_per_tick: u32,
    /// Attempts after which an operation that still misses a page fails, while nothing is held for
    /// it; `None`: none fails, and pages are held for one that is in distress.
    pub attempts_max: Option<u32>,
    /// Seed of random choices.
    pub seed: u64,
}

impl PoolOptions {
    /// The defaults for so many frames.
    pub fn new(frames: u32) -> PoolOptions {
        PoolOptions {
            frames,
            reclamation: Reclamation::default(),
            evictors: Evictors::Workers,
            batch: (frames / 64).clamp(1, 64),
            background_writer: true,
            prefault: false,
            nodes: None,
            sample_period: 64,
            references_per_tick: 1,
            attempts_max: None,
            seed: 0x6d69_6c6c,
        }
    }
}

/// What a page that was to be made at a low place is lacking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lacking {
    /// There is no free page before that place.
    Id,
    /// There is no free frame.
    FrameHeader,
}

/// Frames below which no pool can work: a path, a split and its new pages.
pub const FRAMES_MIN: u32 = 8;

/// An anchor's memory: a header and a page with one swip.
struct AnchorMemory(NonNull<FrameHeader>);

// SAFETY: an address that the pool owns, reached through latches.
unsafe impl Send for AnchorMemory {}

/// The buffer pool.
pub struct Pool<M: PoolStrategy> {
    // What the hot path reads comes first.
    pub(crate) memory: FrameMemory,
    pub(crate) page_size: usize,
    epochs_on: bool,
    pub(crate) logs: bool,
    pub(crate) params: <M::Hook as HitHook>::Params,
    pub(crate) hit_on: HitOn,
    clock: PolicyClock,
    pub(crate) counters: Counters,
    pub(crate) epochs: Epochs,
    pub(crate) table: PageTable<M::Latching>,
    pub(crate) free: FreeLists,
    pub(crate) policy_host: PolicyHost<M::Hook>,
    policy: &'static str,
    pub(crate) in_flight: InFlight,
    pub(crate) scanned: Scanned,
    pub(crate) starvation: StarvationGuard,
    pub(crate) writes: Writes,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: PoolOptions,
    pub(crate) latencies: Latencies,
    pub(crate) recorder: Recorder,
    pub(crate) storage_recorder: StorageRecorder,
    pub(crate) log: Option<Arc<Log>>,
    /// Changed while what changes it is logged, so that it is as of the end of the log.
    pub(crate) space: Mutex<PageSpace>,
    nodes: Nodes,
    kinds: Box<[OnceLock<&'static dyn Kind>; 256]>,
    /// A type of pages that were found to hold swips and have no kind; 0: none was.
    unregistered: AtomicU8,
    ids: Mutex<Vec<PageId>>,
    /// Ids from here on are not kept for the next new page: what is in use shall lie before.
    ceiling: AtomicU64,
    /// Held while page ids are fetched from storage, which may do I/O.
    refill: Mutex<()>,
    anchors: Mutex<Vec<AnchorMemory>>,
    /// Released anchors. They are used again and their memory stays: a late reader may still look
    /// at one, and finds that its version changed.
    anchors_free: Mutex<Vec<AnchorMemory>>,
    evictions_per_tick: u64,
    evicted: AtomicU64,
    pub(crate) sleep: Sleep,
    _mode: PhantomData<M>,
}

/// Where background threads sleep, and workers that wait for frames.
#[derive(Default)]
pub(crate) struct Sleep {
    pub(crate) stop: AtomicBool,
    /// Free frames that somebody waits for.
    pub(crate) demand: AtomicU32,
    /// Rung when there is something to evict, to write or to read ahead.
    pub(crate) work: Event,
    /// Evictors that are called one by one.
    pub(crate) evictor_threads: EvictorThreads,
    /// Rung when frames became free.
    pub(crate) frames: Event,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// A pool over `storage`, replaced by the policy that sits in `hosted`.
    ///
    /// # Errors
    /// Too few frames, a page size that will not do, no memory, or a policy that does not fit.
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
            options.evictors = Evictors::Workers;
        }
        let memory = FrameMemory::map(options.frames, page_size)?;
        let zeroed = M::Hook::zeroed(&hosted.params);
        memory.initialise_metas(zeroed, || M::Hook::fresh(&hosted.params))?;
        let nodes = Nodes::find(options.nodes);
        nodes.bind(&memory);
        if options.prefault {
            memory.prefault();
        }
        let pool = Pool {
            page_size,
            epochs_on: options.reclamation == Reclamation::Epoch,
            params: hosted.params,
            hit_on: hosted.policy_host.hit_on(),
            clock: PolicyClock::new(options.references_per_tick),
            counters: Counters::new(),
            epochs: Epochs::new(),
            table: PageTable::new(if M::SWIZZLES { 2 } else { options.frames }),
            free: FreeLists::new(options.frames, nodes.count()),
            evictions_per_tick: u64::from(hosted.policy_host.evictions_per_tick()),
            policy_host: hosted.policy_host,
            policy: hosted.name,
            in_flight: InFlight::default(),
            scanned: Scanned::default(),
            starvation: StarvationGuard::default(),
            writes: Writes::new(page_size),
            storage,
            latencies: Latencies::new(options.sample_period),
            recorder: Recorder::default(),
            storage_recorder: StorageRecorder::default(),
            logs: false,
            log: None,
            space: Mutex::default(),
            nodes,
            kinds: Box::new([const { OnceLock::new() }; 256]),
            unregistered: AtomicU8::new(0),
            ids: Mutex::default(),
            ceiling: AtomicU64::new(u64::MAX),
            refill: Mutex::default(),
            anchors: Mutex::default(),
            anchors_free: Mutex::default(),
            evicted: AtomicU64::new(0),
            sleep: Sleep::default(),
            memory,
            options,
            _mode: PhantomData,
        };
        pool.register(PageType::ANCHOR, &AnchorKind);
        Ok(pool)
    }

    /// The same pool, whose changes are logged.
    #[must_use]
    pub fn logged(mut self, log: Arc<Log>) -> Pool<M> {
        self.logs = true;
        self.log = Some(log);
        self
    }

    /// Says where the swips of pages of type `page_type` are; the first answer stays.
    pub fn register(&self, page_type: PageType, kind: &'static dyn Kind) {
        let _ = self.kinds[usize::from(page_type.0)].set(kind);
    }

    /// What the pool knows of a page's type; `None` if such pages have no swips.
    #[inline]
    pub(crate) fn kind(&self, page: View<'_>) -> Option<&'static dyn Kind> {
        self.kinds[usize::from(PageHeader::type_in(page).0)].get().copied()
    }

    /// Whether the swips of the page in `parent`, which this thread holds, can be found. If not, it
    /// is remembered: pointers in such a page would reach storage, so nothing is written any more.
    pub(crate) fn knows_swips_of(&self, parent: NonNull<FrameHeader>) -> bool {
        let view = self.view(parent);
        let known = !M::SWIZZLES || self.kind(view).is_some();
        if !known {
            self.unregistered.store(PageHeader::type_in(view).0, Ordering::Relaxed);
        }
        known
    }

    /// Fails once a page was found whose swips the pool cannot find.
    pub(crate) fn all_registered(&self) -> Result<(), PoolError> {
        match self.unregistered.load(Ordering::Relaxed) {
            0 => Ok(()),
            page_type => Err(PoolError::Unregistered { page_type }),
        }
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.memory.frames()
    }

    /// Number of frames that hold no page, a moment ago.
    pub fn frames_free(&self) -> u32 {
        self.free.len()
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy
    }

    /// The pool's counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The pool's latency histograms.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Records page references, where the pool was compiled for it.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Records what storage is asked for, if it is started.
    pub fn storage_recorder(&self) -> &StorageRecorder {
        &self.storage_recorder
    }

    /// The view of all frames' policy lines.
    #[inline(always)]
    pub(crate) fn metas(&self) -> Frames<'_, M::Hook> {
        // SAFETY: every frame's policy line holds a `Meta`, written or zeros that are one, which is
        // shared only;
        // the memory stays mapped while the pool is borrowed. A `Meta` without size needs none.
        unsafe {
            let first = self.memory.start().add(crate::pool::frame::POLICY_LINE);
            Frames::strided(first.as_ptr(), self.memory.stride(), self.memory.frames())
        }
    }

    /// The page of a frame, seen raw.
    #[inline]
    pub(crate) fn view(&self, frame: NonNull<FrameHeader>) -> View<'_> {
        // SAFETY: a frame or an anchor of this pool, followed by its page, mapped while the pool
        // is borrowed, aligned to 512.
        unsafe { View::raw(frame.cast::<u8>().as_ptr().add(FRAME_HEADER_BYTES), self.page_size) }
    }

    /// The header of a frame or an anchor.
    #[inline]
    pub(crate) fn header(&self, frame: NonNull<FrameHeader>) -> &FrameHeader {
        // SAFETY: frames and anchors of this pool stay mapped while the pool is borrowed, and are
        // made of atomics. All addresses come from swips that were validated, or from headers.
        unsafe { frame.as_ref() }
    }

    /// The page of a frame that this thread holds exclusively.
    #[expect(clippy::mut_from_ref, reason = "the exclusive latch is the permission")]
    pub(crate) fn bytes(&self, frame: NonNull<FrameHeader>) -> &mut [u8] {
        debug_assert!(self.header(frame).latch.is_exclusive());
        // SAFETY: the caller holds the frame's latch exclusively (it is a free or loading frame of
        // its own, or a guard's); readers read raw and validate.
        unsafe {
            let start = frame.cast::<u8>().as_ptr().add(FRAME_HEADER_BYTES);
            std::slice::from_raw_parts_mut(start, self.page_size)
        }
    }

    /// Writes the swip at `at` in the page of `frame`, in one piece.
    pub(crate) fn set_swip(&self, frame: NonNull<FrameHeader>, at: usize, word: Swip) {
        if at.checked_add(8).is_none_or(|end| end > self.page_size) || at & 7 != 0 {
            debug_assert!(false, "a swip at byte {at}");
            return;
        }
        // SAFETY: inside the page and aligned, as checked; the caller holds the latch exclusively,
        // and readers load the word atomically.
        let place = unsafe {
            let start = frame.cast::<u8>().as_ptr().add(FRAME_HEADER_BYTES + at);
            AtomicU64::from_ptr(start.cast())
        };
        place.store(word.0.to_le(), Ordering::Release);
    }

    /// The policy's clock now; `reference` counts one where it counts references.
    #[inline(always)]
    pub(crate) fn now(&self, reference: bool) -> u32 {
        match M::Hook::tick_source(&self.params) {
            TickSource::None => 0,
            TickSource::PerAccess if reference => self.clock.reference(thread_slot()),
            TickSource::PerAccess | TickSource::PerEviction => self.clock.now(),
        }
    }

    /// An access as the policy sees it.
    #[inline(always)]
    pub(crate) fn access(&self, page: PageId, mark: Mark, reference: bool) -> Access {
        Access { page, mark, now: self.now(reference), next: 0, next_read: 0 }
    }

    /// Pages evicted since the pool opened.
    pub(crate) fn evictions(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// So many pages were evicted: the policy's clock may move.
    pub(crate) fn count_evictions(&self, count: u32) {
        self.counters.add(Counter::Evictions, u64::from(count));
        let before = self.evicted.fetch_add(u64::from(count), Ordering::Relaxed);
        if M::Hook::tick_source(&self.params) == TickSource::PerEviction {
            let per_tick = self.evictions_per_tick;
            let ticks = (before + u64::from(count)) / per_tick - before / per_tick;
            self.clock.move_on(ticks as u32);
        }
    }

    /// The memory node of the calling thread.
    pub(crate) fn node(&self, slot: usize) -> usize {
        self.nodes.of_thread(slot)
    }

    /// The epoch to give frames up in; 0 where there are none.
    pub(crate) fn giving_up(&self) -> u64 {
        if !self.epochs_on {
            return 0;
        }
        let (epoch, stepped) = self.epochs.give_up();
        if stepped {
            self.counters.count(Counter::EpochAdvances);
        }
        epoch
    }

    /// A frame without a page, if there is one now; latched exclusively.
    pub(crate) fn take_free(&self) -> Option<NonNull<FrameHeader>> {
        let slot = thread_slot();
        let take = || self.free.take(slot, self.node(slot), || self.epochs.oldest());
        let taken = match take() {
            None if self.epochs_on && !self.free.is_empty() => {
                // Those that are free wait for an epoch that nobody else would end.
                self.epochs.step();
                take()?
            }
            taken => taken?,
        };
        if taken.fresh {
            self.memory.initialise(taken.frame);
        }
        let frame = self.memory.frame(taken.frame)?;
        let header = self.header(frame);
        // A sampling evictor, or a reader that is late, may hold it for a moment.
        while !header.latch.exclusive() {
            millpond_base::sync::thread::yield_now();
        }
        debug_assert_eq!(header.state(), State::Free);
        Some(frame)
    }

    /// Puts a frame that is latched exclusively, and unknown to the policy, on a free list.
    pub(crate) fn give_back(&self, frame: NonNull<FrameHeader>) {
        let header = self.header(frame);
        header.set_page(None);
        header.set_parent(None);
        header.clear_dirty();
        header.become_state(State::Free);
        self.give_back_unused(frame);
    }

    /// The same for a frame that was only taken, and is free still.
    pub(crate) fn give_back_unused(&self, frame: NonNull<FrameHeader>) {
        let header = self.header(frame);
        let id = header.id();
        header.latch.release_exclusive();
        self.free.give(&[id], self.frames(), 0);
        self.sleep.frames.signal();
    }

    /// An id for a new page, if one can be had without I/O.
    fn take_id(&self) -> Option<PageId> {
        locked(&self.ids).pop()
    }

    /// `page` is free; a surplus goes back to the storage.
    fn give_id(&self, page: PageId) {
        const KEPT: usize = 256;
        if page.0 >= self.ceiling.load(Ordering::Relaxed) {
            return self.give_to_storage(page);
        }
        let mut ids = locked(&self.ids);
        ids.push(page);
        if ids.len() > 2 * KEPT {
            let surplus: Vec<PageId> = ids.drain(..KEPT).collect();
            drop(ids);
            surplus.into_iter().for_each(|id| self.give_to_storage(id));
        }
    }

    fn give_to_storage(&self, page: PageId) {
        if let Err(error) = self.storage.free(page) {
            tracing::warn!(%error, "a page could not be given back");
        }
    }

    /// The least id of a free page below `bound`.
    fn take_id_below(&self, bound: PageId) -> Option<PageId> {
        let mut ids = locked(&self.ids);
        let least = ids.iter().enumerate().min_by_key(|(_, id)| **id);
        match least.map(|(at, id)| (at, *id)).filter(|(_, id)| *id < bound) {
            Some((at, _)) => Some(ids.swap_remove(at)),
            None => self.storage.allocate_below(bound),
        }
    }

    /// From now on new pages get ids below `bound` where there are any; `None`: any id.
    pub(crate) fn set_ceiling(&self, bound: Option<PageId>) {
        self.ceiling.store(bound.map_or(u64::MAX, |bound| bound.0), Ordering::Relaxed);
    }

    /// Whether pages are being moved to lower ids, so that the store must not grow for nothing.
    pub fn is_packing(&self) -> bool {
        self.ceiling.load(Ordering::Relaxed) != u64::MAX
    }

    /// Makes sure of at least `least` page ids, or of what is left of a full disk.
    pub(crate) fn refill_ids(&self, least: u32) -> Result<(), PoolError> {
        const AT_ONCE: u32 = 64;
        let enough = || locked(&self.ids).len() >= least as usize;
        if enough() {
            return Ok(());
        }
        // Attempts, which hold latches, take ids at the same time: they must not wait for I/O.
        let _refilling = locked(&self.refill);
        let mut has_more = false;
        while !enough() {
            let mut more = Vec::new();
            match self.storage.allocate(AT_ONCE.max(least), &mut more) {
                // What is left of a full disk may do.
                Err(_) if has_more => break,
                allocated => allocated?,
            }
            has_more = true;
            // The lowest comes out first.
            more.reverse();
            let mut ids = locked(&self.ids);
            more.append(&mut ids);
            *ids = more;
        }
        Ok(())
    }

    /// Gives the page ids back that were taken ahead; for closing.
    ///
    /// # Errors
    /// The storage's.
    pub fn return_ids(&self) -> Result<(), PoolError> {
        let ids = std::mem::take(&mut *locked(&self.ids));
        ids.into_iter().try_for_each(|id| self.storage.free(id))
    }

    fn new_anchor(&self, word: Swip, owner: u32) -> Result<NonNull<FrameHeader>, PoolError> {
        let released = locked(&self.anchors_free).pop();
        let anchor = match released {
            Some(anchor) => anchor,
            None => self.anchor_memory()?,
        };
        let frame = anchor.0;
        let header = self.header(frame);
        // A late reader of a released anchor may hold it for a moment.
        while !header.latch.exclusive() {
            millpond_base::sync::thread::yield_now();
        }
        PageHeader::of_anchor(owner).write(self.bytes(frame));
        self.set_swip(frame, ANCHOR_SWIP, word);
        self.set_swip(frame, ANCHOR_STAMP, Swip(0));
        header.latch.release_exclusive();
        locked(&self.anchors).push(anchor);
        Ok(frame)
    }

    fn anchor_memory(&self) -> Result<AnchorMemory, PoolError> {
        let layout = self.anchor_layout()?;
        // SAFETY: the layout has a size.
        let memory = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) });
        let memory = memory.ok_or_else(|| PoolError::Memory {
            bytes: layout.size() as u64,
            reason: "an anchor".to_string(),
        })?;
        let frame = memory.cast::<FrameHeader>();
        // SAFETY: fresh, aligned memory with room for a header.
        unsafe { frame.write(FrameHeader::new(FrameId::NONE)) };
        Ok(AnchorMemory(frame))
    }

    fn anchor_layout(&self) -> Result<std::alloc::Layout, PoolError> {
        let bytes = FRAME_HEADER_BYTES + self.page_size;
        std::alloc::Layout::from_size_align(bytes, FRAME_HEADER_BYTES)
            .map_err(|e| PoolError::Memory { bytes: bytes as u64, reason: e.to_string() })
    }

    /// Frames that hold a page now, in order: for checks, when nothing else runs.
    pub fn resident(&self) -> Vec<FrameId> {
        let holds = |id: &FrameId| {
            let state = self.memory.header(*id).map(FrameHeader::state);
            matches!(state, Some(State::Hot | State::Cooling))
        };
        (0..self.frames()).map(FrameId).filter(holds).collect()
    }

    /// How many frames are in each state, and how many are dirty: a walk over all headers.
    pub fn census(&self) -> HashMap<State, u32> {
        let mut census = HashMap::new();
        for id in (0..self.frames()).map(FrameId) {
            if let Some(header) = self.memory.header(id) {
                *census.entry(header.state()).or_default() += 1;
            }
        }
        census
    }

    /// Frames whose page must be written: a walk over all headers.
    pub fn frames_dirty(&self) -> u32 {
        let dirty = |id: &u32| self.memory.header(FrameId(*id)).is_some_and(FrameHeader::is_dirty);
        (0..self.frames()).filter(dirty).count() as u32
    }

    /// Verifies the policy's invariants, when nothing else runs.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check_policy(&self) -> Result<(), String> {
        self.policy_host.check(self.metas(), &self.resident())
    }
}

impl<M: PoolStrategy> Drop for Pool<M> {
    fn drop(&mut self) {
        let Ok(layout) = self.anchor_layout() else { return };
        let mut released = locked(&self.anchors_free);
        for anchor in locked(&self.anchors).drain(..).chain(released.drain(..)) {
            // SAFETY: allocated with this layout by `new_anchor`; guards borrow the pool.
            unsafe { std::alloc::dealloc(anchor.0.as_ptr().cast(), layout) };
        }
    }
}

impl<M: PoolStrategy> Pages for Pool<M> {
    type Latching = M::Latching;
    type Local = usize;

    #[inline(always)]
    fn page_size(&self) -> usize {
        self.page_size
    }

    #[inline(always)]
    fn local(&self) -> usize {
        thread_slot()
    }

    #[inline(always)]
    fn enter(&self, slot: usize) {
        if self.epochs_on {
            self.epochs.enter(slot);
        }
    }

    #[inline(always)]
    fn leave(&self, slot: usize, made: References, done: bool) {
        if self.epochs_on {
            self.epochs.leave(slot);
        }
        let here = self.counters.of(slot);
        if done {
            here.add(Counter::References, made.all());
            here.add(Counter::LeafReferences, made.leaves());
        } else {
            here.count(Counter::Restarts);
        }
        if M::RECORDS {
            self.recorder.leave(slot, done);
        }
    }

    #[cold]
    fn settle(&self, jump: Jump, attempt: u32) -> Result<bool, PoolError> {
        self.settle_jump(jump, attempt)
    }

    #[cold]
    fn over(&self, slot: usize) {
        self.end_starvation(slot);
    }

    #[inline(always)]
    fn child<'o>(&'o self, parent: &Read<'o, Self>, at: usize, mark: Mark) -> Try<Read<'o, Self>> {
        self.child_of_reader(parent, at, mark)
    }

    #[inline(always)]
    fn child_exclusive<'o>(
        &'o self,
        parent: &Read<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>> {
        self.child_of_reader_exclusive(parent, at, mark)
    }

    fn child_of_held<'o>(
        &'o self,
        parent: &Write<'o, Self>,
        at: usize,
        mark: Mark,
    ) -> Try<Write<'o, Self>> {
        self.child_of_writer(parent, at, mark)
    }

    fn allocate<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
    ) -> Try<Write<'o, Self>> {
        let frame = self.fresh_page(new)?;
        // SAFETY: `fresh_page` latched the frame for us.
        Ok(unsafe { Write::held(mtr, frame) }.log_new())
    }

    fn free(&self, page: Write<'_, Self>) {
        self.free_page(page.into_frame());
    }

    #[inline(always)]
    fn logs(&self) -> bool {
        !M::TREES_ONLY && self.logs
    }

    fn about_to_change(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        Pool::about_to_change(self, changes, frame);
    }

    fn about_to_do(
        &self,
        changes: &mut ChangeSet,
        frame: NonNull<FrameHeader>,
        note: impl FnOnce(&mut Vec<u8>),
    ) {
        Pool::about_to_do(self, changes, frame, note);
    }

    fn made_new(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        Pool::made_new(self, changes, frame);
    }

    fn freed_later(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        Pool::freed_later(self, changes, frame);
    }

    fn log_changes(&self, changes: Box<ChangeSet>) -> Lsn {
        Pool::log_changes(self, changes)
    }

    #[inline]
    fn swip(&self, page: &Write<'_, Self>) -> Swip {
        if M::SWIZZLES { Swip::hot(page.frame()) } else { Swip::evicted(page.id()) }
    }

    fn page_of(&self, word: Swip) -> PageId {
        if !word.is_swizzled() {
            return word.page();
        }
        word.frame().and_then(|frame| self.header(frame).page()).unwrap_or_default()
    }

    fn adopt(&self, word: Swip, parent: NonNull<FrameHeader>) {
        if M::SWIZZLES
            && word.is_swizzled()
            && let Some(child) = word.frame()
        {
            self.header(child).set_parent(Some(parent));
            self.knows_swips_of(parent);
        }
    }

    fn is_resident(&self, word: Swip) -> bool {
        if M::SWIZZLES {
            return word.is_swizzled();
        }
        matches!(self.table.find(&self.memory, word.page()), Ok(Some(_)))
    }

    fn prefetch<'o>(&'o self, parent: &Read<'o, Self>, at: &[usize]) {
        self.prefetch_children(parent, at);
    }

    fn anchor(&self, root: PageId) -> Result<Anchor, PoolError> {
        Ok(Anchor(self.new_anchor(Swip::evicted(root), OWNER_UNKNOWN)?))
    }

    fn anchor_of(&self, owner: u32, root: PageId) -> Result<Anchor, PoolError> {
        Ok(Anchor(self.new_anchor(Swip::evicted(root), owner)?))
    }

    fn anchor_new(&self, new: NewPage) -> Result<(Anchor, PageId), PoolError> {
        let anchor = self.new_anchor(Swip::NULL, new.owner)?;
        let root = self.run(|mtr| {
            // SAFETY: an anchor of this pool.
            let parent = unsafe { Write::begin(mtr, anchor) }?;
            let root = mtr.allocate(new)?;
            let word = root.swip();
            self.set_swip(anchor, ANCHOR_SWIP, word);
            mtr.adopt(word, &parent);
            mtr.orphaned(root.id(), OrphanRoot { kind: new.kind.0, stamp: 0 });
            Ok(root.id())
        })?;
        Ok((Anchor(anchor), root))
    }

    fn release_anchor(&self, anchor: Anchor) {
        let mut anchors = locked(&self.anchors);
        let place = anchors.iter().position(|a| a.0 == anchor.0);
        debug_assert!(place.is_some(), "an anchor of another pool");
        if let Some(place) = place {
            let released = anchors.swap_remove(place);
            drop(anchors);
            locked(&self.anchors_free).push(released);
        }
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// A new page in a frame that is latched exclusively.
    fn fresh_page(&self, new: NewPage) -> Try<NonNull<FrameHeader>> {
        /// What a split of a whole path may need.
        const ROOM: u32 = 6;
        if self.free.is_empty() {
            return Err(Jump::room(ROOM));
        }
        let Some(id) = self.take_id() else { return Err(Jump::room(ROOM)) };
        let Some(frame) = self.take_free() else {
            locked(&self.ids).push(id);
            return Err(Jump::room(ROOM));
        };
        self.begin_page(frame, id, new);
        Ok(frame)
    }

    /// A new page with an id below `bound`, latched exclusively.
    pub(crate) fn allocate_below<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
        bound: PageId,
    ) -> Result<Write<'o, Self>, Lacking> {
        let id = self.take_id_below(bound).ok_or(Lacking::Id)?;
        let Some(frame) = self.take_free() else {
            self.give_id(id);
            return Err(Lacking::FrameHeader);
        };
        self.begin_page(frame, id, new);
        // SAFETY: `take_free` latched the frame for us.
        Ok(unsafe { Write::held(mtr, frame) }.log_new())
    }

    /// Makes the free `frame`, which is latched exclusively, the new page `id`.
    fn begin_page(&self, frame: NonNull<FrameHeader>, id: PageId, new: NewPage) {
        let header = self.header(frame);
        header.set_page(Some(id));
        header.set_parent(None);
        header.set_rec_lsn(self.log().map_or(Lsn(0), Log::tail));
        header.set_dirty();
        let page = self.bytes(frame);
        page.fill(0);
        let (kind, level, owner) = (new.kind, new.level, new.owner);
        let lsn = millpond_base::Lsn(0);
        PageHeader { checksum: 0, lsn, page: id, owner, kind, level }.write(page);
        self.counters.count(Counter::PagesAllocated);
        self.admit_new(frame, id, kind);
    }

    /// Drops a page for good; its frame is latched exclusively.
    pub(crate) fn free_page(&self, frame: NonNull<FrameHeader>) {
        let header = self.header(frame);
        let Some(page) = header.page() else {
            header.latch.release_exclusive();
            return;
        };
        if !M::SWIZZLES {
            self.table.remove(&self.memory, page, header.id());
        }
        let publish = || header.become_state(State::Evicted);
        self.policy_host.forget(self.metas(), header.id(), publish);
        header.clear_dirty();
        header.set_parent(None);
        self.counters.count(Counter::PagesFreed);
        if header.is_writing() {
            // The page id must not be used again before the write has landed.
            header.latch.release_exclusive();
            self.writes.defer(header.id(), page);
            self.reap();
            return;
        }
        self.finish_free(frame, page);
    }

    /// The last steps of [`Pool::free_page`], when no write is under way.
    fn finish_free(&self, frame: NonNull<FrameHeader>, page: PageId) {
        let header = self.header(frame);
        header.set_page(None);
        // A write that was under way may have failed, and made the page dirty once more.
        header.clear_dirty();
        header.become_state(State::Free);
        header.latch.release_exclusive();
        self.give_id(page);
        let epoch = self.giving_up();
        self.free.give_deleted(header.id(), self.frames(), thread_slot(), epoch);
    }

    /// Finishes deletions that had to wait for a write.
    pub(crate) fn reap(&self) {
        for (id, page) in self.writes.take_deferred() {
            let Some(frame) = self.memory.frame(id) else { continue };
            let header = self.header(frame);
            if header.is_writing() || !header.latch.exclusive() {
                self.writes.defer(id, page);
                continue;
            }
            self.finish_free(frame, page);
        }
    }
}
