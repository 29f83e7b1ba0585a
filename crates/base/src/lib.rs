//! The vocabulary that every Millpond crate shares.
//!
//! The crate knows no policy, no trace and no engine. It holds ids, the marks of references, sizes
//! with units, seeds, uuids, the rules of page cleaning and read-ahead, the sync list, errors that
//! hold errors, switches as words, and the shim that lets a model checker replace atomics and
//! locks.

pub mod cleaning;
#[cfg(all(feature = "critical-sections", not(feature = "model")))]
mod counted_locks;
pub mod errors;
mod face;
pub mod ids;
pub mod little_endian;
pub mod mark;
pub mod nearest;
mod past_poison;
pub mod read_ahead;
#[doc(hidden)]
pub mod rounds;
#[doc(hidden)]
pub mod sections;
pub mod seed;
pub mod size;
pub mod sync;
pub mod sync_list;
pub mod uuid;
pub mod words;

pub use face::{Face, Parameter, Spelled};
pub use ids::{FrameId, Lsn, PageId, Tick};
pub use mark::{AccessKind, Mark, PageKind, Reason};
pub use past_poison::PastPoison;
pub use seed::Seed;
pub use size::{Share, Size, SizeError};
