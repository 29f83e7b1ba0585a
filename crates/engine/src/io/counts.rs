//! Counters of a store.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use millpond_base::Reason;

/// Number of write reasons.
pub(super) const REASONS: usize = 5;

const _: () = assert!(Reason::Dsync as usize + 1 == REASONS, "every reason has a counter");

/// Counters of a running store. They are independent of each other: a snapshot taken while others
/// count may have a write without its bytes.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) reads: AtomicU64,
    pub(super) bytes_read: AtomicU64,
    pub(super) read_requests: AtomicU64,
    pub(super) read_errors: AtomicU64,
    pub(super) damaged_reads: AtomicU64,
    pub(super) writes: [AtomicU64; REASONS],
    pub(super) bytes_written: AtomicU64,
    pub(super) write_requests: AtomicU64,
    pub(super) write_errors: AtomicU64,
    pub(super) map_writes: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) growths: AtomicU64,
    pub(super) grown_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Relaxed);
    }

    pub(super) fn snapshot(&self) -> StoreCounts {
        let writes_by_reason = std::array::from_fn(|at| self.writes[at].load(Relaxed));
        let (reads, writes) = (self.reads.load(Relaxed), writes_by_reason.iter().sum::<u64>());
        StoreCounts {
            reads,
            read_bytes: self.bytes_read.load(Relaxed),
            read_requests: self.read_requests.load(Relaxed),
            read_errors: self.read_errors.load(Relaxed),
            damaged_reads: self.damaged_reads.load(Relaxed),
            writes,
            writes_by_reason,
            write_bytes: self.bytes_written.load(Relaxed),
            write_requests: self.write_requests.load(Relaxed),
            write_errors: self.write_errors.load(Relaxed),
            map_writes: self.map_writes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            growths: self.growths.load(Relaxed),
            grown_bytes: self.grown_bytes.load(Relaxed),
        }
    }
}

/// Work of a store since it was opened. Superblock and free maps are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct StoreCounts {
    /// Pages read and found sound.
    pub reads: u64,
    /// Bytes read for sound and unsound pages.
    pub read_bytes: u64,
    /// Read requests sent to the device: adjacent pages of a batch are one.
    pub read_requests: u64,
    /// Pages that could not be read, or were not sound.
    pub read_errors: u64,
    /// Read errors in which the read itself succeeded: a wrong checksum, or another page in its
    /// place.
    pub damaged_reads: u64,
    /// Pages written.
    pub writes: u64,
    /// Pages written, by reason: see [`StoreCounts::writes_for`].
    writes_by_reason: [u64; REASONS],
    /// Bytes written to the device for pages: fewer than their size if they are compressed.
    pub write_bytes: u64,
    /// Write requests sent to the device: adjacent pages of a batch are one.
    pub write_requests: u64,
    /// Pages that could not be written.
    pub write_errors: u64,
    /// Nodes of the page map written.
    pub map_writes: u64,
    /// Requested syncs.
    pub syncs: u64,
    /// Times the store grew.
    pub growths: u64,
    /// Bytes by which the store grew, each written once as a zero.
    pub grown_bytes: u64,
}

impl StoreCounts {
    /// Returns the number of pages written for `reason`.
    pub fn writes_for(&self, reason: Reason) -> u64 {
        self.writes_by_reason[reason as usize]
    }
}
