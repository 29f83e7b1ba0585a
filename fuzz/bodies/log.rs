//! Body of the fuzz target of the log.
//!
//! The same function is run by `crates/engine/tests/log/arbitrary.rs` over bytes drawn by seed.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use millpond::internals::log::{Log, LogOptions, Record};
use millpond_base::Lsn;
use millpond_device::MemoryDevice;

const ID: [u8; 16] = [5; 16];
/// Records that are read of one log.
const ENOUGH: usize = 5000;

fn options() -> LogOptions {
    LogOptions { segment_bytes: 16 << 10, buffer_bytes: 16 << 10, flush_interval: Duration::ZERO }
}

/// A log of a few segments that went around once.
pub static LOG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = Arc::new(MemoryDevice::new());
    let log = Log::create(device.clone(), ID, Lsn(0), &options()).unwrap();
    let mut prev = Lsn(0);
    for i in 0..120usize {
        let body = vec![i as u8; i * 37 % 1400];
        prev = log.append(&Record { kind: i as u8 % 31, tx: 3, prev, parts: &[&body] }).start;
        if i % 7 == 0 {
            log.wait_durable(log.tail()).unwrap();
            log.forget_before(Lsn(log.durable().0.saturating_sub(40 << 10)));
        }
    }
    log.close().unwrap();
    device.to_bytes()
});

/// A damaged log, or anything behind the first block of a sound one, or anything at all, as the
/// first byte says. In a damaged one four bytes each say where, and what is there instead.
pub fn log(data: &[u8]) {
    let Some((&way, data)) = data.split_first() else { return };
    let mut bytes = LOG.clone();
    match way % 4 {
        0 => bytes = data.to_vec(),
        1 => {
            let count = data.len().min(bytes.len() - 4096);
            bytes[4096..4096 + count].copy_from_slice(&data[..count]);
        }
        _ => {
            for change in data.chunks_exact(4).take(64) {
                let at = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
                let at = at % bytes.len();
                bytes[at] = change[3];
            }
            if way % 4 == 3 {
                bytes.truncate(bytes.len() / 64 * usize::from(way / 4));
            }
        }
    }
    let device = Arc::new(MemoryDevice::from_bytes(&bytes));
    let number = data.iter().take(8).fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    for start in [number, number % (1 << 17) / 8 * 8, 0, 64 << 10, 80 << 10] {
        use_log(&device, Lsn(start));
    }
}

/// Opens at `start`; a log that opens can be read, can be appended to, and is found again.
fn use_log(device: &Arc<MemoryDevice>, start: Lsn) {
    let (log, tail) = match Log::open(device.clone(), ID, start, &options()) {
        Ok(opened) => opened,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(tail.end >= start && log.tail() == tail.end && log.durable() == tail.end);
    let mut body = Vec::new();
    for from in [start, log.oldest(), Lsn(4096)] {
        let mut reader = log.reader(from);
        let mut places = Vec::new();
        for _ in 0..ENOUGH {
            let Ok(Some((at, header, found))) = reader.next_record() else { break };
            assert!(header.end > at && found.len() == header.body_length());
            places.push(at);
        }
        for at in places.into_iter().step_by(9) {
            log.read_at(at, &mut body).unwrap();
        }
    }
    drop(log.read_at(Lsn(start.0.wrapping_add(8)), &mut body));
    let parts: [&[u8]; 2] = [&[7; 3000], &[8; 1000]];
    let added =
        [1, 2, 3, 4].map(|kind| log.append(&Record { kind, tx: 1, prev: start, parts: &parts }));
    log.close().unwrap();
    drop(log);
    let (log, again) = Log::open(device.clone(), ID, tail.end, &options()).unwrap();
    assert_eq!((again.end, again.cut), (added[3].end, None));
    assert_eq!(log.read_at(added[3].start, &mut body).unwrap().kind, 4);
    assert_eq!(body, parts.concat());
}
