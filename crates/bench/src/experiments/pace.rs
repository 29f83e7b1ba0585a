//! Durable commits while dirty pages are written in the background, beside a store that does not
//! need to write any yet.
//!
//! Two stores of the same rows take turns. The *quiet* store begins each turn after a checkpoint,
//! and its log gap lets its pages wait for longer than the turn takes. The *busy* store has the
//! requested gap, so its pages are written and checkpoints are taken while it commits. Ratios are
//! taken within rounds. A second writer makes both logs grow at a stated rate.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millpond::{Db, Durability, Options, RawTree, TxnOptions};
use millpond_base::Seed;

use crate::error::BenchError;
use crate::interval::Interval;
use crate::run::runner::Observer;
use crate::run::turns::order;

/// Bytes of a value.
const VALUE_BYTES: usize = 150;
/// Rows of a transaction that loads.
const LOADED: u64 = 1000;
/// Time between two clock checks of the background writer.
const LOOK: Duration = Duration::from_millis(1);
/// The quiet store's log gap over the busy one's, and its minimum in bytes.
const QUIET_GAPS: u64 = 16;
const QUIET_GAP_LEAST: u64 = 1 << 30;

/// Set-up of the measurement.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Rows that are loaded, in random order, and then overwritten.
    pub rows: u64,
    /// Bytes of memory of each store.
    pub memory: u64,
    /// Bytes of the busy store's log gap.
    pub log_gap: u64,
    /// Rows that the background writer changes per second; 0 for no writer.
    pub background: u64,
    /// Rounds of both stores.
    pub rounds: u32,
    /// Time for which each store commits in a round.
    pub time: Duration,
    /// Length of a slice of the time series.
    pub slice: Duration,
    /// Folder in which both stores are created, and removed again.
    pub folder: PathBuf,
    /// Seed of rows and turns.
    pub seed: Seed,
}

/// A slice of the time series.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Slice {
    /// Start of the slice in seconds since the store's first commit, without the other store's
    /// turns.
    pub second: f64,
    /// Durable commits per second.
    pub per_s: f64,
    /// The 99th percentile of the commits' times, in microseconds.
    pub p99_us: f64,
    /// Pages written in the slice.
    pub written: u64,
    /// Checkpoints that were taken.
    pub checkpoints: u64,
}

/// Results for one of the two stores.
#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// Durable commits per second, by rounds.
    pub per_s: Interval,
    /// Median of a commit's time, in microseconds, by rounds.
    pub p50_us: Interval,
    /// 99th percentile of a commit's time, in microseconds, by rounds.
    pub p99_us: Interval,
    /// Pages written per durable commit.
    pub written: f64,
    /// Checkpoints that were taken.
    pub checkpoints: u64,
    /// All slices, in order.
    pub slices: Vec<Slice>,
}

/// Results of the measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Paced {
    /// The quiet store.
    pub quiet: Side,
    /// The busy store.
    pub busy: Side,
    /// The busy store's commits per second over those of the quiet one.
    pub rate: Interval,
    /// Rate of the busy store's slowest slice in a hundred over the quiet store's median slice.
    pub slow_slice: Interval,
    /// Rate of the quiet store's slowest slice in a hundred over its median slice: the effect of
    /// the machine.
    pub slow_slice_quiet: Interval,
    /// 99th percentile of the busy store's commit times over that of the quiet store.
    pub p99: Interval,
}

/// A round of one store.
#[derive(Default)]
struct Turn {
    per_s: f64,
    p50: f64,
    p99: f64,
    slow_slice: f64,
    median_slice: f64,
}

struct Stand {
    db: Db,
    tree: RawTree,
    turns: Vec<Turn>,
    slices: Vec<Slice>,
    commits: u64,
    random: fastrand::Rng,
}

/// Returns the key of a row. Keys are spread, so that rows inserted together are not neighbours.
fn key_of(row: u64) -> [u8; 8] {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Sorts `values` and returns the value at a share of them; 0 if there are none.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share) as usize;
    values.get(at).copied().unwrap_or_default()
}

/// Changes a row in its own transaction.
fn change(
    db: &Db,
    tree: &RawTree,
    row: u64,
    byte: u8,
    durability: Durability,
) -> Result<(), BenchError> {
    let tx = db.begin_with(TxnOptions::default().durability(durability))?;
    tx.tree(tree).put(&key_of(row), &[byte; VALUE_BYTES])?;
    Ok(tx.commit()?)
}

