//! The reference store: one `BTreeMap` behind a lock per table.
//!
//! It is what the drivers are tested on, and the simplest reading of the trait. Every operation
//! holds its table's lock, shared for reads and scans and exclusive for writes; so operations
//! are atomic, and nothing else is.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::store::{Direction, Scan, Session, Store, TableId};
use millpond_base::PastPoison;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table: its name and its rows.
#[derive(Debug)]
struct Table {
    name: String,
    rows: RwLock<Rows>,
}

impl Table {
    /// A panic in a visitor leaves the map whole, so a poisoned lock is as good as any.
    fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().past_poison()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Rows> {
        self.rows.write().past_poison()
    }
}

/// A store in memory, over the standard library's maps.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: RwLock<Vec<Arc<Table>>>,
}

/// Why an operation on a [`MemoryStore`] failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The session does not know this table.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

impl MemoryStore {
    /// A store without tables.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn find(tables: &[Arc<Table>], name: &str) -> Option<TableId> {
        tables.iter().position(|table| table.name == name).map(|at| TableId(at as u32))
    }
}

impl Store for MemoryStore {
    type Error = MemoryError;
    type Session<'s> = MemorySession;

    fn create_table(&self, name: &str) -> Result<TableId, MemoryError> {
        let mut tables = self.tables.write().past_poison();
        if let Some(found) = MemoryStore::find(&tables, name) {
            return Ok(found);
        }
        tables.push(Arc::new(Table { name: name.to_owned(), rows: RwLock::default() }));
        Ok(TableId(tables.len() as u32 - 1))
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, MemoryError> {
        let tables = self.tables.read().past_poison();
        Ok(MemoryStore::find(&tables, name))
    }

    fn session(&self) -> Result<MemorySession, MemoryError> {
        let tables = self.tables.read().past_poison();
        Ok(MemorySession { tables: tables.clone() })
    }
}

/// A thread's way into a [`MemoryStore`]; knows the tables that existed when it was made.
#[derive(Clone, Debug)]
pub struct MemorySession {
    tables: Vec<Arc<Table>>,
}

impl MemorySession {
    #[inline]
    fn at(&self, table: TableId) -> Result<&Table, MemoryError> {
        match self.tables.get(table.0 as usize) {
            Some(found) => Ok(found),
            None => Err(MemoryError::UnknownTable { table }),
        }
    }
}

impl Session for MemorySession {
    type Error = MemoryError;

    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, MemoryError> {
        Ok(self.at(table)?.read().get(key).map(|value| read(value)))
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, MemoryError> {
        let mut rows = self.at(table)?.write();
        if rows.contains_key(key) {
            return Ok(false);
        }
        rows.insert(key.to_vec(), value.to_vec());
        Ok(true)
    }

    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), MemoryError> {
        let mut rows = self.at(table)?.write();
        match rows.get_mut(key) {
            Some(old) => {
                old.clear();
                old.extend_from_slice(value);
            }
            None => {
                rows.insert(key.to_vec(), value.to_vec());
            }
        }
        Ok(())
    }

    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, MemoryError> {
        Ok(self.at(table)?.write().get_mut(key).map(|value| change(value)))
    }

    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, MemoryError> {
        Ok(self.at(table)?.write().remove(key).is_some())
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), MemoryError> {
        let rows = self.at(table)?.read();
        let start = Bound::Included(scan.start);
        match scan.direction {
            Direction::Ascending => {
                for (key, value) in rows.range::<[u8], _>((start, Bound::Unbounded)) {
                    if !visit(key, value) {
                        break;
                    }
                }
            }
            Direction::Descending => {
                for (key, value) in rows.range::<[u8], _>((Bound::Unbounded, start)).rev() {
                    if !visit(key, value) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (MemoryStore, TableId) {
        let store = MemoryStore::new();
        let table = store.create_table("t").unwrap();
        (store, table)
    }

    #[test]
    fn tables_are_found_by_name_and_created_once() {
        let (store, table) = store();
        assert_eq!(store.create_table("t").unwrap(), table);
        let other = store.create_table("u").unwrap();
        assert_ne!(other, table);
        assert_eq!(store.table("u").unwrap(), Some(other));
        assert_eq!(store.table("v").unwrap(), None);
    }

    #[test]
    fn a_table_that_a_session_does_not_know_is_an_error() {
        let (store, _) = store();
        let mut session = store.session().unwrap();
        let later = store.create_table("later").unwrap();
        let found = session.get(later, b"k", |_| ());
        assert_eq!(found, Err(MemoryError::UnknownTable { table: later }));
        assert_eq!(store.session().unwrap().get(later, b"k", |_| ()), Ok(None));
    }

    #[test]
    fn operations_do_what_their_contract_says() {
        let (store, t) = store();
        let mut session = store.session().unwrap();
        assert_eq!(session.insert(t, b"b", b"1"), Ok(true));
        assert_eq!(session.insert(t, b"b", b"2"), Ok(false));
        assert_eq!(session.get(t, b"b", |v| v.to_vec()), Ok(Some(b"1".to_vec())));
        session.put(t, b"b", b"three").unwrap();
        session.put(t, b"a", b"x").unwrap();
        let old = session.update(t, b"b", |v| std::mem::replace(&mut v[0], b'T'));
        assert_eq!(old, Ok(Some(b't')));
        assert_eq!(session.update(t, b"c", |_| ()), Ok(None));
        assert_eq!(session.get(t, b"b", |v| v.to_vec()), Ok(Some(b"Three".to_vec())));
        assert_eq!(session.remove(t, b"a"), Ok(true));
        assert_eq!(session.remove(t, b"a"), Ok(false));
    }

    #[test]
    fn scans_start_at_the_key_or_its_neighbour_and_go_both_ways() {
        let (store, t) = store();
        let mut session = store.session().unwrap();
        let mut left = [b"d", b"a", b"c"].into_iter();
        let loaded = session.load_sorted(t, |key, value| match left.next() {
            Some(next) => {
                key.clear();
                key.extend_from_slice(next);
                value.clear();
                true
            }
            None => false,
        });
        assert_eq!(loaded, Ok(3));
        let mut seen = |scan: Scan<'_>, limit: usize| {
            let mut keys = Vec::new();
            session
                .scan(t, scan, |key, _| {
                    keys.push(key[0]);
                    keys.len() < limit
                })
                .unwrap();
            keys
        };
        assert_eq!(seen(Scan::up(b"b", 9), 9), b"cd");
        assert_eq!(seen(Scan::up(b"c", 1), 1), b"c");
        assert_eq!(seen(Scan::down(b"b", 9), 9), b"a");
        assert_eq!(seen(Scan::down(b"d", 9), 2), b"dc");
        assert_eq!(seen(Scan::whole(), 9), b"acd");
    }
}
