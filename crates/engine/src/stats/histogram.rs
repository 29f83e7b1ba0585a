//! Latencies, recorded without a latch and without an allocation per event.
//!
//! A histogram has one bucket per value below 16 ns and sixteen per power of two above, up to 2⁴¹
//! ns (37 minutes): a value is known to within 1/16. Every thread slot has its own histograms,
//! allocated at its first value (about 39 KiB). So recording is two plain loads and stores (bucket
//! and sum) on lines that only this thread writes; see [`thread_slot`](crate::stats::thread_slot).
//! A snapshot merges them.
//!
//! ```text
//! value   0 … 15          bucket = value
//! value  16 … 2⁴¹−1       e = its highest bit, bucket = 16 · (e − 3) + the four bits below it
//! value  2⁴¹ …            the last bucket
//! ```
//!
//! Reading the clock costs some 20 ns, twice per event. That is negligible beside an I/O and
//! expensive beside a lookup. So timings of operations in memory are *sampled*: one event in n on
//! average, at gaps drawn at random. With a fixed gap, a thread that alternates between two
//! operations would have only one of them timed. Percentiles of the sample are those of all events;
//! a [`Counter`](crate::stats::counters::Counter) has the number of events.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::stats::counters::Timing;
use crate::stats::thread_slot::{OWNED, SLOTS, thread_slot};

/// Buckets per power of two.
const STEPS: usize = 16;
/// Values with more bits are counted in the last bucket.
const BITS_MAX: u32 = 41;
/// Buckets of a histogram.
pub const BUCKETS: usize = STEPS * (BITS_MAX as usize - 3);

