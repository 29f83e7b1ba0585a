//! Power failures: what a device may keep of its unsynchronised writes, drawn thousands of times.
//!
//! A log lives through several lives. Each ends with an image of the device that the contract of a
//! device allows, at a moment drawn by chance, often in the middle of a flush. Then everything that
//! was acknowledged as durable is there, byte for byte; what is there besides is what had been
//! appended next; and nothing of an earlier life's end comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond::internals::log::{Log, LogOptions, Record};
use millpond_base::Lsn;
use millpond_base::rounds::rounds;
use millpond_device::{Device, FaultyDevice, MemoryDevice, PowerSupply};

use super::support::{Entry, ID, append, length, read, tiny};

/// Counts of events in all lives: tests in which nothing happened prove nothing.
#[derive(Default)]
struct Seen {
    kept: AtomicU64,
    lost: AtomicU64,
    cut: AtomicU64,
    cut_records: AtomicU64,
    recycled: AtomicU64,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Compares the records after a crash with those appended; `durable` had been acknowledged.
fn survived(log: &Log, from: Lsn, entries: &mut Vec<Entry>, durable: Lsn, seen: &Seen) {
    let found = read(log, from);
    assert!(found.len() <= entries.len(), "more than was appended");
    assert_eq!(found, entries[..found.len()], "what is there is what was appended first");
    let end = found.last().map_or(from, |entry| entry.at.end);
    assert!(end >= durable, "{durable:?} was durable, the log ends at {end:?}");
    assert_eq!((log.tail(), log.durable()), (end, end));
    let kept = found.iter().filter(|entry| entry.at.start >= durable).count();
    add(&seen.kept, kept as u64);
    add(&seen.lost, (entries.len() - found.len()) as u64);
    entries.truncate(found.len());
}

/// Appends, flushes, forgets; the flush that the crash comes into the middle of is never
/// acknowledged, because its sync fails.
fn live(
    log: &Log,
    device: &FaultyDevice,
    entries: &mut Vec<Entry>,
    random: &mut fastrand::Rng,
) -> Lsn {
    for _ in 0..random.usize(1..25) {
        let length = length(log, random);
        // The same bodies again and again, too: what comes back from an earlier life may then be
        // what is appended anew, but for its place.
        let entry = match random.bool() {
            true => append(log, random, length),
            false => append(log, &mut fastrand::Rng::with_seed(1), length % 100),
        };
        entries.push(entry);
        match random.u8(..10) {
            0 | 1 => log.wait_durable(log.tail()).unwrap(),
            2 => {
                let end = entries[random.usize(..entries.len())].at.end;
                log.wait_durable(end).unwrap();
            }
            3 => {
                let durable = log.durable();
                let behind = entries.partition_point(|entry| entry.at.end <= durable);
                let forget = random.usize(..=behind.saturating_sub(1));
                entries.drain(..forget);
                log.forget_before(entries[0].at.start);
            }
            _ => {}
        }
    }
    let durable = log.durable();
    if random.u8(..4) > 0 {
        device.fail_next_sync();
        let _ = log.wait_durable(log.tail());
        assert_eq!(log.durable(), durable);
    }
    durable
}

fn lives(seed: u64, seen: &Seen) {
    let mut random = fastrand::Rng::with_seed(seed);
    let buffer_bytes = [16 << 10, 64 << 10][random.usize(..2)];
    let options = LogOptions { buffer_bytes, ..tiny() };
    let mut device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed));
    let mut log = Log::create(device.clone(), ID, Lsn(0), &options).unwrap();
    let mut entries: Vec<Entry> = Vec::new();
    let mut from = Lsn(4096);
    for life in 0..8 {
        let durable = live(&log, &device, &mut entries, &mut random);
        add(&seen.recycled, log.counts().segments_recycled);
        from = entries.first().map_or(from, |entry| entry.at.start);
        drop(log);
        // Or only the process dies, and what was written without being synced is still there,
        // to be lost later.
        if random.u8(..3) > 0 {
            let image = device.crash(random.u64(..)).unwrap();
            device = Arc::new(FaultyDevice::with_crashes(image, seed + life));
        }
        device.heal();
        // Sometimes the power fails again while the log is being opened.
        for _ in 0..random.usize(..3) {
            device.fail_next_sync();
            assert!(Log::open(device.clone(), ID, from, &options).is_err());
            if random.bool() {
                let image = device.crash(random.u64(..)).unwrap();
                device = Arc::new(FaultyDevice::with_crashes(image, seed));
            }
        }
        let known = entries.iter().filter(|entry| entry.at.end <= durable);
        let starts: Vec<Lsn> = known.map(|entry| entry.at.start).collect();
        let start = random.choice(starts).unwrap_or(from);
        let opened = Log::open(device.clone(), ID, start, &options);
        let (again, tail) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        log = again;
        if let Some(cut) = tail.cut {
            assert!(cut.until >= tail.end);
            add(&seen.cut, 1);
            add(&seen.cut_records, cut.records);
        }
        survived(&log, from, &mut entries, durable, seen);
    }
}

