//! The minimal interface that a driver of live runs needs of a store.
//!
//! One driver must run over Millpond, over its in-memory twin and over foreign engines without
//! favouring any of them. The trait is therefore an ordered key-value store: named tables of byte
//! keys and byte values, in the order of the keys' bytes.
//!
//! * **Zero-copy.** Reads, updates and scans pass the bytes to a closure in place. The closures are
//!   type parameters, so that an engine can inline them: no virtual call, no allocation, no copy
//!   that the driver did not ask for. An engine that must copy (a C library's buffer, a version
//!   chain) copies into its session.
//! * **Each operation is atomic by itself**, [`Session::update`] in particular: it reads and writes
//!   one value without another write in between. The drivers rely on nothing more if an engine has
//!   no transactions; the TPC-C driver documents the consequences.
//! * **Transactions are hooks.** [`Session::begin`], [`Session::commit`] and [`Session::rollback`]
//!   do nothing unless an engine needs them. The drivers call them around every transaction, so
//!   that engines which cannot work outside of one (LMDB, SQLite) need no guesses.
//! * **The contract is checkable.** [`super::check_contract`] checks any store against it; an
//!   adapter's first test should call it.
//! * **A session belongs to one thread** and may keep scratch memory, cursors and an open
//!   transaction. Sessions borrow the store; any number exist at once.

use std::error::Error;

/// Number of a table of a store, returned by [`Store::create_table`] and [`Store::table`].
///
/// Ids are small numbers from 0 up, so that a session can index an array with them. They are valid
/// while the store is open.
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
    /// Expected length, as a hint; only the visitor's result ends a scan.
    pub extent: Extent,
    /// Exclusive end of the scan in its direction, as a hint. A store may stop before it, or
    /// continue until the visitor stops it.
    pub end: Option<&'k [u8]>,
}

impl<'k> Scan<'k> {
    /// Returns a scan upwards from `start` of about `rows` rows.
    #[inline]
    pub fn up(start: &'k [u8], rows: u32) -> Scan<'k> {
        Scan { start, direction: Direction::Ascending, extent: Extent::Rows(rows), end: None }
    }

    /// Returns a scan downwards from `start` of about `rows` rows.
    #[inline]
    pub fn down(start: &'k [u8], rows: u32) -> Scan<'k> {
        Scan { start, direction: Direction::Descending, extent: Extent::Rows(rows), end: None }
    }

    /// Returns a scan upwards over every row of a table.
    #[inline]
    pub fn whole() -> Scan<'static> {
        Scan { start: &[], direction: Direction::Ascending, extent: Extent::Whole, end: None }
    }

    /// Returns the scan bounded by `end`, which a store that locks ranges needs beforehand.
    #[inline]
    pub fn before(self, end: &'k [u8]) -> Scan<'k> {
        Scan { end: Some(end), ..self }
    }
}

/// An ordered key-value store with named tables, usable from many threads.
pub trait Store: Send + Sync {
    /// Error of the store's operations.
    type Error: Error + Send + Sync + 'static;

    /// One thread's session with the store.
    type Session<'s>: Session<Error = Self::Error>
    where
        Self: 's;

    /// Returns the table called `name`, which is created empty if there is none.
    fn create_table(&self, name: &str) -> Result<TableId, Self::Error>;

    /// Returns the table called `name`, or `None` if there is none.
    fn table(&self, name: &str) -> Result<Option<TableId>, Self::Error>;

    /// Returns a session for the calling thread. It knows the tables that exist now, and may learn
    /// of later ones.
    fn session(&self) -> Result<Self::Session<'_>, Self::Error>;
}

/// One thread's operations on a store.
///
/// Every closure receives bytes that do not change during the call. It must not block, and cannot
/// reach the session. [`Session::get`] and [`Session::update`] call their closure exactly once if
/// the key exists, and otherwise never. An engine that repeats an operation internally repeats it
/// before the closure, not around it.
pub trait Session {
    /// Error of the operations.
    type Error: Error + Send + Sync + 'static;

    /// `true` if no writes of others are seen between [`Session::begin`] and [`Session::commit`].
    ///
    /// If it is false, drivers order their writes so that others see only complete rows, and read
    /// twice where that is not enough.
    const ISOLATED: bool = false;

    /// Like `ISOLATED`, for a store that knows its isolation only when the session is open.
    #[inline]
    fn is_isolated(&self) -> bool {
        Self::ISOLATED
    }

    /// Returns `true` if [`Session::rollback`] undoes the writes. Drivers then write first and
    /// decide about a rollback later, as a transaction would.
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
    /// Unless the engine [undoes](Session::undoes) writes, the drivers roll back only transactions
    /// that have not written anything or have failed.
    #[inline]
    fn rollback(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns `true` if a transaction that failed with `error` should be rolled back and retried.
    #[inline]
    fn is_retriable(error: &Self::Error) -> bool {
        let _ = error;
        false
    }

    /// Passes the value of `key` to `read` and returns its result; `None` if there is no such key.
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, Self::Error>;

    /// Adds a row; returns `false` and changes nothing if the key exists.
    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, Self::Error>;

    /// Adds a row or replaces its value, of any length.
    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Lets `change` alter the bytes of a value in place, atomically with respect to other
    /// operations on this key, and returns its result; `None` if there is no such key.
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, Self::Error>;

    /// Removes a row; returns `false` if there is none. Of two threads that remove a row, one gets
    /// `true`.
    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, Self::Error>;

    /// Passes key and value of each row, in order, to `visit` until it returns false or the table
    /// ends.
    ///
    /// Rows that others add or remove during the scan may or may not be seen, unless the session is
    /// isolated. No row is seen twice, and no row that stays is missed.
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Self::Error>;

    /// Fills an empty table with rows in ascending order of their keys; returns their number.
    ///
    /// `next` overwrites key and value with the next row and returns true, or returns false after
    /// the last one. An engine with a bulk loader overrides this method. The default inserts a
    /// thousand rows per transaction. No transaction may be open.
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
