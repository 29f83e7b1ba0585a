//! Writes single keys: insert, upsert, replace, compare-and-swap, remove, update in place.
//!
//! All of these are one attempt with different conditions. The attempt latches the bucket and reads
//! the entry. Then it either does everything under that latch, or does nothing because the bucket
//! has to be split first.
//!
//! A write on behalf of a transaction logs its undo in the same record. Undo is logical, by the
//! entry's name, since its bucket may have been split or merged in the meantime.

use millpond_base::{AccessKind, Lsn};

use crate::btree::{
    Before, NewValue, Undo, UpdateOutcome, Updated, WriteCondition, WriteContext, WriteOutcome,
    WriteRequest, differing, done_anyway,
};
use crate::hash_index::bucket::{Bucket, BucketMut, Entry, SLOT, parts, record_len};
use crate::hash_index::descend::{BucketSlot, mark};
use crate::hash_index::directory::prefix_of;
use crate::hash_index::error::{WriteError, corrupt};
use crate::hash_index::index::{HashIndex, split_name};
use crate::page::edit::put_u64;
use crate::pool::{Actor, MiniTransaction, Pages, PoolError, Try, Write};

/// A write that is being applied.
struct Pending<'r, 'a> {
    key: &'r [u8],
    hash: u64,
    request: &'r mut WriteRequest<'a>,
}

/// Outcome of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Done {
    existed: bool,
    applied: bool,
}

enum Step {
    Done(Done),
    /// The write is done, and left the bucket so empty that it may be merged.
    Thin(Done),
    /// The bucket lacks room for this many bytes.
    Split(usize),
}

/// Returns whether a bucket should be merged with a neighbour: it is empty, or less than a quarter
/// of its bytes is in use. The second is checked only at every fourth count of entries.
fn is_thin(bucket: Bucket<'_>) -> bool {
    bucket.count() == 0 || (bucket.used() * 4 < bucket.0.len() && bucket.count().is_multiple_of(4))
}

