//! Counters of a second tier.

/// Counters of a second tier since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierCounts {
    /// Number of pages that it has room for.
    pub frames: u64,
    /// Number of pages that its policy keeps now.
    pub resident: u64,
    /// Reads of pages.
    pub reads: u64,
    /// Reads of pages that the policy kept.
    pub read_hits: u64,
    /// Hits that were read from the cache. Other hits were read from storage, because their copy
    /// was not written yet, or had a wrong checksum.
    pub served: u64,
    /// Writes of pages; in a write-through tier each goes to storage, too.
    pub writes: u64,
    /// Writes of pages that the policy kept.
    pub write_hits: u64,
    /// Pages that the policy declined to keep.
    pub bypasses: u64,
    /// Pages that the policy evicted.
    pub evictions: u64,
    /// Copies written into the cache.
    pub fills: u64,
    /// Copies with a wrong checksum. The pages were read from storage instead, if it had them.
    pub mismatches: u64,
    /// Copies that storage lacks now, in a write-back tier.
    pub dirty: u64,
    /// Dirty copies written to storage because their pages were evicted or moved.
    pub destaged: u64,
    /// Dirty copies that never reached storage: a newer version replaced them, or they were
    /// discarded.
    pub spared: u64,
    /// Dirty copies dropped at opening, because storage ends before their places.
    pub cut_off: u64,
    /// Failed requests to the cache's device.
    pub errors: u64,
    /// Set once the cache is out of use because its device failed too often. In a write-back tier
    /// it is set once a sync failed, so that nothing more becomes durable.
    pub is_off: bool,
    /// Bytes of memory of its tables and its policy.
    pub memory_bytes: u64,
}
