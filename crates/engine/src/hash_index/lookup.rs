//! Looking up one key.
//!
//! The value is copied while its bucket is read optimistically; the caller's closure sees the copy
//! after validation, outside the attempt: it runs once, and under no latch.

use millpond_base::Op as Use;

use crate::hash_index::bucket::Bucket;
use crate::hash_index::descend::{corrupt, mark, wrong};
use crate::hash_index::index::HashIndex;
use crate::page::Scratch;
use crate::pool::{Pages, PoolError};

/// Bytes of a bucket that are asked for ahead: its header and the first slots.
const AHEAD: usize = 256;

impl<P: Pages> HashIndex<P> {
    /// What `f` makes of the value of `key`; `None` if there is no such key.
    ///
    /// # Errors
    /// The memory behind the index failed.
    #[inline]
    pub fn get<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        let mut scratch = Scratch::default();
        Ok(if self.find(key, Some(&mut scratch))? { Some(f(scratch.bytes())) } else { None })
    }

    /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, PoolError> {
        out.clear();
        Ok(self.get(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// A copy of the value of `key`.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        self.get(key, <[u8]>::to_vec)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn contains(&self, key: &[u8]) -> Result<bool, PoolError> {
        self.find(key, None)
    }

    /// Whether `key` is there; if so, its value goes to `scratch`.
    #[inline]
    pub(crate) fn find(
        &self,
        key: &[u8],
        mut scratch: Option<&mut Scratch>,
    ) -> Result<bool, PoolError> {
        let hash = self.hash(key);
        self.pages.run(|op| {
            let place = self.descend_here::<false>(op, hash)?;
            if place.is_empty() {
                place.directory.validate()?;
                return Ok(false);
            }
            let to = mark(Use::Read, place.depth + 1);
            let page = place.directory.child(place.slot.at, to)?;
            let bucket = Bucket(page.view());
            bucket.0.prefetch(0, AHEAD);
            if !bucket.is_bucket() {
                return wrong(&page);
            }
            let Some(entry) = bucket.find(hash as u32, key) else {
                page.validate()?;
                return Ok(false);
            };
            let Some(scratch) = scratch.as_deref_mut() else {
                page.validate()?;
                return Ok(true);
            };
            let copied = bucket.0.copy_out(entry.value, entry.value_len, scratch);
            page.validate()?;
            if copied {
                Ok(true)
            } else {
                let id = page.header().page().unwrap_or_default();
                Err(corrupt(id, "a value reaches beyond its page"))
            }
        })
    }
}
