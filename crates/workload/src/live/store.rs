//! The interface that a driver of live runs needs of a store, and nothing more.
//!
//! One driver has to run over Millpond, over its in-memory twin and over engines of others without
//! favouring any of them. The trait is therefore an ordered key-value engine at heart: named tables
//! of byte keys and byte values, in the order of the keys' bytes.
//!
//! * **Zero-copy.** Reads, updates and scans hand the bytes to a closure where they lie. The
//!   closures are type parameters, so that an engine that can inline them does: no virtual call, no
//!   allocation, no copy that the driver did not ask for. An engine that has to copy (a C
//!   library's buffer, a version chain) copies into its session.
//! * **Each operation is atomic by itself**, [`Session::update`] in particular: it reads and writes
//!   one value without another write in between. That is all that the drivers rely on while an
//!   engine has no transactions; the TPC-C driver documents what follows from it.
//! * **Transactions are hooks.** [`Session::begin`], [`Session::commit`] and [`Session::rollback`]
//!   do nothing unless an engine needs them. The drivers call them around every transaction, so
//!   that engines which cannot work outside of one (LMDB, SQLite) need no guesses.
//! * **The contract is checkable.** [`super::check_contract`] holds any store against it; an
//!   adapter's first test is a call to it.
//! * **A session belongs to one thread** and may keep scratch memory, cursors and an open
//!   transaction. Sessions borrow the store; any number exist at once.

use std::error::Error;

/// Names a table of a store: what [`Store::create_table`] and [`Store::table`] return.
///
/// Small numbers from 0 up, so that a session can index an array with them. They hold as long as
/// the store is open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId(pub u32);

/// Access of a transaction, announced before its first operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The transaction only reads.
    Read,
    /// The transaction may write.
    Write,
}

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the first key at or above the start upwards.
    Ascending,
    /// From the last key at or below the start downwards.
    Descending,
}

/// The length of a scan, as far as the driver knows: a hint for prefetching and admission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// About this many rows.
    Rows(u32),
    /// To the end of the table.
    Whole,
}

/// A scan: its start, its direction and its length.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'k> {
    /// The first key, if it exists; else its neighbour in the scan's direction.
    pub start: &'k [u8],
    /// Direction of the scan.
    pub direction: Direction,
    /// A hint; only the visitor's result ends a scan.
    pub extent: Extent,
    /// A hint, too: no row at this key or behind it, in the scan's direction, is wanted. A store
    /// may stop before it, or continue until the visitor stops it.
    pub end: Option<&'k [u8]>,
}

impl<'k> Scan<'k> {
    /// Upwards from `start`, about `rows` rows.
    #[inline]
    pub fn up(start: &'k [u8], rows: u32) -> Scan<'k> {
        Scan { start, direction: Direction::Ascending, extent: Extent::Rows(rows), end: None }
    }

    /// Downwards from `start`, about `rows` rows.
    #[inline]
    pub fn down(start: &'k [u8], rows: u32) -> Scan<'k> {
        Scan { start, direction: Direction::Descending, extent: Extent::Rows(rows), end: None }
    }

    /// Every row of a table, upwards.
    #[inline]
    pub fn whole() -> Scan<'static> {
        Scan { start: &[], direction: Direction::Ascending, extent: Extent::Whole, end: None }
    }

    /// Returns the scan bounded by `end`, which a store that locks ranges wants to know beforehand.
    #[inline]
    pub fn before(self, end: &'k [u8]) -> Scan<'k> {
        Scan { end: Some(end), ..self }
    }
}

/// An ordered key-value store with named tables, usable from many threads.
pub trait Store: Send + Sync {
    /// Error of its operations.
    type Error: Error + Send + Sync + 'static;

    /// One thread's way into the store.
    type Session<'s>: Session<Error = Self::Error>
    where
        Self: 's;

    /// The table called `name`; created empty if there is none.
    fn create_table(&self, name: &str) -> Result<TableId, Self::Error>;

    /// The table called `name`, or `None` if there is none.
    fn table(&self, name: &str) -> Result<Option<TableId>, Self::Error>;

    /// A session for the calling thread. It knows the tables that exist now; it may, but need
    /// not, learn of tables that are created later.
    fn session(&self) -> Result<Self::Session<'_>, Self::Error>;
}

/// One thread's operations on a store.
///
/// Every closure that is passed in is called with bytes that stay as they are during the call.
/// It must not block, and it cannot reach the session. [`Session::get`] and [`Session::update`]
/// call theirs exactly once if the key exists and not at all if it does not: an engine that
/// repeats an operation internally repeats it before the closure, not around it.
pub trait Session {
    /// Error of the operations.
    type Error: Error + Send + Sync + 'static;

    /// `true` if no writes of others are seen between [`Session::begin`] and [`Session::commit`].
    ///
    /// Where it is false, drivers order their writes so that others see only whole things, and
    /// look twice where that is not enough.
    const ISOLATED: bool = false;

    /// Like `ISOLATED`, for a store that knows it only once the session is open.
    #[inline]
    fn is_isolated(&self) -> bool {
        Self::ISOLATED
    }

    /// Returns `true` if [`Session::rollback`] undoes the writes. Drivers then write before they
    /// know whether they will roll back, as a transaction would.
    #[inline]
    fn undoes(&self) -> bool {
        false
    }

    /// Begins a transaction. No other one of this session is open.
    #[inline]
    fn begin(&mut self, access: Access) -> Result<(), Self::Error> {
        let _ = access;
        Ok(())
    }

    /// Ends the transaction and keeps its writes.
    #[inline]
    fn commit(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Ends the transaction and drops its writes, if the engine can.
    ///
    /// Unless it [undoes](Session::undoes), the drivers roll back only what has not written
    /// anything yet, and what failed.
    #[inline]
    fn rollback(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns `true` if a transaction that failed with `error` should be rolled back and tried
    /// again.
    #[inline]
    fn is_retriable(error: &Self::Error) -> bool {
        let _ = error;
        false
    }

    /// Shows the value of `key` to `read` and returns its result; `None` if there is no such key.
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, Self::Error>;

    /// Adds a row. False, and nothing is changed, if the key exists.
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Self::Error>;

    /// Adds a row or replaces its value, whatever its length was.
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Lets `change` alter the bytes of a value in place, atomically with respect to other
    /// operations on this key, and returns its result; `None` if there is no such key.
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, Self::Error>;

    /// Removes a row. False if there is none: of two threads that remove a row, one gets true.
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, Self::Error>;

    /// Shows rows in order to `visit`, key and value, until it returns false or the table ends.
    ///
    /// Rows that others add or remove meanwhile may or may not be seen, unless the session is
    /// isolated; no row is seen twice, and none that stays is missed.
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Self::Error>;

    /// Fills an empty table with rows in ascending order of their keys; returns how many.
    ///
    /// `next` overwrites key and value with the next row and returns true, or returns false after
    /// the last. An engine with a bulk loader overrides this; here rows are inserted, a thousand to
    /// a transaction, and no transaction may be open.
    fn load_sorted(
        &mut self,
        table: TableId,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64, Self::Error> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut rows = 0u64;
        self.begin(Access::Write)?;
        while next(&mut key, &mut value) {
            self.insert(table, &key, &value)?;
            rows += 1;
            if rows.is_multiple_of(1000) {
                self.commit()?;
                self.begin(Access::Write)?;
            }
        }
        self.commit()?;
        Ok(rows)
    }
}
