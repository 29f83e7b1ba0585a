//! The engines: one adapter each, and each configured as its own documentation advises.

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
