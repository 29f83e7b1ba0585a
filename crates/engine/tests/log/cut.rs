//! A log that is cut off where it is damaged: it ends there, and what lay behind never comes back.

use std::sync::Arc;

use millpond::internals::log::{Log, LogError, Record};
use millpond_base::Lsn;
use millpond_base::rounds::rounds;
use millpond_device::{FaultyDevice, MemoryDevice, PowerSupply};

use super::support::{ID, copy, fresh, open, tiny};

const SEGMENT: u64 = 16 << 10;
const SLOT: u64 = SEGMENT + 4096;
/// Bytes of a record: blocks and segments end where records do.
const RECORD: u64 = 128;

/// Returns the offset of the byte at `lsn` in a log that never recycled a segment.
fn offset(lsn: u64) -> u64 {
    4096 + lsn / SEGMENT * SLOT + 4096 + lsn % SEGMENT
}

fn append(log: &Log, tx: u64) -> Lsn {
    let body = [tx as u8; RECORD as usize - 16];
    let at = log.append(&Record { kind: 4, tx, prev: Lsn(0), parts: &[&body] });
    log.wait_durable(at.end).unwrap();
    at.end
}

/// Records of transactions 0 to `count`, each of them durable by the time of the next.
fn sample(count: u64) -> Arc<MemoryDevice> {
    let (device, log) = fresh(&tiny());
    for tx in 0..count {
        append(&log, tx);
    }
    log.close().unwrap();
    device
}

fn txs(log: &Log) -> Vec<u64> {
    let mut reader = log.reader(Lsn(4096));
    let mut found = Vec::new();
    while let Some((_, header, _)) = reader.next_record().unwrap() {
        found.push(header.tx);
    }
    found
}

/// Returns damages of the log at the record `victim`, each an offset and the bytes written there.
fn damages(victim: u64) -> Vec<(u64, Vec<u8>)> {
    let lsn = 4096 + victim * RECORD;
    let (at, header) = (offset(lsn), offset(lsn - lsn % SEGMENT) - 4096);
    vec![(at + 50, vec![0xff]), (at, vec![0; 512]), (header, vec![0; 64]), (header + 33, vec![9])]
}

#[test]
fn a_survey_tells_where_the_hole_is_and_what_is_behind() {
    let sound = sample(500);
    for (at, bytes) in damages(200) {
        let device = copy(&sound);
        device.write_at(at, &bytes);
        let before = device.to_bytes();
        let mut kinds = 0;
        let survey = Log::survey(device.clone(), ID, Lsn(4096), &mut |found| {
            kinds += u64::from(found.is_behind) * u64::from(found.header.kind);
        })
        .unwrap();
        assert_eq!(device.to_bytes(), before);
        let behind = survey.behind.unwrap();
        assert!(survey.end.0 <= 4096 + 200 * RECORD && survey.durable.unwrap() > survey.end);
        assert!(behind.first > survey.end && behind.until == Lsn(4096 + 500 * RECORD));
        assert!(behind.records >= 200 && kinds == 4 * behind.records);
        assert_eq!(behind.until.0 - behind.first.0, behind.records * RECORD);
    }
    let sound = Log::survey(sound, ID, Lsn(4096), &mut |_| {}).unwrap();
    assert_eq!((sound.end, sound.behind), (Lsn(4096 + 500 * RECORD), None));
}

#[test]
fn sectors_that_cannot_be_read_are_a_hole() {
    let device = Arc::new(FaultyDevice::new(copy(&sample(500)), 1));
    device.fail_reads_at(offset(4096 + 200 * RECORD));
    let error = Log::open(device.clone(), ID, Lsn(4096), &tiny()).unwrap_err();
    assert!(matches!(error, LogError::Read(_)), "{error}");
    let survey = Log::survey(device.clone(), ID, Lsn(4096), &mut |_| {}).unwrap();
    let end = (4096 + 200 * RECORD) / 4096 * 4096;
    assert_eq!(survey.end.0, end, "a block is read or not");
    assert!(survey.behind.unwrap().first.0 >= end + 4096);
    Log::cut(device.clone(), ID, survey.end).unwrap();
    device.heal();
    assert_eq!(txs(&open(device, Lsn(4096)).0).len() as u64, (end - 4096) / RECORD);
}

/// New records reach up to each old one in turn. All are of one length, so an old record that is
/// left follows the new ones as if it were one of them.
#[test]
fn nothing_from_behind_the_cut_comes_back() {
    let sound = sample(500);
    for (at, bytes) in damages(200) {
        let device = copy(&sound);
        device.write_at(at, &bytes);
        let end = Log::survey(device.clone(), ID, Lsn(4096), &mut |_| {}).unwrap().end;
        Log::cut(device.clone(), ID, end).unwrap();
        let left = (end.0 - 4096) / RECORD;
        let (log, tail) = open(device.clone(), Lsn(4096));
        assert_eq!((tail.end, tail.cut), (end, None));
        for new in 0..600 {
            append(&log, 1000 + new);
            if new % 7 == 0 {
                let expected: Vec<u64> = (0..left).chain(1000..=1000 + new).collect();
                assert_eq!(txs(&open(copy(&device), Lsn(4096)).0), expected, "damage at {at}");
            }
        }
    }
}

/// The power fails at each operation of a cut: the log is refused still, or ends at the cut, and
/// cutting once more succeeds. In none of these cases anything comes back.
#[test]
fn a_cut_may_end_at_any_operation() {
    let sound = sample(300);
    let (mut refused, mut whole) = (0, 0);
    for (at, bytes) in damages(100) {
        let damaged = copy(&sound);
        damaged.write_at(at, &bytes);
        let end = Log::survey(damaged.clone(), ID, Lsn(4096), &mut |_| {}).unwrap().end;
        let left: Vec<u64> = (0..(end.0 - 4096) / RECORD).collect();
        for nth in 1.. {
            let supply = PowerSupply::new();
            let device = supply.device("log", MemoryDevice::from_bytes(&damaged.to_bytes()));
            supply.cut_at(nth);
            if Log::cut(device, ID, end).is_ok() {
                assert!(nth > 5);
                break;
            }
            for seed in 0..6 {
                let (_supply, devices) = supply.images(seed);
                let device = devices[0].clone();
                match Log::open(device.clone(), ID, Lsn(4096), &tiny()) {
                    Ok(_) => whole += 1,
                    Err(LogError::Damaged { at, .. } | LogError::DamagedSegment { at, .. }) => {
                        assert_eq!(at, end);
                        Log::cut(device.clone(), ID, end).unwrap();
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
                let (log, _) = open(device.clone(), Lsn(4096));
                assert_eq!(txs(&log), left);
                for new in 0..400 {
                    append(&log, 1000 + new);
                    if new % rounds(97, 16) == 0 {
                        let after = Arc::new(device.crash(new).unwrap());
                        let expected: Vec<u64> =
                            left.iter().copied().chain(1000..=1000 + new).collect();
                        assert_eq!(txs(&open(after, Lsn(4096)).0), expected);
                    }
                }
            }
        }
    }
    assert!(refused > 20 && whole > 5, "{refused} {whole}");
}

trait WriteAt {
    fn write_at(&self, at: u64, bytes: &[u8]);
}

impl WriteAt for MemoryDevice {
    fn write_at(&self, at: u64, bytes: &[u8]) {
        millpond_device::Device::write(self, at, bytes).unwrap();
    }
}
