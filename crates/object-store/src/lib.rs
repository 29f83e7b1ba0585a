//! A second tier in front of any object store: fixed parts of objects are kept in a file on a local
//! device, by any policy of the second tier, and the caller's kind of request is the policy's hint.
//!
//! ```
//! use std::sync::Arc;
//! use millpond_object_store::{CacheOptions, CachedStore, Freshness};
//! use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let cache = folder.path().join("objects.tier");
//! let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
//! let options = CacheOptions::new(cache, 16 << 20, "tq", Freshness::Immutable);
//! let store = CachedStore::open(bucket, options)?;
//!
//! let path = Path::from("table/7.sst");
//! store.put(&path, vec![7; 300_000].into()).await?;
//! let bytes = store.get_range(&path, 100_000..100_010).await?;
//! assert_eq!(bytes, vec![7; 10]);
//! assert_eq!(store.stats().total().bytes_fetched, 0);
//! store.close(); // The next one with this file starts warm.
//! # Ok(()) }
//! ```
//!
//! The guide, with what is guaranteed, is `docs/object-store.md`.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod delete;
mod error;
mod flights;
mod front;
mod hints;
mod nowhere;
mod object;
mod options;
mod plan;
mod read;
mod registry;
mod reservation;
mod saved;
mod stats;
mod store;
mod touch;
mod upload;
mod write;

pub use error::OpenCacheError;
pub use hints::{Class, FromCaller, Hint, Hints, ReadPlan, WritePlan};
pub use options::{CacheOptions, Freshness, PART_BYTES};
pub use stats::{ClassStats, Stats};
pub use store::CachedStore;
