//! Transactions: what a transaction changed, how it is rolled back, which transactions are active.

mod active;
mod active_writers;
mod autocommit;
mod before_image;
mod commit_stamp;
mod error;
mod log_room;
mod manager;
mod options;
mod savepoint;
mod scan;
mod scan_some;
mod scratch;
mod snapshot;
mod snapshot_range;
mod transaction;
mod trees;
mod undo;
mod undo_buffer;
mod undo_list;
mod unpoisoned;
mod versions;

pub use active::{Active, ActiveTable};
pub use before_image::{Found, find};
pub use error::TxnError;
pub use log_room::LogRoom;
pub use manager::TransactionManager;
pub use options::{Durability, Isolation, TxnOptions};
pub use savepoint::Savepoint;
pub use scan_some::{OwnedEntry, ScanSome};
pub use snapshot::Snapshot;
pub use snapshot_range::SnapshotRange;
pub use transaction::Transaction;
pub use trees::{Each, Look, Trees};
pub use undo::undo_one;
