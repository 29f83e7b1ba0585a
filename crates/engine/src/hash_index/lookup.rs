//! Looks up single keys.
//!
//! [`HashIndex::get`] copies the value while its bucket is read optimistically. The caller's
//! closure sees the copy after validation, outside the attempt: it runs once, and under no latch.
//! [`HashIndex::read`] instead latches the bucket in shared mode, at the version that was read, and
//! the closure sees the value in its page.

use millpond_base::AccessKind;

use crate::hash_index::bucket::{Bucket, Entry};
use crate::hash_index::descend::{mark, wrong};
use crate::hash_index::error::corrupt;
use crate::hash_index::index::HashIndex;
use crate::page::Scratch;
use crate::pool::{Jump, MiniTransaction, Pages, PoolError, Read, Shared, Try};

/// Bytes to prefetch: of a bucket, its header and the first slots; and of a value whose bucket is
/// about to be latched.
const AHEAD: usize = 256;

impl<P: Pages> HashIndex<P> {
    /// Calls `f` with the value of `key` and returns its result, or `None` if there is no such key.
    ///
    /// # Errors
    /// The memory behind the index failed.
    #[inline]
    pub fn get<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        let mut scratch = Scratch::default();
        Ok(if self.find(key, Some(&mut scratch))? { Some(f(scratch.bytes())) } else { None })
    }

    /// Calls `f` with the value of `key` in its page, without a copy, and returns its result.
    /// Returns `None` if there is no such key.
    ///
    /// `f` runs once, under the bucket's shared latch. It must follow the rules of
    /// [`BTree::read`](crate::btree::BTree::read).
    ///
    /// # Errors
    /// The memory behind the index failed.
    #[inline]
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        Ok(self.hold(key)?.map(|held| f(held.bytes())))
    }

    /// Copies the value of `key` to `out`. Returns `false`, and empties `out`, if there is no such
    /// key.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, PoolError> {
        out.clear();
        Ok(self.get(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Returns a copy of the value of `key`.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        self.get(key, <[u8]>::to_vec)
    }

    /// Returns whether `key` exists.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn contains(&self, key: &[u8]) -> Result<bool, PoolError> {
        self.find(key, None)
    }

    /// Returns whether `key` exists, and copies its value to `scratch`, if given.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &[u8],
        mut scratch: Option<&mut Scratch>,
    ) -> Result<bool, PoolError> {
        self.pages.run(|mtr| {
            let Some((page, entry)) = self.look(mtr, key)? else { return Ok(false) };
            let Some(scratch) = scratch.as_deref_mut() else {
                page.validate()?;
                return Ok(true);
            };
            let copied = page.view().copy_out(entry.value, entry.value_len, scratch);
            page.validate()?;
            if copied { Ok(true) } else { Err(beyond(&page)) }
        })
    }

    /// Returns the value of `key`, with its bucket latched in shared mode, or `None` if there is no
    /// such key.
    #[inline(never)]
    pub(crate) fn hold(&self, key: &[u8]) -> Result<Option<Shared<'_>>, PoolError> {
        let pages: &P = &self.pages;
        pages.run(|mtr| {
            let Some((page, entry)) = self.look(mtr, key)? else { return Ok(None) };
            // The processor does not prefetch past the latch.
            page.view().prefetch(entry.value, entry.value_len.min(AHEAD));
            let id = page.header().page().unwrap_or_default();
            match page.share(pages, entry.value, entry.value_len)? {
                Some(held) => Ok(Some(held)),
                None => Err(corrupt(id, BEYOND)),
            }
        })
    }

    /// Returns the bucket with the entry of `key`, and the entry's offsets. Both are valid once the
    /// bucket was validated.
    #[inline(always)]
    fn look<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
    ) -> Try<Option<(Read<'o, P>, Entry)>> {
        let hash = self.hash(key);
        let place = self.descend_here::<false>(mtr, hash)?;
        if place.is_empty() {
            place.directory.validate()?;
            return Ok(None);
        }
        let to = mark(AccessKind::Read, place.depth + 1);
        let page = place.directory.child(place.slot.at, to)?;
        let bucket = Bucket(page.view());
        bucket.0.prefetch(0, AHEAD);
        if !bucket.is_bucket() {
            return wrong(&page);
        }
        let Some(entry) = bucket.find(hash as u32, key) else {
            page.validate()?;
            return Ok(None);
        };
        Ok(Some((page, entry)))
    }
}

const BEYOND: &str = "a value reaches beyond its page";

#[cold]
fn beyond<P: Pages>(page: &Read<'_, P>) -> Jump {
    corrupt(page.header().page().unwrap_or_default(), BEYOND)
}
