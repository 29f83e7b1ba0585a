//! All slots of a small cache that writes back may be taken at once.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use millpond_base::Reason;
use millpond_device::{Alignment, Device, DeviceError, MemoryDevice, ReadRequest, WriteRequest};

use super::{PAGE, back_options, content, open_back, read, write};

const SLOTS: u64 = 20;

/// Holds the next read on request, and counts held reads.
#[derive(Default)]
struct Gate {
    holds_next: bool,
    held: usize,
    is_open: bool,
}

/// A device of which reads take as long as the test wants.
struct Gated {
    device: MemoryDevice,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Gated {
    fn new() -> Gated {
        let (gate, changed) = (Mutex::default(), Condvar::new());
        Gated { device: MemoryDevice::new(), gate, changed }
    }

    fn hold_next(&self) {
        self.gate.lock().unwrap().holds_next = true;
    }

    fn await_held(&self, held: usize) {
        let gate = self.gate.lock().unwrap();
        drop(self.changed.wait_while(gate, |gate| gate.held < held).unwrap());
    }

    fn open(&self) {
        self.gate.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut gate = self.gate.lock().unwrap();
        if std::mem::take(&mut gate.holds_next) {
            gate.held += 1;
            self.changed.notify_all();
            drop(self.changed.wait_while(gate, |gate| !gate.is_open).unwrap());
        }
    }
}

/// A test that fails ends, too.
struct OpenedAtLast<'g>(&'g Gated);

impl Drop for OpenedAtLast<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Device for Gated {
    fn path(&self) -> &Path {
        self.device.path()
    }

    fn length(&self) -> u64 {
        self.device.length()
    }

    fn alignment(&self) -> Alignment {
        self.device.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.pass();
        self.device.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(offset, bytes)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        self.pass();
        self.device.read_batch(requests);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        self.device.write_batch(requests);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.device.sync()
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.device.grow(length)
    }

    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.append(bytes)
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.device.shrink(length)
    }
}

/// A slot that is read is not free when its content is outdated. The first sector has no other
/// place than the cache: its write waits for a slot, and does not fail as if the disk was full.
#[test]
fn a_write_of_the_first_sector_waits_for_a_slot_that_is_read() {
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; (PAGE * (1 + SLOTS)) as usize]));
    let fast = Arc::new(Gated::new());
    let tier = open_back(below, fast.clone(), &back_options(SLOTS), "t2-lru").unwrap();
    let read_first = || {
        let mut bytes = vec![0; PAGE as usize];
        tier.read(0, &mut bytes).map(|()| bytes)
    };
    let write_first = |version| {
        tier.write(0, &content(0, version))?;
        tier.sync()
    };
    write_first(1).unwrap();
    for page in 1..=SLOTS / 2 {
        write(&tier, page, Reason::Replace, &content(page, 1)).unwrap();
    }
    std::thread::scope(|scope| {
        let at_last = OpenedAtLast(&fast);
        let mut readers = Vec::new();
        let mut version = 1;
        let waits = loop {
            fast.hold_next();
            readers.push((version, scope.spawn(read_first)));
            fast.await_held(readers.len());
            version += 1;
            assert!(version <= SLOTS + 2, "there is always a slot");
            let writer = scope.spawn(move || write_first(version));
            while !writer.is_finished() && !tier.awaits_slot() {
                std::thread::yield_now();
            }
            if !writer.is_finished() {
                break writer;
            }
            writer.join().unwrap().unwrap();
        };
        drop(at_last);
        waits.join().unwrap().unwrap();
        for (version, reader) in readers {
            assert_eq!(reader.join().unwrap().unwrap(), content(0, version));
        }
        assert_eq!(read_first().unwrap(), content(0, version));
    });
    let mut bytes = vec![0; PAGE as usize];
    for page in 1..=SLOTS / 2 {
        tier.read(page * PAGE, &mut bytes).unwrap();
        assert_eq!(bytes, content(page, 1));
    }
    tier.check().unwrap();
}

/// Evicted dirty copies are written to storage even while only reads come. Otherwise the pages
/// read would never find slots.
#[test]
fn pages_that_are_read_get_the_slots_of_those_that_were_written() {
    const PAGES: u64 = 100;
    const READ: u64 = 12;
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; (PAGE * PAGES) as usize]));
    let tier = open_back(below, Arc::new(MemoryDevice::new()), &back_options(SLOTS), "t2-lru");
    let tier = tier.unwrap();
    for page in 1..PAGES / 2 {
        write(&tier, page, Reason::Replace, &content(page, 1)).unwrap();
    }
    let mut bytes = vec![0; PAGE as usize];
    let mut served = Vec::new();
    for _ in 0..4 {
        let before = tier.counts().served;
        for page in PAGES - READ..PAGES {
            read(&tier, page, &mut bytes).unwrap();
            assert_eq!(bytes, [0; PAGE as usize]);
        }
        served.push(tier.counts().served - before);
    }
    assert_eq!(served.last(), Some(&READ), "all of them, in each round: {served:?}");
    for page in 1..PAGES / 2 {
        read(&tier, page, &mut bytes).unwrap();
        assert_eq!(bytes, content(page, 1));
    }
    tier.check().unwrap();
}
