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
//! The layers, each a folder that leans only on those below it: `db` (what users call), `recovery`
//! and `txn` (what makes a store whole after a crash; transactions), `btree`, `hash_index`, `heap`
//! (structures of pages) beside `lock`, `pool` (the buffer pool: frames, latches, translation,
//! replacement), `log` (the write-ahead log), `io` (devices and the page store), `page` (formats).
#![deny(missing_docs)]

/// The README's code is compiled and run with the examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

mod admin;
#[cfg(not(test))]
mod api;
mod btree;
mod encoding;
mod hash_index;
mod heap;
mod io;
mod lock;
mod log;
mod page;
mod pool;
mod recovery;
mod store;
mod txn;
mod words;

#[doc(hidden)]
pub mod internals;

pub use admin::{
    Backup, BackupPhase, BackupProgress, LogRecord, ShrinkProgress, ShrinkWatch, Shrunk,
};
#[cfg(not(test))]
pub use api::{
    Db, Entries, HashIndex, Heap, Range, RawEntries, RawHashIndex, RawHeap, RawRange, RawReader,
    RawRecords, RawTree, Records, Snapshot, TransactOptions, Tree, Txn,
};
pub use encoding::{DecodeError, Key, KeyRange, Value};
pub use io::Submission;
pub use pool::EvictionMode;
pub use recovery::{
    LogDamage, LostRecords, Obstacle, Phase, Progress, Recovery, Salvaged, StrayPage, StrayPages,
};
#[cfg(feature = "serde")]
pub use store::Postcard;
pub use store::{
    BackupError, DirectIo, Entry, Error, Freshness, Lab, Latency, Options, OptionsError,
    OwnPolicies, Published, Publisher, RecoveryWatch, Stats, Structure, TypeNames,
};
pub use txn::{Durability, Isolation, Savepoint, TxnError, TxnOptions};
pub use words::ChoiceError;
