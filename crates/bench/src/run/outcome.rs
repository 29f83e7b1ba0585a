//! Results of a run and of each of its threads.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::run::client::{CLASSES_MAX, Done};
use crate::run::counts::{Counts, resident_bytes};

/// A point of the time series: the events of one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tick {
    /// Seconds since the phase began, at the end of the interval.
    pub at_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Transactions in the interval.
    pub transactions: u64,
    /// Events of the store in the interval; `None` if the store has no counters.
    pub counts: Option<Counts>,
    /// `true` if the interval belongs to the warm-up.
    pub is_warm_up: bool,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Threads.
    pub threads: u32,
    /// Measured transactions, or scanned rows.
    pub transactions: u64,
    /// Seconds of the measurement, as the mean of the threads.
    pub seconds: f64,
    /// Transactions per second over all threads.
    pub throughput_per_s: f64,
    /// Latencies of the timed steps, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Transactions by class, see [`Workload::classes`](crate::run::client::Workload::classes).
    pub by_class: [u64; CLASSES_MAX],
    /// Number of times that a transaction was rolled back and restarted.
    pub retries: u64,
    /// Events of the store; `None` if it has no counters.
    pub counts: Option<Counts>,
    /// Processor seconds of the process.
    pub cpu_s: f64,
    /// Instructions of the clients' threads, without the kernel's; `None` if the machine does
    /// not count them.
    pub instructions: Option<u64>,
    /// Bytes of the process in memory at the end.
    pub resident_bytes: Option<u64>,
    /// The time series.
    pub series: Vec<Tick>,
    /// `true` if the run was stopped before its time.
    pub was_stopped: bool,
}

impl Outcome {
    /// Returns the microseconds of CPU time per transaction.
    pub fn cpu_us_per_tx(&self) -> f64 {
        self.cpu_s * 1e6 / self.transactions.max(1) as f64
    }

    /// Combines several rounds into one outcome with their mean throughput; `None` if there are
    /// none.
    pub fn of_rounds(rounds: &[Outcome]) -> Option<Outcome> {
        let mut all = rounds.first()?.clone();
        for round in &rounds[1..] {
            // Cannot fail: histograms with the same bounds.
            let _ = all.latency.add(&round.latency);
            all.transactions += round.transactions;
            all.seconds += round.seconds;
            all.retries += round.retries;
            for (sum, part) in all.by_class.iter_mut().zip(round.by_class) {
                *sum += part;
            }
            all.cpu_s += round.cpu_s;
            all.instructions = all.instructions.zip(round.instructions).map(|(sum, n)| sum + n);
            all.resident_bytes = round.resident_bytes;
            all.throughput_per_s += round.throughput_per_s;
            all.was_stopped |= round.was_stopped;
            if let (Some(sum), Some(part)) = (&mut all.counts, &round.counts) {
                sum.add(part);
            }
        }
        all.throughput_per_s /= rounds.len() as f64;
        Some(all)
    }

    /// Returns the latency in microseconds below which this share of the transactions stayed.
    pub fn latency_us(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// Upper bound of the histogram in nanoseconds: ten minutes.
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// One thread's results.
pub(super) struct Share {
    pub latency: Histogram<u64>,
    pub by_class: [u64; CLASSES_MAX],
    pub retries: u64,
    pub transactions: u64,
    pub seconds: f64,
}

/// Returns an empty histogram of latencies in nanoseconds.
pub(crate) fn latencies() -> Histogram<u64> {
    // Cannot fail: the bounds are far enough apart, and two digits are allowed. The bounds are
    // fixed, because a value beyond them must not make a histogram grow during a run.
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 2).expect("valid bounds")
}

impl Share {
    pub fn new() -> Share {
        let latency = latencies();
        Share { latency, by_class: [0; CLASSES_MAX], retries: 0, transactions: 0, seconds: 0.0 }
    }

    #[inline(always)]
    pub fn note(&mut self, done: Done) {
        self.transactions += u64::from(done.count);
        self.retries += u64::from(done.retries);
        self.by_class[usize::from(done.class) % CLASSES_MAX] += u64::from(done.count);
    }

    #[inline(always)]
    pub fn timed(&mut self, done: Done, took: Duration) {
        self.note(done);
        self.latency.saturating_record(took.as_nanos() as u64);
    }
}

/// Returns the sum over the threads.
pub(super) fn merged(shares: &[Share], cpu_s: f64) -> Outcome {
    let mut all = Share::new();
    let mut throughput_per_s = 0.0;
    for share in shares {
        // Cannot fail: histograms with the same bounds.
        let _ = all.latency.add(&share.latency);
        all.transactions += share.transactions;
        all.seconds += share.seconds / shares.len() as f64;
        throughput_per_s += share.transactions as f64 / share.seconds.max(1e-9);
        all.retries += share.retries;
        all.by_class.iter_mut().zip(share.by_class).for_each(|(sum, part)| *sum += part);
    }
    Outcome {
        threads: shares.len() as u32,
        transactions: all.transactions,
        seconds: all.seconds,
        throughput_per_s,
        latency: all.latency,
        by_class: all.by_class,
        retries: all.retries,
        counts: None,
        cpu_s,
        instructions: None,
        resident_bytes: resident_bytes(),
        series: Vec::new(),
        was_stopped: false,
    }
}
