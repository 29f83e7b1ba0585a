//! Calls of a transaction on hash indexes and heaps, and on a tree as a whole.

use crate::btree::{WriteCondition, WriteOutcome};
use crate::heap::RecordId;
use crate::page::Batch;
use crate::pool::PoolStrategy;
use crate::store::counted::{GET, PUT, write_of};
use crate::store::error::Error;
use crate::store::handle::StoreTree;
use crate::store::member::Member;
use crate::store::store_txn::StoreTxn;

#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
impl<M: PoolStrategy> StoreTxn<M> {
    /// Returns the number of entries of a tree, or `None` if that needs a walk.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) fn len(&mut self, tree: &StoreTree<M>) -> Result<Option<u64>, Error> {
        self.check(tree)?;
        self.call(None, |tx| tx.count(tree.btree()))
    }

    fn check_member(&self, member: &dyn Member) -> Result<(), Error> {
        self.may_write()?;
        if member.store_address() == self.store_address() {
            return Ok(());
        }
        Err(Error::OtherStore { name: member.name().to_string() })
    }

    /// Like [`Transaction::get`](crate::txn::Transaction::get), for a hash index or a heap.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) fn look_in(
        &mut self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.check_member(member)?;
        self.call(Some(GET), |tx| Ok(tx.get(member.as_structure(), key, f)?.is_some()))
    }

    /// Like `look_in`, as a part of another call: the read is not counted.
    pub(crate) fn peek_in(
        &mut self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.check_member(member)?;
        self.call(None, |tx| Ok(tx.get(member.as_structure(), key, f)?.is_some()))
    }

    /// Like [`Transaction::lock`](crate::txn::Transaction::lock), for a hash index or a heap.
    pub(crate) fn lock_in(&mut self, member: &dyn Member, key: &[u8]) -> Result<(), Error> {
        self.check_member(member)?;
        self.call(None, |tx| tx.lock(member.as_structure(), key))
    }

    /// Like [`Transaction::write`](crate::txn::Transaction::write), for a hash index or a heap.
    pub(crate) fn write_in(
        &mut self,
        member: &dyn Member,
        key: &[u8],
        value: Option<&[u8]>,
        condition: WriteCondition<'_>,
    ) -> Result<WriteOutcome, Error> {
        self.check_member(member)?;
        self.keep_member(member);
        self.call(Some(write_of(value)), |tx| {
            tx.write(member.as_structure(), key, value, condition)
        })
    }

    /// Like [`Transaction::update`](crate::txn::Transaction::update), for a hash index or a heap.
    pub(crate) fn update_in(
        &mut self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, Error> {
        self.check_member(member)?;
        self.keep_member(member);
        self.call(Some(PUT), |tx| Ok(tx.update(member.as_structure(), key, f)?.is_some()))
    }

    /// Like [`Transaction::append`](crate::txn::Transaction::append), for a heap of the store.
    pub(crate) fn append_to(
        &mut self,
        member: &dyn Member,
        record: &[u8],
    ) -> Result<RecordId, Error> {
        self.check_member(member)?;
        self.keep_member(member);
        self.call(Some(PUT), |tx| tx.append(member.as_structure(), record))
    }

    /// Like [`Transaction::batch`](crate::txn::Transaction::batch), for a hash index or a heap.
    pub(crate) fn batch_of(
        &mut self,
        member: &dyn Member,
        from: u64,
        forward: bool,
        batch: &mut Batch,
    ) -> Result<Option<u64>, Error> {
        self.check_member(member)?;
        self.call(None, |tx| tx.batch(member.as_structure(), from, forward, batch))
    }

    /// Like [`Transaction::lock_all`](crate::txn::Transaction::lock_all), for a hash index or a
    /// heap.
    pub(crate) fn lock_all_of(&mut self, member: &dyn Member) -> Result<(), Error> {
        self.check_member(member)?;
        self.call(None, |tx| tx.lock_all(member.as_structure()))
    }
}
