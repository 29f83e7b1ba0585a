//! A store in memory whose storage is the engine's log and nothing else: what the log promises,
//! without anything above it.
//!
//! A commit is a record, or several if one does not hold it. A checkpoint writes the whole state,
//! and notes its beginning in one of two sectors of the data file. It releases everything before
//! that, so that segments are recycled.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use millpond::internals::log::{Log, LogOptions, Record};
use millpond_base::Lsn;
use millpond_device::{Device, FaultyDevice};

use crate::draft::{Draft, Keeper};
use crate::oracle::{Change, State, Tree};
use crate::plan::Start;
use crate::subject::{Answer, Devices, Durability, Failure, Store, Subject, Transaction};
use crate::toy::{decode, encode};

const UUID: [u8; 16] = [3; 16];
const SECTOR: u64 = 512;

/// Bytes of a number in the log.
fn varint(value: usize) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Bytes of a record of transaction `tx`, chained to none, with `body` bytes of body.
fn record_bytes(tx: u64, body: usize) -> usize {
    (10 + varint(body) + varint(tx as usize) + body).next_multiple_of(8)
}

/// Kinds of records: of a commit and of a checkpoint, each with the kind of its last record.
const COMMIT: (u8, u8) = (1, 2);
const CHECKPOINT: (u8, u8) = (3, 4);

pub struct OverLog;

struct LogStore {
    log: Log,
    data: Arc<FaultyDevice>,
    inner: Mutex<Inner>,
    grain: usize,
}

#[derive(Default)]
struct Inner {
    state: State,
    /// Of commits and checkpoints.
    serial: u64,
}

impl Subject for OverLog {
    fn open(&self, devices: &Devices, start: &Start) -> Answer<Box<dyn Store>> {
        let data = devices.data.clone();
        let interval = if start.is_quiet { Duration::ZERO } else { Duration::from_millis(2) };
        // What there is to go wrong is at the ends of segments: most are short.
        let shortest = 16 << 10;
        let options = LogOptions {
            segment_bytes: if start.seed.is_multiple_of(8) {
                start.segment_bytes
            } else {
                shortest
            },
            buffer_bytes: start.buffer_bytes,
            flush_interval: interval,
        };
        if data.length() == 0 {
            let log =
                Log::create(devices.log.clone(), UUID, Lsn(0), &options).map_err(Failure::new)?;
            data.grow(2 * SECTOR).map_err(Failure::new)?;
            let (inner, grain) = (Mutex::default(), start.grain);
            let store = LogStore { log, data, inner, grain };
            store.checkpoint()?;
            return Ok(Box::new(store));
        }
        let (serial, begin) = noted(&data)?;
        let opened = Log::open(devices.log.clone(), UUID, begin, &options);
        let (log, _) = opened.map_err(Failure::new)?;
        let inner = Mutex::new(read(&log, serial, begin)?);
        Ok(Box::new(LogStore { log, data, inner, grain: start.grain }))
    }

    fn check(&self, devices: &Devices) -> Answer<()> {
        noted(&devices.data).map(drop)
    }
}

fn sum_of(bytes: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish().to_le_bytes()
}

/// The last checkpoint: its serial, and where it begins.
fn noted(data: &FaultyDevice) -> Answer<(u64, Lsn)> {
    let mut latest = None;
    for place in 0..2 {
        let mut bytes = [0; 24];
        data.read(place * SECTOR, &mut bytes).map_err(Failure::new)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[16..] == sum_of(&bytes[..16]) {
            latest = latest.max(Some((word(0), Lsn(word(8)))));
        }
    }
    latest.ok_or_else(|| Failure::new("no checkpoint is noted"))
}

/// Everything from the checkpoint at `begin` to the end of the log.
fn read(log: &Log, serial: u64, begin: Lsn) -> Answer<Inner> {
    let mut inner = Inner { state: State::new(), serial };
    let (mut of, mut body) = (0, Vec::new());
    let mut is_first = true;
    let mut reader = log.reader(begin);
    while let Some((_, header, part)) = reader.next_record().map_err(Failure::new)? {
        // Of what was under way in a crash, only the first records may be there.
        if header.tx != of {
            (of, body) = (header.tx, Vec::new());
        }
        if is_first && (header.tx, header.kind / 3) != (serial, 1) {
            return Err(Failure::new("no checkpoint lies where one is noted"));
        }
        is_first = false;
        inner.serial = inner.serial.max(header.tx);
        body.extend_from_slice(part);
        if header.kind == COMMIT.1 || header.kind == CHECKPOINT.1 {
            if header.kind == CHECKPOINT.1 {
                inner.state.clear();
            }
            decode(&body).iter().for_each(|change| change.apply(&mut inner.state));
        }
    }
    if is_first {
        return Err(Failure::new("the log is empty behind its checkpoint"));
    }
    Ok(inner)
}

