//! Commits of one row each, beside the device's own synced writes.
//!
//! A durable commit cannot be faster than the device makes one block durable, unless several
//! commits share the block. So each round of commits is paired with a probe, which overwrites and
//! syncs one 4 KiB block again and again. The probe's file is in the same folder, was filled with
//! zeros, and never grows. Ratios are taken within rounds, since a slow minute of the device
//! slows both.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millpond::internals::store::combinations::SwizzledAny;
use millpond::{Durability, Options};
use millpond_base::Seed;
use millpond_device::{AlignedBuffer, Device, DeviceError, FileDevice, FileOptions};
use millpond_workload::live::{Access, Session, Store, TableId};

use crate::error::BenchError;
use crate::interval::Interval;
use crate::run::counts::Counts;
use crate::run::runner::Observer;
use crate::run::turns::order;
use crate::stores::db_store::DbStoreError;
use crate::stores::txn_store::{TxnSession, TxnStore};

/// Bytes per write of the probe.
const BLOCK: usize = 4096;
/// Blocks of the probe's file.
const BLOCKS: u64 = 256;

/// A bench of commits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Commits {
    /// Threads that commit.
    pub threads: u32,
    /// Point at which a commit is durable.
    pub durability: Durability,
    /// Rows of the table; the written ones are drawn uniformly.
    pub rows: u32,
    /// Bytes of a row's value.
    pub value: usize,
    /// Share of writing transactions in per cent; the others read one row.
    pub writes: u32,
    /// Rounds of commits and probe.
    pub rounds: u32,
    /// Length of the commits, and of the probe, in a round.
    pub time: Duration,
    /// Seed of the draws.
    pub seed: Seed,
    /// Record bytes of a segment of the log; `None`: the default.
    pub log_segment: Option<u64>,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Transactions per second.
    pub per_s: Interval,
    /// Blocks that the probe made durable per second.
    pub probe_per_s: Interval,
    /// Transactions per second over the probe's blocks.
    pub to_probe: Interval,
    /// Transactions per second over those of the first contestant.
    pub to_first: Interval,
    /// Transactions in all rounds.
    pub transactions: u64,
    /// Transactions that wrote.
    pub written: u64,
    /// Retries after deadlocks and waits that took too long.
    pub retries: u64,
    /// The store's counters in all rounds.
    pub counts: Counts,
}

impl Committed {
    /// Commits that wrote per sync of the log.
    pub fn group(&self) -> f64 {
        self.written as f64 / self.counts.log_syncs.max(1) as f64
    }

    /// Bytes appended to the log per commit that wrote.
    pub fn log_bytes(&self) -> f64 {
        self.counts.log_bytes as f64 / self.written.max(1) as f64
    }
}

#[derive(Default)]
struct Share {
    transactions: u64,
    written: u64,
    retries: u64,
}

impl Share {
    fn add(&mut self, other: &Share) {
        self.transactions += other.transactions;
        self.written += other.written;
        self.retries += other.retries;
    }
}

/// A contestant: its own store, and its measurements so far.
struct Contestant<'w> {
    what: &'w Commits,
    store: TxnStore<SwizzledAny>,
    table: TableId,
    speeds: Vec<f64>,
    probes: Vec<f64>,
    all: Share,
    counts: Counts,
}

/// Runs the contestants side by side, each on its own store in `folder`, which is removed
/// afterwards. Each round runs all of them in a dealt order, each followed by the probe. Rounds
/// and seed are those of the first contestant.
///
/// # Errors
/// Any error of the store or the device, or an error if the observer ended the run.
pub fn commits(
    folder: &Path,
    contestants: &[Commits],
    observer: &mut dyn Observer,
) -> Result<Vec<Committed>, BenchError> {
    let own = tempfile::Builder::new().prefix("millpond-commits").tempdir_in(folder);
    let own = own.map_err(|error| BenchError::Usage(format!("{}: {error}", folder.display())))?;
    let probe = probe_file(&own.path().join("probe"))?;
    let open = |(at, what)| Contestant::open(&own.path().join(format!("store-{at}")), what);
    let all: Result<Vec<_>, _> = contestants.iter().enumerate().map(open).collect();
    let mut all = all?;
    let (rounds, seed) = contestants.first().map_or((0, Seed(0)), |c| (c.rounds, c.seed));
    // Round 0 does not count: the first segments of the log are created in it.
    for round in 0..=rounds {
        for at in order(seed, round, all.len()) {
            let Some(contestant) = all.get_mut(at) else { continue };
            let threads = contestant.what.threads;
            observer.begin(&format!("round {round} of {rounds}, {threads} threads"));
            if observer.stop() {
                return Err(BenchError::Stopped);
            }
            contestant.take_turn(round, &probe)?;
        }
    }
    let first = all.first().map_or_else(Vec::new, |contestant| contestant.speeds.clone());
    all.into_iter().map(|contestant| contestant.end(&first)).collect()
}

