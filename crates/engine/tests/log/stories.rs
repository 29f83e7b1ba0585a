//! One thread, and nothing fails.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::log::{Appended, Log, LogError, LogOptions, Record};
use millpond_base::Lsn;
use millpond_device::{Device, FileDevice, FileOptions, MemoryDevice};

use super::support::{ID, Seen, Told, append, check_at, copy, fresh, length, open, read, tiny};

#[test]
fn what_was_appended_is_read_back_byte_for_byte() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (_device, log) = fresh(&tiny());
        let mut entries = Vec::new();
        assert_eq!(log.tail(), Lsn(4096));
        for _ in 0..150 {
            let length = length(&log, &mut random);
            let entry = append(&log, &mut random, length);
            assert!(entry.at.start >= Lsn(4096) && entry.at.end > entry.at.start);
            assert_eq!(log.tail(), entry.at.end);
            entries.push(entry);
            match random.u8(..8) {
                0 => {
                    let end = entries[random.usize(..entries.len())].at.end;
                    log.wait_durable(end).unwrap();
                    assert!(log.durable() >= end);
                }
                1 => check_at(&log, &entries[random.usize(..entries.len())]),
                _ => {}
            }
        }
        assert_eq!(read(&log, Lsn(4096)), entries, "seed {seed}");
        let from = random.usize(..entries.len());
        assert_eq!(read(&log, entries[from].at.start), entries[from..]);
        let counts = log.counts();
        assert_eq!(counts.records_durable, entries.len() as u64);
        assert_eq!(counts.bytes_appended, log.tail().0 - 4096);
        assert!(counts.appends_stalled > 0 && counts.bytes_written > counts.bytes_appended);
        log.close().unwrap();
    }
}

#[test]
fn a_log_goes_on_where_it_was_closed_or_died() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut device, mut log) = fresh(&tiny());
    let mut entries = Vec::new();
    for round in 0..60 {
        for _ in 0..random.usize(..12) {
            let length = length(&log, &mut random);
            entries.push(append(&log, &mut random, length));
        }
        if round % 2 == 0 {
            log.close().unwrap();
        } else {
            // Dies: what is durable is there, the rest is not.
            let durable = log.durable();
            entries.retain(|entry| entry.at.end <= durable);
        }
        drop(log);
        let start = match entries.len() {
            0 => Lsn(4096),
            n => entries[random.usize(..n)].at.start,
        };
        device = copy(&device);
        let (opened, tail) = open(device.clone(), start);
        assert_eq!(tail.end, entries.last().map_or(Lsn(4096), |entry| entry.at.end));
        assert_eq!(tail.cut, None);
        assert_eq!((opened.tail(), opened.durable()), (tail.end, tail.end));
        log = opened;
        assert_eq!(read(&log, Lsn(4096)), entries, "round {round}");
    }
}

#[test]
fn the_end_itself_is_a_position_to_open_at() {
    let (device, log) = fresh(&tiny());
    let (log, tail) = {
        drop(log);
        open(device.clone(), Lsn(0))
    };
    assert_eq!((tail.end, tail.cut), (Lsn(4096), None));
    // Up to the very end of the first segment.
    let mut prev = Lsn(0);
    // With headers of 12 bytes, and of 16 where they are chained.
    for body in [3060, 3056, 3056, 3056] {
        let body = &[7; 3060][..body];
        prev = log.append(&Record { kind: 1, tx: 0, prev, parts: &[body] }).start;
    }
    let at = Appended { start: prev, end: log.tail() };
    assert_eq!(at.end, Lsn(16 << 10));
    log.close().unwrap();
    drop(log);
    let (log, tail) = open(device.clone(), at.end);
    assert_eq!(tail.end, at.end);
    let next = append(&log, &mut fastrand::Rng::with_seed(1), 50);
    assert_eq!(next.at.start, at.end);
    log.close().unwrap();
    drop(log);
    let (log, tail) = open(device, at.start);
    assert_eq!(tail.end, next.at.end);
    check_at(&log, &next);
}

#[test]
fn forgotten_segments_are_used_again_and_the_file_stops_growing() {
    let mut random = fastrand::Rng::with_seed(5);
    let (device, log) = fresh(&tiny());
    let mut kept = Vec::new();
    let mut longest = 0;
    for round in 0..3000 {
        let length = length(&log, &mut random).min(2000);
        kept.push(append(&log, &mut random, length));
        if round % 8 == 7 {
            log.wait_durable(log.tail()).unwrap();
            // Some 30 KiB are held: three or four segments of 16 KiB.
            while log.tail().0 - kept[0].at.start.0 > 30 << 10 {
                kept.remove(0);
            }
            log.forget_before(kept[0].at.start);
            assert_eq!(log.bytes_held(), log.tail().0 - kept[0].at.start.0);
            longest = longest.max(device.length());
        }
    }
    assert!(log.tail().0 > 8 * longest, "the log went around often");
    assert!(longest <= 4096 + 5 * (20 << 10), "{longest} bytes");
    assert!(log.counts().segments_recycled > 10);
    assert_eq!(read(&log, kept[0].at.start), kept);
    let error = log.read_at(Lsn(4096), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, LogError::Forgotten { .. }), "{error}");
    let error = log.reader(Lsn(4096)).next_record().unwrap_err();
    assert!(matches!(error, LogError::Forgotten { .. }), "{error}");
    drop(log);
    let (log, tail) = open(copy(&device), kept[0].at.start);
    assert_eq!((tail.end, tail.cut), (kept.last().unwrap().at.end, None));
    assert_eq!(read(&log, kept[0].at.start), kept);
    assert!(log.oldest() <= kept[0].at.start);
}

