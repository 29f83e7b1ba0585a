//! Event counters: one cache-line-padded row of cells per thread.
//!
//! Every event that the papers plot has its cell. A count must be cheaper than its event. A hit
//! takes some ten nanoseconds, so an addition is a load and a store to a line that no other thread
//! writes ([`thread_slot`] documents how a thread gets one). Only threads beyond the sixty-third
//! share a row and add atomically. Reading sums all rows, relaxed. A snapshot that is taken while
//! threads run may have an event of one counter without its companion of another, but it includes
//! everything that happened before.
//!
//! The list `for_each_statistic` is the only place that names a statistic. The enums here, the
//! fields of `Stats`, its JSON, its Prometheus text and its table all come from it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stats::thread_slot::{OWNED, SLOTS, thread_slot};

/// Passes the list of all statistics to the macro `$callback`: counters, gauges and timings, each
/// as `Variant field "description";`. A timing also states whether each event is timed, or a
/// sample.
macro_rules! for_each_statistic {
    ($callback:ident) => {
        $callback! {
            counters {
                References references "page references, those of inner pages included";
                Misses misses "references whose page was not in memory";
                LeafReferences leaf_references "references to leaves";
                LeafMisses leaf_misses "misses of leaves";
                Reads reads "pages read from the store, those read ahead included";
                ReadsAhead reads_ahead "pages read from the store ahead of their use";
                BytesRead bytes_read "bytes read from the store";
                WritesSynch writes_synch
                    "pages that a worker had to write itself, because it needed the frame";
                WritesReplace writes_replace "pages written in the background to make room";
                WritesRecov writes_recov "pages written to bound recovery, or to close cleanly";
                WriteBatches write_batches "vectored writes that were submitted";
                BytesWritten bytes_written "bytes written to the store";
                Syncs syncs "times the store was made durable";
                LogImages log_images
                    "pages logged whole, with their first change since they were clean";
                LogImageBytes log_image_bytes "bytes of the log that such pages took";
                ReadErrors read_errors "reads that failed";
                WriteErrors write_errors "writes that failed";
                ChecksumFailures checksum_failures "pages that were not what was written";
                Evictions evictions "pages that left the pool for another one";
                EvictionsWorker evictions_worker
                    "of these, by a worker that needed the frame itself";
                EvictionsScanned evictions_scanned
                    "of these, pages that only a scan had referenced";
                EvictionRefusals eviction_refusals
                    "victims that were pinned, latched, dirty or had swizzled children";
                Cooled cooled "pages put into the cooling stage";
                Revived revived "pages saved from the cooling stage by a reference";
                HitsLost hits_lost
                    "hits that a batched policy did not receive, because it was busy";
                Swizzles swizzles "references to a page turned into a pointer";
                Unswizzles unswizzles "pointers turned back into a page id";
                Restarts restarts "optimistic reads that restarted, because a version changed";
                LatchConflicts latch_conflicts "latches that were held when a thread wanted them";
                LatchWaits latch_waits "times a thread gave up its processor to wait for a latch";
                InFlightWaits in_flight_waits
                    "times a thread waited for a page that another one was loading";
                FreeFrameWaits free_frame_waits
                    "times a thread waited for a free frame, or had to make one";
                Prefetches prefetches "pages asked for ahead of their use";
                PrefetchHits prefetch_hits "prefetched pages that were then used";
                Rescues rescues
                    "pages of the free list that were needed after all, and not read again";
                TierReads tier_reads "pages asked of the second tier";
                TierReadHits tier_read_hits "of these, pages that its policy kept";
                TierServed tier_served "of those, pages that were read from its cache";
                TierWrites tier_writes "pages written through the second tier";
                TierFills tier_fills "copies of pages written into the second tier's cache";
                TierBypasses tier_bypasses "pages that the second tier's policy let pass by";
                TierMismatches tier_mismatches
                    "copies that were not what was written; read from the store if it had them";
                TierErrors tier_errors "requests to the second tier's device that failed";
                TierDestaged tier_destaged
                    "pages that a second tier that writes back wrote to the store's file";
                TierSpared tier_spared "pages that it never had to write there";
                EpochAdvances epoch_advances "steps of the global epoch";
                Splits splits "nodes that were split";
                Merges merges "nodes that were merged";
                BackgroundLeaves background_leaves "leaves that the background merge looked at";
                BackgroundPasses background_passes
                    "times the background merge came to the end of a tree";
                PagesAllocated pages_allocated "pages given to a structure";
                PagesFreed pages_freed "pages given back by a structure";
                FileExtensions file_extensions "times the file was extended";
                Gets gets "lookups, those of transactions and snapshots included";
                Puts puts "inserts, upserts and updates, those of transactions included";
                Deletes deletes "deletes, those of transactions included";
                Scans scans "range scans that ended";
                ScanRows scan_rows "rows that scans returned";
                Commits commits "transactions that committed";
                Aborts aborts "transactions that were undone, for whatever reason";
                AbortsDeadlock aborts_deadlock "of these, victims of a deadlock";
                AbortsTimeout aborts_timeout "of these, those that waited too long for a lock";
                AbortsError aborts_error "of these, those whose last call failed otherwise";
                Snapshots snapshots "snapshots that were begun";
                LockWaits lock_waits "times a thread waited for a lock";
                Deadlocks deadlocks "deadlocks that were broken";
                LockTimeouts lock_timeouts "requests of a lock that waited too long";
                LockEscalations lock_escalations "trees locked whole in place of many keys";
                LockEscalationsRefused lock_escalations_refused
                    "escalations that locks of others prevented";
                LockMemoryRefusals lock_memory_refusals
                    "requests of a lock that failed for want of memory";
                LogBytes log_bytes "bytes of the log's records, headers and padding included";
                LogRecords log_records "records of the log that became durable";
                LogBytesWritten log_bytes_written
                    "bytes written to the log's device, whole blocks";
                LogFlushes log_flushes "times records were written and made durable";
                LogSyncs log_syncs "syncs of the log's device";
                LogWaits log_waits "times a thread waited until a record was durable";
                LogWaitsShared log_waits_shared "of these, served by another thread's flush";
                LogSpaceWaits log_space_waits
                    "times a writer waited for room in the log's buffer, or for checkpoints";
                LogSegmentsGrown log_segments_grown "segments added to the log";
                LogSegmentsRecycled log_segments_recycled "segments of the log used again";
                LogGrowthFailures log_growth_failures
                    "times the log could not be made longer ahead of need";
                Checkpoints checkpoints "checkpoints that were taken";
                CheckpointFailures checkpoint_failures "checkpoints that failed";
            }
            gauges {
                ResidentFrames resident_frames "frames that hold a page";
                FreeFrames free_frames "frames that hold none";
                DirtyFrames dirty_frames "frames whose page must be written";
                CoolingFrames cooling_frames "frames in the cooling stage";
                ReadsInFlight reads_in_flight "page reads under way";
                WritesInFlight writes_in_flight "page writes under way";
                StorePages store_pages "pages of the store, free ones included";
                FreePages free_pages "pages of the store that no structure owns";
                StoredBytes stored_bytes "bytes that pages take in the file, compressed or not";
                TierFrames tier_frames "pages that the second tier has room for";
                TierResident tier_resident "pages that the second tier keeps";
                TierDirty tier_dirty "pages in the second tier that the store's file has not";
                TierOff tier_off
                    "1 if the second tier is out of use: it failed too often, or in a sync";
                ActiveTransactions active_transactions "transactions that have written, not ended";
                OpenSnapshots open_snapshots "snapshots that are open";
                VersionBytes version_bytes "bytes of versions kept for snapshots, in memory";
                UndoBytes undo_bytes "bytes of undo records of active transactions, in memory";
                SpilledBytes spilled_bytes "bytes of the spill file, for versions and undo records";
                LockBytes lock_bytes "bytes of memory that locks have reserved";
                LogUnforgotten log_unforgotten
                    "bytes of the log that a recovery would read, from the redo LSN on";
                WaitingForLatch waiting_for_latch "threads that wait for a latch";
                WaitingForLock waiting_for_lock "threads that wait for a lock";
                WaitingForLog waiting_for_log "threads that wait for the log to be durable";
                WaitingForLogSpace waiting_for_log_space "threads that wait for room in the log";
                WaitingForPage waiting_for_page "threads that wait for another one's page read";
                WaitingForFrame waiting_for_frame "threads that wait for a free frame, or make one";
            }
            timings {
                ReadTime read_time each "reading a page";
                WriteTime write_time each "a vectored write";
                SyncTime sync_time each "making the store durable";
                LatchTime latch_time each "waiting for a latch, once spinning was of no use";
                LockTime lock_time each "waiting for a lock";
                LogTime log_time each "waiting until a record of the log was durable";
                LogSpaceTime log_space_time each "waiting for room in the log";
                InFlightTime in_flight_time each "waiting for a page that another thread loaded";
                FreeFrameTime free_frame_time each "waiting for a free frame, or making one";
                LogSyncTime log_sync_time each "writing records of the log, and its sync";
                CheckpointTime checkpoint_time each "a checkpoint";
                CommitTime commit_time sampled "a commit, until it was as durable as was asked";
                GetTime get_time sampled "a lookup";
                PutTime put_time sampled "an insert, upsert or update";
                DeleteTime delete_time sampled "a delete";
                ScanTime scan_time sampled "a range scan, from its beginning to its end";
            }
        }
    };
}
pub(crate) use for_each_statistic;