impl<'w> Contestant<'w> {
    fn open(path: &Path, what: &'w Commits) -> Result<Contestant<'w>, BenchError> {
        let options = Options::new().memory(256 << 20).durability(what.durability);
        let options = options.lab(|lab| lab.log_segment = what.log_segment);
        let store = TxnStore::<SwizzledAny>::open(path, &options)?;
        let table = fill(&store, what)?;
        let (speeds, probes) = (Vec::new(), Vec::new());
        let (all, counts) = (Share::default(), Counts::default());
        Ok(Contestant { what, store, table, speeds, probes, all, counts })
    }

    /// Runs a round of commits, and one of the probe. Round 0 does not count.
    fn take_turn(&mut self, round: u32, probe: &FileDevice) -> Result<(), BenchError> {
        let before = self.store.counts();
        let (share, seconds) = round_of(&self.store, self.table, self.what, u64::from(round))?;
        let counted = self.store.counts().since(&before);
        let probed = blocks_per_second(probe, self.what.time)?;
        if round > 0 {
            self.speeds.push(share.transactions as f64 / seconds);
            self.probes.push(probed);
            self.counts.add(&counted);
            self.all.add(&share);
        }
        Ok(())
    }

    /// Returns the results, relative to the speeds of the first contestant.
    fn end(self, first: &[f64]) -> Result<Committed, BenchError> {
        self.store.close()?;
        let none = || BenchError::Stopped;
        Ok(Committed {
            per_s: Interval::of_rates(&self.speeds).ok_or_else(none)?,
            probe_per_s: Interval::of_rates(&self.probes).ok_or_else(none)?,
            to_probe: Interval::of_ratios(&self.speeds, &self.probes).ok_or_else(none)?,
            to_first: Interval::of_ratios(&self.speeds, first).ok_or_else(none)?,
            transactions: self.all.transactions,
            written: self.all.written,
            retries: self.all.retries,
            counts: self.counts,
        })
    }
}

fn fill(store: &TxnStore<SwizzledAny>, what: &Commits) -> Result<TableId, BenchError> {
    store.load_with(|store| {
        let table = store.create_table("rows").map_err(drive)?;
        let mut at = 0;
        let mut session = store.session().map_err(drive)?;
        let row = |key: &mut Vec<u8>, value: &mut Vec<u8>| {
            key.clear();
            key.extend_from_slice(&u32::to_be_bytes(at));
            value.resize(what.value, 7);
            at += 1;
            at <= what.rows
        };
        session.load_sorted(table, row).map_err(drive)?;
        Ok(table)
    })
}

fn drive(error: DbStoreError) -> BenchError {
    BenchError::Drive(Box::new(error))
}

/// Runs all threads for one round; returns their transactions and the time taken.
fn round_of(
    store: &TxnStore<SwizzledAny>,
    table: TableId,
    what: &Commits,
    round: u64,
) -> Result<(Share, f64), BenchError> {
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    let shares = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..what.threads)
            .map(|thread| {
                let seed = what.seed.0.wrapping_add(round << 16).wrapping_add(u64::from(thread));
                let is_over = &is_over;
                scope.spawn(move || work(store, table, what, seed, is_over))
            })
            .collect();
        std::thread::sleep(what.time);
        is_over.store(true, Ordering::Relaxed);
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(share) => share,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<Vec<_>, _>>()
    });
    let (mut all, seconds) = (Share::default(), start.elapsed().as_secs_f64());
    shares.map_err(drive)?.iter().for_each(|share| all.add(share));
    Ok((all, seconds))
}

fn work(
    store: &TxnStore<SwizzledAny>,
    table: TableId,
    what: &Commits,
    seed: u64,
    is_over: &AtomicBool,
) -> Result<Share, DbStoreError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut session = store.session()?;
    let (mut share, mut value) = (Share::default(), vec![0; what.value]);
    while !is_over.load(Ordering::Relaxed) {
        let key = random.u32(0..what.rows.max(1)).to_be_bytes();
        let writes = random.u32(0..100) < what.writes;
        random.fill(&mut value);
        while let Err(error) = once(&mut session, table, &key, writes.then_some(&value[..])) {
            session.rollback()?;
            if !TxnSession::<SwizzledAny>::is_retriable(&error) {
                return Err(error);
            }
            share.retries += 1;
        }
        share.transactions += 1;
        share.written += u64::from(writes);
    }
    Ok(share)
}

