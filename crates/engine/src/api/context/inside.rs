//! The entries of hash indexes and heaps in a transaction or a snapshot, by their keys.

use crate::api::context::Inside;
use crate::btree::{WriteCondition, WriteOutcome};
use crate::heap::RecordId;
use crate::pool::borrowed::BorrowedPage;
use crate::store::error::Error;
use crate::store::member::Member;

impl Inside<'_> {
    /// Hands the value of `key` to `f`; returns `true` if the key exists.
    pub(crate) fn look(
        self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        match self {
            Inside::Txn(txn) => txn.call(|txn| txn.look_in(member, key, f)),
            Inside::Snapshot(snapshot) => snapshot.look_in(member, key, f),
        }
    }

    /// Returns the number of the transaction's writes so far.
    pub(crate) fn writes(self) -> u64 {
        match self {
            Inside::Txn(txn) => txn.writes(),
            Inside::Snapshot(_) => 0,
        }
    }

    /// Returns the value of `key`.
    pub(crate) fn get(self, member: &dyn Member, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = None;
        self.look(member, key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Locks `key` to write it, in a transaction.
    fn lock(self, member: &dyn Member, key: &[u8]) -> Result<(), Error> {
        match self {
            Inside::Txn(txn) => txn.call(|txn| txn.lock_in(member, key)),
            Inside::Snapshot(_) => Ok(()),
        }
    }

    /// Locks `key` for the write that follows, and returns its value.
    pub(crate) fn get_to_write(
        self,
        member: &dyn Member,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        self.lock(member, key)?;
        self.get(member, key)
    }

    /// Locks `key` and returns its value for a write by the same call, so the read is not counted.
    pub(crate) fn peek_to_write(
        self,
        member: &dyn Member,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        self.lock(member, key)?;
        let Inside::Txn(txn) = self else { return self.get(member, key) };
        let mut value = None;
        let mut keep = |bytes: &[u8]| value = Some(bytes.to_vec());
        txn.call(|txn| txn.peek_in(member, key, &mut keep))?;
        Ok(value)
    }

    /// Sets the value of `key`, or removes it, if `condition` holds. Fails in a snapshot.
    pub(crate) fn write(
        self,
        member: &dyn Member,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        let Inside::Txn(txn) = self else { return Err(Error::ReadOnly) };
        txn.writing(|txn| txn.write_in(member, key, value, condition))
    }

    /// Lets `f` change the bytes of a value; returns `true` if the key exists.
    pub(crate) fn update(
        self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        let Inside::Txn(txn) = self else { return Err(Error::ReadOnly) };
        txn.writing(|txn| txn.update_in(member, key, f))
    }

    /// Appends a record, in a transaction.
    pub(crate) fn append(self, member: &dyn Member, record: &[u8]) -> Result<RecordId, Error> {
        let Inside::Txn(txn) = self else { return Err(Error::ReadOnly) };
        txn.writing(|txn| txn.append_to(member, record))
    }

    /// Locks all entries to read them, in a transaction.
    pub(crate) fn lock_all(self, member: &dyn Member) -> Result<(), Error> {
        match self {
            Inside::Txn(txn) => txn.call(|txn| txn.lock_all_of(member)),
            Inside::Snapshot(_) => Ok(()),
        }
    }
}

/// Hands `f` to `update` as a closure that runs at most once; returns the result of `f`, if it ran.
/// While `f` runs, the page counts as borrowed: a call that needs the page fails instead of waiting
/// for itself.
pub(crate) fn update_once<R>(
    f: impl FnOnce(&mut [u8]) -> R,
    update: impl FnOnce(&mut dyn FnMut(&mut [u8])) -> Result<bool, Error>,
) -> Result<Option<R>, Error> {
    let (mut f, mut result) = (Some(f), None);
    update(&mut |value| {
        let _lent = BorrowedPage::begin();
        if let Some(f) = f.take() {
            result = Some(f(value));
        }
    })?;
    Ok(result)
}
