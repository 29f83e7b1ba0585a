//! A small threaded buffer pool that hosts any policy as the contract requires.

mod header;
mod host;
mod policy_host;
mod pool;
mod workers;

pub use policy_host::PolicyHost;
pub use pool::Setup;
pub use workers::{Load, run};