/// Checks that a page that is latched exclusively is a bucket with a consistent header.
pub(crate) fn sound<P: Pages>(page: Write<'_, P>) -> Try<Write<'_, P>> {
    let bucket = Bucket(page.view());
    if bucket.is_bucket() && bucket.is_sound() {
        return Ok(page);
    }
    Err(corrupt(page.id(), "not the bucket of a hash index, or its header is inconsistent"))
}

impl<P: Pages> HashIndex<P> {
    /// Inserts an entry. Returns `false`, and changes nothing, if the key exists.
    ///
    /// # Errors
    /// The entry is too long, too many keys collide, or the memory behind the index failed.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Absent, None)?.applied)
    }

    /// Inserts an entry, or replaces its value; returns whether the key existed.
    ///
    /// # Errors
    /// See [`HashIndex::insert`].
    pub fn upsert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        self.upsert_into(key, value, None)
    }

    /// Inserts an entry, or replaces its value; returns the value that was replaced.
    ///
    /// # Errors
    /// See [`HashIndex::insert`].
    pub fn upsert_returning(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, WriteError> {
        let mut old = Vec::new();
        Ok(self.upsert_into(key, value, Some(&mut old))?.then_some(old))
    }

    /// Like [`HashIndex::upsert`], and copies the replaced value to `old`.
    pub(crate) fn upsert_into(
        &self,
        key: &[u8],
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Always, old)?.existed)
    }

    /// Like [`HashIndex::remove`], and copies the removed value to `old`.
    pub(crate) fn remove_into(
        &self,
        key: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, PoolError> {
        Ok(self.take(key, WriteCondition::Present, old)?.applied)
    }

    /// Replaces the value of a key. Returns `false`, and changes nothing, if the key does not
    /// exist.
    ///
    /// # Errors
    /// See [`HashIndex::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Present, None)?.applied)
    }

    /// Sets the value of `key` to `new` if it is `expected`, where `None` means no entry. Returns
    /// whether it was. Other threads see this as one step.
    ///
    /// # Errors
    /// See [`HashIndex::insert`].
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, WriteError> {
        match (expected, new) {
            (None, None) => Ok(!self.contains(key)?),
            (None, Some(new)) => self.insert(key, new),
            (Some(old), Some(new)) => {
                Ok(self.put(key, new, WriteCondition::Equals(old), None)?.applied)
            }
            (Some(old), None) => Ok(self.take(key, WriteCondition::Equals(old), None)?.applied),
        }
    }

    /// Removes an entry; returns `false` if there is none.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn remove(&self, key: &[u8]) -> Result<bool, PoolError> {
        self.remove_into(key, None)
    }

    /// Removes an entry; returns its value.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn remove_returning(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        let mut old = Vec::new();
        Ok(self.remove_into(key, Some(&mut old))?.then_some(old))
    }

    /// Calls `f` to change the bytes of a value, but not their number. Returns `None` if the key
    /// does not exist. `f` runs once, under the bucket's exclusive latch, so it must be short and
    /// must not use the store. If it panics, the latch is released, and the value stays as `f` left
    /// it.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn update_in_place<R>(
        &self,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, PoolError> {
        let hash = self.hash(key);
        let mut f = Some(f);
        self.pages.run(|mtr| {
            let Some(mut page) = self.bucket_to_write(&self.descend::<false>(mtr, hash)?)? else {
                return Ok(None);
            };
            let Some(entry) = Bucket(page.view()).find(hash as u32, key) else { return Ok(None) };
            let id = page.id();
            let value = page.page_mut().get_mut(entry.value..entry.value + entry.value_len);
            match (value, f.take()) {
                (Some(value), Some(f)) => Ok(Some(f(value))),
                _ => Err(corrupt(id, "a value reaches beyond its page")),
            }
        })
    }

    #[inline]
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, WriteError> {
        let mut request = WriteRequest::new(key, NewValue::Bytes(value), condition);
        self.apply(Pending { key, hash: self.hash(key), request: &mut request }, old)
    }

    fn take(
        &self,
        key: &[u8],
        condition: WriteCondition<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        let mut request = WriteRequest::new(key, NewValue::Removed, condition);
        let pending = Pending { key, hash: self.hash(key), request: &mut request };
        match self.apply(pending, old) {
            Ok(outcome) => Ok(outcome),
            Err(WriteError::Pool(error)) => Err(error),
            // A removal needs no room.
            Err(WriteError::TooLong { .. } | WriteError::Collisions { .. }) => {
                Ok(WriteOutcome::refused(true))
            }
        }
    }

    /// Sets or removes an entry if the request's condition holds. The request's key is the entry's
    /// name ([`HashIndex::name_entry`]).
    ///
    /// # Errors
    /// See [`HashIndex::insert`].
    pub fn write(&self, mut request: WriteRequest<'_>) -> Result<WriteOutcome, WriteError> {
        let Some((hash, key)) = split_name(request.key) else {
            return Ok(WriteOutcome::refused(false));
        };
        self.apply(Pending { key, hash, request: &mut request }, None)
    }

    /// Applies a write, and splits and merges buckets for it as needed. Splits and merges are
    /// mini-transactions of their own, which are not undone.
    #[inline]
    fn apply(
        &self,
        mut pending: Pending<'_, '_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, WriteError> {
        let (key, hash, max) = (pending.key, pending.hash, self.limits.entry_max);
        if let NewValue::Bytes(value) = pending.request.value
            && key.len().saturating_add(value.len()) > max
        {
            return Err(WriteError::TooLong { key: key.len(), value: value.len(), max });
        }
        let actor = pending.request.context.actor;
        loop {
            let attempt =
                self.pages.run_logged(|mtr| self.attempt(mtr, &mut pending, old.as_deref_mut()));
            let (step, at) = attempt?;
            let outcome = |Done { existed, applied }| WriteOutcome {
                existed,
                applied,
                at,
                ..WriteOutcome::default()
            };
            match step {
                Step::Done(done) => return Ok(outcome(done)),
                Step::Thin(done) => {
                    done_anyway(actor, self.shrink(hash))?;
                    return Ok(outcome(done));
                }
                Step::Split(bytes) => {
                    if !self.grow(hash, bytes)? {
                        return Err(WriteError::Collisions { bits: self.bits_max });
                    }
                }
            }
        }
    }

    /// Returns the bucket at `place`, latched exclusively, or `None` if there is none.
    #[inline]
    pub(crate) fn bucket_to_write<'o>(
        &self,
        place: &BucketSlot<'o, P>,
    ) -> Try<Option<Write<'o, P>>> {
        if place.is_empty() {
            place.directory.validate()?;
            return Ok(None);
        }
        let to = mark(AccessKind::Write, place.depth + 1);
        Ok(Some(sound(place.directory.child_exclusive(place.slot.at, to)?)?))
    }

    #[inline]
    fn attempt<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        pending: &mut Pending<'_, '_>,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let place = self.descend_here::<false>(mtr, pending.hash)?;
        let Some(mut page) = self.bucket_to_write(&place)? else {
            return self.attempt_first(mtr, place, pending);
        };
        drop(place);
        let word = pending.hash as u32;
        let Some(entry) = Bucket(page.view()).find(word, pending.key) else {
            let Some(value) = to_insert(pending.request) else {
                return Ok(Step::Done(Done { existed: false, applied: false }));
            };
            let bytes = SLOT + record_len(pending.key.len(), value.len());
            if Bucket(page.view()).free() < bytes {
                return Ok(Step::Split(bytes));
            }
            self.log_undo(mtr, pending, Before::Absent);
            BucketMut(page.page_mut()).insert(word, pending.key, value);
            return Ok(Step::Done(Done { existed: false, applied: true }));
        };
        if !Bucket(page.view()).holds(entry) {
            return Err(corrupt(page.id(), "an entry reaches beyond its page"));
        }
        self.attempt_present(mtr, page, pending, entry, old)
    }

    /// Applies a write to an entry that exists.
    fn attempt_present<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut page: Write<'o, P>,
        pending: &mut Pending<'_, '_>,
        entry: Entry,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let value = parts(page.page(), entry).1;
        let refused = match pending.request.condition {
            WriteCondition::Always | WriteCondition::Present => false,
            WriteCondition::Absent | WriteCondition::Stamp(_) => true,
            WriteCondition::Equals(expected) => value != expected,
        };
        if refused {
            return Ok(Step::Done(Done { existed: true, applied: false }));
        }
        if let Some(old) = old {
            old.clear();
            old.extend_from_slice(value);
        }
        let done = Done { existed: true, applied: true };
        let word = pending.hash as u32;
        let before = record_len(entry.key_len, entry.value_len);
        if let NewValue::Bytes(new) = pending.request.value {
            if new.len() == entry.value_len {
                self.overwrite(mtr, &mut page, pending, entry, new);
                return Ok(Step::Done(done));
            }
            let after = record_len(entry.key_len, new.len());
            if Bucket(page.view()).free() + before < after {
                return Ok(Step::Split(after - before));
            }
        }
        self.log_undo(mtr, pending, Before::Value(parts(page.page(), entry).1));
        let mut bucket = BucketMut(page.page_mut());
        bucket.remove(entry);
        if let NewValue::Bytes(new) = pending.request.value {
            bucket.insert(word, pending.key, new);
        }
        Ok(if is_thin(bucket.read()) { Step::Thin(done) } else { Step::Done(done) })
    }

    /// Overwrites a value with one of the same length. On behalf of an actor, writes only the bytes
    /// that differ.
    fn overwrite(
        &self,
        mtr: &MiniTransaction<'_, P>,
        page: &mut Write<'_, P>,
        pending: &mut Pending<'_, '_>,
        entry: Entry,
        new: &[u8],
    ) {
        let (mut from, mut to) = (0, new.len());
        if pending.request.context.actor != Actor::Itself {
            let old = parts(page.page(), entry).1;
            if old.len() != new.len() {
                return;
            }
            (from, to) = differing(old, new);
            if from == to {
                return;
            }
            self.log_undo(mtr, pending, Before::Part { offset: from, bytes: &old[from..to] });
        }
        if let Some(place) = page.page_mut().get_mut(entry.value + from..entry.value + to) {
            place.copy_from_slice(&new[from..to]);
        }
    }

    #[inline(always)]
    fn log_undo(
        &self,
        mtr: &MiniTransaction<'_, P>,
        pending: &mut Pending<'_, '_>,
        before: Before<'_>,
    ) {
        let request = &mut *pending.request;
        let undo = Undo { owner: self.owner, key: request.key, before, removes: false };
        request.context.log_undo(mtr, &undo);
    }

    /// Applies a write where there is no bucket yet.
    fn attempt_first<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        place: BucketSlot<'o, P>,
        pending: &mut Pending<'_, '_>,
    ) -> Try<Step> {
        let done = |applied| Ok(Step::Done(Done { existed: false, applied }));
        let Some(value) = to_insert(pending.request) else { return done(false) };
        let slot = place.slot;
        debug_assert!(!slot.is_directory);
        let mut directory = place.directory.upgrade()?;
        let mut page = mtr.allocate(self.new_bucket())?;
        self.log_undo(mtr, pending, Before::Absent);
        let mut bucket = BucketMut(page.page_mut());
        bucket.init(slot.bits(), prefix_of(pending.hash, slot.bits()));
        bucket.insert(pending.hash as u32, pending.key, value);
        let swip = page.swip();
        put_u64(directory.page_mut(), slot.at, swip.0);
        mtr.adopt(swip, &directory);
        done(true)
    }

    /// Calls `f` to change the bytes of a value in place, in `context`; `name` is the entry's name.
    /// Appends the undo, the bytes that differ, to the context's buffer. `scratch` is for a copy of
    /// the value.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn update_inline(
        &self,
        name: &[u8],
        mut context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        let Some((hash, key)) = split_name(name) else {
            return Ok(UpdateOutcome { updated: Updated::Absent, at: Lsn(0) });
        };
        let (updated, at) = self.pages.run_logged(|mtr| {
            let Some(mut page) = self.bucket_to_write(&self.descend::<false>(mtr, hash)?)? else {
                return Ok(Updated::Absent);
            };
            let bucket = Bucket(page.view());
            let Some(entry) = bucket.find(hash as u32, key) else { return Ok(Updated::Absent) };
            if !bucket.holds(entry) {
                return Err(corrupt(page.id(), "a value reaches beyond its page"));
            }
            scratch.clear();
            scratch.extend_from_slice(parts(page.page(), entry).1);
            // Nothing after this restarts the attempt.
            f(scratch);
            let WriteContext { actor, root, .. } = context;
            let undo = context.undo.as_deref_mut();
            let context = WriteContext { actor, root, undo, ..WriteContext::default() };
            let (new, present) = (NewValue::Bytes(scratch), WriteCondition::Present);
            let mut request = WriteRequest::new(name, new, present).within(context);
            let mut pending = Pending { key, hash, request: &mut request };
            self.overwrite(mtr, &mut page, &mut pending, entry, scratch);
            Ok(Updated::Done)
        })?;
        Ok(UpdateOutcome { updated, at })
    }
}

/// Returns the value that a write inserts if there is no entry, or `None` if it inserts none.
#[inline(always)]
fn to_insert<'a>(request: &WriteRequest<'a>) -> Option<&'a [u8]> {
    match (request.condition, request.value) {
        (WriteCondition::Always | WriteCondition::Absent, NewValue::Bytes(value)) => Some(value),
        _ => None,
    }
}
