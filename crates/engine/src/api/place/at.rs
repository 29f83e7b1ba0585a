//! Where a hash index or a heap is read and written: by itself, in a transaction, in a snapshot.
//!
//! The public types have this as a parameter: the methods of a [`HashIndex`](crate::HashIndex) are
//! the same in all three places, and those that write are not there in a snapshot.

use crate::api::place::snapshot_view::SnapshotView;
use crate::api::place::txn_cell::TxnCell;
use crate::btree::{WriteCondition, WriteOutcome};
use crate::heap::RecordId;
use crate::store::error::Error;
use crate::store::member::Member;

/// Where a [`HashIndex`](crate::HashIndex) or a [`Heap`](crate::Heap) is used by itself: each call
/// takes effect as a whole.
///
/// ```
/// use millpond::{Alone, Db, Error, HashIndex, Options};
/// fn count(sessions: &HashIndex<u64, String, Alone>) -> Result<u64, Error> {
///     sessions.len()
/// }
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let sessions = db.hash_index::<u64, String>("sessions")?;
/// sessions.put(&7, "Ada")?;
/// assert_eq!(count(&sessions)?, 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Alone;

/// Where a [`HashIndex`](crate::HashIndex) or a [`Heap`](crate::Heap) is used in a transaction:
/// what is read and written is locked until that ends.
///
/// ```
/// use millpond::{Db, Error, HashIndex, InTxn, Options};
/// fn rename(sessions: HashIndex<u64, String, InTxn<'_>>) -> Result<bool, Error> {
///     sessions.put(&7, "Grace")
/// }
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let sessions = db.hash_index::<u64, String>("sessions")?;
/// sessions.put(&7, "Ada")?;
/// assert!(db.transact(|tx| rename(tx.hash_index(&sessions)))?);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct InTxn<'t>(pub(crate) &'t TxnCell);

/// Where a [`HashIndex`](crate::HashIndex) or a [`Heap`](crate::Heap) is read in a snapshot: as it
/// was when that began.
///
/// ```
/// use millpond::{Db, Error, Heap, InSnapshot, Options};
/// fn count(log: &Heap<String, InSnapshot<'_>>) -> Result<u64, Error> {
///     log.len()
/// }
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let log = db.heap::<String>("log")?;
/// let before = db.snapshot()?;
/// log.append("opened")?;
/// assert_eq!((count(&before.heap(&log))?, log.len()?), (0, 1));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct InSnapshot<'t>(pub(crate) &'t SnapshotView);

/// One of these places.
#[derive(Clone, Copy)]
pub struct At<'t>(pub(crate) Option<Inside<'t>>);

/// Where else than by itself.
#[derive(Clone, Copy)]
pub(crate) enum Inside<'t> {
    Txn(&'t TxnCell),
    Snapshot(&'t SnapshotView),
}

/// Where a structure is read.
pub trait Where: Copy {
    /// Which of the places it is.
    #[doc(hidden)]
    fn at(&self) -> At<'_>;
}

/// Where a structure is read and written.
pub trait Writes: Where {}

impl Where for Alone {
    fn at(&self) -> At<'_> {
        At(None)
    }
}

impl Where for InTxn<'_> {
    fn at(&self) -> At<'_> {
        At(Some(Inside::Txn(self.0)))
    }
}

impl Where for InSnapshot<'_> {
    fn at(&self) -> At<'_> {
        At(Some(Inside::Snapshot(self.0)))
    }
}

impl Writes for Alone {}
impl Writes for InTxn<'_> {}

impl Inside<'_> {
    /// Hands the value of `key` to `f`; returns whether there is such a key.
    pub(crate) fn look(
        self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        match self {
            Inside::Txn(cell) => cell.call(|txn| txn.look_in(member, key, f)),
            Inside::Snapshot(view) => view.look_in(member, key, f),
        }
    }

    /// The transaction's writes so far.
    pub(crate) fn writes(self) -> u64 {
        match self {
            Inside::Txn(cell) => cell.writes(),
            Inside::Snapshot(_) => 0,
        }
    }

    /// Returns the value of `key`.
    pub(crate) fn get(self, member: &dyn Member, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = None;
        self.look(member, key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Locks `key` to write it, inside a transaction.
    pub(crate) fn lock(self, member: &dyn Member, key: &[u8]) -> Result<(), Error> {
        match self {
            Inside::Txn(cell) => cell.call(|txn| txn.lock_in(member, key)),
            Inside::Snapshot(_) => Ok(()),
        }
    }

    /// Returns the value of `key`, which is to be written next.
    pub(crate) fn get_to_write(
        self,
        member: &dyn Member,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        self.lock(member, key)?;
        self.get(member, key)
    }

    /// The same where the same call writes it: it is not counted.
    pub(crate) fn peek_to_write(
        self,
        member: &dyn Member,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        self.lock(member, key)?;
        let Inside::Txn(cell) = self else { return self.get(member, key) };
        let mut value = None;
        let mut keep = |bytes: &[u8]| value = Some(bytes.to_vec());
        cell.call(|txn| txn.peek_in(member, key, &mut keep))?;
        Ok(value)
    }

    /// As [`Transaction::write`](crate::txn::Transaction::write), inside a transaction.
    pub(crate) fn write(
        self,
        member: &dyn Member,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        let Inside::Txn(cell) = self else { return Err(Error::ReadOnly) };
        cell.writing(|txn| txn.write_in(member, key, value, condition))
    }

    /// Lets `f` change the bytes of a value; returns whether there is such a key.
    pub(crate) fn update(
        self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        let Inside::Txn(cell) = self else { return Err(Error::ReadOnly) };
        cell.writing(|txn| txn.update_in(member, key, f))
    }

    /// Appends a record, inside a transaction.
    pub(crate) fn append(self, member: &dyn Member, record: &[u8]) -> Result<RecordId, Error> {
        let Inside::Txn(cell) = self else { return Err(Error::ReadOnly) };
        cell.writing(|txn| txn.append_to(member, record))
    }

    /// Locks all entries to read them, inside a transaction.
    pub(crate) fn lock_all(self, member: &dyn Member) -> Result<(), Error> {
        match self {
            Inside::Txn(cell) => cell.call(|txn| txn.lock_all_of(member)),
            Inside::Snapshot(_) => Ok(()),
        }
    }
}
