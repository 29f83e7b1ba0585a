//! A small threaded buffer pool that seats any policy as the contract says.

mod header;
mod host;
mod pool;
mod seat;
mod workers;

pub use pool::Setup;
pub use seat::Seat;
pub use workers::{Load, run};
