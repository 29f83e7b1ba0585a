//! Settings of a pool: the strategies that are compiled in, and the options of a run.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use millpond_base::cleaning::Cleaning;
use millpond_policies::choice;
use millpond_policies::config::Param;
use millpond_policies::contract::HitHook;

use crate::pool::epoch::Reclamation;
use crate::pool::latch::Latching;
use crate::words::{ChoiceError, by_word};

/// The strategies of one compiled pool.
pub trait PoolStrategy: Send + Sync + 'static {
    /// Protection of reads.
    type Latching: Latching;
    /// The hot half of the policies that this pool can host.
    type Hook: HitHook;
    /// `true` if references to pages in memory are pointers; else they go through a hash table.
    const SWIZZLES: bool;
    /// `true` if there is a hash table from page ids to frames. Needed without swizzling. With
    /// swizzling, as in Graefe's (gilbert 2.4.1), the table is searched before a read.
    const HAS_TABLE: bool = !Self::SWIZZLES;
    /// `true` if page references can be recorded.
    const RECORDS: bool = false;
    /// `true` if stores with these strategies have trees only, so that less is compiled.
    const TREES_ONLY: bool = false;
}

/// Threads that evict pages.
///
/// ```
/// use millpond::{EvictionMode, Options};
/// let options = Options::new().lab(|lab| lab.eviction = EvictionMode::adaptive(2));
/// options.check().unwrap();
/// assert_eq!("threads(2)".parse(), Ok(EvictionMode::threads(2)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EvictionMode {
    /// The thread that needs a frame; dirty pages are written in the background.
    #[default]
    Worker,
    /// A fixed number of threads, which keep some frames free ahead of need, and sleep while there
    /// are enough.
    Threads(NonZeroU32),
    /// Up to this number of threads, no more of them awake than demand asks for. A thread that
    /// needs a frame while all of them are at work evicts, too.
    Adaptive(NonZeroU32),
}

impl EvictionMode {
    /// Returns the mode with `threads` evictor threads, at least one.
    ///
    /// ```
    /// use millpond::EvictionMode;
    /// assert_eq!(EvictionMode::threads(2).to_string(), "threads(2)");
    /// ```
    pub fn threads(threads: u32) -> EvictionMode {
        EvictionMode::Threads(NonZeroU32::new(threads).unwrap_or(NonZeroU32::MIN))
    }

    /// Returns the mode with up to `most` evictor threads, at least one.
    ///
    /// ```
    /// use millpond::EvictionMode;
    /// assert_eq!(EvictionMode::adaptive(2).to_string(), "adaptive(2)");
    /// ```
    pub fn adaptive(most: u32) -> EvictionMode {
        EvictionMode::Adaptive(NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN))
    }
}

impl fmt::Display for EvictionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvictionMode::Worker => f.write_str("worker"),
            EvictionMode::Threads(n) => write!(f, "threads({n})"),
            EvictionMode::Adaptive(n) => write!(f, "adaptive({n})"),
        }
    }
}

impl FromStr for EvictionMode {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let wrong = || {
            let takes = "one of worker threads threads(N) adaptive adaptive(N), N at least 1";
            ChoiceError::new("eviction", text, takes.to_string())
        };
        let count_in = |name: &str| {
            let inner = text.strip_prefix(name)?;
            if inner.is_empty() {
                return Some(NonZeroU32::MIN);
            }
            inner.strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()
        };
        if text == "worker" {
            return Ok(EvictionMode::Worker);
        }
        let threads = count_in("threads").map(EvictionMode::Threads);
        threads.or_else(|| count_in("adaptive").map(EvictionMode::Adaptive)).ok_or_else(wrong)
    }
}

by_word! {
    SyncMode "sync_mode";
}

choice! {
    /// Moment at which the writes of a store in place are made durable (li 4.4.1.2).
    ///
    /// ```
    /// use millpond::internals::pool::SyncMode;
    /// assert_eq!("range".parse(), Ok(SyncMode::Ranges));
    /// ```
    #[derive(Default, Hash)]
    pub enum SyncMode {
        /// The whole file at each checkpoint.
        #[default]
        Checkpoint = "checkpoint",
        /// The whole file after each write of pages: the thesis' `org`.
        EachWrite = "org",
        /// The whole file after each write for the log's sake: its `rec`.
        EachRecov = "rec",
        /// At a checkpoint, only the pages with updates that the log is about to forget: its
        /// deferred sync, by ranges.
        Ranges = "range",
    }
}

/// The options of a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Number of frames, at least [`FRAMES_MIN`].
    pub frames: u32,
    /// Rule for the reuse of a frame that was given up.
    pub reclamation: Reclamation,
    /// Threads that evict.
    pub evictors: EvictionMode,
    /// Number of victims that a round of eviction looks for; evictor threads keep about twice as
    /// many frames ready. 1 evicts page by page, as a simulator does.
    pub batch: u32,
    /// `true` if a thread writes dirty pages in the background.
    pub background_writer: bool,
    /// The rule by which the evictor threads work as page cleaners, if they do (li 2.1.1). The
    /// number of threads must be fixed, and only they or a thread that needs a frame write pages.
    pub cleaning: Option<Cleaning>,
    /// `true` if a miss that continues a sequence of page ids reads ahead (li 5.6.1.3); needs the
    /// thread that writes in the background.
    pub read_ahead: bool,
    /// Moment at which writes are made durable, in a store in place.
    pub sync_mode: SyncMode,
    /// `true` if memory is touched when the pool opens.
    pub prefault: bool,
    /// NUMA nodes to pretend; `None` asks the machine.
    pub nodes: Option<u32>,
    /// One in this many operations in memory is timed; 0 times none.
    pub sample_period: u32,
    /// Number of references by which a policy's clock of references advances at a time. 1 is exact,
    /// but then all threads write one word at each reference.
    pub references_per_tick: u32,
    /// Number of restarts after which an operation that still misses a page fails. No page is held
    /// for it. With `None` no operation fails, and the starvation guard holds pages instead.
    pub attempts_max: Option<u32>,
    /// Seed of random choices.
    pub seed: u64,
}

impl PoolOptions {
    /// Returns the defaults for a pool of `frames` frames.
    pub fn new(frames: u32) -> PoolOptions {
        PoolOptions {
            frames,
            reclamation: Reclamation::default(),
            evictors: EvictionMode::Worker,
            batch: (frames / 64).clamp(1, 64),
            background_writer: true,
            cleaning: None,
            read_ahead: false,
            sync_mode: SyncMode::Checkpoint,
            prefault: false,
            nodes: None,
            sample_period: 64,
            references_per_tick: 1,
            attempts_max: None,
            seed: 0x6d69_6c6c,
        }
    }
}

/// Least number of frames of a pool: room for a path, a split and its new pages.
pub const FRAMES_MIN: u32 = 8;
