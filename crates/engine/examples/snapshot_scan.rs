//! What snapshots cost readers and writers, in memory:
//! `snapshot_scan [thousands of rows] [rounds]`.
//!
//! One thread scans all rows of a tree, again and again: outside snapshots, in one while nobody
//! writes, and in one while another thread changes rows at random. What the two threads reach when
//! they share nothing but the processors is told by a scan of another store beside that writer: it
//! is the most that a snapshot could leave of both. A scan outside snapshots is not: once somebody
//! writes it goes on with a snapshot of its own. Rounds are interleaved; each ratio is to another
//! line, with the least and the most of the rounds.
#![allow(clippy::print_stdout, reason = "a measurement tells what it found")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millpond::internals::btree::BulkOptions;
use millpond::{Db, Error, Options, RawTree, Snapshot};

const TIME: Duration = Duration::from_millis(1000);
const MEMORY: u64 = 8 << 30;

struct Stand {
    db: Db,
    tree: RawTree,
    rows: u64,
}

/// Rows per second of `scan`, which returns the number of rows that it saw.
fn rate(mut scan: impl FnMut() -> Result<u64, Error>) -> Result<f64, Error> {
    let (started, mut rows) = (Instant::now(), 0);
    while started.elapsed() < TIME {
        rows += scan()?;
    }
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

impl Stand {
    fn scan_plain(&self) -> Result<u64, Error> {
        let mut range = self.tree.iter();
        let mut rows = 0;
        while range.next_entry()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    fn scan(&self, snapshot: &Snapshot) -> Result<u64, Error> {
        let mut range = snapshot.tree(&self.tree).into_range(..);
        let mut rows = 0;
        while range.next_entry()?.is_some() {
            rows += 1;
        }
        assert_eq!(rows, self.rows);
        Ok(rows)
    }

    /// Changes rows at random until `over`; counts them in `done`.
    fn write(&self, over: &AtomicBool, done: &AtomicU64) -> Result<(), Error> {
        let mut random = fastrand::Rng::with_seed(7);
        while !over.load(Ordering::Relaxed) {
            let key = random.u64(0..self.rows).to_be_bytes();
            self.tree.put(&key, &[random.u8(..); 120])?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// `read`'s rate, and that of a thread that writes meanwhile.
    fn among_writes(&self, read: impl FnOnce() -> Result<f64, Error>) -> Result<(f64, f64), Error> {
        let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writer = std::thread::Builder::new().name("writer".into());
            let writer = writer
                .spawn_scoped(scope, || self.write(&over, &done))
                .unwrap_or_else(|error| panic!("no thread for the writer: {error}"));
            let started = Instant::now();
            let read = read();
            let writes = done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
            over.store(true, Ordering::Relaxed);
            writer.join().map_or(Ok(()), |written| written)?;
            Ok((read?, writes))
        })
    }
}

/// What is measured, and the number of the line that it is a ratio to.
const LINES: [(&str, usize); 14] = [
    ("rows scanned, outside snapshots", 0),
    ("rows scanned, snapshot", 0),
    ("rows scanned, another store, beside writes", 0),
    ("rows scanned, outside snapshots, among writes", 2),
    ("rows scanned, one snapshot, among writes", 2),
    ("rows scanned, one per scan, among writes", 2),
    ("writes, no snapshot open", 6),
    ("writes, a snapshot open", 6),
    ("writes, beside a scan of another store", 6),
    ("writes, beside a scan outside snapshots", 8),
    ("writes, a snapshot open and scanned", 8),
    ("writes, a snapshot for each scan", 8),
    ("rows scanned, one snapshot, to the first line", 0),
    ("writes, open and scanned, to those alone", 6),
];

fn show(what: &str, rates: &[f64], base: &[f64]) {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let ratios: Vec<f64> = rates.iter().zip(base).map(|(rate, base)| rate / base).collect();
    let ratio = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    println!("{what:46} {mean:>14.0} {ratio:>8.2} [{least:.2}, {most:.2}]");
}

/// A tree of that many rows in a store of its own.
fn stand(rows: u64) -> Result<Stand, Error> {
    let db = Db::in_memory(Options::new().memory(MEMORY))?;
    let tree = db.raw_tree("rows")?;
    let entries = (0..rows).map(|row| (row.to_be_bytes().to_vec(), vec![1; 120]));
    tree.bulk_load(entries, BulkOptions::default())?;
    Ok(Stand { db, tree, rows })
}

fn nothing() -> Result<f64, Error> {
    std::thread::sleep(TIME);
    Ok(0.0)
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1).map_while(|arg| arg.parse::<u64>().ok());
    let (rows, rounds) = (args.next().unwrap_or(1000) * 1000, args.next().unwrap_or(5));
    let (stand, other) = (stand(rows)?, stand(rows)?);
    let mut all: [Vec<f64>; LINES.len()] = Default::default();
    for _ in 0..rounds {
        let plain = rate(|| stand.scan_plain())?;
        let quiet = {
            let snapshot = stand.db.snapshot()?;
            rate(|| stand.scan(&snapshot))?
        };
        let (_, alone) = stand.among_writes(nothing)?;
        let (apart, writes_apart) = stand.among_writes(|| rate(|| other.scan_plain()))?;
        let (among, writes_among) = stand.among_writes(|| rate(|| stand.scan_plain()))?;
        let (_, kept) = {
            let _snapshot = stand.db.snapshot()?;
            stand.among_writes(nothing)?
        };
        let (open, writes_open) = {
            let snapshot = stand.db.snapshot()?;
            stand.among_writes(|| rate(|| stand.scan(&snapshot)))?
        };
        let (each, writes_each) =
            stand.among_writes(|| rate(|| stand.scan(&stand.db.snapshot()?)))?;
        let scans = [plain, quiet, apart, among, open, each];
        let writes = [alone, kept, writes_apart, writes_among, writes_open, writes_each];
        let rates = scans.into_iter().chain(writes).chain([open, writes_open]);
        for (rates, rate) in all.iter_mut().zip(rates) {
            rates.push(rate);
        }
    }
    println!("{:46} {:>14} {:>8}", format!("{rows} rows of 128 bytes"), "per second", "ratio");
    for ((what, base), rates) in LINES.into_iter().zip(&all) {
        show(what, rates, &all[base]);
    }
    Ok(())
}
