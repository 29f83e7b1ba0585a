//! Transactions: what a transaction did, how it is taken back, which ones are under way.

mod active;
mod active_writers;
mod before_image;
mod commit_stamp;
mod error;
mod log_room;
mod manager;
mod run;
mod scan_some;
mod scratch;
mod snapshot;
mod snapshot_range;
mod spilled;
mod transaction;
mod undo_buffer;
mod undo_list;
mod versions;

pub use active::{Active, ActiveTable};
pub use before_image::{Found, find};
pub use error::TxnError;
pub use log_room::LogRoom;
pub use manager::{Each, Look, TransactionManager, Trees};
pub use scan_some::{OwnedEntry, ScanSome};
pub use snapshot::Snapshot;
pub use snapshot_range::SnapshotRange;
pub use transaction::{Durability, Isolation, Savepoint, Transaction, TxnOptions};
