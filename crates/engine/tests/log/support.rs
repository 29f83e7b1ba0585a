//! Records that can be told apart, and logs to put them in.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use millpond::internals::log::{Appended, Log, LogOptions, Record};
use millpond_base::Lsn;
use millpond_device::{Alignment, Device, DeviceError, MemoryDevice};

pub const ID: [u8; 16] = *b"the store's name";

/// The smallest log there is, without a thread of its own.
pub fn tiny() -> LogOptions {
    LogOptions { segment_bytes: 16 << 10, buffer_bytes: 16 << 10, flush_interval: Duration::ZERO }
}

/// An appended record, to compare with the one that is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub at: Appended,
    pub kind: u8,
    pub tx: u64,
    pub prev: Lsn,
    pub body: Vec<u8>,
}

/// Appends a record whose body has `length` bytes drawn by `random`, in up to three pieces.
pub fn append(log: &Log, random: &mut fastrand::Rng, length: usize) -> Entry {
    let body: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    let prev = Lsn(random.u64(..=log.tail().0) / 8 * 8);
    let (kind, tx) = (random.u8(..=30), random.u64(..) >> random.u8(..64));
    let (a, b) = (random.usize(..=length), random.usize(..=length));
    let (a, b) = (a.min(b), a.max(b));
    let parts = [&body[..a], &body[a..b], &body[b..]];
    let at = log.append(&Record { kind, tx, prev, parts: &parts });
    Entry { at, kind, tx, prev, body }
}

/// Mostly short lengths, now and then the longest.
pub fn length(log: &Log, random: &mut fastrand::Rng) -> usize {
    match random.u8(..16) {
        0 => log.record_max(),
        1..4 => random.usize(..=log.record_max()),
        _ => random.usize(..300),
    }
}

/// Everything that `log` holds from `from` on.
pub fn read(log: &Log, from: Lsn) -> Vec<Entry> {
    let mut reader = log.reader(from);
    let mut entries = Vec::new();
    while let Some((start, header, body)) = reader.next_record().unwrap() {
        assert_eq!(start, header.start);
        let at = Appended { start, end: header.end };
        let (kind, tx, prev) = (header.kind, header.tx, header.prev);
        entries.push(Entry { at, kind, tx, prev, body: body.to_vec() });
    }
    assert_eq!(reader.position(), reader.end());
    entries
}

/// `entry` is what `read_at` finds.
pub fn check_at(log: &Log, entry: &Entry) {
    let mut body = vec![1, 2, 3];
    let header = log.read_at(entry.at.start, &mut body).unwrap();
    assert_eq!((header.start, header.end), (entry.at.start, entry.at.end));
    assert_eq!((header.kind, header.tx, header.prev), (entry.kind, entry.tx, entry.prev));
    assert_eq!(body, entry.body);
}

/// A log on fresh memory.
pub fn fresh(options: &LogOptions) -> (Arc<MemoryDevice>, Log) {
    let device = Arc::new(MemoryDevice::new());
    let log = Log::create(device.clone(), ID, Lsn(0), options).unwrap();
    (device, log)
}

/// A copy of what `device` holds now, as a process that dies leaves it.
pub fn copy(device: &MemoryDevice) -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::from_bytes(&device.to_bytes()))
}

/// Opens the log on `device` and expects that it can be.
pub fn open(device: Arc<dyn Device>, start: Lsn) -> (Log, millpond::internals::log::Tail) {
    Log::open(device, ID, start, &tiny()).unwrap()
}

/// Observations of [`Told`].
#[derive(Default)]
pub struct Seen {
    /// Contents of the device when the last finished sync began.
    pub synced: Vec<u8>,
    /// Calls of `grow` that failed.
    pub refused: u64,
}

/// A device that tells when it was synced, or was to grow.
pub struct Told {
    inner: Arc<dyn Device>,
    memory: Arc<MemoryDevice>,
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Told {
    /// Over `inner`, whose bytes are in `memory`.
    pub fn over(inner: Arc<dyn Device>, memory: Arc<MemoryDevice>) -> Arc<Told> {
        Arc::new(Told { inner, memory, seen: Mutex::default(), changed: Condvar::new() })
    }

    /// Waits until it has seen something.
    pub fn await_that(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let (seen, most) = (self.seen.lock().unwrap(), Duration::from_secs(30));
        let (_seen, waited) =
            self.changed.wait_timeout_while(seen, most, |seen| !is_so(seen)).unwrap();
        assert!(!waited.timed_out(), "{what}");
    }

    fn tell(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }
}

impl Device for Told {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn length(&self) -> u64 {
        self.inner.length()
    }
    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner.write(offset, bytes)
    }
    fn sync(&self) -> Result<(), DeviceError> {
        let bytes = self.memory.to_bytes();
        self.inner.sync()?;
        self.tell(|seen| seen.synced = bytes);
        Ok(())
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        let done = self.inner.grow(length);
        self.tell(|seen| seen.refused += u64::from(done.is_err()));
        done
    }
}
