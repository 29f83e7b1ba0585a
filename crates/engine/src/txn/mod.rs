//! Transactions: what a transaction did, how it is taken back, which ones are under way.

mod active;
mod error;
mod kit;
mod manager;
mod transaction;
mod undo_list;

pub use active::{Active, ActiveTable};
pub use error::TxnError;
pub use manager::TransactionManager;
pub use transaction::{Durability, Isolation, Savepoint, Transaction, TxnOptions};
