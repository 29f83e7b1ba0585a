//! Writing one key: insert, upsert, replace, compare-and-swap, remove, update in place.
//!
//! All of them are one attempt that differs in its condition: the bucket is latched, the entry is
//! read, and either everything is done under that latch or nothing is, and the bucket has to be
//! split first.

use millpond_base::AccessKind;

use crate::hash_index::bucket::{Bucket, BucketMut, Entry, SLOT, parts, record_len};
use crate::hash_index::descend::{Place, mark};
use crate::hash_index::directory::prefix_of;
use crate::hash_index::error::{WriteError, corrupt};
use crate::hash_index::index::HashIndex;
use crate::page::edit::put_u64;
use crate::pool::{MiniTransaction, Pages, PoolError, Try, Write};

/// What must hold for a write to be applied.
#[derive(Clone, Copy)]
enum WriteCondition<'a> {
    Always,
    Absent,
    Present,
    Equals(&'a [u8]),
}

/// One write.
#[derive(Clone, Copy)]
struct WriteRequest<'a> {
    key: &'a [u8],
    hash: u64,
    /// `None` removes.
    new: Option<&'a [u8]>,
    condition: WriteCondition<'a>,
}

/// How a write ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WriteOutcome {
    existed: bool,
    applied: bool,
}

enum Step {
    Done(WriteOutcome),
    /// Done, and the bucket became so empty that it may be merged.
    Thin(WriteOutcome),
    /// The bucket lacks room for this many bytes.
    Split(usize),
}

