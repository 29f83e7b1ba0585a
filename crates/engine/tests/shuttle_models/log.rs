//! The log's protocols under schedules that shuttle draws: the ring that threads fill and a leader
//! empties, leaders and those who wait for them, a full buffer, failures, the background thread.
//!
//! What shuttle cannot see are weak orderings: the ring's marks are published with Release and read
//! with Acquire, which `log/ring.rs` argues, and the sanitizers watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::schedules::{check, seed};
use crate::support::{Entry, ID, append, check_at, read, tiny};
use millpond::internals::log::{Log, LogCounts, LogError, LogOptions};
use millpond_base::Lsn;
use millpond_device::{Device, FaultyDevice, MemoryDevice};

/// Schedules of each model.
const SCHEDULES: usize = 300;
const THREADS: usize = 3;

/// Counts of events in all schedules: a model in which nothing happens proves nothing.
#[derive(Default)]
struct Seen {
    shared: AtomicU64,
    stalled: AtomicU64,
    flushes: AtomicU64,
}

impl Seen {
    fn new() -> &'static Seen {
        Box::leak(Box::default())
    }

    fn add(&self, counts: LogCounts) {
        self.shared.fetch_add(counts.waits_shared, Ordering::Relaxed);
        self.stalled.fetch_add(counts.appends_stalled, Ordering::Relaxed);
        self.flushes.fetch_add(counts.flushes, Ordering::Relaxed);
    }
}

fn faulty(flush_interval: Duration) -> (Arc<FaultyDevice>, Arc<Log>) {
    let device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), 1));
    let options = LogOptions { flush_interval, ..tiny() };
    let log = Log::create(device.clone(), ID, Lsn(0), &options).unwrap();
    (device, Arc::new(log))
}

