//! A log whose file ends inside a block: an editor, or a copy tool, appended some bytes.

use std::sync::Arc;
use std::time::Duration;

use millpond::internals::log::{Log, LogOptions};
use millpond_base::Lsn;
use millpond_device::{Device, MemoryDevice};

use super::support::ID;

const BLOCK: u64 = 4096;
const SEGMENT: u64 = 16 << 10;

#[test]
fn bytes_behind_the_end_of_a_log_never_become_the_header_of_a_slot() {
    let options = LogOptions {
        segment_bytes: SEGMENT,
        buffer_bytes: 64 << 10,
        flush_interval: Duration::ZERO,
    };
    let device = Arc::new(MemoryDevice::new());
    let slot = |number: u64| BLOCK + number * (BLOCK + SEGMENT);
    drop(Log::create(device.clone(), ID, Lsn(0), &options).unwrap());
    // Whole slots, and some bytes where the next one's header comes.
    device.grow(slot(2)).unwrap();
    device.grow(slot(2) + 51).unwrap();
    device.write(slot(2), &[0xee; 51]).unwrap();
    let (log, _) = Log::open(device.clone(), ID, Lsn(0), &options).unwrap();
    log.make_room(4 * SEGMENT).unwrap();
    assert!(device.length() >= slot(4), "the file has grown over the rest");
    assert!(device.length().is_multiple_of(BLOCK));
    let mut header = [0; 51];
    device.read(slot(2), &mut header).unwrap();
    assert_eq!(header, [0; 51]);
}
