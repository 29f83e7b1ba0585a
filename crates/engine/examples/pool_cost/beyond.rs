//! Lookups in more data than the pool holds.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millpond::internals::btree::BTree;
use millpond::internals::io::PageStore;
use millpond::internals::pool::{EvictionMode, Pool, Workers};
use millpond::internals::stats::counters::Counter;
use millpond_base::Reason;
use millpond_device::{Device, FileDevice, FileOptions};

use super::setup::{Measured, Settings, VALUE, fill, key, load, page_size, pool};

/// Zipf's distribution over `0..n` by the usual approximation (Gray and others, 1994).
struct Zipf {
    n: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
    theta: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Zipf {
        let sum = |n: u64| (1..=n).map(|i| (i as f64).powf(-theta)).sum::<f64>();
        let (zeta, zeta2) = (sum(n), sum(2));
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta2 / zeta);
        Zipf { n: n as f64, zeta, alpha: 1.0 / (1.0 - theta), eta, theta }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> u64 {
        let u = random.f64();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        ((self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64).min(self.n as u64 - 1)
    }
}

/// Spreads ranks over the keys.
fn scramble(rank: u64, rows: u64) -> u64 {
    ((u128::from(rank.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(rows)) >> 64) as u64
}

struct Report {
    lookups: f64,
    misses: f64,
    reads: f64,
}

fn measure(
    tree: &BTree<Pool<Measured>>,
    zipf: &Zipf,
    rows: u64,
    threads: u64,
    time: Duration,
    updates: f64,
) -> Report {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let counters = tree.pages().counters();
    let before = [Counter::Misses, Counter::Reads].map(|c| counters.get(c));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..threads {
            let (stop, done) = (&stop, &done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(started.elapsed().as_nanos() as u64 + t);
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let n = scramble(zipf.draw(&mut random), rows);
                    if updates > 0.0 && random.f64() < updates {
                        let seen = tree.upsert(&key(n), &[n as u8; VALUE]);
                        assert!(seen.is_ok(), "{seen:?}");
                    } else {
                        let seen = tree.get(&key(n), |v| v[0]);
                        assert!(matches!(seen, Ok(Some(v)) if v == n as u8), "{seen:?}");
                    }
                    count += 1;
                }
                done.fetch_add(count, Ordering::Relaxed);
            });
        }
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
    let seconds = started.elapsed().as_secs_f64();
    let lookups = done.load(Ordering::Relaxed) as f64;
    let after = [Counter::Misses, Counter::Reads].map(|c| counters.get(c));
    Report {
        lookups: lookups / seconds,
        misses: (after[0] - before[0]) as f64 / lookups,
        reads: (after[1] - before[1]) as f64 / seconds,
    }
}

/// Random reads per second of `threads` threads, one at a time each.
fn device_reads(device: &dyn Device, page: u64, threads: u64, time: Duration) -> f64 {
    let done = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..threads {
            let done = &done;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(t + 77);
                let mut bytes = millpond_device::AlignedBuffer::new(page as usize);
                while started.elapsed() < time {
                    let offset = random.u64(..device.length() / page) * page;
                    if device.read(offset, &mut bytes).is_ok() {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    done.into_inner() as f64 / started.elapsed().as_secs_f64()
}

/// Prints lookups per second and what the device would allow for.
pub fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let rows = settings.number("rows", 5_000_000);
    let page = settings.numbers("pages", &[4096])[0];
    let bytes = settings.number("pool_mib", 128) << 20;
    let time = Duration::from_millis(settings.number("ms", 4000));
    let (theta, updates) =
        (settings.number("theta", 99) as f64 / 100.0, settings.number("updates", 0) as f64 / 100.0);
    let path = Path::new(settings.word("file", "/tmp/millpond-pool-cost.mill")).to_path_buf();
    let _ = std::fs::remove_file(&path);
    let device = Arc::new(FileDevice::create(&path, &FileOptions::default())?);
    println!("direct I/O {}, {:?}", device.is_direct(), device.submission());
    let store: Arc<PageStore> = Arc::new(PageStore::create_on(device.clone(), page_size(page)?)?);
    let frames = (bytes / (page + 512)) as u32;
    let zipf = Zipf::new(rows, theta);
    let fresh = pool(frames, store.clone(), |_| ())?;
    let (root, began) = {
        let began = Instant::now();
        let _workers = Workers::start(fresh.clone())?;
        let tree = BTree::create(fresh.clone(), 1)?;
        fill(&tree, rows)?;
        fresh.flush(Reason::Recov)?;
        (tree.root(), began)
    };
    println!("{rows} rows, {} pages, loaded in {:.1?}", store.allocated_pages(), began.elapsed());
    drop(fresh);
    let batch = settings.number("batch", 0) as u32;
    println!(
        "evictors threads | lookups/s | misses per lookup | reads/s | device reads/s | share | load"
    );
    for evictors in [EvictionMode::Worker, EvictionMode::threads(1)] {
        let pool = pool(frames, store.clone(), |lab| {
            lab.eviction = evictors;
            lab.prefault = true;
            lab.batch = (batch > 0).then_some(batch);
        })?;
        let workers = Workers::start(pool.clone())?;
        let tree = BTree::open(pool, 1, root)?;
        measure(&tree, &zipf, rows, 2, time * 3, updates);
        for threads in settings.numbers("threads", &[1, 2]) {
            for _ in 0..settings.number("rounds", 3) {
                let raw = device_reads(&*device, page, threads, time / 4);
                let r = measure(&tree, &zipf, rows, threads, time, updates);
                let share = r.lookups * r.misses / raw;
                let (lookups, misses, reads) = (r.lookups, r.misses, r.reads);
                println!(
                    "{evictors:?} {threads} | {lookups:8.0} | {misses:.4} | {reads:7.0} | \
                     {raw:7.0} | {share:.3} | {}",
                    load()
                );
            }
        }
        drop(workers);
    }
    std::fs::remove_file(&path)?;
    Ok(())
}
