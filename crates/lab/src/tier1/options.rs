//! What a simulated first tier is made of, and what it counts.

use millpond_base::Share;
use millpond_base::cleaning::Cleaning;

/// When written pages are made durable: the thesis' three systems (li 4.4.1.2), as the live pool
/// has them. A run of dsync requests is one call.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SyncRule {
    /// Each page after its write: `org`.
    EachWrite,
    /// All that is written and not durable after RECOV writes: `rec`.
    EachRecov,
    /// After RECOV writes those pages whose updates the log is about to forget: `range`, the
    /// deferred sync of 4.3.2.
    #[default]
    Ranges,
}

impl SyncRule {
    /// All three, with the names that they have on an axis.
    pub const ALL: [(&str, SyncRule); 3] =
        [("org", SyncRule::EachWrite), ("rec", SyncRule::EachRecov), ("range", SyncRule::Ranges)];
}

/// A simulated buffer pool (li 2.1, 4.3.2).
#[derive(Clone, Debug)]
pub struct Tier1Options {
    /// Number of frames, at least 1.
    pub frames: u32,
    /// When page cleaners write (REPLACE), how long the free list is, and whether the dirty
    /// neighbours of a page are written with it.
    pub cleaning: Cleaning,
    /// Logical writes that may lie between the oldest update that is not durable and the newest
    /// one, at least 1. Where more would, the oldest are written (RECOV) and made durable (dsync).
    pub lsn_gap: u64,
    /// What is made durable, and when.
    pub sync: SyncRule,
    /// Share of the gap that is free again after the oldest updates were made durable.
    pub freed: Share,
    /// Whether reading in sequence fetches the pages that follow, as MySQL does.
    pub readahead: bool,
    /// References between two rounds of the cleaners that keep the free list, at least 1. What
    /// the workers use up meanwhile they must make room for themselves (SYNCH).
    pub round: u32,
    /// Seed of the policy's random choices.
    pub seed: u64,
}

impl Tier1Options {
    /// `frames` frames; DB2's dirty share of 50 %; a gap of `lsn_gap` logical writes, of which an
    /// eighth is freed at a time; ranges are synced; neither read-ahead nor neighbours; 1 % free,
    /// refilled every 64 references; seed 1.
    pub fn new(frames: u32, lsn_gap: u64) -> Tier1Options {
        Tier1Options {
            frames,
            cleaning: Cleaning::default(),
            lsn_gap,
            sync: SyncRule::default(),
            freed: Share(0.125),
            readahead: false,
            round: 64,
            seed: 1,
        }
    }
}

/// What a first tier sent to storage, and why.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tier1Counts {
    /// References that the pool served.
    pub references: u64,
    /// Of them, those whose page was in the pool, the free list included.
    pub hits: u64,
    /// Of them, those that took their page back from the free list.
    pub rescues: u64,
    /// READ requests, read-ahead included.
    pub reads: u64,
    /// Of them, read-ahead.
    pub ahead: u64,
    /// SYNCH writes.
    pub synch: u64,
    /// REPLACE writes.
    pub replace: u64,
    /// RECOV writes.
    pub recov: u64,
    /// dsync requests, one for each page.
    pub dsyncs: u64,
}
