//! Adapters of the engine's trees, stores and transactions for the drivers of
//! `millpond-workload`.
//!
//! - [`tree_store`]: trees on a pool or on the in-memory twin.
//! - [`db_store`]: the store that users open.
//! - [`txn_store`]: a store with transactions, in one combination of strategies.
//! - [`names`]: tables by name and number.

pub mod db_store;
pub mod names;
pub mod tree_store;
#[cfg(feature = "runs")]
pub mod txn_store;