/// Runs `work` in `count` threads, each with a number; returns what they return.
fn in_threads<T: Send + 'static>(work: impl Fn(u64) -> T + Send + Sync + 'static) -> Vec<T> {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..THREADS as u64)
        .map(|thread| {
            let work = work.clone();
            shuttle::thread::spawn(move || work(thread))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// A power failure now leaves `entry`.
fn survives(device: &FaultyDevice, entry: &Entry) {
    let image = Arc::new(device.crash(seed()).unwrap());
    let (log, _) = Log::open(image, ID, Lsn(4096), &tiny()).unwrap();
    check_at(&log, entry);
}

/// Has the log call when the records before `end` are durable, and waits for the call.
fn listen(log: &Log, end: Lsn) -> Result<(), LogError> {
    let (told, hears) = shuttle::sync::mpsc::channel();
    log.when_durable(end, Box::new(move |outcome| told.send(outcome).unwrap()));
    hears.recv().unwrap()
}

/// Appends a few records and waits for some of them; those survive.
fn commit(device: &FaultyDevice, log: &Log, thread: u64, least: usize) -> Vec<Entry> {
    let mut random = fastrand::Rng::with_seed(seed() + thread);
    (0..4)
        .map(|_| {
            let before = log.tail();
            let length = random.usize(least..=log.record_max().min(least * 2 + 100));
            let entry = append(log, &mut random, length);
            assert!(entry.at.start >= before);
            match random.u8(..5) {
                0 => log.wait_durable(entry.at.end).unwrap(),
                3 => listen(log, entry.at.end).unwrap(),
                1 => log.wait_group(entry.at.end, Duration::from_millis(1)).unwrap(),
                2 => check_at(log, &entry),
                _ => return entry,
            }
            assert!(log.durable() >= entry.at.end);
            survives(device, &entry);
            entry
        })
        .collect()
}

fn commits(least: usize, flush_interval: Duration, seen: &Seen) {
    let (device, log) = faulty(flush_interval);
    let (own, beside) = (log.clone(), device.clone());
    let entries = in_threads(move |thread| commit(&beside, &own, thread, least));
    let mut entries: Vec<Entry> = entries.into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry.at.start);
    assert_eq!(read(&log, Lsn(4096)), entries);
    log.close().unwrap();
    seen.add(log.counts());
}

#[test]
fn what_was_waited_for_is_durable_and_everything_is_whole() {
    let seen = Seen::new();
    check(SCHEDULES, move || commits(10, Duration::ZERO, seen));
    assert!(seen.shared.load(Ordering::Relaxed) > SCHEDULES as u64 / 2);
}

#[test]
fn a_full_buffer_makes_threads_wait_and_never_for_ever() {
    let seen = Seen::new();
    check(SCHEDULES, move || commits(2500, Duration::ZERO, seen));
    assert!(seen.stalled.load(Ordering::Relaxed) > SCHEDULES as u64 / 2);
}

#[test]
fn a_background_thread_beside_those_who_wait_loses_nothing() {
    let seen = Seen::new();
    check(SCHEDULES, move || commits(1000, Duration::from_millis(1), seen));
    assert!(seen.flushes.load(Ordering::Relaxed) > SCHEDULES as u64);
}

#[test]
fn the_background_thread_sleeps_through_no_append() {
    check(SCHEDULES, || {
        let (device, log) = faulty(Duration::from_millis(1));
        let own = log.clone();
        let entries = in_threads(move |thread| {
            let mut random = fastrand::Rng::with_seed(thread);
            [0; 2].map(|_| append(&own, &mut random, 700))
        });
        // Nobody waits for the log here, so somebody must have been woken.
        while log.durable() < log.tail() {
            shuttle::thread::yield_now();
        }
        entries.iter().flatten().for_each(|entry| survives(&device, entry));
        log.close().unwrap();
    });
}

#[test]
fn a_failed_synchronisation_is_told_to_everybody_and_acknowledges_nothing() {
    for flush_interval in [Duration::ZERO, Duration::from_millis(1)] {
        let told: &'static AtomicU64 = Box::leak(Box::default());
        check(SCHEDULES, move || {
            let (device, log) = faulty(flush_interval);
            let (own, beside) = (log.clone(), device.clone());
            in_threads(move |thread| {
                let mut random = fastrand::Rng::with_seed(thread);
                for round in 0..4 {
                    if (thread, round) == (0, 2) {
                        beside.fail_next_sync();
                    }
                    let entry = append(&own, &mut random, 1500);
                    let waited = match round {
                        1 => listen(&own, entry.at.end),
                        _ => own.wait_durable(entry.at.end),
                    };
                    match waited {
                        Ok(()) => survives(&beside, &entry),
                        Err(LogError::Failed(_)) => {
                            told.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            let durable = log.durable();
            assert!(matches!(log.poisoned(), Some(LogError::Failed(_))));
            assert!(log.wait_durable(log.tail()).is_err() && log.durable() == durable);
            assert!(log.close().is_err() && device.length() > 0);
        });
        assert!(told.load(Ordering::Relaxed) > SCHEDULES as u64);
    }
}

#[test]
fn forgetting_and_growing_beside_appends_keeps_what_is_kept() {
    check(SCHEDULES, || {
        let (_device, log) = faulty(Duration::from_millis(1));
        let own = log.clone();
        in_threads(move |thread| {
            let mut random = fastrand::Rng::with_seed(thread);
            for _ in 0..5 {
                let entry = append(&own, &mut random, 3500);
                own.wait_durable(entry.at.end).unwrap();
                // Up to two records of each of the others may have come between.
                own.forget_before(Lsn(entry.at.start.0.saturating_sub(8 << 10)));
            }
        });
        let last = append(&log, &mut fastrand::Rng::with_seed(9), 3500);
        check_at(&log, &last);
        log.close().unwrap();
    });
}

/// Room that each thread asks for.
const WANTED: u64 = 20 << 10;

#[test]
fn room_that_was_found_is_there_while_others_grow_the_file_and_give_it_back() {
    check(SCHEDULES, || {
        let (device, log) = faulty(Duration::ZERO);
        let own = log.clone();
        in_threads(move |thread| {
            for _ in 0..2 {
                match thread {
                    0 => drop(own.give_back(0).unwrap()),
                    _ => own.make_room(WANTED).unwrap(),
                }
            }
        });
        device.limit_room(0);
        let mut random = fastrand::Rng::with_seed(1);
        while log.make_room(3500).is_ok() {
            append(&log, &mut random, 3000);
            log.wait_durable(log.tail()).unwrap();
        }
        log.close().unwrap();
    });
}

#[test]
fn threads_that_need_the_same_room_make_the_file_longer_once() {
    check(SCHEDULES, || {
        let (alone, log) = faulty(Duration::ZERO);
        log.make_room(WANTED).unwrap();
        let length = alone.length();
        let (device, log) = faulty(Duration::ZERO);
        in_threads(move |_| log.make_room(WANTED).unwrap());
        assert_eq!(device.length(), length);
    });
}
