//! Logs that no crash leaves: foreign ones, other versions, missing and rotten parts.

use std::sync::Arc;

use millpond::internals::log::{Log, LogError};
use millpond_base::Lsn;
use millpond_device::{Device, MemoryDevice};

use super::support::{Entry, ID, append, copy, fresh, length, read, tiny};

/// Bytes of a slot, header and segment.
const SLOT: u64 = 20 << 10;

/// Returns the offset of the byte at `lsn` in a log that never recycled a segment.
fn offset(lsn: u64) -> u64 {
    4096 + lsn / (16 << 10) * SLOT + 4096 + lsn % (16 << 10)
}

/// Some 60 KiB of records, flushed now and then and closed.
fn sample(seed: u64) -> (Arc<MemoryDevice>, Vec<Entry>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (device, log) = fresh(&tiny());
    let mut entries = Vec::new();
    while log.tail() < Lsn(60 << 10) {
        let length = length(&log, &mut random).min(1500);
        entries.push(append(&log, &mut random, length));
        if random.u8(..4) == 0 {
            log.wait_durable(log.tail()).unwrap();
        }
    }
    log.close().unwrap();
    (device, entries)
}

fn flip(device: &MemoryDevice, at: u64, mask: u8) {
    let mut byte = [0];
    device.read(at, &mut byte).unwrap();
    device.write(at, &[byte[0] ^ mask]).unwrap();
}

fn open(
    device: &Arc<MemoryDevice>,
    start: Lsn,
) -> Result<(Log, millpond::internals::log::Tail), LogError> {
    Log::open(device.clone(), ID, start, &tiny())
}

#[test]
fn a_damaged_middle_is_told_apart_from_a_torn_end() {
    let (sound, entries) = sample(1);
    let mut random = fastrand::Rng::with_seed(2);
    for round in 0..300 {
        let device = copy(&sound);
        // Behind the last ones nothing says that they had been durable.
        let victim = random.usize(..entries.len() * 3 / 4);
        let at = entries[victim].at;
        flip(&device, offset(random.u64(at.start.0..at.end.0)), 1 << random.u8(..8));
        let before = device.to_bytes();
        match open(&device, Lsn(4096)) {
            Err(LogError::Damaged { at: found, durable, .. }) => {
                assert_eq!(found, at.start, "round {round}");
                assert!(durable > at.start && durable <= entries.last().unwrap().at.end);
            }
            other => panic!("round {round}: {other:?}"),
        }
        assert!(device.to_bytes() == before, "nothing is changed");
        // What lies behind can be read all the same, with the end that is known.
        let behind = entries[victim + 1].at.start;
        let (log, tail) = open(&device, behind).unwrap();
        assert_eq!(tail.end, entries.last().unwrap().at.end);
        assert_eq!(read(&log, behind), entries[victim + 1..]);
    }
}

#[test]
fn a_record_read_on_its_own_proves_itself() {
    let (device, entries) = sample(3);
    let (log, _) = open(&device, Lsn(4096)).unwrap();
    let mut body = Vec::new();
    for entry in entries.iter().step_by(5) {
        let at = offset(entry.at.end.0 - 1);
        // The last byte is the body's or padding: both are covered.
        flip(&device, at, 16);
        let error = log.read_at(entry.at.start, &mut body).unwrap_err();
        assert!(matches!(error, LogError::NoRecord { .. }), "{error}");
        flip(&device, at, 16);
        log.read_at(entry.at.start, &mut body).unwrap();
        assert_eq!(body, entry.body);
    }
}

#[test]
fn logs_of_other_stores_and_versions_are_refused_by_name() {
    let (device, _) = sample(1);
    let refused = |device: &Arc<MemoryDevice>, id| {
        Log::open(device.clone(), id, Lsn(4096), &tiny()).unwrap_err()
    };
    let other = refused(&device, [9; 16]);
    assert!(matches!(other, LogError::OtherStore { .. }), "{other}");
    for version in [1, 2, 4] {
        let changed = copy(&device);
        changed.write(8, &[version]).unwrap();
        let error = refused(&changed, ID);
        let LogError::Version { found, known: 3, .. } = error else { panic!("{error}") };
        assert_eq!(found, u32::from(version));
    }
    for at in [0, 33, 41] {
        let damaged = copy(&device);
        flip(&damaged, at, 1);
        let error = refused(&damaged, [9; 16]);
        assert!(matches!(error, LogError::NotALog { .. }), "{error}");
    }
    for bytes in [vec![], vec![0; 100], vec![0; 4096], vec![7; 100_000]] {
        let error = refused(&Arc::new(MemoryDevice::from_bytes(&bytes)), ID);
        assert!(matches!(error, LogError::NotALog { .. }), "{error}");
    }
}

