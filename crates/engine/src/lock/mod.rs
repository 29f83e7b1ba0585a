//! Locks that transactions hold on data until they end. `README.md` has the numbered rules.

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
#[cfg_attr(test, allow(unused_imports, reason = "used by what unit tests are built without"))]
pub(crate) use own::this_thread;
pub use owner::LockOwner;
pub(crate) use spinlock::{Guard as SpinlockGuard, Spinlock};
pub use waiter::interrupt_waits_by;
pub(crate) use waiter::is_interrupted;
