//! Locks: what transactions hold on data until they end. `README.md` has the numbered rules.

mod bytes;
mod counts;
mod covered;
mod entry;
mod error;
mod graph;
mod hold;
mod manager;
mod mode;
mod name;
mod near;
mod options;
mod own;
mod owner;
mod range;
mod release;
mod spinlock;
mod table;
mod tree;
mod waiter;
mod writes;

pub use counts::LockCounts;
pub use error::{LockError, TreeName};
pub use manager::LockManager;
pub use mode::LockMode;
pub use options::LockOptions;
pub use owner::LockOwner;
pub(crate) use spinlock::{Guard as SpinlockGuard, Spinlock};
pub use waiter::interrupt_waits_by;
pub(crate) use waiter::is_interrupted;
