//! Counters of a second tier.

/// Counters of a second tier since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierCounts {
    /// Pages that it has room for.
    pub frames: u64,
    /// Pages that its policy keeps now.
    pub resident: u64,
    /// Reads of pages.
    pub reads: u64,
    /// Of them, those of pages that the policy kept.
    pub read_hits: u64,
    /// Hits that were read from the cache. The others had to be read from storage, since their copy
    /// was not there yet, or had a wrong checksum.
    pub served: u64,
    /// Writes of pages; unless the tier writes back, each goes to storage, too.
    pub writes: u64,
    /// Of them, those of pages that the policy kept.
    pub write_hits: u64,
    /// Pages that the policy let pass by.
    pub bypasses: u64,
    /// Pages that the policy evicted.
    pub evictions: u64,
    /// Copies that were written into the cache.
    pub fills: u64,
    /// Copies with a wrong checksum: they were read from storage instead, if it had them.
    pub mismatches: u64,
    /// Copies that storage does not have now, in a tier that writes back.
    pub dirty: u64,
    /// Dirty copies that were written to storage, since their pages were evicted or moved.
    pub destaged: u64,
    /// Dirty copies that never reached storage: a newer version came, or they were discarded.
    pub spared: u64,
    /// Dirty copies that were dropped when the tier was opened: storage ends before their places.
    pub cut_off: u64,
    /// Requests to the cache's device that failed.
    pub errors: u64,
    /// True if the cache is out of use, since its device failed too often. For a tier that writes
    /// back: true if a sync failed, so that nothing more becomes durable.
    pub is_off: bool,
    /// Bytes of memory of its tables and its policy.
    pub memory_bytes: u64,
}
