//! Counters of a second-tier simulation.

/// Model of a second-tier cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Model {
    /// The model of li chapter 3: a page may bypass the cache, and every write goes through to
    /// storage at once. dsync requests have no effect, and only read hits since the cache was first
    /// full count.
    #[default]
    Read,
    /// The model of li chapter 5: every requested page is placed. A written page stays in the cache
    /// until it is evicted or named by a dsync request. Reads and writes of storage count.
    Rw,
}

impl Model {
    /// Returns the model's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Read => "read",
            Model::Rw => "rw",
        }
    }
}

impl std::str::FromStr for Model {
    type Err = String;

    fn from_str(text: &str) -> Result<Model, String> {
        match text {
            "read" => Ok(Model::Read),
            "rw" => Ok(Model::Rw),
            _ => Err(format!("'{text}' is no second-tier model: it is read or rw")),
        }
    }
}

/// Counters of a simulation so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tier2Counts {
    /// Page requests: reads and writes, without dsync requests.
    pub references: u64,
    /// Requests that found their page cached, reads and writes.
    pub hits: u64,
    /// dsync requests; skipped in the `read` model.
    pub dsyncs: u64,
    /// Read requests since the cache was first full.
    pub reads: u64,
    /// Read hits since the cache was first full.
    pub read_hits: u64,
    /// Read requests from the beginning.
    pub reads_cold: u64,
    /// Read hits from the beginning.
    pub read_hits_cold: u64,
    /// Number of the request, from 0, that filled the cache; `None` if the cache never became full.
    pub full_at: Option<u64>,
    /// Misses that bypassed the cache; `read` model only.
    pub bypasses: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Frames that the policy offered.
    pub offers: u64,
    /// Reads of storage: read requests that missed.
    pub storage_reads: u64,
    /// First reads: storage reads of pages that were never requested before. No policy avoids them.
    pub first_reads: u64,
    /// Writes to storage when a dirty page was evicted; `rw` model only.
    pub evict_writes: u64,
    /// Writes to storage that a dsync request caused; `rw` model only.
    pub dsync_writes: u64,
    /// Eviction writes of pre-clean pages: had the page stayed, a later dsync request would have
    /// written it before the page's next write.
    pub preclean_writes: u64,
    /// The sum of the total I/O costs of all replacements (li 5.4.1.4); `rw` model with a known
    /// future only.
    pub replacement_cost: Option<u64>,
    /// Pages dirty at the end, which do not count as writes, as in the source.
    pub dirty_at_end: u64,
    /// Bytes of policy state at the end.
    pub policy_bytes: u64,
}

impl Tier2Counts {
    /// Returns read hits divided by reads since the cache was full, or 0 without reads.
    pub fn read_hit_ratio(&self) -> f64 {
        if self.reads == 0 { 0.0 } else { self.read_hits as f64 / self.reads as f64 }
    }

    /// Returns the number of writes to storage.
    pub fn storage_writes(&self) -> u64 {
        self.evict_writes + self.dsync_writes
    }

    /// Returns the reads and writes of storage (li equation 5.1).
    pub fn total(&self) -> u64 {
        self.storage_reads + self.storage_writes()
    }

    /// Returns the I/Os that every policy causes: first reads, and one write for each dsync request
    /// that finds something written since the last one (li 5.4.1.3).
    pub fn unavoidable(&self) -> u64 {
        self.first_reads + self.dsync_writes + self.preclean_writes
    }

    /// Returns the avoidable I/Os, in which policies differ.
    pub fn avoidable(&self) -> u64 {
        self.total() - self.unavoidable()
    }

    /// Returns offers divided by evictions, or 0 without evictions.
    pub fn offers_per_eviction(&self) -> f64 {
        if self.evictions == 0 { 0.0 } else { self.offers as f64 / self.evictions as f64 }
    }
}
