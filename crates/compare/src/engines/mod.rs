//! The engines: one adapter each, and each configured as its own documentation advises.
//!
//! To add an engine, write one file here with the store trait of `millpond_workload::live` and
//! `Engine` (open, settle, close). Add a line to `roster.rs` and one to
//! `tests/contract.rs`, whose check has to pass before a figure means anything. An engine with a C
//! interface and no maintained binding has a C file and safe types over it in `src/native`.

#[cfg(feature = "berkeleydb")]
mod berkeleydb;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
mod millpond;
mod millpond_tree;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "sqlite")]
mod sqlite;
mod twin;
#[cfg(feature = "wiredtiger")]
mod wiredtiger;

#[cfg(feature = "berkeleydb")]
pub use berkeleydb::BerkeleyDb;
#[cfg(feature = "fjall")]
pub use fjall::Fjall;
#[cfg(feature = "lmdb")]
pub use lmdb::Lmdb;
pub use millpond::Millpond;
pub use millpond_tree::MillpondTree;
#[cfg(feature = "redb")]
pub use redb::Redb;
#[cfg(feature = "rocksdb")]
pub use rocksdb::Rocks;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use twin::InMemoryTwin;
#[cfg(feature = "wiredtiger")]
pub use wiredtiger::WiredTiger;
