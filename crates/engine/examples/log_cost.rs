//! What the log costs: `cargo run --release -p millpond --example log_cost -- [FOLDER] [ROUNDS]`.
//!
//! Appending: nanoseconds per record into a buffer that has room, with bodies of 64, 256 and 4096
//! bytes and one or two threads at once; then, with the background thread writing to a file in
//! FOLDER (default the system's temporary one), what is sustained.
//!
//! Committing: records of 200 bytes, each made durable before the next, by 1, 2 and 16 threads;
//! beside it the probe: one thread that overwrites a block of 4 KiB in a preallocated, zero-filled
//! file of the same folder and syncs it. All take turns; medians of ROUNDS (default 7)
//! rounds are printed, and quotients of the same round.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millpond::internals::log::{Log, LogOptions, Record};
use millpond_base::Lsn;
use millpond_device::{AlignedBuffer, Device, FileDevice, FileOptions, MemoryDevice};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUND: Duration = Duration::from_millis(700);
const BODY: [u8; 4096] = [7; 4096];
const COMMITTERS: [usize; 3] = [1, 2, 16];

fn append(log: &Log, body: usize) -> Lsn {
    let (head, rest) = BODY[..body].split_at(body / 4);
    log.append(&Record { kind: 1, tx: 7, prev: Lsn(0), parts: &[head, rest] }).end
}

/// Nanoseconds per append and thread, by `threads` threads with a buffer that is never full.
fn appending(body: usize, threads: usize) -> Outcome<f64> {
    let buffer_bytes = 64 << 20;
    let options = LogOptions { buffer_bytes, flush_interval: Duration::ZERO, ..Default::default() };
    let log = Log::create(Arc::new(MemoryDevice::new()), [1; 16], Lsn(0), &options)?;
    // The memory is touched once before it counts, and made room in again.
    let each = buffer_bytes / 2 / (body + 64) / threads;
    let mut ns = f64::MAX;
    for _ in 0..3 {
        let barrier = Barrier::new(threads);
        let total = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    barrier.wait();
                    let begin = Instant::now();
                    for _ in 0..each {
                        append(&log, body);
                    }
                    let spent = begin.elapsed().as_nanos() as u64;
                    total.fetch_add(spent, Ordering::Relaxed);
                });
            }
        });
        ns = ns.min(total.into_inner() as f64 / (each * threads) as f64);
        log.wait_durable(log.tail())?;
        log.forget_before(log.durable());
    }
    Ok(ns)
}

/// Millions of records of 200 bytes per second that two threads and the background thread bring
/// to the file.
fn sustained(folder: &Path) -> Outcome<f64> {
    let (path, log) = file_log(folder)?;
    let count = AtomicU64::new(0);
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while begin.elapsed() < ROUND {
                    for _ in 0..256 {
                        append(&log, 200);
                    }
                    count.fetch_add(256, Ordering::Relaxed);
                    log.forget_before(log.durable());
                }
            });
        }
    });
    log.close()?;
    let rate = count.into_inner() as f64 / begin.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate / 1e6)
}

fn file_log(folder: &Path) -> Outcome<(std::path::PathBuf, Log)> {
    let path = folder.join(format!("millpond-log-cost-{}", std::process::id()));
    let device = Arc::new(FileDevice::create(&path, &FileOptions::default())?);
    Ok((path, Log::create(device, [1; 16], Lsn(0), &LogOptions::default())?))
}

/// Durable commits per second by `threads` threads, each waiting for its own; and flushes.
fn committing(log: &Log, threads: usize, delay: Duration) -> Outcome<(f64, f64)> {
    let count = AtomicU64::new(0);
    let before = log.counts().flushes;
    let begin = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    while begin.elapsed() < ROUND {
                        log.wait_group(append(log, 200), delay)?;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
    .map_err(|error: millpond::internals::log::LogError| error)?;
    let seconds = begin.elapsed().as_secs_f64();
    log.forget_before(log.durable());
    let flushes = (log.counts().flushes - before) as f64;
    Ok((count.into_inner() as f64 / seconds, flushes / seconds))
}

/// Overwrites and syncs per second of one block after the other.
fn probing(device: &FileDevice, at: &mut u64) -> Outcome<f64> {
    let mut block = AlignedBuffer::new(4096);
    block.fill(3);
    let (mut count, begin) = (0, Instant::now());
    while begin.elapsed() < ROUND {
        device.write(*at, &block)?;
        device.sync()?;
        *at = (*at + 4096) % device.length();
        count += 1;
    }
    Ok(f64::from(count) / begin.elapsed().as_secs_f64())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let rounds = arguments.next().map_or(Ok(7), |text| text.parse::<usize>())?.max(1);
    let mut out = std::io::stdout().lock();

    writeln!(out, "append, ns per record and thread\n{:>8} {:>10} {:>10}", "bytes", "1", "2")?;
    for body in [64, 200, 256, 4096] {
        let mut ns = [Vec::new(), Vec::new()];
        for _ in 0..rounds.min(5) {
            ns[0].push(appending(body, 1)?);
            ns[1].push(appending(body, 2)?);
        }
        let [one, two] = ns.each_mut().map(|values| median(values));
        writeln!(out, "{body:>8} {one:>10.1} {two:>10.1}")?;
    }
    writeln!(out, "\nsustained, two threads: {:.2} M records/s", sustained(&folder)?)?;

    let (path, log) = file_log(&folder)?;
    let probe_path = path.with_extension("probe");
    let probe = FileDevice::create(&probe_path, &FileOptions::default())?;
    probe.grow(16 << 20)?;
    probe.sync()?;
    let mut at = 0;
    // Probe, then each number of threads at once, and 16 that wait up to 0.2 ms for company.
    let mut rates = vec![Vec::new(); 2 + COMMITTERS.len()];
    let mut shares = rates.clone();
    let mut flushes = rates.clone();
    for _ in 0..rounds {
        let mut round = vec![(probing(&probe, &mut at)?, 0.0)];
        for threads in COMMITTERS {
            round.push(committing(&log, threads, Duration::ZERO)?);
        }
        round.push(committing(&log, 16, Duration::from_micros(200))?);
        for (i, (rate, flushed)) in round.iter().enumerate() {
            rates[i].push(*rate);
            shares[i].push(rate / round[0].0);
            flushes[i].push(*flushed);
        }
    }
    log.close()?;
    writeln!(out, "\n{:>16} {:>11} {:>9} {:>11}", "", "commits/s", "of probe", "flushes/s")?;
    let names = ["probe", "1 thread", "2 threads", "16 threads", "16, group"];
    for (i, name) in names.iter().enumerate() {
        let (rate, share) = (median(&mut rates[i]), median(&mut shares[i]));
        let flushed = median(&mut flushes[i]);
        writeln!(out, "{name:>16} {rate:>11.0} {share:>9.2} {flushed:>11.0}")?;
    }
    std::fs::remove_file(path)?;
    std::fs::remove_file(probe_path)?;
    Ok(())
}
