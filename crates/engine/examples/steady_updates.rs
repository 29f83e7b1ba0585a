//! Whether files grow under steady update, and what images of whole pages cost:
//! `steady_updates DIRECTORY [rows] [updates] [MiB of memory] [MiB of log gap, ...] [threads]`
//!
//! Rows of 8 + 120 bytes are loaded in the order of their keys; then threads overwrite rows drawn
//! uniformly, each in a transaction of its own with asynchronous commit. After a twentieth of the
//! updates, which do not count, each tenth of them gives a line: the largest size of both files in
//! it, and the log per update, divided into images of whole pages and the rest. An image is logged
//! with the first change of a page since it was clean, so their number depends on how often pages
//! are written: to make room, and by checkpoints, which come once per log gap.
#![allow(clippy::print_stdout, reason = "a measurement tells what it found")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millpond::internals::btree::{BulkOptions, WriteCondition};
use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::SwizzledAny;
use millpond::internals::store::{Builder, Store, StoreTree, StoreTxn};
use millpond::{Durability, Options, TxnOptions};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const VALUE: usize = 120;
/// Parts of a tenth after which the files are looked at.
const LOOKS: u64 = 25;

/// What is asked for.
#[derive(Clone)]
struct Plan {
    directory: PathBuf,
    rows: u64,
    updates: u64,
    memory_mib: u64,
    gaps_mib: Vec<u64>,
    threads: u64,
}

impl Plan {
    fn from_arguments() -> Result<Plan, Failure> {
        let mut words = std::env::args().skip(1);
        let directory = words.next().ok_or("steady_updates DIRECTORY [rows] [updates] ...")?;
        let mut number = |default: u64| words.next().map_or(Ok(default), |word| word.parse());
        let (rows, updates, memory_mib) = (number(5_000_000)?, number(20_000_000)?, number(256)?);
        let gaps: Result<Vec<u64>, _> =
            words.next().map_or("512".into(), |word| word).split(',').map(str::parse).collect();
        let threads = words.next().map_or(Ok(4), |word| word.parse())?;
        let directory = PathBuf::from(directory);
        Ok(Plan { directory, rows, updates, memory_mib, gaps_mib: gaps?, threads })
    }
}

/// Counters at one moment.
#[derive(Clone, Copy, Default)]
struct Counted {
    log: u64,
    image_bytes: u64,
    images: u64,
    writes: u64,
    syncs: u64,
}

impl Counted {
    fn now(store: &Store<SwizzledAny>) -> Counted {
        let count = |counter| store.pool().counters().get(counter);
        let log = store.transactions().log().map(|log| log.counts()).unwrap_or_default();
        let writes = [Counter::WritesSynch, Counter::WritesReplace, Counter::WritesRecov];
        Counted {
            log: log.bytes_appended,
            image_bytes: count(Counter::LogImageBytes),
            images: count(Counter::LogImages),
            writes: writes.into_iter().map(count).sum(),
            syncs: log.syncs,
        }
    }
}

/// A tenth of the run.
#[derive(Default)]
struct Tenth {
    updates: u64,
    elapsed: Duration,
    data_bytes: u64,
    log_bytes: u64,
    before: Counted,
    after: Counted,
}

impl Tenth {
    fn print(&self, at: usize) {
        let updates = self.updates.max(1) as f64;
        let per = |now: u64, before: u64| (now - before) as f64 / updates;
        let log = per(self.after.log, self.before.log);
        let images = per(self.after.image_bytes, self.before.image_bytes);
        println!(
            "tenth {at:>2}: {:>8.0} updates/s; log per update {log:>6.0} bytes, of them images \
             {images:>6.0} ({:.3} images); {:.3} pages written per update, {} log syncs; data file \
             {} MiB, log file {} MiB",
            updates / self.elapsed.as_secs_f64(),
            per(self.after.images, self.before.images),
            per(self.after.writes, self.before.writes),
            self.after.syncs - self.before.syncs,
            self.data_bytes >> 20,
            self.log_bytes >> 20,
        );
    }
}

