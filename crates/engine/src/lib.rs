//! Millpond: an embedded storage engine that runs at main-memory speed and degrades gracefully
//! when data outgrows memory.
//!
//! The layers, each a folder that leans only on those below it: `db` (what users call), `btree`,
//! `hash_index` and `heap` (structures of pages), `pool` (the buffer pool: frames, latches,
//! translation, replacement), `page` (what every page has in common), `io` (devices and the page
//! store).
#![deny(missing_docs)]

pub mod btree;
pub mod db;
pub mod io;
pub mod page;
pub mod pool;
