//! Threads, phases and clocks of a run: one loop for every client and every store.
//!
//! A thread runs its steps. After every few steps it stores its count in its own cache line and
//! checks the phase, which rarely changes. One step in a few is timed (`Workload::period`). The
//! calling thread sleeps, wakes to sample, and changes the phase. Between warm-up and measurement
//! all threads pause, so that counters can be read at one moment.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use millpond_workload::live::{DriveError, Store};

use crate::error::BenchError;
use crate::run::client::{Client, Clients, Workload};
use crate::run::counts::{Counts, cpu_seconds};
use crate::run::instructions::Instructions;
use crate::run::outcome::{Share, merged};

pub use crate::run::outcome::{Outcome, Tick};

/// Length of a phase.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// A time.
    Time(Duration),
    /// A number of operations over all threads. Every run with one thread and one seed then does
    /// the same work.
    Operations(u64),
}

impl Length {
    /// No operation.
    pub const NONE: Length = Length::Operations(0);

    fn share(self, threads: usize, thread: usize) -> Option<u64> {
        match self {
            Length::Time(_) => None,
            Length::Operations(all) => {
                let (all, threads) = (all as usize, threads.max(1));
                Some((all / threads + usize::from(thread < all % threads)) as u64)
            }
        }
    }
}

/// The parameters of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunSpec {
    /// Warm-up before the measurement.
    pub warm_up: Length,
    /// The measurement.
    pub measure: Length,
    /// Time between two points of the time series.
    pub interval: Duration,
}

impl RunSpec {
    /// Returns a spec with a second of warm-up, a measurement of length `measure`, and a point
    /// every second.
    pub fn of(measure: Length) -> RunSpec {
        let second = Duration::from_secs(1);
        RunSpec { warm_up: Length::Time(second), measure, interval: second }
    }
}

/// Observer of a run, which may end it.
pub trait Observer {
    /// Reports the start of an activity, such as loading or a round.
    fn begin(&mut self, what: &str) {
        let _ = what;
    }
    /// Reports the end of an interval.
    fn tick(&mut self, tick: &Tick) {
        let _ = tick;
    }
    /// Returns `true` to end the run now.
    fn stop(&self) -> bool {
        false
    }
}

/// Observer that does nothing.
pub struct Unwatched;

impl Observer for Unwatched {}

const WARM_UP: u32 = 0;
const MEASURE: u32 = 1;
const STOP: u32 = 2;

/// State shared by all threads.
struct Shared {
    phase: AtomicU32,
    /// Threads that have ended the phase.
    arrived: AtomicU32,
    failed: AtomicBool,
    barrier: Barrier,
    watcher: Thread,
    cells: Box<[Cell]>,
}

/// One thread's progress, on its own cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Cell(AtomicU64);

impl Shared {
    fn arrive(&self, failed: bool) {
        if failed {
            self.failed.store(true, Ordering::Release);
        }
        self.arrived.fetch_add(1, Ordering::AcqRel);
        self.watcher.unpark();
    }

    fn transactions(&self) -> u64 {
        self.cells.iter().map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }
}

/// Pace of one thread: the run that it belongs to, its cell, and how often a step is timed.
struct Pacer<'r> {
    shared: &'r Shared,
    /// Cell of the thread.
    cell: &'r Cell,
    /// One step in this number is timed.
    period: u64,
}

/// Steps until the phase is over, or `left` steps are done.
fn steps<C: Client, S: millpond_workload::live::Session>(
    client: &mut C,
    session: &mut S,
    share: &mut Share,
    pacer: &Pacer<'_>,
    phase: u32,
    mut left: Option<u64>,
) -> Result<(), DriveError<S::Error>> {
    let Pacer { shared, cell, period } = *pacer;
    while shared.phase.load(Ordering::Relaxed) <= phase {
        let count = left.map_or(period, |left| left.min(period));
        if count == 0 {
            break;
        }
        let start = Instant::now();
        let done = client.step(session)?;
        share.timed(done, start.elapsed());
        for _ in 1..count {
            let done = client.step(session)?;
            share.note(done);
        }
        cell.0.store(share.transactions, Ordering::Relaxed);
        left = left.map(|left| left - count);
    }
    Ok(())
}

