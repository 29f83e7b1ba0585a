//! Adapter of Millpond's trees for the drivers of live runs.
//!
//! One type serves every memory: the in-memory twin and each compiled combination of the pool.
//! Between driver and tree there is only an index into a short array. Closures are passed through,
//! so the adapter adds no copy, no allocation and no virtual call.

use std::sync::{Arc, Mutex, OnceLock};

use millpond::Error;
use millpond::internals::btree::{BTree, BulkError, BulkOptions, Cursor, WriteError};
use millpond::internals::pool::{Pages, Pool, PoolError, PoolStrategy};
use millpond::internals::store::StoreTree;
use millpond_base::PageId;
use millpond_base::PastPoison;
use millpond_workload::live::{Direction, Extent, Scan, Session, Store, TableId};

/// Maximum number of tables.
pub const TABLES_MAX: usize = 64;
/// Leaves of a step of [`TreeStore::compact`].
const COMPACTED: u32 = 1024;

/// Errors of an operation on a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeStoreError {
    /// The memory behind the trees failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A row could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Sorted rows could not be loaded.
    #[error(transparent)]
    Bulk(#[from] BulkError),
    /// The store that owns the trees failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The store has the maximum number of tables.
    #[error("a store of a run has at most {TABLES_MAX} tables, '{name}' would be one more")]
    TooManyTables {
        /// Name of the refused table.
        name: String,
    },
    /// The session does not know the table.
    #[error("there is no table {table}, or it was made after the session was opened")]
    NoTable {
        /// Number of the unknown table.
        table: u32,
    },
}

/// Owner of a tree: the tree itself, or a handle of a store's catalog.
pub trait HoldsTree<P: Pages>: Send + Sync {
    /// Returns the tree.
    fn tree(&self) -> &BTree<P>;
}

impl<P: Pages> HoldsTree<P> for BTree<P> {
    fn tree(&self) -> &BTree<P> {
        self
    }
}

impl<M: PoolStrategy> HoldsTree<Pool<M>> for StoreTree<M> {
    fn tree(&self) -> &BTree<Pool<M>> {
        self.btree()
    }
}

struct Table<P: Pages> {
    name: String,
    held: Box<dyn HoldsTree<P>>,
}

/// Named trees in one memory.
pub struct TreeStore<P: Pages> {
    pages: Arc<P>,
    /// Tables, filled from the front. Set entries never move, so that sessions can borrow them.
    tables: Box<[OnceLock<Table<P>>]>,
    making: Mutex<()>,
    /// `true` if scans of whole tables are marked as scans.
    scan_hints: bool,
}

impl<P: Pages> TreeStore<P> {
    /// Creates a store without tables.
    pub fn new(pages: Arc<P>) -> TreeStore<P> {
        let tables = (0..TABLES_MAX).map(|_| OnceLock::new()).collect();
        TreeStore { pages, tables, making: Mutex::new(()), scan_hints: false }
    }

    /// Marks scans of whole tables as scans.
    #[must_use]
    pub fn with_scan_hints(mut self, scan_hints: bool) -> TreeStore<P> {
        self.scan_hints = scan_hints;
        self
    }

    /// Opens the tables of an earlier store on the same pages, see [`TreeStore::roots`].
    ///
    /// # Errors
    /// No memory, or too many tables.
    pub fn open(pages: Arc<P>, roots: &[(String, PageId)]) -> Result<TreeStore<P>, TreeStoreError> {
        let store = TreeStore::new(pages);
        for (name, root) in roots {
            store.add(name, |pages, owner| BTree::open(pages, owner, *root))?;
        }
        Ok(store)
    }

    /// Returns the names of the tables and the root pages of their trees.
    pub fn roots(&self) -> Vec<(String, PageId)> {
        self.made().map(|table| (table.name.clone(), table.tree().root())).collect()
    }

    /// Returns the memory.
    pub fn pages(&self) -> &Arc<P> {
        &self.pages
    }

    /// Returns the tree of a table.
    pub fn tree(&self, table: TableId) -> Option<&BTree<P>> {
        Some(self.tables.get(table.0 as usize)?.get()?.tree())
    }

    /// Makes one pass over every tree that packs badly filled leaves, like the background merge of
    /// a `Db`.
    ///
    /// # Errors
    /// The memory behind the trees failed.
    pub fn compact(&self) -> Result<(), PoolError> {
        for table in self.made() {
            while !table.tree().compact(COMPACTED)? {}
        }
        Ok(())
    }

    fn made(&self) -> impl Iterator<Item = &Table<P>> {
        self.tables.iter().map_while(OnceLock::get)
    }

    fn find(&self, name: &str) -> Option<TableId> {
        self.made().position(|table| table.name == name).map(|at| TableId(at as u32))
    }

