//! The length of a log's file: it begins small, grows with use, and is cut back when it is closed,
//! whenever the power fails.

use std::sync::Arc;

use millpond::internals::log::{Log, LogOptions};
use millpond_base::Lsn;
use millpond_device::{Device, FaultyDevice, MemoryDevice, PowerSupply};

use super::support::{Entry, ID, append, fresh, open, read, tiny};

/// A slot of [`tiny`] with its header.
const SLOT: u64 = 20 << 10;

#[test]
fn a_new_log_is_small_and_grows_by_half_of_its_length_and_then_by_segments() {
    let (device, log) = fresh(&LogOptions::default());
    assert!(device.length() <= 512 << 10, "{} bytes", device.length());
    let mut random = fastrand::Rng::with_seed(3);
    let mut entries = Vec::new();
    let mut steps = Vec::new();
    while log.tail() < Lsn(9 << 20) {
        let before = device.length();
        entries.push(append(&log, &mut random, 50_000));
        log.wait_durable(log.tail()).unwrap();
        if device.length() > before {
            steps.push((before, device.length() - before));
        }
    }
    for &(before, step) in &steps {
        // The background thread and the caller may both have found it short.
        let most = if before < 1 << 20 { before + (256 << 10) } else { 3 * ((4 << 20) + 4096) };
        assert!(step <= most, "{steps:?}");
    }
    assert!(device.length() < 18 << 20, "{} bytes", device.length());
    log.close().unwrap();
    let (log, tail) = Log::open(device, ID, Lsn(4096), &LogOptions::default()).unwrap();
    assert_eq!((tail.end, tail.cut), (entries.last().unwrap().at.end, None));
    assert_eq!(read(&log, Lsn(4096)), entries);
}

/// Appends until the tail is at `end`, and lets go of all but the last `keep` records.
fn fill(log: &Log, random: &mut fastrand::Rng, end: u64, keep: usize) -> Option<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    while log.tail() < Lsn(end) {
        entries.push(append(log, random, 700));
        log.wait_durable(log.tail()).ok()?;
    }
    let kept = entries.split_off(entries.len().saturating_sub(keep));
    log.forget_before(kept[0].at.start);
    Some(kept)
}

#[test]
fn a_closed_log_is_cut_back_to_what_is_kept() {
    let mut random = fastrand::Rng::with_seed(5);
    for (end, keep, most) in [(10 << 10, 3, SLOT), (300 << 10, 1, SLOT), (300 << 10, 30, 3 * SLOT)]
    {
        let (device, log) = fresh(&tiny());
        let mut kept = fill(&log, &mut random, end, keep).unwrap();
        let before = device.length();
        log.close().unwrap();
        assert_eq!(log.cut_back().unwrap(), before - device.length());
        drop(log);
        assert!(device.length() <= 4096 + most, "{} of {before} bytes", device.length());
        let from = kept[0].at.start;
        let (log, tail) = open(device.clone(), from);
        assert_eq!((tail.end, tail.cut), (kept.last().unwrap().at.end, None));
        // It goes on as any log does.
        while log.tail() < Lsn(end + (100 << 10)) {
            kept.push(append(&log, &mut random, 900));
        }
        log.close().unwrap();
        drop(log);
        let (log, _) = open(device, from);
        assert_eq!(read(&log, from), kept);
    }
}

/// Segments that two slots of the file name.
fn named_twice(device: &dyn Device) -> usize {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut at = 4096;
    while at + 4096 <= device.length() {
        let mut header = vec![0; 4096];
        device.read(at, &mut header).unwrap();
        if header[..8] == *b"MPONDSEG" {
            names.push(header[32..40].to_vec());
        }
        at += SLOT;
    }
    let all = names.len();
    names.sort();
    names.dedup();
    all - names.len()
}

/// A power failure at the `nth` operation of cutting a log back. Returns whether it came to that,
/// and how many segments had two names then.
fn fails(seed: u64, nth: u64) -> (bool, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let supply = PowerSupply::new();
    let device: Arc<FaultyDevice> = supply.device("log", MemoryDevice::new());
    let log = Log::create(device.clone(), ID, Lsn(0), &tiny()).unwrap();
    let end = random.u64(20 << 10..200 << 10);
    let keep = random.usize(1..40);
    let mut kept = fill(&log, &mut random, end, keep).unwrap();
    log.close().unwrap();
    supply.cut_at(nth);
    let _ = log.cut_back();
    let is_off = supply.is_off();
    drop(log);
    let mut twice = 0;
    let from = kept[0].at.start;
    let (mut supply, mut devices) = supply.images(random.u64(..));
    for life in 0..3 {
        twice += named_twice(&*devices[0]);
        let (log, tail) = open(devices[0].clone(), from);
        assert_eq!(tail.end, kept.last().unwrap().at.end, "seed {seed}, {nth}, life {life}");
        assert_eq!(read(&log, from), kept, "seed {seed}, {nth}, life {life}");
        for _ in 0..random.usize(1..60) {
            kept.push(append(&log, &mut random, 900));
        }
        log.wait_durable(log.tail()).unwrap();
        drop(log);
        (supply, devices) = supply.images(random.u64(..));
    }
    (is_off, twice)
}

#[test]
fn whenever_the_power_fails_while_a_log_is_cut_back_it_opens_with_all_its_records() {
    let (mut failures, mut twice) = (0, 0);
    for seed in 0..40 {
        for nth in 1..30 {
            let (has_failed, named) = fails(seed, nth);
            twice += named;
            if !has_failed {
                break;
            }
            failures += 1;
        }
    }
    assert!(failures > 200, "{failures}");
    assert!(twice > 10, "no segment had two slots: {twice}");
}