/// Returns the bucket that counts `value`.
#[inline(always)]
pub fn bucket_of(value: u64) -> usize {
    let value = value.min((1 << BITS_MAX) - 1);
    if value < STEPS as u64 {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros();
    let step = (value >> (exponent - 4)) as usize & (STEPS - 1);
    STEPS * (exponent as usize - 3) + step
}

/// Returns the smallest and the largest value that `bucket` counts. The last bucket has no largest
/// value and reports 2⁴¹ − 1.
pub fn range_of(bucket: usize) -> (u64, u64) {
    let bucket = bucket.min(BUCKETS - 1);
    if bucket < STEPS {
        return (bucket as u64, bucket as u64);
    }
    let (exponent, step) = (bucket / STEPS + 3, bucket % STEPS);
    let width = 1u64 << (exponent - 4);
    let low = (STEPS + step) as u64 * width;
    (low, low + width - 1)
}

#[cold]
#[inline(never)]
fn report_slow(timing: Timing, ns: u64) {
    // The lifetime of a range is up to its user.
    if timing != Timing::ScanTime {
        tracing::info!(timing = timing.name(), took_us = ns / 1_000, "slow: {}", timing.help());
    }
}

/// One thread's values of one timing.
struct Cells {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

impl Cells {
    fn new() -> Cells {
        Cells {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn record(&self, owned: bool, value: u64) {
        let bucket = &self.buckets[bucket_of(value) % BUCKETS];
        if owned {
            let add = |cell: &AtomicU64, amount: u64| {
                cell.store(cell.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
            };
            add(bucket, 1);
            add(&self.sum, value);
            if value > self.max.load(Ordering::Relaxed) {
                self.max.store(value, Ordering::Relaxed);
            }
        } else {
            bucket.fetch_add(1, Ordering::Relaxed);
            self.sum.fetch_add(value, Ordering::Relaxed);
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }
}

/// The values of one timing, merged over all threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// Number of values.
    pub count: u64,
    /// Sum of the values, in ns.
    pub sum_ns: u64,
    /// Largest value, in ns.
    pub max_ns: u64,
    /// Values per bucket, see [`range_of`]; [`BUCKETS`] of them.
    pub buckets: Vec<u64>,
}

impl Recorded {
    /// Adds the values of another room.
    pub fn add(&mut self, other: &Recorded) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, n)| *sum += n);
    }
}

/// The latencies of one store, for each [`Timing`].
pub struct Latencies {
    rows: Box<[OnceLock<Box<[Cells]>>; SLOTS]>,
    period: u32,
    /// Events that take at least this long, in ns, are reported to `tracing`.
    slow_ns: AtomicU64,
}

/// Number of this thread's events to skip before the next timed one, for all timings and stores.
struct Gap {
    left: Cell<u32>,
    random: Cell<u32>,
}

impl Gap {
    /// Draws a gap of `period` on average: 0 to 2 · period − 2 events to skip.
    fn draw(&self, period: u32) {
        // Knuth's linear congruential generator; only its high half is random.
        let random = self.random.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random.set(random);
        let choices = u64::from(period) * 2 - 1;
        self.left.set(((u64::from(random) * choices) >> 32) as u32);
    }
}

thread_local! {
    static GAP: Gap = const { Gap { left: Cell::new(0), random: Cell::new(1) } };
}

impl Latencies {
    /// Returns empty latencies. One in `sample_period` of the operations in memory is timed (1:
    /// each; 0: none), at most one in 2³⁰.
    pub fn new(sample_period: u32) -> Latencies {
        Latencies {
            rows: Box::new(std::array::from_fn(|_| OnceLock::new())),
            period: sample_period.min(1 << 30),
            slow_ns: AtomicU64::new(u64::MAX),
        }
    }

    /// Reports timed events that take at least `slow` to `tracing` from now on; at first, none are
    /// reported.
    pub fn report_from(&self, slow: Duration) {
        let ns = u64::try_from(slow.as_nanos()).unwrap_or(u64::MAX);
        self.slow_ns.store(ns, Ordering::Relaxed);
    }

    /// Returns the sample period: one in this many events of `timing` is timed; 0: none.
    pub fn sample_period(&self, timing: Timing) -> u32 {
        if timing.is_sampled() { self.period } else { 1 }
    }

    /// Reads the clock if this event is to be timed; pass the result to [`Latencies::stop`].
    #[inline(always)]
    pub fn start(&self, timing: Timing) -> Option<Instant> {
        if !timing.is_sampled() {
            return Some(Instant::now());
        }
        if self.period == 0 {
            return None;
        }
        GAP.with(|gap| match gap.left.get() {
            0 => Some(self.start_sample(gap)),
            left => {
                gap.left.set(left - 1);
                None
            }
        })
    }

    #[cold]
    fn start_sample(&self, gap: &Gap) -> Instant {
        gap.draw(self.period);
        Instant::now()
    }

    /// Records the duration of an event that began with [`Latencies::start`].
    #[inline(always)]
    pub fn stop(&self, timing: Timing, start: Option<Instant>) {
        if let Some(start) = start {
            self.record(timing, start.elapsed().as_nanos() as u64);
        }
    }

    /// Records a latency in ns, and reports it if it is slow ([`Latencies::report_from`]).
    #[inline]
    pub fn record(&self, timing: Timing, ns: u64) {
        if ns >= self.slow_ns.load(Ordering::Relaxed) {
            report_slow(timing, ns);
        }
        let slot = thread_slot();
        let row = self.rows[slot % SLOTS].get_or_init(Self::new_row);
        row[timing as usize].record(slot < OWNED, ns);
    }

    #[cold]
    fn new_row() -> Box<[Cells]> {
        Timing::ALL.iter().map(|_| Cells::new()).collect()
    }

    /// Returns all values of `timing` so far, merged over the threads.
    pub fn merged(&self, timing: Timing) -> Recorded {
        let mut all = Recorded { count: 0, sum_ns: 0, max_ns: 0, buckets: vec![0; BUCKETS] };
        for row in self.rows.iter().filter_map(OnceLock::get) {
            let cells = &row[timing as usize];
            all.sum_ns = all.sum_ns.wrapping_add(cells.sum.load(Ordering::Relaxed));
            all.max_ns = all.max_ns.max(cells.max.load(Ordering::Relaxed));
            for (sum, cell) in all.buckets.iter_mut().zip(&cells.buckets) {
                *sum += cell.load(Ordering::Relaxed);
            }
        }
        all.count = all.buckets.iter().sum();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn buckets_tile_the_numbers_without_gap_or_overlap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (low, high) = range_of(bucket);
            assert_eq!(low, next, "bucket {bucket}");
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            assert!((high - low) as f64 <= low as f64 / 16.0, "bucket {bucket}: {low} to {high}");
            next = high + 1;
        }
        assert_eq!(next, 1 << BITS_MAX);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(range_of(usize::MAX), range_of(BUCKETS - 1));
    }

    #[test]
    fn values_of_many_threads_are_all_there_after_a_merge() {
        let latencies = Latencies::new(1);
        let threads = OWNED as u64 + 9;
        thread::scope(|scope| {
            for thread in 0..threads {
                let latencies = &latencies;
                scope.spawn(move || {
                    for i in 0..500 {
                        latencies.record(Timing::ReadTime, i * 1000 + thread);
                    }
                });
            }
        });
        let merged = latencies.merged(Timing::ReadTime);
        assert_eq!(merged.count, threads * 500);
        assert_eq!(merged.max_ns, 499_000 + threads - 1);
        let sum: u64 = (0..500).map(|i| i * 1000 * threads).sum();
        assert_eq!(merged.sum_ns, sum + 500 * (threads - 1) * threads / 2);
        assert_eq!(latencies.merged(Timing::WriteTime).count, 0);
    }

    #[test]
    fn one_in_so_many_operations_is_timed_and_each_io() {
        thread::spawn(|| {
            let timed = |latencies: &Latencies, timing, events: u32| {
                (0..events).filter(|_| latencies.start(timing).is_some()).count()
            };
            let latencies = Latencies::new(10);
            let sampled = timed(&latencies, Timing::GetTime, 10_000);
            assert!((800..1200).contains(&sampled), "{sampled}");
            assert_eq!(timed(&latencies, Timing::ReadTime, 50), 50);
            latencies.stop(Timing::SyncTime, latencies.start(Timing::SyncTime));
            latencies.stop(Timing::GetTime, None);
            assert_eq!(latencies.merged(Timing::SyncTime).count, 1);
            assert_eq!(latencies.merged(Timing::GetTime).count, 0);
        })
        .join()
        .unwrap();
        thread::spawn(|| {
            let never = Latencies::new(0);
            assert!((0..1000).all(|_| never.start(Timing::PutTime).is_none()));
            let always = Latencies::new(1);
            assert!((0..1000).all(|_| always.start(Timing::PutTime).is_some()));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn operations_that_alternate_are_sampled_alike() {
        thread::spawn(|| {
            let latencies = Latencies::new(16);
            let mut sampled = [0u32; 2];
            for i in 0..32_000 {
                let timing = [Timing::GetTime, Timing::PutTime][i % 2];
                sampled[i % 2] += u32::from(latencies.start(timing).is_some());
            }
            assert!(sampled.iter().all(|n| (800..1200).contains(n)), "{sampled:?}");
        })
        .join()
        .unwrap();
    }
}
