//! Counts beside the operations: the pool's events, processor time, memory.

use std::fs;

use millpond::Stats;
use millpond::internals::log::LogCounts;
use millpond::internals::stats::counters::{Counter, Counters, Timing};
use millpond::internals::stats::histogram::Latencies;
use millpond_tier::TierCounts;
use rustix::time::{ClockId, clock_gettime};

/// Events of a store, since it was opened or between two moments.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Page references, those of inner pages included.
    pub references: u64,
    /// References whose page was not in memory.
    pub misses: u64,
    /// References to leaves.
    pub leaf_references: u64,
    /// Misses of leaves.
    pub leaf_misses: u64,
    /// Pages read.
    pub reads: u64,
    /// Pages written.
    pub writes: u64,
    /// Operations that restarted because another thread was faster.
    pub restarts: u64,
    /// Hits of which a batched policy was not notified.
    pub hits_lost: u64,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Bytes written to the log's device.
    pub log_written: u64,
    /// Syncs of the log's device.
    pub log_syncs: u64,
    /// Waits for the log to be durable.
    pub log_waits: u64,
    /// Pages evicted from the pool.
    pub evictions: u64,
    /// Latches that were held when a thread wanted them.
    pub latch_conflicts: u64,
    /// Nanoseconds of waiting for latches after spinning, over all threads.
    pub latch_ns: u64,
    /// Nanoseconds of reading pages, over all threads.
    pub read_ns: u64,
    /// Reads requested from a second tier.
    pub tier_reads: u64,
    /// Reads that the second tier served from its cache.
    pub tier_served: u64,
}

impl Counts {
    /// Adds the counts of a log.
    #[must_use]
    pub fn with_log(self, log: Option<LogCounts>) -> Counts {
        let Some(log) = log else { return self };
        Counts {
            log_bytes: log.bytes_appended,
            log_written: log.bytes_written,
            log_syncs: log.syncs,
            log_waits: log.waits,
            ..self
        }
    }

    /// Adds the counts of a second tier.
    #[must_use]
    pub fn with_tier(self, tier: Option<TierCounts>) -> Counts {
        let Some(tier) = tier else { return self };
        Counts { tier_reads: tier.reads, tier_served: tier.served, ..self }
    }

    /// Returns the share of a second tier's reads that its cache served; `None` without one.
    pub fn tier_share(&self) -> Option<f64> {
        (self.tier_reads > 0).then(|| self.tier_served as f64 / self.tier_reads as f64)
    }

    /// Adds the times of a pool.
    #[must_use]
    pub fn with_times(self, latencies: &Latencies) -> Counts {
        let sum_ns = |timing| latencies.merged(timing).sum_ns;
        let (latch_ns, read_ns) = (sum_ns(Timing::LatchTime), sum_ns(Timing::ReadTime));
        Counts { latch_ns, read_ns, ..self }
    }

    /// Returns the counts of a pool.
    pub fn of(counters: &Counters) -> Counts {
        let get = |counter| counters.get(counter);
        Counts {
            references: get(Counter::References),
            misses: get(Counter::Misses),
            leaf_references: get(Counter::LeafReferences),
            leaf_misses: get(Counter::LeafMisses),
            reads: get(Counter::Reads),
            writes: get(Counter::WritesSynch)
                + get(Counter::WritesReplace)
                + get(Counter::WritesRecov),
            restarts: get(Counter::Restarts),
            hits_lost: get(Counter::HitsLost),
            evictions: get(Counter::Evictions),
            latch_conflicts: get(Counter::LatchConflicts),
            ..Counts::default()
        }
    }

    /// Returns the counts of a store.
    pub fn of_stats(stats: &Stats) -> Counts {
        Counts {
            references: stats.references,
            misses: stats.misses,
            leaf_references: stats.leaf_references,
            leaf_misses: stats.leaf_misses,
            reads: stats.reads,
            writes: stats.writes(),
            restarts: stats.restarts,
            hits_lost: stats.hits_lost,
            evictions: stats.evictions,
            latch_conflicts: stats.latch_conflicts,
            ..Counts::default()
        }
    }

