//! Millpond's second tier below SlateDB: SlateDB's call tags as hints, and a measurement.
//!
//! ```
//! use std::sync::Arc;
//! use millpond_object_store::{CacheOptions, CachedStore, Freshness};
//! use millpond_slate::SlateHints;
//! use slatedb::Db;
//! use slatedb::object_store::{ObjectStore, memory::InMemory};
//!
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let cache = folder.path().join("slate.tier");
//! let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
//! let options = CacheOptions {
//!     hints: Arc::new(SlateHints::default()),
//!     ..CacheOptions::new(cache, 16 << 20, "t2-lru", Freshness::Immutable)
//! };
//! let store = CachedStore::open(bucket, options)?;
//! let db = Db::builder("shop", Arc::new(store.clone())).build().await?;
//! db.put(b"key", b"value").await?;
//! assert_eq!(db.get(b"key").await?.as_deref(), Some(b"value".as_ref()));
//! db.close().await?;
//! store.close();
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

pub mod hints;
pub mod intervals;
pub mod remote;
pub mod roster;
pub mod workload;

pub use hints::{Deaf, SlateHints};
