//! A slice of a run: some threads, some seconds, the operations that they did.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::device::{Device, Reads};
use crate::flushes;
use millpond_workload::live::{Access, Session, Store, TableId, full_scan};

/// How a slice is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timing {
    /// Threads.
    pub threads: u32,
    /// For how long before anything counts.
    pub warm: Duration,
    /// For how long then.
    pub time: Duration,
    /// The device whose reads are counted.
    pub device: Option<Device>,
    /// The clock is read around one operation in [`PERIOD`], or around each where an operation
    /// takes so long that a thread may have to wait for the others meanwhile.
    pub period: u32,
}

/// Measurements of a slice.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// Operations per second, of all threads.
    pub rate: f64,
    /// Microseconds that half of the operations took at most; one in [`Timing::period`] is timed.
    pub p50_us: Option<f64>,
    /// Microseconds that 99 % of the operations took at most.
    pub p99_us: Option<f64>,
    /// Read requests to the device per operation, those of other processes included.
    pub reads_per_op: Option<f64>,
    /// Bytes that this process read from the device per operation.
    pub read_bytes_per_op: Option<f64>,
    /// Calls by which this process flushed files, per operation.
    pub flushes_per_op: Option<f64>,
}

impl Measured {
    /// Nothing but a rate.
    pub fn of_rate(rate: f64) -> Measured {
        Measured {
            rate,
            p50_us: None,
            p99_us: None,
            reads_per_op: None,
            read_bytes_per_op: None,
            flushes_per_op: None,
        }
    }
}

/// The clock is read around one operation in this number, unless they are slow.
pub const PERIOD: u32 = 16;

/// One thread's part.
#[derive(Default)]
struct Part {
    rate: f64,
    nanos: Vec<u32>,
    /// Device reads that the first thread saw, and the seconds that they cover.
    reads: Option<(Reads, f64)>,
    /// Number of file flushes while the thread ran, and the seconds that they cover.
    flushes: Option<(u64, f64)>,
}

