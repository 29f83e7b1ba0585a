//! The options of a cache.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::hints::{FromCaller, Hints};

/// Bytes of a part: a power of two within these.
pub const PART_BYTES: RangeInclusive<u32> = 4096..=16 << 20;

/// Who else writes to the object store, and so how long a copy may be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// Others never overwrite an object: what was read of it once holds until it is overwritten or
    /// deleted through this store. An object that somebody else deletes is served from the cache
    /// for as long as it has it. SlateDB's tables are such objects.
    Immutable,
    /// Others may: before an object is served from the cache its head is asked for, each time. An
    /// object without an entity tag or a version is not cached then.
    Checked,
}

/// Options of a cache.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Its file; made if it is not there. Beside it, under the same name and `.objects`, lies what
    /// tells which objects the file has parts of.
    pub path: PathBuf,
    /// Bytes of the file at most.
    pub bytes: u64,
    /// The policy, with parameters as on a command line: any online one of the second tier, or of
    /// the first.
    pub policy: String,
    /// Trust in copies, which depends on other writers to the object store.
    pub freshness: Freshness,
    /// Bytes of a part, the unit of the cache; a power of two within [`PART_BYTES`].
    pub part_bytes: u32,
    /// Bytes that one request to the object store asks for at most, rounded down to parts. A get
    /// of more is several requests.
    pub window_bytes: u64,
    /// Seed of the policy's random choices.
    pub seed: u64,
    /// Bypass the operating system's page cache where the file system allows it.
    pub direct: bool,
    /// What a request says of why it is made.
    pub hints: Arc<dyn Hints>,
}

impl CacheOptions {
    /// A cache in parts of 16 KiB, with the hints that callers give ([`FromCaller`]).
    pub fn new(
        path: impl Into<PathBuf>,
        bytes: u64,
        policy: &str,
        freshness: Freshness,
    ) -> CacheOptions {
        CacheOptions {
            path: path.into(),
            bytes,
            policy: policy.to_string(),
            freshness,
            part_bytes: 16 << 10,
            window_bytes: 8 << 20,
            seed: 1,
            direct: true,
            hints: Arc::new(FromCaller::default()),
        }
    }
}