/// Runs one thread from start to end.
fn work<C: Client, S: Store>(
    store: &S,
    client: &mut C,
    shared: &Shared,
    spec: &RunSpec,
    period: u64,
    thread: usize,
) -> Result<Share, DriveError<S::Error>> {
    let threads = shared.cells.len();
    let pacer = Pacer { shared, cell: &shared.cells[thread], period };
    let mut session = store.session().map_err(DriveError::Store);
    let warm = match &mut session {
        Ok(session) => {
            let left = spec.warm_up.share(threads, thread);
            steps(client, session, &mut Share::new(), &pacer, WARM_UP, left)
        }
        Err(_) => Ok(()),
    };
    shared.arrive(session.is_err() || warm.is_err());
    shared.barrier.wait();
    shared.barrier.wait();
    let mut session = session?;
    warm?;
    let mut share = Share::new();
    let left = spec.measure.share(threads, thread);
    let start = Instant::now();
    let result = steps(client, &mut session, &mut share, &pacer, MEASURE, left);
    let result = result.and_then(|()| client.finish(&mut session));
    share.seconds = start.elapsed().as_secs_f64();
    shared.arrive(result.is_err());
    result.map(|()| share)
}

/// A phase's time series under construction.
struct Series<'a> {
    shared: &'a Shared,
    counts: &'a dyn Fn() -> Option<Counts>,
    is_warm_up: bool,
    start: Instant,
    /// End of the last interval, with the transactions and counts up to then.
    last: (Instant, u64, Option<Counts>),
    ticks: Vec<Tick>,
}

impl<'a> Series<'a> {
    fn new(shared: &'a Shared, counts: &'a dyn Fn() -> Option<Counts>, is_warm_up: bool) -> Self {
        let start = Instant::now();
        let last = (start, shared.transactions(), counts());
        Series { shared, counts, is_warm_up, start, last, ticks: Vec::new() }
    }

    /// Ends an interval.
    fn tick(&mut self, now: Instant, observer: &mut dyn Observer) {
        let (before, transactions, counts) = self.last;
        self.last = (now, self.shared.transactions(), (self.counts)());
        let tick = Tick {
            at_s: (now - self.start).as_secs_f64(),
            seconds: (now - before).as_secs_f64(),
            transactions: self.last.1.saturating_sub(transactions),
            counts: self.last.2.zip(counts).map(|(here, before)| here.since(&before)),
            is_warm_up: self.is_warm_up,
        };
        observer.tick(&tick);
        self.ticks.push(tick);
    }
}

/// Sleeps and samples until all threads have ended the phase. Ends the phase when its time is over
/// or the observer asks. Returns the time series, and `true` if the observer ended the phase.
fn watch(
    shared: &Shared,
    length: Length,
    interval: Duration,
    is_warm_up: bool,
    counts: &dyn Fn() -> Option<Counts>,
    observer: &mut dyn Observer,
) -> (Vec<Tick>, bool) {
    const LOOK: Duration = Duration::from_millis(50);
    let mut series = Series::new(shared, counts, is_warm_up);
    let end = match length {
        Length::Time(time) => Some(series.start + time),
        Length::Operations(_) => None,
    };
    let mut was_stopped = false;
    while (shared.arrived.load(Ordering::Acquire) as usize) < shared.cells.len() {
        let now = Instant::now();
        was_stopped |= observer.stop();
        if was_stopped || shared.failed.load(Ordering::Acquire) {
            shared.phase.store(STOP, Ordering::Relaxed);
        } else if end.is_some_and(|end| now >= end) {
            let next = if is_warm_up { MEASURE } else { STOP };
            shared.phase.store(next, Ordering::Relaxed);
        }
        let is_over = shared.phase.load(Ordering::Relaxed) > u32::from(!is_warm_up);
        if now >= series.last.0 + interval && !is_over {
            series.tick(now, observer);
        }
        let until_end = end.map_or(LOOK, |end| end.saturating_duration_since(now));
        let until_tick = (series.last.0 + interval).saturating_duration_since(now);
        thread::park_timeout(if is_over { LOOK } else { LOOK.min(until_tick).min(until_end) });
    }
    // The remainder counts as an interval if it is about one interval long, or the only one.
    let now = Instant::now();
    if !is_warm_up && (series.ticks.is_empty() || now >= series.last.0 + interval / 2) {
        series.tick(now, observer);
    }
    (series.ticks, was_stopped)
}

