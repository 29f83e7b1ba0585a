//! The options of a cache.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::hints::{FromCaller, Hints};

/// Allowed bytes per part: a power of two in this range.
pub const PART_BYTES: RangeInclusive<u32> = 4096..=16 << 20;

/// Assumption about other writers to the object store; it decides how long a copy may be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// Others never overwrite an object. A version that was read stays valid until it is
    /// overwritten or deleted through this store. An object that another program deletes is served
    /// from the cache for as long as the cache has it. SlateDB's tables are such objects.
    Immutable,
    /// Others may overwrite objects. Before each read from the cache, the object's head is
    /// requested. An object without an entity tag or a version is not cached.
    Checked,
}

/// Options of a cache.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Path of the cache's file, which is created if it does not exist. The list of the objects
    /// with parts in it is stored beside it, under the same name and `.objects`.
    pub path: PathBuf,
    /// Maximum size of the file in bytes.
    pub bytes: u64,
    /// The policy, with parameters as on a command line: any online one of the second tier, or of
    /// the first.
    pub policy: String,
    /// Trust in copies, which depends on other writers to the object store.
    pub freshness: Freshness,
    /// Bytes of a part, the unit of the cache; a power of two within [`PART_BYTES`].
    pub part_bytes: u32,
    /// Maximum bytes per request to the object store, rounded down to whole parts. A longer get is
    /// several requests.
    pub window_bytes: u64,
    /// Seed of the policy's random choices.
    pub seed: u64,
    /// Bypass the operating system's page cache where the file system allows it.
    pub direct: bool,
    /// Source of the hints of each request.
    pub hints: Arc<dyn Hints>,
}

impl CacheOptions {
    /// Returns the options of a cache in parts of 16 KiB, with hints from callers ([`FromCaller`]).
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
