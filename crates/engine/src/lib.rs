//! Millpond: an embedded storage engine that runs at main-memory speed and degrades gracefully
//! when data outgrows memory.
//!
//! ```
//! use millpond::{Db, Error, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("shop.mill");
//! let db = Db::open(&path, Options::new().memory(64 << 20))?;
//! let stock = db.tree::<(String, u32), u64>("stock")?;
//! stock.insert(&("bolts", 8), &1200)?;
//! stock.insert(&("bolts", 6), &300)?;
//! stock.insert(&("nuts", 6), &500)?;
//!
//! assert_eq!(stock.get(&("nuts", 6))?, Some(500));
//! let bolts: Result<u64, Error> = stock.prefix(&("bolts",)).map(|row| Ok(row?.1)).sum();
//! assert_eq!(bolts?, 1500);
//!
//! drop(stock);
//! db.close()?;
//! # Ok(()) }
//! ```
//!
//! A [`Db`] has named [`Tree`]s, ordered maps with typed keys and values, and beside them
//! [`HashIndex`]es and [`Heap`]s. A tree has the same methods in three places: by itself, where
//! each call takes effect as a whole; inside a transaction, by [`Db::transact`] and [`Txn::tree`];
//! and in a snapshot, reads only, by [`Db::snapshot`] and [`Snapshot::tree`]:
//!
//! ```
//! # use millpond::{Db, Error, Options};
//! # fn main() -> Result<(), Error> {
//! # let db = Db::in_memory(Options::new().memory(16 << 20))?;
//! let (stock, sold) = (db.tree::<String, u64>("stock")?, db.tree::<u64, String>("sold")?);
//! stock.put("bolts", &1200)?;
//! let before = db.snapshot()?;
//! db.transact(|tx| {
//!     tx.tree(&stock).update("bolts", |count| Some(count? - 1))?;
//!     tx.tree(&sold).put(&1, "bolts")
//! })?;
//! assert_eq!(stock.get("bolts")?, Some(1199));
//! assert_eq!(before.tree(&stock).get("bolts")?, Some(1200));
//! # Ok(()) }
//! ```
//!
//! `docs/guide.md` in the repository has a program for each common task.
//!
//! The layers, each a folder that uses only those below it: `api` (the public API), `admin`
//! (backup, shrink, check), `store`, `recovery` and `txn`, the structures `btree`, `hash_index` and
//! `heap`, `lock`, `pool` (the buffer pool: frames, latches, translation, replacement), `log` (the
//! write-ahead log), `io` (the page store), `page` (formats), `encoding` and `stats`. Devices and
//! the second tier are crates of their own. Everything but the public API is in `internals`, with
//! the cargo feature of that name, and carries no promise of stability.
#![deny(missing_docs)]
#![cfg_attr(
    any(feature = "model", not(feature = "internals")),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "without `Db`, or without `internals`, some of it has no user"
    )
)]

/// The README's code is compiled and run with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// Program of the architecture page.
#[cfg(doctest)]
#[doc = include_str!("../../../ARCHITECTURE.md")]
pub struct Architecture;

/// Programs of the guide, and Rust samples of other pages.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
pub struct Guide;

/// The first program.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/start/rust.md")]
pub struct StartRust;

/// Samples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/transactions.md")]
pub struct Transactions;

/// Samples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/durability.md")]
pub struct DurabilityPage;

/// Samples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/memory.md")]
pub struct Memory;

/// Samples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/backup.md")]
pub struct BackupPage;

/// Samples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/second-tier.md")]
pub struct SecondTierPage;

/// Samples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/choosing.md")]
pub struct Choosing;

/// Samples of the page.
#[cfg(all(doctest, feature = "profile"))]
#[doc = include_str!("../../../docs/breakdown.md")]
pub struct BreakdownPage;

mod admin;
#[cfg(not(any(test, feature = "model")))]
mod api;
mod btree;
pub mod codec;
mod encoding;
pub mod error;
mod hash_index;
mod heap;
mod io;
mod lock;
mod log;
mod page;
mod parameters;
mod pool;
mod recovery;
pub mod report;
mod stats;
mod store;
mod txn;
mod words;

#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;

/// Sampling of CPU time by component: the result of [`Db::profile`], and finer control of it.
#[cfg(feature = "profile")]
pub use millpond_profile as profile;

// Options for measurements.
#[cfg(feature = "internals")]
pub use {
    millpond_device::Submission,
    page::superblock::Placement,
    pool::EvictionMode,
    store::{DirectIo, Lab},
};

#[cfg(not(any(test, feature = "model")))]
pub use api::{
    Autocommit, Cursor, Db, Entries, ExtractIf, HashIndex, Heap, PendingCommit, Range, RawTree,
    Reads, Records, Snapshot, TransactOptions, Tree, Txn, ValueReader, Writes,
};
pub use btree::{BulkOptions, TreeStats};
pub use encoding::{Key, KeyRange, Value};
pub use heap::RecordId;
pub use page::superblock::Compression;
#[cfg(feature = "serde")]
pub use store::Postcard;
pub use store::{
    Entry, Error, ErrorKind, Freshness, Latency, Options, OwnPolicies, Published,
    SecondTierOptions, Stats, Structure, TypeNames,
};
pub use txn::{Durability, Isolation, Savepoint, TxnOptions};
