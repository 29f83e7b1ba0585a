//! Options that only measurements and tests change.

use millpond_base::cleaning::Cleaning;
use millpond_device::Submission;

use crate::page::superblock::Placement;
use crate::pool::{EvictionMode, HitDelivery, Reclamation, SyncMode};
use crate::store::options::choices::{DirectIo, LatchingMode, TranslationMode};

/// Options for measurements and tests only: strategies that are worse, or fixed for good reasons.
///
/// ```
/// use millpond::Options;
/// let options = Options::new().lab(|lab| lab.latency_sample_period = 1); // time each call
/// options.check().unwrap();
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Lab {
    /// Translation of page ids to frames.
    pub translation: TranslationMode,
    /// Latching of pages.
    pub latching: LatchingMode,
    /// Delivery of hits to the replacement policy.
    pub hit_delivery: HitDelivery,
    /// Protection of optimistic readers of an evicted page.
    pub reclamation: Reclamation,
    /// Number of frames, whatever memory they take, instead of a memory number. At least 8.
    pub frames: Option<u32>,
    /// Allow pages from 512 bytes, so that small tests have deep trees.
    pub tiny_pages: bool,
    /// Use of direct I/O, past the operating system's page cache. Default: where possible.
    pub direct_io: DirectIo,
    /// Submission of I/O. Default: io_uring where possible.
    pub submission: Submission,
    /// Threads that evict. Default: the thread that needs a frame.
    pub eviction: EvictionMode,
    /// Touch all memory when the store is opened, not on demand. Default: no.
    pub prefault: bool,
    /// Number of NUMA nodes to divide the pool among, 1 to 64. Default: as many as the machine has.
    pub numa_nodes: Option<u32>,
    /// Merge badly filled leaves, which random inserts and removals leave, in the background when
    /// the store has little else to do. Default: yes.
    pub background_merge: bool,
    /// Log changes, so that the store survives a crash and commits last. Default: yes, for a store
    /// in a file: the log is the file of that name with the suffix `-log`.
    pub log: bool,
    /// Placement of new page versions in a store that is created with a log. In place, the log
    /// contains the whole page at its first change after a write. Default: out of place. A store
    /// without a log is always in place.
    pub placement: Placement,
    /// Lock the entries that transactions read and write. Without locks, transactions see each
    /// other's changes. Default: yes.
    pub locks: bool,
    /// Recover a store whose log is damaged before its end to its state at the damage; later
    /// commits are lost. If that is impossible, nothing is changed. Has no effect on a sound log.
    /// Default: no, opening fails.
    pub salvage_log: bool,
    /// Number of frames that evictor threads keep ready, and of victims that a worker selects at
    /// once, 1 to 4096. Default: the pool's own.
    pub batch: Option<u32>,
    /// Write dirty pages in the background on a thread that also reads ahead. Default: yes.
    pub background_writer: bool,
    /// Page cleaning by the dirty share, as in the systems that li traced (li 2.1.1). The
    /// eviction threads, whose number must be fixed, are page cleaners then. Writing neighbours
    /// needs `translation = hashed`. Default: pages are written when they are evicted, or to let
    /// the log advance.
    pub cleaning: Option<Cleaning>,
    /// Read ahead on a miss, as in the systems that li traced (li 5.6.1.3). If the two
    /// predecessors of the missing page by page id are in memory, it is read with its successors in
    /// the extent. Only children of the missing page's parent are read. Needs latches and
    /// `background_writer = true`. Default: no, only scans read ahead.
    pub read_ahead: bool,
    /// Time at which writes become durable, in a store that is in place and has a log (li 4).
    /// Default: at each checkpoint.
    pub sync_mode: SyncMode,
    /// Number of references per tick of the clock of policies that count references, 1 to 65,536.
    /// With 1 the clock is exact, and a word that all threads write at each reference. Default: 1.
    pub references_per_tick: u32,
    /// Bytes of records in a segment of a new log. Default: the log's own, 4 MiB.
    pub log_segment: Option<u64>,
    /// Allow page references to be recorded, at a cost for each.
    pub records: bool,
    /// Sampling period: one lookup, insert or scan in N is timed; 0: none. Default: 64.
    pub latency_sample_period: u32,
    /// Number of restarts, 16 to 1,000,000, after which an operation that still misses a page
    /// fails. No pages are held for it, so that this shows whether operations progress by the
    /// policy's choices alone. Default: none fails, and pages are held for an operation that cannot
    /// get its path together.
    pub attempts_max: Option<u32>,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for Lab {
    fn default() -> Self {
        Lab {
            translation: TranslationMode::default(),
            latching: LatchingMode::default(),
            hit_delivery: HitDelivery::default(),
            reclamation: Reclamation::default(),
            frames: None,
            tiny_pages: false,
            direct_io: DirectIo::default(),
            submission: Submission::default(),
            eviction: EvictionMode::default(),
            prefault: false,
            numa_nodes: None,
            background_merge: true,
            log: true,
            placement: Placement::OutOfPlace,
            locks: true,
            salvage_log: false,
            batch: None,
            background_writer: true,
            cleaning: None,
            read_ahead: false,
            sync_mode: SyncMode::Checkpoint,
            references_per_tick: 1,
            log_segment: None,
            records: false,
            latency_sample_period: 64,
            attempts_max: None,
            seed: 1,
        }
    }
}
