//! Millpond: an embedded storage engine that runs at main-memory speed and degrades gracefully
//! when data outgrows memory.
//!
//! ```
//! use millpond::db::{Db, Error, Options};
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

pub mod btree;
pub mod db;
pub mod hash_index;
pub mod heap;
pub mod io;
pub mod lock;
pub mod log;
pub mod page;
pub mod pool;
pub mod recovery;
pub mod txn;
