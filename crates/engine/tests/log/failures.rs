//! Storage that fails under a log.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::log::{Log, LogError, LogOptions, Record};
use millpond_base::Lsn;
use millpond_device::{Device, DeviceError, FaultyDevice, MemoryDevice};

use super::support::{ID, Told, append, open, read, tiny};

fn faulty() -> (Arc<MemoryDevice>, Arc<FaultyDevice>, Log) {
    let memory = Arc::new(MemoryDevice::new());
    let device = Arc::new(FaultyDevice::new(memory.clone(), 1));
    let log = Log::create(device.clone(), ID, Lsn(0), &tiny()).unwrap();
    (memory, device, log)
}

/// The log takes nothing more, and says why; what was durable before is there.
fn is_poisoned(log: &Log, durable: Lsn, expected: fn(&LogError) -> bool) {
    let mut random = fastrand::Rng::with_seed(3);
    let error = log.wait_durable(log.tail()).unwrap_err();
    assert!(expected(&error), "{error}");
    assert_eq!(log.poisoned(), Some(error.clone()));
    // Appending goes on, far beyond the buffer, without waiting for ever.
    for _ in 0..100 {
        let entry = append(log, &mut random, 1000);
        assert_eq!(log.wait_durable(entry.at.end), Err(error.clone()));
        assert_eq!(log.wait_group(entry.at.end, Duration::from_secs(1)), Err(error.clone()));
    }
    assert_eq!(log.durable(), durable);
    log.wait_durable(durable).unwrap();
    assert_eq!(log.reader(Lsn(4096)).next_record().unwrap_err(), error);
    assert_eq!(log.close(), Err(error));
}

#[test]
fn a_failed_sync_ends_the_log_and_is_never_tried_again() {
    let mut random = fastrand::Rng::with_seed(1);
    let (memory, device, log) = faulty();
    let first = append(&log, &mut random, 500);
    log.wait_durable(first.at.end).unwrap();
    append(&log, &mut random, 700);
    device.fail_next_sync();
    let syncs = log.counts().syncs;
    is_poisoned(&log, first.at.end, |error| {
        let text = error.to_string();
        matches!(error, LogError::Failed(_))
            && text.contains("commits that may be lost")
            && !text.contains("try again")
    });
    assert_eq!(log.counts().syncs, syncs, "the next one would have gone well");
    drop(log);
    let (log, _) = open(memory, Lsn(4096));
    assert_eq!(read(&log, Lsn(4096))[0], first);
}

#[test]
fn a_failed_write_ends_the_log() {
    let mut random = fastrand::Rng::with_seed(1);
    let (memory, device, log) = faulty();
    let first = append(&log, &mut random, 500);
    log.wait_durable(first.at.end).unwrap();
    append(&log, &mut random, 9000.min(log.record_max()));
    device.fail_writes_at(4096 + 4096 + 4096 + 1000);
    let error = log.wait_durable(log.tail()).unwrap_err();
    assert!(error.to_string().contains("(memory)"), "{error}");
    device.heal();
    is_poisoned(&log, first.at.end, |error| matches!(error, LogError::Failed(_)));
    drop(log);
    let (log, _) = open(memory, Lsn(4096));
    assert_eq!(read(&log, Lsn(4096))[0], first);
}

#[test]
fn a_full_disk_is_told_apart_and_says_what_to_do() {
    // When the log is made: nothing is there afterwards that would be taken for one.
    let memory = Arc::new(MemoryDevice::new());
    let device = Arc::new(FaultyDevice::new(memory.clone(), 1));
    device.limit_room(20 << 10);
    let error = Log::create(device.clone(), ID, Lsn(0), &tiny()).unwrap_err();
    assert!(matches!(&error, LogError::Prepare(DeviceError::DiskFull { .. })), "{error}");
    assert!(error.to_string().contains("make room"), "{error}");
    assert!(Log::open(memory.clone(), ID, Lsn(0), &tiny()).is_err());
    device.heal();
    let log = Log::create(device.clone(), ID, Lsn(0), &tiny()).unwrap();

    // When it grows.
    let mut random = fastrand::Rng::with_seed(4);
    device.limit_room(1000);
    let mut entries = Vec::new();
    while log.tail() < Lsn(15 << 10) {
        entries.push(append(&log, &mut random, 500));
        log.wait_durable(log.tail()).unwrap();
    }
    let durable = log.durable();
    while log.tail() < Lsn(17 << 10) {
        append(&log, &mut random, 500);
    }
    is_poisoned(&log, durable, |error| {
        let text = error.to_string();
        matches!(error, LogError::Full(DeviceError::DiskFull { .. }))
            && text.contains("Make room there and open the store again")
            && text.contains("commits that may be lost")
            && !text.contains("try again")
            && text.contains("(memory)")
    });
    drop(log);
    let (log, tail) = open(memory, Lsn(4096));
    assert_eq!(tail.end, durable);
    assert_eq!(read(&log, Lsn(4096)), entries);

    // There is room again.
    device.heal();
    while log.tail() < Lsn(34 << 10) {
        entries.push(append(&log, &mut random, 500));
    }
    assert_eq!(read(&log, Lsn(4096)), entries);
}