#[test]
fn what_was_acknowledged_survives_every_crash_and_the_rest_is_a_prefix() {
    let seen = Seen::default();
    // Eight crashes each, and those while opening.
    (0..rounds(60, 600)).for_each(|seed| lives(seed, &seen));
    for (name, counter) in [
        ("records kept without having been acknowledged", &seen.kept),
        ("records lost", &seen.lost),
        ("ends cut", &seen.cut),
        ("whole records cut off", &seen.cut_records),
        ("segments recycled", &seen.recycled),
    ] {
        let count = counter.load(Ordering::Relaxed);
        assert!(count > rounds(10, 100), "{name}: {count}");
    }
}

/// With records that fill a block.
fn blocks() -> LogOptions {
    LogOptions { buffer_bytes: 32 << 10, ..tiny() }
}

/// A life ends with whole records behind a hole. The next one's records are as long as those that
/// were lost, and end just where the old ones begin: these must not come back.
#[test]
fn records_behind_a_hole_do_not_come_back_when_new_ones_fill_it() {
    let put = |log: &Log, byte: u8| {
        // A block each.
        log.append(&Record { kind: byte, tx: 0, prev: Lsn(0), parts: &[&[byte; 4080]] })
    };
    let memory = Arc::new(MemoryDevice::new());
    let device = Arc::new(FaultyDevice::new(memory.clone(), 1));
    let log = Log::create(device.clone(), ID, Lsn(0), &blocks()).unwrap();
    let first = put(&log, 1);
    log.wait_durable(first.end).unwrap();
    let [hole, last] = [2, 3].map(|byte| put(&log, byte));
    device.fail_next_sync();
    assert!(log.wait_durable(last.end).is_err());
    drop(log);
    // Of the first block of the flush nothing landed.
    memory.write(8192 + hole.start.0, &[0; 4096]).unwrap_or_default();
    let (log, tail) = Log::open(memory.clone(), ID, first.start, &blocks()).unwrap();
    assert_eq!(tail.end, first.end);
    let cut = tail.cut.unwrap();
    assert_eq!((cut.records, cut.until), (1, last.end));
    let anew = put(&log, 5);
    assert_eq!((anew.start, anew.end), (hole.start, hole.end));
    log.close().unwrap();
    drop(log);
    let (log, tail) = Log::open(memory, ID, first.start, &blocks()).unwrap();
    assert_eq!((tail.end, tail.cut), (anew.end, None));
    let kinds: Vec<u8> = read(&log, Lsn(4096)).iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [1, 5]);
}

/// Appends a record that fills a block and ends with zeros, as images of pages often do.
fn append_block(log: &Log, random: &mut fastrand::Rng) -> Entry {
    let mut body = vec![0; 4064];
    let count = random.usize(1..40);
    body[..count].iter_mut().for_each(|byte| *byte = random.u8(..));
    // With a transaction of nine bytes and what it is chained to, 25 bytes of header.
    let (kind, tx, prev) = (1, random.u64(1 << 56..1 << 63), Lsn(random.u64(1..=512) * 8));
    let at = log.append(&Record { kind, tx, prev, parts: &[&body] });
    Entry { at, kind, tx, prev, body }
}

#[test]
fn no_record_of_an_earlier_life_comes_back_behind_new_ones_of_the_same_length() {
    let seen = Seen::default();
    for seed in 0..rounds(60, 400) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut supply = PowerSupply::new();
        let mut device = supply.device("log", MemoryDevice::new());
        let mut log = Log::create(device.clone(), ID, Lsn(0), &blocks()).unwrap();
        let mut entries: Vec<Entry> = Vec::new();
        let mut from = Lsn(4096);
        for _ in 0..8 {
            supply.cut_at(random.u64(1..12));
            while !supply.is_off() && entries.len() < 40 {
                entries.extend((0..random.usize(1..5)).map(|_| append_block(&log, &mut random)));
                if log.wait_durable(log.tail()).is_ok() && random.u8(..4) == 0 {
                    // Slots are used again.
                    let keep = random.usize(..entries.len());
                    entries.drain(..keep);
                    log.forget_before(entries[0].at.start);
                }
            }
            let durable = log.durable();
            drop(log);
            let (next, devices) = supply.images(random.u64(..));
            (supply, device) = (next, devices[0].clone());
            from = entries.first().map_or(from, |entry| entry.at.start);
            log = Log::open(device.clone(), ID, from, &blocks()).unwrap().0;
            survived(&log, from, &mut entries, durable, &seen);
        }
    }
    let (lost, kept) = (seen.lost.load(Ordering::Relaxed), seen.kept.load(Ordering::Relaxed));
    assert!(lost > rounds(150, 1000) && kept > rounds(15, 100), "{lost} {kept}");
}
