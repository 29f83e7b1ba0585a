//! A log with the largest segments.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::log::{Log, LogError, LogOptions};
use millpond_base::Lsn;
use millpond_base::rounds::rounds;
use millpond_device::{Device, FileDevice, FileOptions};

use super::support::{Entry, ID, append, check_at};

const GIB: u64 = 1 << 30;

/// The deep run goes on into the second segment, 1 GiB behind the first one's beginning.
#[test]
fn a_log_with_segments_of_one_gibibyte_is_opened_again_and_larger_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = FileOptions::default();
    let device = Arc::new(FileDevice::create(&folder.path().join("log"), &file).unwrap());
    let interval = Duration::ZERO;
    let options = |segment_bytes| LogOptions {
        segment_bytes,
        buffer_bytes: 4 << 20,
        flush_interval: interval,
    };
    let refused = Log::create(device.clone(), ID, Lsn(0), &options(GIB + 4096)).map(drop);
    assert!(
        matches!(refused, Err(LogError::BadOption { option: "segment_bytes", value, .. })
            if value == GIB + 4096),
        "{refused:?}"
    );
    let log = Log::create(device.clone(), ID, Lsn(0), &options(GIB)).unwrap();
    let mut random = fastrand::Rng::with_seed(45);
    let mut some: Vec<Entry> = Vec::new();
    let until = rounds(8 << 20, GIB + (8 << 20));
    let filler = vec![7; log.record_max()];
    while log.tail().0 < until {
        some.push(append(&log, &mut random, 100));
        if some.len() < 4 || until - log.tail().0.min(until) > 16 << 20 {
            log.append(&millpond::internals::log::Record {
                kind: 3,
                tx: 0,
                prev: Lsn(0),
                parts: &[&filler],
            });
        } else {
            some.push(append(&log, &mut random, 100_000));
        }
        log.wait_durable(log.tail()).unwrap();
    }
    let tail = log.tail();
    log.close().unwrap();
    assert!(device.length() > until, "the file has all of it");
    let first = Lsn(4096);
    let (log, found) = Log::open(device, ID, first, &options(GIB)).unwrap();
    assert_eq!((found.end, found.cut), (tail, None));
    some.iter().for_each(|entry| check_at(&log, entry));
    log.close().unwrap();
}
