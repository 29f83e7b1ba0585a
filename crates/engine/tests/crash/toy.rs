//! The simplest store that keeps the promises, and ways of breaking them: the campaign must find
//! each. Everything is in memory; every commit is a record behind the last one, and opening reads
//! them all.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use millpond_device::{Device, FaultyDevice};

use crate::draft::{Draft, Keeper};
use crate::oracle::{Change, State, Tree};
use crate::plan::Start;
use crate::subject::{Answer, Devices, Durability, Failure, Store, Subject, Transaction};

/// A bug of the toy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    None,
    /// A durable commit is not synced.
    NoSync,
    /// A commit that need not be durable is written after the next one.
    Hole,
    /// Every change is a record for itself.
    Half,
    /// Aborted changes are written, too.
    Resurrected,
    /// Changes that were rolled back to a savepoint are written, too.
    ForgottenRollback,
    /// A tree that was dropped is there again.
    DropNotLogged,
    /// Opening takes the first record away for a moment.
    RecoveryInPlace,
    /// A transaction does not see its own writes.
    StaleRead,
    /// A write that failed is taken for done.
    ErrorIgnored,
    /// After a sync that failed, another one counts.
    SyncRetried,
    /// Records are taken for whole without looking.
    TornRecord,
}

/// All bugs.
pub const BUGS: [Bug; 11] = [
    Bug::NoSync,
    Bug::Hole,
    Bug::Half,
    Bug::Resurrected,
    Bug::ForgottenRollback,
    Bug::DropNotLogged,
    Bug::RecoveryInPlace,
    Bug::StaleRead,
    Bug::ErrorIgnored,
    Bug::SyncRetried,
    Bug::TornRecord,
];

pub struct Toy(pub Bug);

/// Length and sum.
const HEADER: usize = 12;

struct Inner {
    state: State,
    end: u64,
    /// Sum of the last record; part of the next one's.
    chain: u64,
    held: Option<Vec<u8>>,
    is_broken: bool,
}

struct ToyStore {
    log: Arc<FaultyDevice>,
    inner: Mutex<Inner>,
    bug: Bug,
}

impl Subject for Toy {
    /// Returns `false`: the toy takes everything that it reads for durable.
    fn may_die(&self) -> bool {
        false
    }

    fn open(&self, devices: &Devices, start: &Start) -> Answer<Box<dyn Store>> {
        let log = devices.log.clone();
        let mut bytes = vec![0; log.length() as usize];
        log.read(0, &mut bytes).map_err(Failure::new)?;
        let mut inner =
            Inner { state: State::new(), end: 0, chain: 0, held: None, is_broken: false };
        while let Some((body, chain)) = record(&bytes[inner.end as usize..], inner.chain, self.0) {
            decode(&body).iter().for_each(|change| change.apply(&mut inner.state));
            inner.chain = chain;
            inner.end += (HEADER + body.len()) as u64;
        }
        if self.0 == Bug::RecoveryInPlace && bytes.len() > 512 {
            log.write(0, &[0; 512]).and_then(|()| log.sync()).map_err(Failure::new)?;
            log.write(0, &bytes[..512]).map_err(Failure::new)?;
        }
        let store = ToyStore { log, inner: Mutex::new(inner), bug: self.0 };
        // Nothing that still lies behind the end may ever follow what is written now.
        let mark = Change::Delete { tree: String::new(), key: start.seed.to_le_bytes().to_vec() };
        store.append(&mut store.inner(), encode(&[mark]), true)?;
        Ok(Box::new(store))
    }

    fn check(&self, devices: &Devices) -> Answer<()> {
        devices.log.read(0, &mut [0; HEADER]).map_err(Failure::new)
    }
}

impl ToyStore {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn append(&self, inner: &mut Inner, body: Vec<u8>, sync: bool) -> Answer<()> {
        if inner.is_broken {
            return Err(Failure::new("broken"));
        }
        if self.bug == Bug::Hole && !sync && inner.held.is_none() {
            inner.held = Some(body);
            return Ok(());
        }
        let held = inner.held.take();
        for body in [Some(body), held].into_iter().flatten() {
            let done = self.write(inner, &body);
            inner.is_broken |= done.is_err() && self.bug != Bug::ErrorIgnored;
            if self.bug != Bug::ErrorIgnored {
                done?;
            }
        }
        if sync && self.bug != Bug::NoSync { self.sync(inner) } else { Ok(()) }
    }

    fn sync(&self, inner: &mut Inner) -> Answer<()> {
        if inner.is_broken && self.bug != Bug::SyncRetried {
            return Err(Failure::new("broken"));
        }
        let done = self.log.sync().map_err(Failure::new);
        inner.is_broken |= done.is_err();
        done
    }