/// Runs one client per thread.
fn run_each<C: Client, S: Store>(
    store: &S,
    clients: &mut [C],
    spec: &RunSpec,
    period: u64,
    counts: &dyn Fn() -> Option<Counts>,
    at_start: &mut dyn FnMut() -> Result<(), BenchError>,
    observer: &mut dyn Observer,
) -> Result<Outcome, BenchError> {
    let task = |client| -> Task<'_> {
        Box::new(move |shared, thread| {
            Ok(work::<C, S>(store, client, shared, spec, period, thread)?)
        })
    };
    run_all(clients.iter_mut().map(task).collect(), spec, counts, at_start, observer)
}

/// A thread's whole run; the number is the thread's.
type Task<'a> = Box<dyn FnOnce(&Shared, usize) -> Result<Share, BenchError> + Send + 'a>;

/// Runs a task per thread. Compiled once for all clients and stores.
fn run_all(
    tasks: Vec<Task<'_>>,
    spec: &RunSpec,
    counts: &dyn Fn() -> Option<Counts>,
    at_start: &mut dyn FnMut() -> Result<(), BenchError>,
    observer: &mut dyn Observer,
) -> Result<Outcome, BenchError> {
    let threads = tasks.len();
    let shared = Shared {
        phase: AtomicU32::new(WARM_UP),
        arrived: AtomicU32::new(0),
        failed: AtomicBool::new(false),
        barrier: Barrier::new(threads + 1),
        watcher: thread::current(),
        cells: (0..threads).map(|_| Cell::default()).collect(),
    };
    let shared = &shared;
    // The counter starts before the threads, so that it counts them too.
    let mut instructions = Instructions::begin();
    thread::scope(|scope| {
        let tasks = tasks.into_iter().enumerate();
        let handles: Vec<_> =
            tasks.map(|(thread, task)| scope.spawn(move || task(shared, thread))).collect();
        let (_, mut was_stopped) =
            watch(shared, spec.warm_up, spec.interval, true, counts, observer);
        shared.barrier.wait();
        let started = at_start();
        shared.arrived.store(0, Ordering::Release);
        let failed = shared.failed.load(Ordering::Acquire) || started.is_err();
        let phase = if was_stopped || failed { STOP } else { MEASURE };
        shared.phase.store(phase, Ordering::Release);
        shared.cells.iter().for_each(|cell| cell.0.store(0, Ordering::Relaxed));
        let (before, cpu) = (counts(), cpu_seconds());
        let executed = instructions.so_far();
        shared.barrier.wait();
        let mut series = Vec::new();
        if phase == MEASURE {
            (series, was_stopped) =
                watch(shared, spec.measure, spec.interval, false, counts, observer);
        }
        let mut shares = Vec::new();
        for handle in handles {
            let share = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            shares.push(share);
        }
        let shares = shares.into_iter().collect::<Result<Vec<Share>, _>>()?;
        started?;
        if phase == STOP {
            return Err(BenchError::Stopped);
        }
        let counted = counts().zip(before).map(|(after, before)| after.since(&before));
        let mut outcome = merged(&shares, cpu_seconds() - cpu);
        (outcome.counts, outcome.series, outcome.was_stopped) = (counted, series, was_stopped);
        let executed = instructions.so_far().zip(executed);
        outcome.instructions = executed.map(|(all, before)| all.saturating_sub(before));
        Ok(outcome)
    })
}

/// Runs `clients`, one thread each, on a loaded store. `counts` reads the store's counters, if it
/// has any. `at_start` is called once, while all threads pause between warm-up and measurement.
///
/// # Errors
/// The error of the first client that failed, or [`BenchError::Stopped`] if the observer ended the
/// run before the measurement.
pub fn run<S: Store>(
    store: &S,
    workload: &Workload,
    clients: &mut Clients,
    spec: &RunSpec,
    counts: &dyn Fn() -> Option<Counts>,
    at_start: &mut dyn FnMut() -> Result<(), BenchError>,
    observer: &mut dyn Observer,
) -> Result<Outcome, BenchError> {
    let period = workload.period();
    match clients {
        Clients::Ycsb(all) => run_each(store, all, spec, period, counts, at_start, observer),
        Clients::Tpcc(all) => run_each(store, all, spec, period, counts, at_start, observer),
        Clients::Inserts(all) => run_each(store, all, spec, period, counts, at_start, observer),
        Clients::Scan(all) => run_each(store, all, spec, period, counts, at_start, observer),
    }
}
