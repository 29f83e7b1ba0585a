//! Names of key locks: 64 bits for a tree and a key.
//!
//! The table of locks knows only these names, not the keys. Two keys that share a name share a
//! lock. That may cause a needless wait, but is never wrong (rule 2).

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The name of a key's lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Name(pub u64);

impl Name {
    /// Returns the name of `key`'s lock in `tree`.
    #[inline]
    pub fn of(tree: u32, key: &[u8]) -> Name {
        Name(xxh3_64_with_seed(key, u64::from(tree)))
    }

    /// Returns the shard of the name, out of `shards` (a power of two). A table within a shard uses
    /// the other bits.
    #[inline]
    pub fn shard(self, shards: usize) -> usize {
        (self.0 >> 20) as usize & (shards - 1)
    }
}
