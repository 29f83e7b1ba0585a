//! Transactions: what a transaction did, how it is taken back, which ones are under way.

mod active;
mod calls;
mod changes;
mod error;
mod kit;
mod log_room;
mod manager;
mod run;
mod snapshot;
mod snapshot_range;
mod spilled;
mod stamp;
mod transaction;
mod undo_list;
mod versions;
mod was;

pub use active::{Active, ActiveTable};
pub use error::TxnError;
pub use log_room::LogRoom;
pub use manager::{Each, Look, TransactionManager, Trees};
pub use snapshot::Snapshot;
pub use snapshot_range::SnapshotRange;
pub use transaction::{Durability, Isolation, Savepoint, Transaction, TxnOptions};
pub use was::{Found, find};
