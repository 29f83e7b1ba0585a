//! Many threads at once.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::log::{Log, LogOptions};
use millpond_base::Lsn;
use millpond_device::{Faults, FaultyDevice, MemoryDevice};

use super::support::{Entry, ID, append, check_at, fresh, read, tiny};

fn run(log: &Log, threads: u64, count: usize, finish: impl Fn(&Log, &Entry, u64) + Sync) {
    let mut entries: Vec<Entry> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let finish = &finish;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    let mut mine = Vec::new();
                    for _ in 0..count {
                        let before = log.tail();
                        let most = if random.u8(..10) == 0 { 4000 } else { 200 };
                        let length = random.usize(..most);
                        let entry = append(log, &mut random, length);
                        assert!(entry.at.start >= before);
                        finish(log, &entry, random.u64(..));
                        mine.push(entry);
                    }
                    mine
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    entries.sort_by_key(|entry| entry.at.start);
    assert_eq!(read(log, Lsn(4096)), entries);
}

#[test]
fn records_of_many_threads_lie_one_after_the_other_and_whole() {
    for interval in [0, 1] {
        let flush_interval = Duration::from_millis(interval);
        let (_device, log) = fresh(&LogOptions { flush_interval, ..tiny() });
        run(&log, 4, 800, |log, entry, chance| match chance % 16 {
            0 => log.wait_durable(entry.at.end).unwrap(),
            1 => log.wait_group(entry.at.end, Duration::from_micros(50)).unwrap(),
            2 => check_at(log, entry),
            3 => log.wait_commit(entry.at.end, Duration::from_micros(50)).unwrap(),
            _ => {}
        });
        log.close().unwrap();
    }
}

#[test]
fn those_who_wait_together_share_a_flush() {
    let device = FaultyDevice::new(Arc::new(MemoryDevice::new()), 1);
    device.set_faults(Faults { latency_us_max: 300, ..Faults::default() });
    let log = Log::create(Arc::new(device), ID, Lsn(0), &tiny()).unwrap();
    run(&log, 8, 40, |log, entry, _| {
        log.wait_durable(entry.at.end).unwrap();
        assert!(log.durable() >= entry.at.end);
    });
    let counts = log.counts();
    assert!(counts.flushes < 8 * 40 && counts.waits_shared > 0, "{counts:?}");
    assert_eq!(counts.records_durable, 8 * 40);
}

#[test]
fn groups_that_wait_for_company_end_all_the_same() {
    let wait_group = |log: &Log, end| log.wait_group(end, Duration::from_millis(1));
    let wait_commit = |log: &Log, end| log.wait_commit(end, Duration::from_millis(1));
    for wait in [&wait_group as &(dyn Fn(&Log, Lsn) -> _ + Sync), &wait_commit] {
        let (_device, log) = fresh(&tiny());
        run(&log, 4, 100, |log, entry, _| {
            wait(log, entry.at.end).unwrap();
            assert!(log.durable() >= entry.at.end);
        });
    }
}