/// Returns the changes that build `state` from nothing.
fn changes_to(state: &State) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, tree) in state {
        changes.push(Change::Create { tree: name.clone() });
        for (key, value) in tree {
            let (tree, key, value) = (name.clone(), key.clone(), value.clone());
            changes.push(Change::Put { tree, key, value });
        }
    }
    changes
}

impl LogStore {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Appends changes; where their records begin and end.
    fn append(&self, inner: &mut Inner, changes: &[Change], kinds: (u8, u8)) -> (Lsn, Lsn) {
        inner.serial += 1;
        let mut body = encode(changes);
        let max = self.log.record_max();
        // The reader knows how much there is.
        let bytes = |body: &[u8]| record_bytes(inner.serial, body.len() % max);
        if !body.len().is_multiple_of(max) && bytes(&body) + self.grain <= max {
            while !bytes(&body).is_multiple_of(self.grain) {
                body.push(0);
            }
        }
        let mut parts = body.chunks(max).peekable();
        let (mut begin, mut end) = (None, Lsn(0));
        while let Some(part) = parts.next() {
            let kind = if parts.peek().is_some() { kinds.0 } else { kinds.1 };
            let record = Record { kind, tx: inner.serial, prev: Lsn(0), parts: &[part] };
            let at = self.log.append(&record);
            begin.get_or_insert(at.start);
            end = at.end;
        }
        (begin.unwrap_or(end), end)
    }
}

impl Keeper for LogStore {
    fn tree(&self, tree: &str) -> Tree {
        self.inner().state.get(tree).cloned().unwrap_or_default()
    }

    fn commit(&self, changes: &[Change], durability: Durability) -> Answer<()> {
        let mut inner = self.inner();
        let (_, end) = self.append(&mut inner, changes, COMMIT);
        changes.iter().for_each(|change| change.apply(&mut inner.state));
        drop(inner);
        let waited = match durability {
            Durability::Sync => self.log.wait_durable(end),
            Durability::Group => self.log.wait_group(end, Duration::from_millis(1)),
            Durability::Async | Durability::Bulk => Ok(()),
        };
        waited.map_err(Failure::new)
    }
}

impl Store for LogStore {
    fn create_tree(&self, tree: &str) -> Answer<()> {
        self.commit(&[Change::Create { tree: tree.to_string() }], Durability::Async)
    }

    fn drop_tree(&self, tree: &str) -> Answer<()> {
        self.commit(&[Change::Drop { tree: tree.to_string() }], Durability::Async)
    }

    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool> {
        let mut transaction = self.begin(Durability::Async, false)?;
        let was_there = transaction.put(tree, key, value)?;
        transaction.commit().map(|()| was_there)
    }

    fn delete(&self, tree: &str, key: &[u8]) -> Answer<bool> {
        let mut transaction = self.begin(Durability::Async, false)?;
        let was_there = transaction.delete(tree, key)?;
        transaction.commit().map(|()| was_there)
    }

    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        self.begin(Durability::Async, false)?.get(tree, key)
    }

    fn begin(&self, durability: Durability, _: bool) -> Answer<Box<dyn Transaction + '_>> {
        Ok(Box::new(Draft::new(self, durability)))
    }

    fn checkpoint(&self) -> Answer<()> {
        let mut inner = self.inner();
        let changes = changes_to(&inner.state);
        let (begin, end) = self.append(&mut inner, &changes, CHECKPOINT);
        self.log.wait_durable(end).map_err(Failure::new)?;
        let mut note = [inner.serial, begin.0].map(u64::to_le_bytes).concat();
        note.extend(sum_of(&note));
        note.resize(SECTOR as usize, 0);
        let noted = self.data.write(inner.serial % 2 * SECTOR, &note);
        noted.and_then(|()| self.data.sync()).map_err(Failure::new)?;
        self.log.forget_before(begin);
        Ok(())
    }

    fn flush(&self) -> Answer<()> {
        self.log.wait_durable(self.log.tail()).map_err(Failure::new)
    }

    fn contents(&self) -> Answer<State> {
        Ok(self.inner().state.clone())
    }

    fn close(self: Box<Self>) -> Answer<bool> {
        self.log.close().map(|()| true).map_err(Failure::new)
    }
}
