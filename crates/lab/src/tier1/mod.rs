//! A simulated first tier: turns a trace of page references into the requests that a buffer pool
//! sends to storage.
//!
//! The pool works as DB2's does in the thesis:
//!
//! - A miss sends READ. A worker takes its frame from the *free list*. If that is empty, it evicts,
//!   and a dirty victim is written as SYNCH.
//! - Cleaners write dirty victims as REPLACE and put them into the free list. They work whenever
//!   more than `--dirty` of the pool is dirty, and every 64 references if less than 1 % of the
//!   frames are free.
//! - Each logical write advances the log by one. When the oldest update that is not durable is
//!   `--lsn-gap` back, the oldest dirty pages are written as RECOV, to free an eighth of the gap.
//!   Then dsync rows name them and all overdue pages of the *sync list* (section 4.3.2).

mod options;
mod pool;
mod source;

pub use options::{SyncRule, Tier1Counts, Tier1Options};
pub use source::Tier1;