fn once(
    session: &mut TxnSession<SwizzledAny>,
    table: TableId,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(), DbStoreError> {
    session.begin(if value.is_some() { Access::Write } else { Access::Read })?;
    match value {
        Some(value) => session.put(table, key, value)?,
        None => {
            session.get(table, key, |found| std::hint::black_box(found.len()))?;
        }
    }
    session.commit()
}

fn probe_file(path: &Path) -> Result<FileDevice, BenchError> {
    let device = FileDevice::create(path, &FileOptions::default())?;
    device.grow(BLOCKS * BLOCK as u64)?;
    let zeros = AlignedBuffer::new(BLOCK);
    for block in 0..BLOCKS {
        device.write(block * BLOCK as u64, &zeros)?;
    }
    device.sync()?;
    Ok(device)
}

/// Returns the number of blocks per second that one thread makes durable, one after the other,
/// for about `time`.
///
/// # Errors
/// A block could not be written or made durable.
pub fn blocks_per_second(device: &dyn Device, time: Duration) -> Result<f64, DeviceError> {
    let mut bytes = AlignedBuffer::new(BLOCK);
    let (start, mut count) = (Instant::now(), 0u64);
    while start.elapsed() < time {
        if let Some(head) = bytes.first_chunk_mut::<8>() {
            *head = count.to_le_bytes();
        }
        device.write(count % BLOCKS * BLOCK as u64, &bytes)?;
        device.sync()?;
        count += 1;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::runner::Unwatched;

    #[test]
    fn commits_are_counted_and_durable_ones_wait_for_the_device() {
        let folder = tempfile::tempdir().unwrap();
        for (threads, durability, writes) in
            [(1, Durability::Sync, 100), (3, Durability::Group, 100), (2, Durability::Async, 10)]
        {
            let run = |millis| {
                let what = Commits {
                    threads,
                    durability,
                    rows: 200,
                    value: 50,
                    writes,
                    rounds: 2,
                    time: Duration::from_millis(millis),
                    seed: Seed(1),
                    log_segment: None,
                };
                let mut done = commits(folder.path(), &[what], &mut Unwatched).unwrap();
                done.remove(0)
            };
            // A busy machine may need longer for a few blocks.
            let times = (0..8).map(|doubled| 40 << doubled);
            let done = times.map(run).find(|done| done.transactions > 100).unwrap();
            assert!(done.transactions > 0 && done.written <= done.transactions, "{done:?}");
            assert!(done.per_s.mean > 0.0 && done.probe_per_s.mean > 0.0);
            if durability == Durability::Sync {
                assert!(done.counts.log_syncs >= done.written, "{done:?}");
            }
            assert!(writes == 100 || done.written < done.transactions, "{done:?}");
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "it cleans up");
    }

    #[test]
    fn logs_of_several_segment_sizes_take_turns_and_the_first_is_its_own_measure() {
        let folder = tempfile::tempdir().unwrap();
        let what = |log_segment, millis| Commits {
            threads: 1,
            durability: Durability::Async,
            rows: 200,
            value: 50,
            writes: 100,
            rounds: 3,
            time: Duration::from_millis(millis),
            seed: Seed(1),
            log_segment,
        };
        let run = |millis| {
            let contestants = [what(None, millis), what(Some(64 << 10), millis)];
            commits(folder.path(), &contestants, &mut Unwatched)
        };
        // On a busy machine, a short round may have no commit.
        let done = (0..8).map(|doubled| run(20 << doubled));
        let done = done.into_iter().find(|done| !matches!(done, Err(BenchError::Stopped)));
        let done = done.unwrap().unwrap();
        let [first, second] = &done[..] else { panic!("{done:?}") };
        assert!((first.to_first.mean - 1.0).abs() < 1e-9, "{first:?}");
        assert!(second.to_first.mean > 0.0 && second.transactions > 0, "{second:?}");
        let mut odd = what(Some(5000), 20);
        odd.rounds = 1;
        assert!(commits(folder.path(), &[odd], &mut Unwatched).is_err(), "no segment's size");
    }
}