fn load(tree: &StoreTree<SwizzledAny>, rows: u64) -> Result<(), Failure> {
    let mut keys = (0..rows).map(|row| (row.to_be_bytes().to_vec(), vec![7; VALUE]));
    let rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)> = &mut keys;
    tree.btree().bulk_load(rows, BulkOptions::default())?;
    Ok(())
}

/// One thread's updates.
fn update(
    store: &Arc<Store<SwizzledAny>>,
    tree: &StoreTree<SwizzledAny>,
    (rows, updates, seed): (u64, u64, u64),
) -> Result<(), Failure> {
    let options = TxnOptions::default().durability(Durability::Async);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut value = [0; VALUE];
    for _ in 0..updates {
        let key = random.u64(0..rows).to_be_bytes();
        random.fill(&mut value);
        loop {
            let mut tx = StoreTxn::begin(store, options)?;
            let written = tx.write(tree, &key, Some(&value), WriteCondition::Always);
            match written.and_then(|_| tx.commit()) {
                Err(error) if error.is_retriable() => {}
                done => break done?,
            }
        }
    }
    Ok(())
}

/// A number of updates by all threads.
fn part(
    store: &Arc<Store<SwizzledAny>>,
    tree: &StoreTree<SwizzledAny>,
    (plan, updates, seeds): (&Plan, u64, &AtomicU64),
) -> Result<Duration, Failure> {
    let each = (updates / plan.threads).max(1);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|_| {
                let seed = seeds.fetch_add(1, Ordering::Relaxed);
                scope.spawn(move || update(store, tree, (plan.rows, each, seed)))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<(), Failure>>()
    })?;
    Ok(started.elapsed())
}

fn run(plan: &Plan, gap_mib: u64) -> Result<(), Failure> {
    let path = plan.directory.join("steady.mp");
    let log_path = plan.directory.join("steady.mp-log");
    let mut options = Options::new().memory(plan.memory_mib << 20);
    options.log_gap = gap_mib << 20;
    let store = Builder::file(&path, &options).open::<SwizzledAny>()?;
    let tree = store.tree("rows")?;
    load(&tree, plan.rows)?;
    store.checkpoint()?;
    let size = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.len());
    println!("log gap {gap_mib} MiB; loaded: data file {} MiB", size(&path)? >> 20);
    let seeds = AtomicU64::new(1);
    part(&store, &tree, (plan, plan.updates / 20, &seeds))?;
    let mut tenths = Vec::new();
    for at in 1..=10 {
        let mut tenth = Tenth { before: Counted::now(&store), ..Tenth::default() };
        for _ in 0..LOOKS {
            let updates = plan.updates / 10 / LOOKS;
            tenth.elapsed += part(&store, &tree, (plan, updates, &seeds))?;
            tenth.updates += (updates / plan.threads).max(1) * plan.threads;
            tenth.data_bytes = tenth.data_bytes.max(size(&path)?);
            tenth.log_bytes = tenth.log_bytes.max(size(&log_path)?);
        }
        tenth.after = Counted::now(&store);
        tenth.print(at);
        tenths.push(tenth);
    }
    let [first, .., last] = &tenths[..] else { return Err("there are ten tenths".into()) };
    println!(
        "last tenth over the first: data file {:.3}, log file {:.3}",
        last.data_bytes as f64 / first.data_bytes as f64,
        last.log_bytes as f64 / first.log_bytes as f64,
    );
    drop(tree);
    store.close()?;
    std::fs::remove_file(&path)?;
    Ok(std::fs::remove_file(&log_path)?)
}

fn main() -> Result<(), Failure> {
    let plan = Plan::from_arguments()?;
    println!(
        "{} rows of 8 + {VALUE} bytes, {} updates, {} MiB of memory, {} threads",
        plan.rows, plan.updates, plan.memory_mib, plan.threads
    );
    plan.gaps_mib.iter().try_for_each(|gap| run(&plan, *gap))
}
