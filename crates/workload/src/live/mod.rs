//! Live runs: the store trait of the drivers, and a reference store over `BTreeMap`.

mod contract;
mod error;
mod full_scan;
mod memory;
mod store;

pub use contract::{Breach, check_contract};
pub use error::DriveError;
pub use full_scan::{ScanTotal, full_scan};
pub use memory::{MemoryError, MemorySession, MemoryStore};
pub use store::{Access, Direction, Extent, Scan, Session, Store, TableId};