/// Changes odd rows at a rate until the turn ends. Durable commits change even rows, so neither
/// writer waits for the other's locks.
fn write_beside(
    db: &Db,
    tree: &RawTree,
    what: &Pace,
    seed: u64,
    is_over: &AtomicBool,
) -> Result<(), BenchError> {
    let (mut random, begun, mut done) = (fastrand::Rng::with_seed(seed), Instant::now(), 0);
    while what.background > 0 && !is_over.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * what.background as f64) as u64;
        while done < due && !is_over.load(Ordering::Relaxed) {
            let row = random.u64(0..what.rows.div_ceil(2)) * 2 + 1;
            change(db, tree, row, done as u8, Durability::Async)?;
            done += 1;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

impl Stand {
    fn open(path: &Path, what: &Pace, log_gap: u64) -> Result<Stand, BenchError> {
        let db = Db::open(path, Options::new().memory(what.memory).log_gap(log_gap))?;
        let tree = db.raw_tree("rows")?;
        let options = TxnOptions::default().durability(Durability::Async);
        for first in (0..what.rows).step_by(LOADED as usize) {
            let tx = db.begin_with(options)?;
            for row in first..(first + LOADED).min(what.rows) {
                tx.tree(&tree).put(&key_of(row), &[7; VALUE_BYTES])?;
            }
            tx.commit()?;
        }
        let random = fastrand::Rng::with_seed(what.seed.0);
        let (turns, slices) = (Vec::new(), Vec::new());
        Ok(Stand { db, tree, turns, slices, commits: 0, random })
    }

    /// Commits durably for a round's time.
    fn commit(&mut self, what: &Pace) -> Result<Turn, BenchError> {
        let (mut all, mut slice, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let (begun, mut from) = (Instant::now(), Instant::now());
        let mut before = self.db.stats();
        while begun.elapsed() < what.time {
            let started = Instant::now();
            let row = self.random.u64(0..what.rows.div_ceil(2)) * 2;
            change(&self.db, &self.tree, row, self.commits as u8, Durability::Sync)?;
            self.commits += 1;
            slice.push(started.elapsed().as_secs_f64() * 1e6);
            let elapsed = from.elapsed();
            if elapsed < what.slice {
                continue;
            }
            let now = self.db.stats();
            let (since, seconds) = (now.since(&before), elapsed.as_secs_f64());
            let last = self.slices.last();
            let second = last.map_or(0.0, |last| last.second + what.slice.as_secs_f64());
            let per_s = slice.len() as f64 / seconds;
            let p99_us = quantile(&mut slice, 0.99);
            let (written, checkpoints) = (since.writes(), since.checkpoints);
            self.slices.push(Slice { second, per_s, p99_us, written, checkpoints });
            rates.push(per_s);
            all.append(&mut slice);
            (from, before) = (Instant::now(), now);
        }
        all.append(&mut slice);
        let per_s = all.len() as f64 / begun.elapsed().as_secs_f64();
        if rates.is_empty() {
            // The turn ended before its first slice was full.
            rates.push(per_s);
        }
        Ok(Turn {
            per_s,
            p50: quantile(&mut all, 0.5),
            p99: quantile(&mut all, 0.99),
            slow_slice: quantile(&mut rates, 0.01),
            median_slice: quantile(&mut rates, 0.5),
        })
    }

    fn take_turn(&mut self, what: &Pace, seed: u64) -> Result<(), BenchError> {
        let (db, tree, is_over) = (self.db.clone(), self.tree.clone(), AtomicBool::new(false));
        let turn = std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_beside(&db, &tree, what, seed, &is_over));
            let turn = self.commit(what);
            is_over.store(true, Ordering::Relaxed);
            match writer.join() {
                Ok(written) => written.and(turn),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?;
        self.turns.push(turn);
        Ok(())
    }

    /// Discards the counts so far.
    fn forget(&mut self) {
        self.turns.clear();
        self.slices.clear();
        self.commits = 0;
    }

    fn side(&self) -> Result<Side, BenchError> {
        let of = |value: fn(&Turn) -> f64| {
            let values: Vec<f64> = self.turns.iter().map(value).collect();
            Interval::of_rates(&values).ok_or(BenchError::Stopped)
        };
        let written: u64 = self.slices.iter().map(|slice| slice.written).sum();
        Ok(Side {
            per_s: of(|turn| turn.per_s)?,
            p50_us: of(|turn| turn.p50)?,
            p99_us: of(|turn| turn.p99)?,
            written: written as f64 / self.commits.max(1) as f64,
            checkpoints: self.slices.iter().map(|slice| slice.checkpoints).sum(),
            slices: self.slices.clone(),
        })
    }
}

/// Loads both stores, and lets them commit in turns, in a dealt order.
///
/// # Errors
/// Any error of the store, or an error if the observer ended the run.
pub fn pace(what: &Pace, observer: &mut dyn Observer) -> Result<Paced, BenchError> {
    let own = tempfile::Builder::new().prefix("millpond-pace").tempdir_in(&what.folder);
    let own =
        own.map_err(|error| BenchError::Usage(format!("{}: {error}", what.folder.display())))?;
    let quiet_gap = what.log_gap.saturating_mul(QUIET_GAPS).max(QUIET_GAP_LEAST);
    observer.begin("loading");
    let mut stands = [
        Stand::open(&own.path().join("quiet.mill"), what, quiet_gap)?,
        Stand::open(&own.path().join("busy.mill"), what, what.log_gap)?,
    ];
    // Round 0 does not count: the first segments of the log are created in it.
    for round in 0..=what.rounds {
        observer.begin(&format!("round {round} of {}", what.rounds));
        for at in order(what.seed, round, stands.len()) {
            if observer.stop() {
                return Err(BenchError::Stopped);
            }
            let Some(stand) = stands.get_mut(at) else { continue };
            if at == 0 {
                stand.db.checkpoint()?;
            }
            stand.take_turn(what, what.seed.0 ^ u64::from(round) << 32)?;
        }
        if round == 0 {
            stands.iter_mut().for_each(Stand::forget);
        }
    }
    let [quiet, busy] = &stands;
    let ratio = |above: fn(&Turn) -> f64, below: fn(&Turn) -> f64, of: &Stand| {
        let above: Vec<f64> = of.turns.iter().map(above).collect();
        let below: Vec<f64> = quiet.turns.iter().map(below).collect();
        Interval::of_ratios(&above, &below).ok_or(BenchError::Stopped)
    };
    let paced = Paced {
        quiet: quiet.side()?,
        busy: busy.side()?,
        rate: ratio(|turn| turn.per_s, |turn| turn.per_s, busy)?,
        slow_slice: ratio(|turn| turn.slow_slice, |turn| turn.median_slice, busy)?,
        slow_slice_quiet: ratio(|turn| turn.slow_slice, |turn| turn.median_slice, quiet)?,
        p99: ratio(|turn| turn.p99, |turn| turn.p99, busy)?,
    };
    for Stand { db, tree, .. } in stands {
        drop(tree);
        db.close()?;
    }
    Ok(paced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::runner::Unwatched;

    #[test]
    fn the_busy_store_writes_pages_and_the_quiet_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let run = |millis| {
            let what = Pace {
                rows: 20_000,
                memory: 32 << 20,
                log_gap: 256 << 10,
                background: 20_000,
                rounds: 2,
                time: Duration::from_millis(millis),
                slice: Duration::from_millis(millis / 8),
                folder: folder.path().to_path_buf(),
                seed: Seed(1),
            };
            pace(&what, &mut Unwatched).unwrap()
        };
        // A busy machine may need longer.
        let times = (0..6).map(|doubled| 100 << doubled);
        let done = times.map(run).find(|done| done.busy.checkpoints > 0).unwrap();
        assert!(done.busy.written > 0.0, "{done:?}");
        assert_eq!((done.quiet.written, done.quiet.checkpoints), (0.0, 0), "{done:?}");
        assert!(done.rate.mean > 0.0 && done.p99.mean > 0.0 && done.slow_slice.mean > 0.0);
        let is_in_order = |slices: &[Slice]| slices.is_sorted_by(|a, b| a.second < b.second);
        assert!(is_in_order(&done.busy.slices) && !done.quiet.slices.is_empty());
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "it cleans up");
    }
}