    fn write(&self, inner: &mut Inner, body: &[u8]) -> Answer<()> {
        let sum = sum_of(inner.chain, body);
        let mut record = (body.len() as u32).to_le_bytes().to_vec();
        record.extend(sum.to_le_bytes());
        record.extend(body);
        let end = inner.end + record.len() as u64;
        if end > self.log.length() {
            self.log.grow(end.next_multiple_of(64 << 10)).map_err(Failure::new)?;
        }
        self.log.write(inner.end, &record).map_err(Failure::new)?;
        (inner.end, inner.chain) = (end, sum);
        Ok(())
    }

    fn commit_as(&self, changes: &[Change], is_durable: bool) -> Answer<()> {
        let mut inner = self.inner();
        if self.bug == Bug::Half {
            for change in changes {
                self.append(&mut inner, encode(std::slice::from_ref(change)), false)?;
            }
            if is_durable {
                self.sync(&mut inner)?;
            }
        } else {
            self.append(&mut inner, encode(changes), is_durable)?;
        }
        changes.iter().for_each(|change| change.apply(&mut inner.state));
        Ok(())
    }
}

fn sum_of(chain: u64, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(chain);
    hasher.write(body);
    hasher.finish()
}

/// The record at the beginning of `bytes` and its sum, if it is whole and follows `chain`.
fn record(bytes: &[u8], chain: u64, bug: Bug) -> Option<(Vec<u8>, u64)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let body = rest.get(..length).filter(|body| !body.is_empty())?;
    let sum = u64::from_le_bytes(*sum);
    let is_whole = sum == sum_of(chain, body) || bug == Bug::TornRecord;
    is_whole.then(|| (body.to_vec(), sum))
}

pub fn encode(changes: &[Change]) -> Vec<u8> {
    let mut body = (changes.len() as u32).to_le_bytes().to_vec();
    let mut part = |bytes: &[u8]| {
        body.extend((bytes.len() as u32).to_le_bytes());
        body.extend(bytes);
    };
    for change in changes {
        let (kind, tree, key, value): (u8, _, &[u8], &[u8]) = match change {
            Change::Put { tree, key, value } => (0, tree, key, value),
            Change::Delete { tree, key } => (1, tree, key, &[]),
            Change::Create { tree } => (2, tree, &[], &[]),
            Change::Drop { tree } => (3, tree, &[], &[]),
            other => unreachable!("nobody asks it for {other:?}"),
        };
        [&[kind], tree.as_bytes(), key, value].into_iter().for_each(&mut part);
    }
    body
}

/// The changes as far as they can be read: a torn one is read as it is.
pub fn decode(body: &[u8]) -> Vec<Change> {
    let Some((count, mut rest)) = body.split_first_chunk::<4>() else { return Vec::new() };
    let count = u32::from_le_bytes(*count);
    let mut part = || {
        let (length, bytes) = rest.split_first_chunk::<4>()?;
        let (part, after) = bytes.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some(part.to_vec())
    };
    let mut change = || {
        let (kind, tree, key, value) = (part()?, part()?, part()?, part()?);
        let tree = String::from_utf8(tree).ok()?;
        Some(match kind[..] {
            [0] => Change::Put { tree, key, value: value.into() },
            [1] => Change::Delete { tree, key },
            [2] => Change::Create { tree },
            _ => Change::Drop { tree },
        })
    };
    (0..count).map_while(|_| change()).collect()
}

impl Keeper for ToyStore {
    fn tree(&self, tree: &str) -> Tree {
        self.inner().state.get(tree).cloned().unwrap_or_default()
    }

    fn commit(&self, changes: &[Change], durability: Durability) -> Answer<()> {
        self.commit_as(changes, durability.is_durable())
    }

    fn bug(&self) -> Bug {
        self.bug
    }

    fn log_only(&self, changes: &[Change], sync: bool) -> Answer<()> {
        self.append(&mut self.inner(), encode(changes), sync)
    }
}

impl Store for ToyStore {
    fn create_tree(&self, tree: &str) -> Answer<()> {
        self.commit_as(&[Change::Create { tree: tree.to_string() }], false)
    }

    fn drop_tree(&self, tree: &str) -> Answer<()> {
        if self.bug == Bug::DropNotLogged {
            self.inner().state.remove(tree);
            return Ok(());
        }
        self.commit_as(&[Change::Drop { tree: tree.to_string() }], false)
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
        self.flush()
    }

    fn flush(&self) -> Answer<()> {
        self.sync(&mut self.inner())
    }

    fn contents(&self) -> Answer<State> {
        Ok(self.inner().state.clone())
    }

    fn close(self: Box<Self>) -> Answer<bool> {
        let inner = &mut self.inner();
        match inner.held.take() {
            Some(body) => self.append(inner, body, true)?,
            None => self.sync(inner)?,
        }
        Ok(true)
    }
}