#[test]
fn growth_that_fails_ahead_of_need_is_counted_and_forgiven() {
    let memory = Arc::new(MemoryDevice::new());
    let device = Arc::new(FaultyDevice::new(memory.clone(), 1));
    let told = Told::over(device.clone(), memory);
    let options = LogOptions { flush_interval: Duration::from_millis(1), ..tiny() };
    let log = Log::create(told.clone(), ID, Lsn(0), &options).unwrap();
    let mut random = fastrand::Rng::with_seed(4);
    // It is short from the beginning, and grows by a segment.
    let length = 4096 + (20 << 10) + (16 << 10);
    told.await_that("no segment is made ready", |_| device.length() >= length);
    device.limit_room(0);
    while log.tail() < Lsn(17 << 10) {
        append(&log, &mut random, 500);
    }
    told.await_that("nobody tried to grow", |seen| seen.refused > 0);
    device.heal();
    for _ in 0..50 {
        append(&log, &mut random, 500);
    }
    log.close().unwrap();
    assert!(log.counts().growth_failures > 0);
}

#[test]
fn room_that_was_found_is_there_while_segments_wait_in_the_buffer_to_be_written() {
    let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 1));
    let options = LogOptions { buffer_bytes: 128 << 10, ..tiny() };
    let log = Log::create(device.clone(), ID, Lsn(0), &options).unwrap();
    let mut random = fastrand::Rng::with_seed(4);
    log.make_room(100 << 10).unwrap();
    device.limit_room(0);
    while log.make_room(1000).is_ok() {
        append(&log, &mut random, 500);
    }
    log.wait_durable(log.tail()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn storage_that_is_full_for_writes_ends_the_log_as_full() {
    let (_memory, device, log) = faulty();
    let durable = log.durable();
    append(&log, &mut fastrand::Rng::with_seed(4), 500);
    device.fill();
    is_poisoned(&log, durable, |error| matches!(error, LogError::Full(_)));
}

#[test]
fn everybody_who_waits_learns_that_the_log_has_ended() {
    for seed in 0..30 {
        let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), seed));
        let flush_interval = Duration::from_millis(seed % 2);
        let log = Log::create(device.clone(), ID, Lsn(0), &LogOptions { flush_interval, ..tiny() })
            .unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let log = &log;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    for _ in 0..100_000 {
                        let entry = append(log, &mut random, 300);
                        let waited = match thread % 4 {
                            0 => log.wait_durable(entry.at.end),
                            1 => log.wait_group(entry.at.end, Duration::from_micros(100)),
                            2 => log.wait_commit(entry.at.end, Duration::from_micros(100)),
                            _ => Ok(()),
                        };
                        if waited.is_err() || log.poisoned().is_some() {
                            return;
                        }
                    }
                });
            }
            while log.durable() < Lsn(100_000) {
                std::thread::yield_now();
            }
            device.fail_next_sync();
        });
        assert!(matches!(log.poisoned(), Some(LogError::Failed(_))), "seed {seed}");
    }
}

#[test]
fn a_record_that_is_too_long_ends_the_log_with_a_clear_word() {
    let (_memory, _device, log) = faulty();
    let longest = vec![1; log.record_max()];
    let at = log.append(&Record { kind: 0, tx: 0, prev: Lsn(0), parts: &[&longest] });
    log.wait_durable(at.end).unwrap();
    log.append(&Record { kind: 0, tx: 0, prev: Lsn(0), parts: &[&longest, &[1]] });
    let error = log.wait_durable(log.tail()).unwrap_err();
    assert!(matches!(error, LogError::RecordTooLong { .. }), "{error}");
    assert!(error.to_string().contains("larger log buffer"), "{error}");
    assert_eq!(log.poisoned(), Some(error));
}

#[test]
fn a_log_that_cannot_be_read_is_not_opened() {
    let (_memory, device, log) = faulty();
    append(&log, &mut fastrand::Rng::with_seed(1), 500);
    log.close().unwrap();
    drop(log);
    for offset in [0, 4096, 12288] {
        device.fail_reads_at(offset);
        let error = Log::open(device.clone(), ID, Lsn(0), &tiny()).unwrap_err();
        assert!(matches!(error, LogError::Read(_)), "{offset}: {error}");
        device.heal();
    }
    device.fail_next_sync();
    let error = Log::open(device.clone(), ID, Lsn(0), &tiny()).unwrap_err();
    assert!(matches!(error, LogError::Prepare(_)), "{error}");
    assert!(device.length() > 0 && Log::open(device, ID, Lsn(0), &tiny()).is_ok());
}
