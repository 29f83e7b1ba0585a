//! Commits of one row each, beside what the device gives by itself.
//!
//! A durable commit can be as fast as the device makes one block durable, and no faster unless
//! several share it. So each round of commits is paired with a probe: one 4 KiB block overwritten
//! and synchronised, again and again, in a file in the same folder that was filled with zeros and
//! never grows. The ratio is taken within the rounds: a slow minute of the device slows both.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millpond::db::modes::Dated;
use millpond::db::{Durability, Options};
use millpond::io::{AlignedBuffer, Device, DeviceError, FileDevice, FileOptions};
use millpond_base::Seed;
use millpond_workload::live::{Access, Session, Store, TableId};

use crate::counts::Counts;
use crate::db_store::DbStoreError;
use crate::error::BenchError;
use crate::interval::Interval;
use crate::runner::Observer;
use crate::txn_store::{TxnSession, TxnStore};

/// Bytes that the probe writes at once.
const BLOCK: usize = 4096;
/// Blocks of the probe's file.
const BLOCKS: u64 = 256;

/// A bench of commits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Commits {
    /// Threads that commit.
    pub threads: u32,
    /// When a commit is durable.
    pub durability: Durability,
    /// Rows of the table; the written ones are drawn uniformly.
    pub rows: u32,
    /// Bytes of a row's value.
    pub value: usize,
    /// Transactions that write, in per cent; the others read one row.
    pub writes: u32,
    /// Rounds of commits and probe.
    pub rounds: u32,
    /// How long each of both is.
    pub time: Duration,
    /// Seed of the draws.
    pub seed: Seed,
}

/// What it came to.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Transactions per second.
    pub per_s: Interval,
    /// Blocks that the probe made durable per second.
    pub probe_per_s: Interval,
    /// Transactions per second over the probe's blocks.
    pub to_probe: Interval,
    /// Transactions in all rounds.
    pub transactions: u64,
    /// Those of them that wrote.
    pub written: u64,
    /// Retries after deadlocks and waits that took too long.
    pub retries: u64,
    /// What the store counted in all rounds.
    pub counts: Counts,
}

impl Committed {
    /// Commits that wrote per synchronisation of the log.
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

/// Runs it on a store of its own in `folder`, which is removed afterwards.
///
/// # Errors
/// What the store or the device reports, or that the observer ended it.
pub fn commits(
    folder: &Path,
    what: &Commits,
    observer: &mut dyn Observer,
) -> Result<Committed, BenchError> {
    let own = tempfile::Builder::new().prefix("millpond-commits").tempdir_in(folder);
    let own = own.map_err(|error| BenchError::Usage(format!("{}: {error}", folder.display())))?;
    let probe = probe_file(&own.path().join("probe"))?;
    let options = Options::new().memory(256 << 20).durability(what.durability);
    let store = TxnStore::<Dated>::open(&own.path().join("store"), &options)?;
    let table = fill(&store, what)?;
    let (mut speeds, mut probes) = (Vec::new(), Vec::new());
    let (mut all, mut counts) = (Share::default(), Counts::default());
    // A round that does not count: the first segments of the log are made in it.
    for round in 0..=what.rounds {
        observer.begin(&format!("round {round} of {}, {} threads", what.rounds, what.threads));
        if observer.stop() {
            return Err(BenchError::Stopped);
        }
        let before = store.counts();
        let (share, seconds) = round_of(&store, table, what, u64::from(round))?;
        let counted = store.counts().since(&before);
        let probed = blocks_per_second(&probe, what.time)?;
        if round == 0 {
            continue;
        }
        speeds.push(share.transactions as f64 / seconds);
        probes.push(probed);
        counts.add(&counted);
        all.transactions += share.transactions;
        all.written += share.written;
        all.retries += share.retries;
    }
    store.close()?;
    let none = || BenchError::Stopped;
    Ok(Committed {
        per_s: Interval::of_rates(&speeds).ok_or_else(none)?,
        probe_per_s: Interval::of_rates(&probes).ok_or_else(none)?,
        to_probe: Interval::of_ratios(&speeds, &probes).ok_or_else(none)?,
        transactions: all.transactions,
        written: all.written,
        retries: all.retries,
        counts,
    })
}

fn fill(store: &TxnStore<Dated>, what: &Commits) -> Result<TableId, BenchError> {
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

/// All threads for one round; their transactions, and how long it took.
fn round_of(
    store: &TxnStore<Dated>,
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
    for share in shares.map_err(drive)? {
        all.transactions += share.transactions;
        all.written += share.written;
        all.retries += share.retries;
    }
    Ok((all, seconds))
}

fn work(
    store: &TxnStore<Dated>,
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
            if !TxnSession::<Dated>::is_retriable(&error) {
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
    session: &mut TxnSession<Dated>,
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

/// Blocks that one thread makes durable in a second, one after the other, for about `time`.
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
    use crate::runner::Unwatched;

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
                };
                commits(folder.path(), &what, &mut Unwatched).unwrap()
            };
            // A machine that is busy with something else may need longer for a few of them.
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
}