    /// Returns the difference to the counts of an earlier moment.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            references: self.references.saturating_sub(earlier.references),
            misses: self.misses.saturating_sub(earlier.misses),
            leaf_references: self.leaf_references.saturating_sub(earlier.leaf_references),
            leaf_misses: self.leaf_misses.saturating_sub(earlier.leaf_misses),
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
            restarts: self.restarts.saturating_sub(earlier.restarts),
            hits_lost: self.hits_lost.saturating_sub(earlier.hits_lost),
            log_bytes: self.log_bytes.saturating_sub(earlier.log_bytes),
            log_written: self.log_written.saturating_sub(earlier.log_written),
            log_syncs: self.log_syncs.saturating_sub(earlier.log_syncs),
            log_waits: self.log_waits.saturating_sub(earlier.log_waits),
            evictions: self.evictions.saturating_sub(earlier.evictions),
            latch_conflicts: self.latch_conflicts.saturating_sub(earlier.latch_conflicts),
            latch_ns: self.latch_ns.saturating_sub(earlier.latch_ns),
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            tier_reads: self.tier_reads.saturating_sub(earlier.tier_reads),
            tier_served: self.tier_served.saturating_sub(earlier.tier_served),
        }
    }

    /// Adds the counts of another store or period.
    pub fn add(&mut self, other: &Counts) {
        self.references += other.references;
        self.misses += other.misses;
        self.leaf_references += other.leaf_references;
        self.leaf_misses += other.leaf_misses;
        self.reads += other.reads;
        self.writes += other.writes;
        self.restarts += other.restarts;
        self.hits_lost += other.hits_lost;
        self.log_bytes += other.log_bytes;
        self.log_written += other.log_written;
        self.log_syncs += other.log_syncs;
        self.log_waits += other.log_waits;
        self.evictions += other.evictions;
        self.latch_conflicts += other.latch_conflicts;
        self.latch_ns += other.latch_ns;
        self.read_ns += other.read_ns;
        self.tier_reads += other.tier_reads;
        self.tier_served += other.tier_served;
    }

    /// Returns the share of references whose page was in memory; 1 if there were no references.
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.references, self.misses)
    }

    /// Returns the hit ratio of leaves alone.
    pub fn leaf_hit_ratio(&self) -> f64 {
        ratio(self.leaf_references, self.leaf_misses)
    }
}

fn ratio(references: u64, misses: u64) -> f64 {
    if references == 0 {
        return 1.0;
    }
    1.0 - misses.min(references) as f64 / references as f64
}

/// Returns the processor seconds of this process over all threads. Returns NaN under valgrind,
/// which hides the kernel page from which the clock is read.
pub(crate) fn cpu_seconds() -> f64 {
    let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
    if preloaded.contains("vgpreload") {
        return f64::NAN;
    }
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the resident bytes of this process; `None` if the system does not report them.
pub(crate) fn resident_bytes() -> Option<u64> {
    bytes_of_status("VmRSS:")
}

/// Returns the peak resident bytes of this process since its start or since [`reset_peak`]; `None`
/// if the system does not report them.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    bytes_of_status("VmHWM:")
}

/// Resets the peak to the present resident bytes. If the system does not allow that, the peak
/// stays that of the process.
pub(crate) fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn bytes_of_status(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_hits_over_all_references() {
        let counts = Counts { references: 10, misses: 1, ..Counts::default() };
        assert_eq!(counts.hit_ratio(), 0.9);
        assert_eq!(Counts::default().hit_ratio(), 1.0);
        let later = Counts { references: 30, misses: 11, reads: 5, ..Counts::default() };
        assert_eq!(later.since(&counts).hit_ratio(), 0.5);
        assert_eq!(later.since(&counts).reads, 5);
    }

    #[test]
    fn the_process_has_used_time_and_memory() {
        assert!(cpu_seconds() > 0.0);
        if let Some(bytes) = resident_bytes() {
            assert!(bytes > 1 << 18, "{bytes}");
        }
        if let Some(peak) = peak_resident_bytes() {
            let large = std::hint::black_box(vec![1u8; 64 << 20]);
            let higher = peak_resident_bytes().unwrap();
            assert!(higher >= peak.max(large.len() as u64), "{peak}, then {higher}");
        }
    }
}
