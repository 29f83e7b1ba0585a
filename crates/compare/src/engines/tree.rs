//! A session over Millpond's trees, on the pool and on the twin alike.

use std::ops::Bound;
use std::sync::{Mutex, OnceLock, PoisonError};

use millpond::btree::{BTree, BulkError, BulkOptions, Cursor, WriteError};
use millpond::pool::{Pages, PoolError};
use millpond_base::PageId;
use millpond_workload::live::{Direction, Extent, Scan, Session, TableId};

/// What went wrong in a tree.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Reading.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Writing.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Loading sorted rows.
    #[error(transparent)]
    Bulk(#[from] BulkError),
    /// The session does not know this table, or there are too many.
    #[error("no table has the number {}: was it created before the session?", table.0)]
    UnknownTable {
        /// The number.
        table: TableId,
    },
}

/// Tables that a store of a comparison can have.
const TABLES_MAX: usize = 64;

/// A table: its name and its tree.
pub(super) type Table<P> = (String, BTree<P>);

/// Trees by name. What is set stays where it is, so that sessions can borrow it.
pub(super) struct Tables<P: Pages> {
    tables: Box<[OnceLock<Table<P>>]>,
    /// Tables are made one at a time.
    making: Mutex<()>,
}

impl<P: Pages> Tables<P> {
    pub(super) fn new() -> Tables<P> {
        let tables = (0..TABLES_MAX).map(|_| OnceLock::new()).collect();
        Tables { tables, making: Mutex::default() }
    }

    fn made(&self) -> impl Iterator<Item = &Table<P>> {
        self.tables.iter().map_while(OnceLock::get)
    }

    /// The table called `name`, if there is one.
    pub(super) fn find(&self, name: &str) -> Option<TableId> {
        self.made().position(|table| table.0 == name).map(|at| TableId(at as u32))
    }

    /// The table called `name`; `make` makes its tree, with this owner, if there is none.
    pub(super) fn find_or(
        &self,
        name: &str,
        make: impl FnOnce(u32) -> Result<BTree<P>, TreeError>,
    ) -> Result<TableId, TreeError> {
        let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.find(name) {
            return Ok(found);
        }
        let at = self.made().count();
        let table = TableId(at as u32);
        let place = self.tables.get(at).ok_or(TreeError::UnknownTable { table })?;
        // Nobody else is here, so the place is free.
        let _ = place.set((name.to_string(), make(table.0 + 1)?));
        Ok(table)
    }

    /// A session that knows the tables that exist.
    pub(super) fn session(&self) -> TreeSession<'_, P> {
        TreeSession { tables: self.made().map(Open::of).collect() }
    }
}

/// A table as one thread uses it. Cursors stay, so that their memory is used again.
struct Open<'s, P: Pages> {
    tree: &'s BTree<P>,
    cursor: Option<Cursor<'s, P>>,
    /// For scans of the whole table, which the pool may treat as such.
    sweep: Option<Cursor<'s, P>>,
}

impl<'s, P: Pages> Open<'s, P> {
    fn of(table: &'s Table<P>) -> Open<'s, P> {
        Open { tree: &table.1, cursor: None, sweep: None }
    }
}

/// One thread's way to the trees.
pub struct TreeSession<'s, P: Pages> {
    tables: Vec<Open<'s, P>>,
}

impl<'s, P: Pages> TreeSession<'s, P> {
    #[inline(always)]
    fn at(&self, table: TableId) -> Result<&'s BTree<P>, TreeError> {
        match self.tables.get(table.0 as usize) {
            Some(open) => Ok(open.tree),
            None => Err(TreeError::UnknownTable { table }),
        }
    }
}

impl<P: Pages> Session for TreeSession<'_, P> {
    type Error = TreeError;

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, TreeError> {
        Ok(self.at(table)?.get(key, read)?)
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        Ok(self.at(table)?.insert(key, value)?)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        self.at(table)?.upsert(key, value)?;
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, TreeError> {
        Ok(self.at(table)?.update_in_place(key, change)?)
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, TreeError> {
        Ok(self.at(table)?.remove(key)?)
    }

    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TreeError> {
        let Some(open) = self.tables.get_mut(table.0 as usize) else {
            return Err(TreeError::UnknownTable { table });
        };
        let tree = open.tree;
        let cursor = match scan.extent {
            Extent::Rows(_) => open.cursor.get_or_insert_with(|| tree.cursor()),
            Extent::Whole => open.sweep.get_or_insert_with(|| tree.cursor().as_scan()),
        };
        match scan.direction {
            Direction::Ascending => {
                let mut more = cursor.seek(scan.start)?;
                while more && visit(cursor.key(), cursor.value()) {
                    more = cursor.next()?;
                }
            }
            Direction::Descending => {
                let mut more = cursor.seek_for_prev(scan.start)?;
                while more && visit(cursor.key(), cursor.value()) {
                    more = cursor.prev()?;
                }
            }
        }
        Ok(())
    }

    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, TreeError> {
        let rows = std::iter::from_fn(|| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            next(&mut key, &mut value).then_some((key, value))
        });
        Ok(self.at(table)?.bulk_load(rows, BulkOptions::default())?)
    }
}

/// Where a table is, in the tree that holds their names.
///
/// ```text
/// 0  owner, 4 bytes, little-endian
/// 4  page of the root, 8 bytes, little-endian
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) owner: u32,
    pub(super) root: PageId,
}

impl Entry {
    pub(super) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.owner.to_le_bytes());
        bytes[4..].copy_from_slice(&self.root.0.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Entry> {
        let (owner, root) = bytes.split_first_chunk::<4>()?;
        let root = PageId(u64::from_le_bytes(*root.first_chunk::<8>()?));
        Some(Entry { owner: u32::from_le_bytes(*owner), root })
    }
}

/// All tables that a tree of names holds.
pub(super) fn entries<P: Pages>(names: &BTree<P>) -> Result<Vec<(String, Entry)>, PoolError> {
    let mut found = Vec::new();
    names.scan(Bound::Unbounded, Bound::Unbounded, |key, value| {
        let name = String::from_utf8_lossy(key).into_owned();
        found.extend(Entry::read(value).map(|entry| (name, entry)));
        true
    })?;
    Ok(found)
}
