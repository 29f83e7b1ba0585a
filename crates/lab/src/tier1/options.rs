//! Options and counters of a simulated first tier.

use millpond_base::Share;
use millpond_base::cleaning::Cleaning;

/// Rule that decides when written pages are made durable: the thesis' three systems (li 4.4.1.2),
/// also found in the live pool. A run of dsync requests is one call.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SyncRule {
    /// Each page after its write: `org`.
    EachWrite,
    /// After RECOV writes, all written pages that are not durable: `rec`.
    EachRecov,
    /// After RECOV writes, the pages with updates that the log is about to forget: `range`, the
    /// deferred sync of 4.3.2.
    #[default]
    Ranges,
}

impl SyncRule {
    /// All three rules, each with its name on an axis.
    pub const ALL: [(&str, SyncRule); 3] =
        [("org", SyncRule::EachWrite), ("rec", SyncRule::EachRecov), ("range", SyncRule::Ranges)];
}

/// A simulated buffer pool (li 2.1, 4.3.2).
#[derive(Clone, Debug)]
pub struct Tier1Options {
    /// Number of frames, at least 1.
    pub frames: u32,
    /// Rules of cleaning: the dirty share at which page cleaners write (REPLACE), the length of the
    /// free list, and whether a page's dirty neighbours are written with it.
    pub cleaning: Cleaning,
    /// Maximum number of logical writes between the oldest update that is not durable and the
    /// newest one, at least 1. Beyond that the oldest are written (RECOV) and made durable (dsync).
    pub lsn_gap: u64,
    /// Rule that decides when written pages are made durable.
    pub sync: SyncRule,
    /// Share of the gap that is free again after the oldest updates were made durable.
    pub freed: Share,
    /// If `true`, sequential reading fetches the pages that follow, as in MySQL.
    pub readahead: bool,
    /// References between two rounds of the cleaners that keep the free list, at least 1. Workers
    /// that use up the list between rounds make room themselves (SYNCH).
    pub round: u32,
    /// Seed of the policy's random choices.
    pub seed: u64,
}

impl Tier1Options {
    /// Returns options for `frames` frames: DB2's dirty share of 50 %; a gap of `lsn_gap` logical
    /// writes, of which an eighth is freed at a time; ranges are synced; neither read-ahead nor
    /// neighbours; 1 % free, refilled every 64 references; seed 1.
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

/// Requests that a first tier sent to storage, by reason.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tier1Counts {
    /// References that the pool served.
    pub references: u64,
    /// References that found their page in the pool or in the free list.
    pub hits: u64,
    /// References that took their page back out of the free list.
    pub rescues: u64,
    /// READ requests, including read-ahead.
    pub reads: u64,
    /// READ requests sent by read-ahead.
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