    /// Returns the table called `name`. If there is none, `make` opens its tree on these pages,
    /// with the owner id for locks and log.
    ///
    /// # Errors
    /// As `make`, or too many tables.
    pub fn add<T: HoldsTree<P> + 'static, E>(
        &self,
        name: &str,
        make: impl FnOnce(Arc<P>, u32) -> Result<T, E>,
    ) -> Result<TableId, TreeStoreError>
    where
        TreeStoreError: From<E>,
    {
        let _alone = self.making.lock().past_poison();
        if let Some(table) = self.find(name) {
            return Ok(table);
        }
        let at = self.made().count();
        let Some(place) = self.tables.get(at) else {
            return Err(TreeStoreError::TooManyTables { name: name.to_string() });
        };
        let held = Box::new(make(self.pages.clone(), at as u32 + 1)?);
        let table = Table { name: name.to_string(), held };
        let was_free = place.set(table).is_ok();
        debug_assert!(was_free, "tables are made one at a time");
        Ok(TableId(at as u32))
    }
}

impl<P: Pages> Store for TreeStore<P> {
    type Error = TreeStoreError;
    type Session<'s> = TreeSession<'s, P>;

    fn create_table(&self, name: &str) -> Result<TableId, TreeStoreError> {
        self.add(name, BTree::create)
    }

    fn table(&self, name: &str) -> Result<Option<TableId>, TreeStoreError> {
        Ok(self.find(name))
    }

    fn session(&self) -> Result<TreeSession<'_, P>, TreeStoreError> {
        let open = |table| Open { tree: Table::tree(table), cursor: None, sweep: None };
        let tables = self.made().map(open).collect();
        Ok(TreeSession { tables, scan_hints: self.scan_hints })
    }
}

impl<P: Pages> Table<P> {
    fn tree(&self) -> &BTree<P> {
        self.held.tree()
    }
}

/// One thread's view of a table. Cursors are kept, so that their memory is reused.
struct Open<'s, P: Pages> {
    tree: &'s BTree<P>,
    cursor: Option<Cursor<'s, P>>,
    /// Cursor for scans of the whole table.
    sweep: Option<Cursor<'s, P>>,
}

/// One thread's session with a [`TreeStore`].
pub struct TreeSession<'s, P: Pages> {
    tables: Vec<Open<'s, P>>,
    scan_hints: bool,
}

impl<'s, P: Pages> TreeSession<'s, P> {
    /// Moves the scan's cursor to its first row; returns `false` if the scan is empty. Compiled
    /// once for all visitors.
    fn seek(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
    ) -> Result<(&mut Cursor<'s, P>, bool), TreeStoreError> {
        let Some(open) = self.tables.get_mut(table.0 as usize) else {
            return Err(TreeStoreError::NoTable { table: table.0 });
        };
        let tree = open.tree;
        let cursor = match scan.extent {
            Extent::Rows(_) => open.cursor.get_or_insert_with(|| tree.cursor()),
            Extent::Whole if self.scan_hints => {
                open.sweep.get_or_insert_with(|| tree.cursor().as_scan())
            }
            Extent::Whole => open.sweep.get_or_insert_with(|| tree.cursor()),
        };
        let more = match scan.direction {
            Direction::Ascending => cursor.seek(scan.start)?,
            Direction::Descending => cursor.seek_for_prev(scan.start)?,
        };
        Ok((cursor, more))
    }

    #[inline(always)]
    fn tree(&self, table: TableId) -> Result<&'s BTree<P>, TreeStoreError> {
        match self.tables.get(table.0 as usize) {
            Some(open) => Ok(open.tree),
            None => Err(TreeStoreError::NoTable { table: table.0 }),
        }
    }
}

impl<P: Pages> Session for TreeSession<'_, P> {
    type Error = TreeStoreError;

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, TreeStoreError> {
        Ok(self.tree(table)?.get(key, read)?)
    }

    #[inline]
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, TreeStoreError> {
        Ok(self.tree(table)?.insert(key, value)?)
    }

    #[inline]
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), TreeStoreError> {
        self.tree(table)?.upsert(key, value)?;
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, TreeStoreError> {
        Ok(self.tree(table)?.update_in_place(key, change)?)
    }

    #[inline]
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, TreeStoreError> {
        Ok(self.tree(table)?.remove(key)?)
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TreeStoreError> {
        let (cursor, mut more) = self.seek(table, scan)?;
        while more && visit(cursor.key(), cursor.value()) {
            more = match scan.direction {
                Direction::Ascending => cursor.next()?,
                Direction::Descending => cursor.prev()?,
            };
        }
        Ok(())
    }

    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, TreeStoreError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = std::iter::from_fn(move || {
            next(&mut key, &mut value).then(|| (key.clone(), value.clone()))
        });
        // The iterator is not generic, so one copy of the code builds trees from any source of
        // rows.
        let rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)> = &mut rows;
        Ok(self.tree(table)?.bulk_load(rows, BulkOptions::default())?)
    }
}
