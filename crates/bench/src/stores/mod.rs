//! The engine's trees, stores and transactions as the store that the drivers of
//! `millpond-workload` speak to.
//!
//! - [`tree_store`]: trees on a pool or on the in-memory twin.
//! - [`db_store`]: a store as users open it.
//! - [`txn_store`]: a store with transactions, in one combination of strategies.
//! - [`names`]: tables by name and number.

pub mod db_store;
pub mod names;
pub mod tree_store;
#[cfg(feature = "runs")]
pub mod txn_store;
