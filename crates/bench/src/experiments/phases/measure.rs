//! Measurements of a phase.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hdrhistogram::Histogram;
use millpond::{Db, Stats};

use super::error::PhaseError;
use super::plan::Phase;
use crate::interval::Interval;
use crate::run::counts::{cpu_seconds, peak_resident_bytes, reset_peak};
use crate::run::latencies;

/// Result of a phase, all its rounds together.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The phase.
    pub phase: Phase,
    /// Threads.
    pub threads: u32,
    /// Rows that were written, read, removed, or counted.
    pub rows: u64,
    /// Transactions, or reads outside transactions.
    pub transactions: u64,
    /// Seconds of all rounds.
    pub seconds: f64,
    /// Rounds.
    pub rounds: u32,
    /// Rows per second, over the rounds.
    pub rows_per_s: Interval,
    /// In nanoseconds: of each commit, or of one read in 32.
    pub latency: Histogram<u64>,
    /// Processor seconds of the process.
    pub cpu_s: f64,
    /// Bytes of the folder's files on the drive before the phase: data, log, spill file.
    pub disk_before: u64,
    /// Bytes of the folder's files on the drive after the phase: data, log, spill file.
    pub disk: u64,
    /// The most bytes of the process in memory during the phase; where the system does not let go
    /// of an earlier peak, during the run so far.
    pub peak: Option<u64>,
    /// The store's counters.
    pub stats: Stats,
}

impl Measured {
    /// Transactions per second.
    pub fn per_s(&self) -> f64 {
        self.transactions as f64 / self.seconds.max(1e-9)
    }

    /// Latency in microseconds below which this share of the timed calls stayed.
    pub fn latency_us(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }

    /// An amount per row.
    pub fn per_row(&self, amount: f64) -> f64 {
        amount / self.rows.max(1) as f64
    }
}

/// Bytes that the files of a folder take on the drive.
pub(super) fn disk_bytes(folder: &Path) -> Result<u64, PhaseError> {
    let failed = |error| PhaseError::Folder { path: folder.to_path_buf(), error };
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        match entry.and_then(|entry| entry.metadata()) {
            Ok(file) => bytes += file.blocks() * 512,
            // The spill file may go meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(bytes)
}

/// A phase while it is measured.
pub(super) struct Meter {
    phase: Phase,
    threads: u32,
    stats: Stats,
    cpu_s: f64,
    disk_before: u64,
    rows: u64,
    transactions: u64,
    seconds: f64,
    rates: Vec<f64>,
    pub(super) latency: Histogram<u64>,
}

impl Meter {
    /// Begins to measure.
    pub(super) fn start(
        phase: Phase,
        threads: u32,
        db: &Db,
        folder: &Path,
    ) -> Result<Meter, PhaseError> {
        reset_peak();
        Ok(Meter {
            phase,
            threads,
            stats: db.stats(),
            disk_before: disk_bytes(folder)?,
            rows: 0,
            transactions: 0,
            seconds: 0.0,
            rates: Vec::new(),
            latency: latencies(),
            cpu_s: cpu_seconds(),
        })
    }

    /// Adds a round.
    pub(super) fn round(&mut self, rows: u64, transactions: u64, seconds: f64) {
        self.rows += rows;
        self.transactions += transactions;
        self.seconds += seconds;
        self.rates.push(rows as f64 / seconds.max(1e-9));
    }

    /// Adds the time of a commit or of a read.
    pub(super) fn timed(&mut self, time: std::time::Duration) {
        self.latency.saturating_record(time.as_nanos() as u64);
    }

    /// Ends it; `None` if there was no round.
    pub(super) fn end(self, db: &Db, folder: &Path) -> Result<Option<Measured>, PhaseError> {
        let cpu_s = cpu_seconds() - self.cpu_s;
        let stats = db.stats().since(&self.stats);
        let Some(rows_per_s) = Interval::of_rates(&self.rates) else { return Ok(None) };
        Ok(Some(Measured {
            phase: self.phase,
            threads: self.threads,
            rows: self.rows,
            transactions: self.transactions,
            seconds: self.seconds,
            rounds: self.rates.len() as u32,
            rows_per_s,
            latency: self.latency,
            cpu_s,
            disk_before: self.disk_before,
            disk: disk_bytes(folder)?,
            peak: peak_resident_bytes(),
            stats,
        }))
    }
}