#[test]
fn a_damaged_first_block_is_written_again_from_what_the_slots_and_a_record_say() {
    for entries in [1, 4] {
        let (sound, entries) = sample(entries);
        let [mut first, mut again] = [vec![0; 4096], vec![0; 4096]];
        sound.read(0, &mut first).unwrap();
        for at in [0, 12, 16, 33, 41] {
            let device = copy(&sound);
            flip(&device, at, 1);
            let (log, tail) = Log::open(device.clone(), ID, Lsn(4096), &tiny()).unwrap();
            assert_eq!(tail.end, entries.last().unwrap().at.end, "byte {at}");
            log.close().unwrap();
            device.read(0, &mut again).unwrap();
            assert_eq!(first, again, "byte {at}");
        }
    }
}

#[test]
fn a_damaged_slot_header_is_an_error_where_its_segment_is_needed() {
    let (sound, entries) = sample(4);
    let last = entries.last().unwrap().at.end;
    for slot in 0..=last.0 / (16 << 10) {
        let device = copy(&sound);
        flip(&device, 4096 + slot * SLOT + 33, 4);
        let error = open(&device, Lsn(4096)).unwrap_err();
        match error {
            // The first: not even the beginning is there.
            LogError::DamagedSegment { offset, .. } => assert_eq!(offset, 4096 + slot * SLOT),
            LogError::Damaged { at, .. } => assert!(at.0 <= slot * (16 << 10)),
            _ => panic!("slot {slot}: {error}"),
        }
        // From a position behind it, the segment is not needed.
        let behind = entries.iter().find(|entry| entry.at.start.0 >= (slot + 1) * (16 << 10));
        if let Some(entry) = behind {
            let (_, tail) = open(&device, entry.at.start).unwrap();
            assert_eq!(tail.end, last);
        }
    }
}

#[test]
fn a_log_that_was_cut_short_is_missing_what_recovery_asks_for() {
    let (sound, entries) = sample(5);
    let bytes = sound.to_bytes();
    let last = entries.last().unwrap().at;
    for slots in 0..last.start.0 / (16 << 10) {
        let short = &bytes[..(4096 + slots * SLOT + 5000) as usize];
        let device = Arc::new(MemoryDevice::from_bytes(short));
        let error = open(&device, last.start).unwrap_err();
        assert!(matches!(error, LogError::Missing { .. }), "{error}");
        assert!(error.to_string().contains("cut short"), "{error}");
    }
    let error = open(&sound, Lsn(1 << 40)).unwrap_err();
    assert!(matches!(error, LogError::Missing { .. }), "{error}");
    let error = open(&sound, Lsn(4099)).unwrap_err();
    assert!(matches!(error, LogError::NoRecord { .. }), "{error}");
}

#[test]
fn what_a_recycled_segment_held_is_never_taken_for_a_record() {
    let mut random = fastrand::Rng::with_seed(6);
    let (device, log) = fresh(&tiny());
    let mut kept: Vec<Entry> = Vec::new();
    for round in 0..1200 {
        // Equal lengths: old records begin exactly where new ones end.
        kept.push(append(&log, &mut random, 96));
        if round % 5 == 0 {
            log.wait_durable(log.tail()).unwrap();
            let from = kept.len().saturating_sub(40);
            kept.drain(..from);
            log.forget_before(kept[0].at.start);
        }
        if round % 60 == 59 {
            let durable = log.durable();
            let expected: Vec<_> = kept.iter().filter(|e| e.at.end <= durable).cloned().collect();
            let (again, tail) = open(&copy(&device), expected[0].at.start).unwrap();
            assert_eq!((tail.end, tail.cut), (durable, None));
            assert_eq!(read(&again, expected[0].at.start), expected);
        }
    }
    assert!(log.counts().segments_recycled > 5);
}

#[test]
fn free_segments_at_the_end_of_the_file_are_given_back_and_come_again() {
    let mut random = fastrand::Rng::with_seed(12);
    let (device, log) = fresh(&tiny());
    let mut write_up_to = |log: &Log, end: u64| {
        let mut entries = Vec::new();
        while log.tail() < Lsn(end) {
            entries.push(append(log, &mut random, 1000));
            log.wait_durable(log.tail()).unwrap();
        }
        entries
    };
    write_up_to(&log, 400 << 10);
    let long = device.length();
    assert!(long > 400 << 10);
    log.forget_before(log.tail());
    // It is being filled, and is the last of the file: the log has to go on first.
    write_up_to(&log, 440 << 10);
    log.forget_before(log.tail());
    let given = log.give_back(50 << 10).unwrap();
    // As much as was asked for, one to be filled, one to go on in.
    assert_eq!(device.length(), 4096 + 6 * SLOT);
    assert!(given > 300 << 10, "{given}");
    assert_eq!(log.give_back(50 << 10), Ok(0));
    let from = log.tail();
    let entries = write_up_to(&log, 900 << 10);
    log.close().unwrap();
    let (log, tail) = open(&device, from).unwrap();
    assert_eq!(tail.end, entries.last().unwrap().at.end);
    assert_eq!(read(&log, from), entries);
}