/// Runs `step` in several threads, each with a session of its own and what `make` makes for it.
///
/// # Errors
/// The first error of `make`, `step` or the store.
pub fn timed<S: Store, W>(
    store: &S,
    timing: &Timing,
    make: impl Fn(u32) -> anyhow::Result<W> + Sync,
    step: impl Fn(&mut W, &mut S::Session<'_>) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Measured> {
    let barrier = Barrier::new(timing.threads.max(1) as usize);
    parts(timing.threads, |thread| {
        let prepared = store.session().map_err(anyhow::Error::from);
        let prepared = prepared.and_then(|session| Ok((session, make(thread)?)));
        // The others do not wait for a thread that failed.
        barrier.wait();
        let Ok((mut session, mut worker)) = prepared else {
            barrier.wait();
            return prepared.map(|_| Part::default());
        };
        let mut part = Part::default();
        let warm = Instant::now();
        let mut warmed = Ok(());
        while warmed.is_ok() && warm.elapsed() < timing.warm {
            warmed = step(&mut worker, &mut session);
        }
        // All begin together: a thread that has to wait for the others' writes would otherwise
        // begin when they have finished, and the sum of the rates would be of two times.
        barrier.wait();
        warmed?;
        let reads = || timing.device.filter(|_| thread == 0).and_then(|device| device.reads());
        let (reads_before, flushes_before) = (reads(), flushes::calls());
        let (start, mut done) = (Instant::now(), 0u64);
        loop {
            for _ in 1..timing.period {
                step(&mut worker, &mut session)?;
            }
            let before = Instant::now();
            step(&mut worker, &mut session)?;
            let after = Instant::now();
            part.nanos.push((after - before).as_nanos().min(u128::from(u32::MAX)) as u32);
            done += u64::from(timing.period.max(1));
            let elapsed = after - start;
            if elapsed >= timing.time {
                let seconds = elapsed.as_secs_f64();
                part.rate = done as f64 / seconds;
                let count = |(before, after)| (after - before, seconds);
                part.reads = reads_before.zip(reads()).map(count);
                let flushed = flushes::calls() - flushes_before;
                part.flushes = Some((flushed, seconds));
                return Ok(part);
            }
        }
    })
}

/// Scans the whole table in several threads, again and again; a row is an operation.
///
/// # Errors
/// The store's.
pub fn timed_scans<S: Store>(
    store: &S,
    table: TableId,
    timing: &Timing,
) -> anyhow::Result<Measured> {
    let barrier = Barrier::new(timing.threads.max(1) as usize);
    parts(timing.threads, |_| {
        let prepared = store.session();
        barrier.wait();
        let mut session = prepared?;
        let (start, mut rows) = (Instant::now(), 0u64);
        while start.elapsed() < timing.time {
            session.begin(Access::Read)?;
            let seen = full_scan(&mut session, table, |_| start.elapsed() < timing.time)?;
            session.commit()?;
            anyhow::ensure!(seen.rows > 0, "the table is empty");
            rows += seen.rows;
        }
        Ok(Part { rate: rows as f64 / start.elapsed().as_secs_f64(), ..Part::default() })
    })
}

/// Runs `thread` in `threads` threads and adds up the results.
fn parts(
    threads: u32,
    thread: impl Fn(u32) -> anyhow::Result<Part> + Sync,
) -> anyhow::Result<Measured> {
    let parts = std::thread::scope(|scope| {
        let thread = &thread;
        let all: Vec<_> = (0..threads.max(1)).map(|at| scope.spawn(move || thread(at))).collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, _>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        all.into_iter().map(join).collect::<anyhow::Result<Vec<Part>>>()
    })?;
    let rate: f64 = parts.iter().map(|part| part.rate).sum();
    let reads = parts.iter().find_map(|part| part.reads);
    let per_op = |count: fn(Reads) -> u64| {
        reads.map(|(reads, seconds)| count(reads) as f64 / seconds / rate)
    };
    // Of the thread that waited least for its last operation.
    let flushes = parts.iter().filter_map(|part| part.flushes);
    let flushes = flushes.min_by(|a, b| a.1.total_cmp(&b.1));
    let mut nanos: Vec<u32> = parts.into_iter().flat_map(|part| part.nanos).collect();
    nanos.sort_unstable();
    let quantile = |percent: usize| {
        let at = (nanos.len() * percent / 100).min(nanos.len().saturating_sub(1));
        nanos.get(at).map(|nanos| f64::from(*nanos) / 1000.0)
    };
    Ok(Measured {
        rate,
        p50_us: quantile(50),
        p99_us: quantile(99),
        reads_per_op: per_op(|reads| reads.requests),
        read_bytes_per_op: per_op(|reads| reads.bytes),
        flushes_per_op: flushes.map(|(count, seconds)| count as f64 / seconds / rate),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use millpond_workload::live::MemoryStore;

    const SHORT: Timing = Timing {
        threads: 3,
        warm: Duration::from_millis(1),
        time: Duration::from_millis(20),
        device: None,
        period: PERIOD,
    };

    #[test]
    fn steps_are_counted_and_the_error_of_one_thread_ends_the_slice() {
        let store = MemoryStore::new();
        let steps = AtomicU64::new(0);
        let count = |_: &mut u32, _: &mut _| {
            steps.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let measured = timed(&store, &SHORT, Ok, count).unwrap();
        assert!(measured.rate > 0.0 && measured.p50_us <= measured.p99_us);
        assert!(steps.load(Ordering::Relaxed) > u64::from(3 * PERIOD) - 1);
        let one_fails = |thread| if thread == 1 { Err(anyhow::anyhow!("no")) } else { Ok(thread) };
        assert_eq!(timed(&store, &SHORT, one_fails, count).unwrap_err().to_string(), "no");
    }

    #[test]
    fn rows_of_scans_are_counted_and_an_empty_table_is_an_error() {
        let store = MemoryStore::new();
        let table = store.create_table("t").unwrap();
        assert!(timed_scans(&store, table, &SHORT).is_err());
        store.session().unwrap().insert(table, b"k", b"v").unwrap();
        assert!(timed_scans(&store, table, &SHORT).unwrap().rate > 0.0);
    }
}