macro_rules! statistic_enum {
    ($(#[$meta:meta])* $name:ident: $($variant:ident $field:ident $help:literal;)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $(#[doc = $help] $variant,)*
        }

        impl $name {
            /// All statistics of this kind, in the order of their declaration.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Returns the name in JSON and in Prometheus' text.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => stringify!($field),)* }
            }

            /// Returns its description, for people.
            pub const fn help(self) -> &'static str {
                match self { $($name::$variant => $help,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

macro_rules! is_sampled {
    (each) => {
        false
    };
    (sampled) => {
        true
    };
}

macro_rules! statistic_enums {
    (
        counters { $($counters:tt)* }
        gauges { $($gauges:tt)* }
        timings { $($timing:ident $time:ident $how:ident $help:literal;)* }
    ) => {
        statistic_enum! {
            /// A statistic that only grows.
            Counter: $($counters)*
        }
        statistic_enum! {
            /// A statistic that grows and shrinks.
            Gauge: $($gauges)*
        }
        statistic_enum! {
            /// An operation whose latency is recorded, see
            /// [`Latencies`](crate::stats::histogram::Latencies).
            Timing: $($timing $time $help;)*
        }

        impl Timing {
            /// Returns `true` if only a sample of the events is timed, because they are shorter
            /// than reading the clock, or hardly longer.
            pub const fn is_sampled(self) -> bool {
                match self { $(Timing::$timing => is_sampled!($how),)* }
            }
        }
    };
}
for_each_statistic!(statistic_enums);

const COUNTERS: usize = Counter::ALL.len();
const CELLS: usize = COUNTERS + Gauge::ALL.len();

/// One thread's cells. Two cache lines of alignment, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Row([AtomicU64; CELLS]);

impl Row {
    /// Adds with wrap-around, so that it can also subtract.
    #[inline(always)]
    fn add(&self, slot: usize, cell: usize, amount: u64) {
        let cell = &self.0[cell];
        if slot < OWNED {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        } else {
            cell.fetch_add(amount, Ordering::Relaxed);
        }
    }
}

/// The counters and gauges of one store.
pub struct Counters {
    rows: Box<[Row; SLOTS]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Counters {
    /// Returns counters that are all zero. Their 64 KiB or so are never on the stack, which may be
    /// no larger in a thread that opens a store.
    pub fn new() -> Counters {
        let row = |_| Row(std::array::from_fn(|_| AtomicU64::new(0)));
        let rows: Box<[Row]> = (0..SLOTS).map(row).collect();
        // Cannot fail: there are `SLOTS` of them.
        Counters { rows: rows.try_into().expect("a row for each slot") }
    }

    /// Returns the calling thread's row, for several counts in a row.
    #[inline(always)]
    pub fn here(&self) -> Here<'_> {
        self.of(thread_slot())
    }

    /// Like [`Counters::here`], for a caller that knows its [`thread_slot`] already.
    #[inline(always)]
    pub(crate) fn of(&self, slot: usize) -> Here<'_> {
        Here { row: &self.rows[slot % SLOTS], slot, not_send: std::marker::PhantomData }
    }

    /// Counts one event.
    #[inline(always)]
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Counts `amount` events, or bytes.
    #[inline(always)]
    pub fn add(&self, counter: Counter, amount: u64) {
        self.here().add(counter, amount);
    }

    /// Adds one to `gauge`.
    #[inline(always)]
    pub fn raise(&self, gauge: Gauge) {
        self.shift(gauge, 1);
    }

    /// Subtracts one from `gauge`; another thread may have added it.
    #[inline(always)]
    pub fn lower(&self, gauge: Gauge) {
        self.shift(gauge, -1);
    }

    /// Adds `by`, which may be negative, to `gauge`.
    #[inline(always)]
    pub fn shift(&self, gauge: Gauge, by: i64) {
        let here = self.here();
        here.row.add(here.slot, COUNTERS + gauge as usize, by.cast_unsigned());
    }

    /// Returns the sum over all threads. Reads [`SLOTS`] cache lines: not for the hot path.
    pub fn get(&self, counter: Counter) -> u64 {
        self.sum(counter as usize)
    }

    /// Returns the present level, or 0 if a decrement was read and its increment was not.
    pub fn level(&self, gauge: Gauge) -> u64 {
        let level = self.sum(COUNTERS + gauge as usize).cast_signed();
        level.max(0).cast_unsigned()
    }

    fn sum(&self, cell: usize) -> u64 {
        let cells = self.rows.iter().map(|row| row.0[cell].load(Ordering::Relaxed));
        cells.fold(0, u64::wrapping_add)
    }
}

/// The calling thread's row of [`Counters`]; stays with its thread.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    row: &'a Row,
    slot: usize,
    /// On another thread the slot would have two writers.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Here<'_> {
    /// Counts one event.
    #[inline(always)]
    pub fn count(self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Returns the count in this row: by the calling thread, unless it shares the row.
    pub fn get(self, counter: Counter) -> u64 {
        self.row.0[counter as usize].load(Ordering::Relaxed)
    }

    /// Counts `amount` events, or bytes.
    #[inline(always)]
    pub fn add(self, counter: Counter, amount: u64) {
        self.row.add(self.slot, counter as usize, amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread;

    #[test]
    fn no_event_is_lost_with_more_threads_than_slots() {
        let counters = Counters::new();
        thread::scope(|scope| {
            for _ in 0..OWNED + 30 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counters.count(Counter::Misses);
                        counters.here().add(Counter::BytesRead, 4096);
                    }
                });
            }
        });
        let threads = OWNED as u64 + 30;
        assert_eq!(counters.get(Counter::Misses), threads * 1000);
        assert_eq!(counters.get(Counter::BytesRead), threads * 4096 * 1000);
        assert_eq!(counters.get(Counter::References), 0);
    }

    #[test]
    fn counts_survive_the_thread_that_made_them() {
        let counters = Counters::new();
        for _ in 0..200 {
            thread::scope(|scope| scope.spawn(|| counters.count(Counter::Splits)).join().unwrap());
        }
        assert_eq!(counters.get(Counter::Splits), 200);
    }

    #[test]
    fn a_gauge_may_be_lowered_by_another_thread_than_raised_it() {
        let counters = Counters::new();
        (0..5).for_each(|_| counters.raise(Gauge::DirtyFrames));
        thread::scope(|scope| {
            scope.spawn(|| (0..3).for_each(|_| counters.lower(Gauge::DirtyFrames)));
        });
        assert_eq!(counters.level(Gauge::DirtyFrames), 2);
        counters.shift(Gauge::DirtyFrames, -7);
        assert_eq!(counters.level(Gauge::DirtyFrames), 0);
        counters.shift(Gauge::DirtyFrames, 6);
        assert_eq!(counters.level(Gauge::DirtyFrames), 1);
    }

    #[test]
    fn every_statistic_has_a_name_of_its_own_and_a_help_line() {
        let mut names: Vec<&str> = Counter::ALL.iter().map(|c| c.name()).collect();
        names.extend(Gauge::ALL.iter().map(|g| g.name()));
        names.extend(Timing::ALL.iter().map(|t| t.name()));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(Counter::ALL.iter().all(|c| !c.help().is_empty()));
        assert_eq!(Counter::ALL[Counter::Evictions as usize], Counter::Evictions);
        assert_eq!(Gauge::ALL[Gauge::FreePages as usize], Gauge::FreePages);
    }

    #[test]
    fn rows_of_different_threads_share_no_pair_of_cache_lines() {
        assert_eq!(align_of::<Row>(), 128);
        assert_eq!(size_of::<Row>() % 128, 0);
    }
}