/// Whether a bucket is to be merged with a neighbour: less than a quarter of its bytes is in use.
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
    /// Inserts an entry; `false`, and nothing changed, if the key is there already.
    ///
    /// # Errors
    /// The entry is too long, keys collide beyond measure, or the memory behind the index failed.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Absent, None)?.applied)
    }

    /// Inserts an entry, or replaces the value of one; returns whether there was one.
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    pub fn upsert(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        self.upsert_into(key, value, None)
    }

    /// Inserts an entry, or replaces the value of one; returns the value that was replaced.
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    pub fn upsert_returning(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, WriteError> {
        let mut old = Vec::new();
        Ok(self.upsert_into(key, value, Some(&mut old))?.then_some(old))
    }

    /// As [`HashIndex::upsert`]; the value that was replaced is copied to `old`.
    pub(crate) fn upsert_into(
        &self,
        key: &[u8],
        value: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Always, old)?.existed)
    }

    /// As [`HashIndex::remove`]; the value that was removed is copied to `old`.
    pub(crate) fn remove_into(
        &self,
        key: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<bool, PoolError> {
        let request = WriteRequest {
            key,
            hash: self.hash(key),
            new: None,
            condition: WriteCondition::Present,
        };
        Ok(self.apply(&request, old)?.applied)
    }

    /// Replaces the value of a key; `false`, and nothing changed, if the key is not there.
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
    pub fn replace(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.put(key, value, WriteCondition::Present, None)?.applied)
    }

    /// Sets the entry of `key` to `new` if it is `expected`, where `None` is no entry. Returns
    /// whether it was, in one step as seen by all other threads.
    ///
    /// # Errors
    /// As [`HashIndex::insert`].
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
            (Some(old), None) => {
                let (hash, condition) = (self.hash(key), WriteCondition::Equals(old));
                Ok(self.apply(&WriteRequest { key, hash, new: None, condition }, None)?.applied)
            }
        }
    }

    /// Removes an entry; `false` if there is none.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn remove(&self, key: &[u8]) -> Result<bool, PoolError> {
        self.remove_into(key, None)
    }

    /// Removes an entry; returns the value that it had.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn remove_returning(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        let mut old = Vec::new();
        Ok(self.remove_into(key, Some(&mut old))?.then_some(old))
    }

    /// Lets `f` change the bytes of a value, but not their number; `None` if the key is not
    /// there. `f` runs once, under the bucket's exclusive latch, so it must be short and must not
    /// use the store. If it panics, the latch is released, and the value is what `f` left.
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
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, WriteError> {
        let max = self.limits.entry_max;
        if key.len().saturating_add(value.len()) > max {
            return Err(WriteError::TooLong { key: key.len(), value: value.len(), max });
        }
        let request = WriteRequest { key, hash: self.hash(key), new: Some(value), condition };
        loop {
            match self.pages.run(|mtr| self.attempt(mtr, &request, old.as_deref_mut()))? {
                Step::Done(outcome) => return Ok(outcome),
                Step::Thin(outcome) => {
                    self.shrink(request.hash)?;
                    return Ok(outcome);
                }
                Step::Split(bytes) => {
                    if !self.grow(request.hash, bytes)? {
                        return Err(WriteError::Collisions { bits: self.bits_max });
                    }
                }
            }
        }
    }

    /// Applies a write that needs no room.
    fn apply(
        &self,
        request: &WriteRequest<'_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<WriteOutcome, PoolError> {
        match self.pages.run(|mtr| self.attempt(mtr, request, old.as_deref_mut()))? {
            Step::Thin(outcome) => {
                self.shrink(request.hash)?;
                Ok(outcome)
            }
            Step::Done(outcome) => Ok(outcome),
            Step::Split(_) => Ok(WriteOutcome { existed: true, applied: false }),
        }
    }

    /// Returns the bucket at `place`, latched exclusively; `None` if there is none.
    #[inline]
    pub(crate) fn bucket_to_write<'o>(&self, place: &Place<'o, P>) -> Try<Option<Write<'o, P>>> {
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
        request: &WriteRequest<'_>,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let place = self.descend_here::<false>(mtr, request.hash)?;
        let Some(mut page) = self.bucket_to_write(&place)? else {
            return self.attempt_first(mtr, place, request);
        };
        drop(place);
        let word = request.hash as u32;
        let Some(entry) = Bucket(page.view()).find(word, request.key) else {
            let (WriteCondition::Always | WriteCondition::Absent, Some(value)) =
                (request.condition, request.new)
            else {
                return Ok(Step::Done(WriteOutcome { existed: false, applied: false }));
            };
            let bytes = SLOT + record_len(request.key.len(), value.len());
            if Bucket(page.view()).free() < bytes {
                return Ok(Step::Split(bytes));
            }
            BucketMut(page.page_mut()).insert(word, request.key, value);
            return Ok(Step::Done(WriteOutcome { existed: false, applied: true }));
        };
        if !Bucket(page.view()).holds(entry) {
            return Err(corrupt(page.id(), "an entry reaches beyond its page"));
        }
        self.attempt_present(page, request, entry, old)
    }

    /// Applies a write to an entry that exists.
    fn attempt_present(
        &self,
        mut page: Write<'_, P>,
        request: &WriteRequest<'_>,
        entry: Entry,
        old: Option<&mut Vec<u8>>,
    ) -> Try<Step> {
        let value = parts(page.page(), entry).1;
        let refused = match request.condition {
            WriteCondition::Always | WriteCondition::Present => false,
            WriteCondition::Absent => true,
            WriteCondition::Equals(expected) => value != expected,
        };
        if refused {
            return Ok(Step::Done(WriteOutcome { existed: true, applied: false }));
        }
        if let Some(old) = old {
            old.clear();
            old.extend_from_slice(value);
        }
        let done = WriteOutcome { existed: true, applied: true };
        let word = request.hash as u32;
        let before = record_len(entry.key_len, entry.value_len);
        if let Some(new) = request.new {
            if new.len() == entry.value_len {
                if let Some(place) =
                    page.page_mut().get_mut(entry.value..entry.value + entry.value_len)
                {
                    place.copy_from_slice(new);
                }
                return Ok(Step::Done(done));
            }
            let after = record_len(entry.key_len, new.len());
            if Bucket(page.view()).free() + before < after {
                return Ok(Step::Split(after - before));
            }
        }
        let mut bucket = BucketMut(page.page_mut());
        bucket.remove(entry);
        if let Some(new) = request.new {
            bucket.insert(word, request.key, new);
        }
        Ok(if is_thin(bucket.read()) { Step::Thin(done) } else { Step::Done(done) })
    }

    /// Applies a write where there is no bucket yet.
    fn attempt_first<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        place: Place<'o, P>,
        request: &WriteRequest<'_>,
    ) -> Try<Step> {
        let outcome = |applied| Ok(Step::Done(WriteOutcome { existed: false, applied }));
        let (WriteCondition::Always | WriteCondition::Absent, Some(value)) =
            (request.condition, request.new)
        else {
            return outcome(false);
        };
        let slot = place.slot;
        debug_assert!(!slot.is_directory);
        let mut directory = place.directory.upgrade()?;
        let mut page = mtr.allocate(self.new_bucket())?;
        let mut bucket = BucketMut(page.page_mut());
        bucket.init(slot.bits(), prefix_of(request.hash, slot.bits()));
        bucket.insert(request.hash as u32, request.key, value);
        let swip = page.swip();
        put_u64(directory.page_mut(), slot.at, swip.0);
        mtr.adopt(swip, &directory);
        outcome(true)
    }
}
