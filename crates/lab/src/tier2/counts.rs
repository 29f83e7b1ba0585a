//! Counters of a second-tier simulation.

/// Which cache is simulated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Model {
    /// Of li chapter 3: a page may bypass the cache, every write goes through to storage at once,
    /// dsync requests mean nothing, and only read hits count, from when the cache is first full.
    #[default]
    Read,
    /// Of li chapter 5: every requested page is placed, writes stay in the cache until their page
    /// is evicted or a dsync request names it, and reads and writes to storage count.
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

/// Counters so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tier2Counts {
    /// Page requests: reads and writes, without dsync requests.
    pub references: u64,
    /// Requests with a cached page, reads and writes.
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
    /// The request, from 0, with which the cache became full; None if it never did.
    pub full_at: Option<u64>,
    /// Misses whose page bypassed the cache; `read` model only.
    pub bypasses: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Frames that the policy offered.
    pub offers: u64,
    /// Reads of storage: read requests that missed.
    pub storage_reads: u64,
    /// Of them, those of pages that were never requested before: no policy avoids them.
    pub first_reads: u64,
    /// Writes to storage when a dirty page was evicted; `rw` model only.
    pub evict_writes: u64,
    /// Writes to storage that a dsync request caused; `rw` model only.
    pub dsync_writes: u64,
    /// Of the writes on eviction, those that a later dsync request would have caused, had the page
    /// stayed, before the page's next write: the page was pre-clean.
    pub preclean_writes: u64,
    /// The sum of the total I/O costs of all replacements (li 5.4.1.4); `rw` model with a known
    /// future only.
    pub replacement_cost: Option<u64>,
    /// Pages dirty at the end. They are not counted as writes, as in the source.
    pub dirty_at_end: u64,
    /// Bytes of policy state at the end.
    pub policy_bytes: u64,
}

impl Tier2Counts {
    /// Read hits over reads since the cache was full; 0 for none.
    pub fn read_hit_ratio(&self) -> f64 {
        if self.reads == 0 { 0.0 } else { self.read_hits as f64 / self.reads as f64 }
    }

    /// Writes to storage.
    pub fn storage_writes(&self) -> u64 {
        self.evict_writes + self.dsync_writes
    }

    /// Reads of and writes to storage (li equation 5.1).
    pub fn total(&self) -> u64 {
        self.storage_reads + self.storage_writes()
    }

    /// I/Os that every policy causes: first reads, and one write for each time that a dsync
    /// request finds something written since the last one (li 5.4.1.3).
    pub fn unavoidable(&self) -> u64 {
        self.first_reads + self.dsync_writes + self.preclean_writes
    }

    /// Avoidable I/Os, in which policies differ.
    pub fn avoidable(&self) -> u64 {
        self.total() - self.unavoidable()
    }

    /// Offers over evictions; 0 for none.
    pub fn offers_per_eviction(&self) -> f64 {
        if self.evictions == 0 { 0.0 } else { self.offers as f64 / self.evictions as f64 }
    }
}
