//! How a pool is opened: the strategies that are compiled in, and the options of a run.

use millpond_policies::contract::HitHook;

use crate::pool::epoch::Reclamation;
use crate::pool::latch::Latching;

/// The strategies of one compiled pool.
pub trait PoolStrategy: Send + Sync + 'static {
    /// How reads are protected.
    type Latching: Latching;
    /// The hot half of the policies that this pool can host.
    type Hook: HitHook;
    /// Whether references to pages in memory are pointers; else they go through a hash table.
    const SWIZZLES: bool;
    /// Whether page references can be recorded.
    const RECORDS: bool = false;
    /// Whether stores with these strategies have trees only, so that less is compiled.
    const TREES_ONLY: bool = false;
}

/// Which threads evict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evictors {
    /// The thread that needs a frame; a background thread only writes.
    Workers,
    /// This many threads of the pool's own; a worker that needs a frame waits for them.
    Threads(u32),
    /// As many threads of the pool's own as demand asks for; all sleep while enough frames are
    /// free. A worker that needs a frame when all of them are at work helps.
    Adaptive {
        /// How many there are.
        most: u32,
    },
}

/// The options of a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Number of frames, at least [`FRAMES_MIN`].
    pub frames: u32,
    /// When a frame that was given up is reused.
    pub reclamation: Reclamation,
    /// Which threads evict.
    pub evictors: Evictors,
    /// Free frames that evictor threads keep ready, and victims that a worker looks for at once.
    /// 1 evicts page by page, as a simulator does.
    pub batch: u32,
    /// Whether a thread writes dirty pages in the background.
    pub background_writer: bool,
    /// Whether memory is touched when the pool opens.
    pub prefault: bool,
    /// NUMA nodes to pretend; `None` asks the machine.
    pub nodes: Option<u32>,
    /// One in this many operations in memory is timed; 0 times none.
    pub sample_period: u32,
    /// References by which a policy's clock of references advances at once: 1 is exact, and a word
    /// that all threads write at each reference.
    pub references_per_tick: u32,
    /// Restarts after which an operation that still misses a page fails, while no page is held for
    /// it; `None`: none fails, and the starvation guard holds pages for it.
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

/// Frames below which no pool can work: a path, a split and its new pages.
pub const FRAMES_MIN: u32 = 8;