#[test]
fn a_position_that_is_none_is_refused() {
    let (_device, log) = fresh(&tiny());
    let entry = append(&log, &mut fastrand::Rng::with_seed(2), 100);
    let mut body = Vec::new();
    let error = log.wait_durable(Lsn(entry.at.end.0 + 1)).unwrap_err();
    assert!(matches!(error, LogError::BeyondTail { .. }), "{error}");
    for at in [entry.at.end, Lsn(entry.at.end.0 + 8), Lsn(u64::MAX - 3)] {
        let error = log.read_at(at, &mut body).unwrap_err();
        assert!(matches!(error, LogError::BeyondTail { .. }), "{at:?}: {error}");
    }
    for at in [Lsn(4104), Lsn(4097)] {
        let error = log.read_at(at, &mut body).unwrap_err();
        assert!(matches!(error, LogError::NoRecord { .. }), "{at:?}: {error}");
        let error = log.reader(at).next_record().unwrap_err();
        assert!(matches!(error, LogError::NoRecord { .. }), "{at:?}: {error}");
    }
    check_at(&log, &entry);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for (segment_bytes, buffer_bytes) in [
        (0, 16384),
        (16380, 16384),
        (20000, 16384),
        (16384, 8192),
        (16384, 16385),
        (1 << 40, 16384),
    ] {
        let options = LogOptions { segment_bytes, buffer_bytes, ..tiny() };
        let device = std::sync::Arc::new(millpond_device::MemoryDevice::new());
        let error = Log::create(device, ID, Lsn(0), &options).unwrap_err();
        assert!(matches!(error, LogError::BadOption { .. }), "{error}");
    }
}

#[test]
fn the_background_thread_makes_durable_what_nobody_waits_for_and_keeps_a_segment_ready() {
    let options = LogOptions { flush_interval: Duration::from_millis(1), ..tiny() };
    let memory = Arc::new(MemoryDevice::new());
    let device = Told::over(memory.clone(), memory);
    let log = Log::create(device.clone(), ID, Lsn(0), &options).unwrap();
    let is_synced = |seen: &Seen, end: Lsn| {
        let is_there = !seen.synced.is_empty();
        is_there && open(Arc::new(MemoryDevice::from_bytes(&seen.synced)), Lsn(4096)).1.end >= end
    };
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..5 {
        let entry = append(&log, &mut random, 1000);
        device.await_that("nobody flushes", |seen| is_synced(seen, entry.at.end));
    }
    // Into the second segment: the file gets longer by a third one's while nobody needs it.
    while log.tail() < Lsn(20 << 10) {
        append(&log, &mut random, 3000);
    }
    let (tail, length) = (log.tail(), 4096 + (20 << 10) + 2 * (16 << 10));
    device.await_that("no segment is made ready", |_| device.length() >= length);
    device.await_that("nobody flushes", |seen| is_synced(seen, tail));
    log.wait_durable(tail).unwrap();
    log.close().unwrap();
    assert!(log.counts().segments_grown >= 1);
}

#[test]
fn a_file_is_a_log_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store-log");
    let options =
        LogOptions { segment_bytes: 64 << 10, buffer_bytes: 64 << 10, ..Default::default() };
    let mut random = fastrand::Rng::with_seed(9);
    let device = std::sync::Arc::new(FileDevice::create(&path, &FileOptions::default()).unwrap());
    let log = Log::create(device.clone(), ID, Lsn(0), &options).unwrap();
    let mut entries = Vec::new();
    for _ in 0..80 {
        let length = length(&log, &mut random);
        entries.push(append(&log, &mut random, length));
        if random.u8(..8) == 0 {
            log.wait_durable(log.tail()).unwrap();
        }
    }
    log.close().unwrap();
    let error = Log::create(device.clone(), ID, Lsn(0), &options).unwrap_err();
    assert!(matches!(error, LogError::Exists { .. }), "{error}");
    drop((log, device));
    let device = std::sync::Arc::new(FileDevice::open(&path, &FileOptions::default()).unwrap());
    let (log, tail) = Log::open(device, ID, Lsn(4096), &options).unwrap();
    assert_eq!((tail.end, tail.cut), (entries.last().unwrap().at.end, None));
    assert_eq!(read(&log, Lsn(4096)), entries);
    for entry in entries.iter().step_by(7) {
        check_at(&log, entry);
    }
    log.close().unwrap();
}
