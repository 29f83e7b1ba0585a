//! The contract's check passes a store that keeps it, and finds each way of breaking it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use millpond_base::Seed;
use millpond_workload::live::{
    Breach, Direction, MemoryError, MemorySession, MemoryStore, Scan, Session, Store, TableId,
    check_contract,
};

/// The misbehaviour of a store of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    InsertReplaces,
    PutKeepsLength,
    UpdateCallsTwice,
    UpdateIsNotAtomic,
    RemoveAlwaysTrue,
    ScanIncludesNoStart,
    ScanDownStartsAbove,
    ScanGoesOn,
    LoadSkipsLast,
    CreatesAnew,
}

struct Faulty {
    inner: MemoryStore,
    fault: Fault,
    /// Reads of the counter by updates that are not atomic.
    reads: Arc<AtomicU32>,
}

struct FaultySession {
    inner: MemorySession,
    fault: Fault,
    reads: Arc<AtomicU32>,
}

impl Store for Faulty {
    type Error = MemoryError;
    type Session<'s> = FaultySession;

    fn create_table(&self, name: &str) -> Result<TableId, MemoryError> {
        match self.inner.table(name)? {
            Some(_) if self.fault == Fault::CreatesAnew => {
                self.inner.create_table(&format!("{name} again"))
            }
            _ => self.inner.create_table(name),
        }
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, MemoryError> {
        self.inner.table(name)
    }

    fn session(&self) -> Result<FaultySession, MemoryError> {
        let (inner, reads) = (self.inner.session()?, self.reads.clone());
        Ok(FaultySession { inner, fault: self.fault, reads })
    }
}

impl Session for FaultySession {
    type Error = MemoryError;

    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, MemoryError> {
        self.inner.get(table, key, read)
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, MemoryError> {
        let is_new = self.inner.insert(table, key, value)?;
        if self.fault == Fault::InsertReplaces && !is_new {
            self.inner.put(table, key, value)?;
        }
        Ok(is_new)
    }

    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), MemoryError> {
        if self.fault == Fault::PutKeepsLength {
            let done = self.inner.update(table, key, |old| {
                let len = old.len().min(value.len());
                old[..len].copy_from_slice(&value[..len]);
            })?;
            if done.is_some() {
                return Ok(());
            }
        }
        self.inner.put(table, key, value)
    }

    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, MemoryError> {
        match self.fault {
            Fault::UpdateCallsTwice => self.inner.update(table, key, |value| {
                change(&mut value.to_vec());
                change(value)
            }),
            Fault::UpdateIsNotAtomic => {
                let Some(mut value) = self.inner.get(table, key, <[u8]>::to_vec)? else {
                    return Ok(None);
                };
                let answer = change(&mut value);
                if key == b"counter" {
                    // Until the other thread has read it, too: one of the first two is lost.
                    self.reads.fetch_add(1, Ordering::SeqCst);
                    while self.reads.load(Ordering::SeqCst) < 2 {
                        std::thread::yield_now();
                    }
                }
                self.inner.put(table, key, &value)?;
                Ok(Some(answer))
            }
            _ => self.inner.update(table, key, change),
        }
    }

    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, MemoryError> {
        Ok(self.inner.remove(table, key)? || self.fault == Fault::RemoveAlwaysTrue)
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), MemoryError> {
        let (fault, start) = (self.fault, scan.start);
        let mut above = start.to_vec();
        above.push(u8::MAX);
        let is_down = scan.direction == Direction::Descending;
        let scan = match fault {
            Fault::ScanDownStartsAbove if is_down => Scan { start: &above, ..scan },
            _ => scan,
        };
        self.inner.scan(table, scan, |key, value| {
            if fault == Fault::ScanIncludesNoStart && key == start {
                return true;
            }
            visit(key, value) || fault == Fault::ScanGoesOn
        })
    }

    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, MemoryError> {
        if self.fault != Fault::LoadSkipsLast {
            return self.inner.load_sorted(table, next);
        }
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = Vec::new();
        while next(&mut key, &mut value) {
            rows.push((key.clone(), value.clone()));
        }
        let count = rows.len() as u64;
        rows.pop();
        for (key, value) in rows {
            self.inner.insert(table, &key, &value)?;
        }
        Ok(count)
    }
}

fn outcome(fault: Fault) -> Result<(), Breach<MemoryError>> {
    let reads = Arc::new(AtomicU32::new(0));
    check_contract(&Faulty { inner: MemoryStore::new(), fault, reads }, Seed(1), 3000)
}

#[test]
fn the_reference_store_keeps_the_contract() {
    check_contract(&MemoryStore::new(), Seed(1), 20_000).unwrap();
    outcome(Fault::None).unwrap();
}

#[test]
fn every_wrong_answer_is_found() {
    for (fault, operation) in [
        (Fault::CreatesAnew, "create_table"),
        (Fault::PutKeepsLength, "put"),
        (Fault::UpdateCallsTwice, "update"),
        (Fault::RemoveAlwaysTrue, "remove"),
        (Fault::ScanGoesOn, "scan"),
        (Fault::ScanDownStartsAbove, "scan downwards"),
        (Fault::ScanIncludesNoStart, "scan"),
        (Fault::LoadSkipsLast, "load_sorted"),
    ] {
        match outcome(fault) {
            Err(Breach::Answer { operation: found, .. }) => {
                assert!(found.starts_with(operation), "{fault:?} found by {found}");
            }
            other => panic!("{fault:?}: {other:?}"),
        }
    }
    assert!(matches!(outcome(Fault::InsertReplaces), Err(Breach::Answer { .. })));
}

#[test]
fn lost_updates_are_found() {
    match outcome(Fault::UpdateIsNotAtomic) {
        Err(Breach::Race { what: "counted updates", found, expected }) => {
            assert!(found < expected);
        }
        other => panic!("{other:?}"),
    }
}
