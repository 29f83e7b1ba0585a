//! Mini-transactions and their log side: changes are kept until the end, and then logged as one
//! record.
//!
//! # Rules
//! 1. A page that a logged mini-transaction changed stays latched until the record about it is in
//!    the log: so the records about one page are in the order of its changes.
//! 2. One record covers all changes of a mini-transaction. It leaves a sound structure behind
//!    (`pool/pages.rs`, rule 2), so any prefix of the log recovers to a sound structure, too.
//! 3. The first record about a page that is new holds all of it. Where pages are written in place,
//!    so does the first record about a page that was clean. Recovery then needs no page from
//!    storage, and a page that a write tore does no harm. Where pages are written out of place,
//!    storage has the version of each page that the durable page map refers to, and redo begins
//!    with that version.
//! 4. A page id is freed, and reused, only after the record that frees it.
//! 5. No pointer reaches the log: swips are logged in their evicted form.
//! 6. Changes that allocate or free pages are logged under the mutex of [`PageSpace`], so that a
//!    checkpoint sees the page space as of one position of the log.
//! 7. Changes of the number of a tree's entries are logged under a mutex of [`RowCounts`], for the
//!    same reason.
//!
//! The mini-transaction itself (`attempt.rs`) knows frames and latches, not the pool. Guards over
//! its pages are in `pool/guard.rs`; `pool/pages.rs` runs it.
mod attempt;
mod change_log;
mod change_set;
pub mod kind;
mod page_space;
mod redo_log;
mod row_counts;

pub use attempt::{MiniTransaction, PageMemory, References};
pub use change_log::{ChangeLog, NoLog};
pub use change_set::{Actor, ChangeSet};
pub use page_space::PageSpace;
pub use redo_log::RedoLog;
pub use row_counts::{HeldSlot, RowCount, RowCounts};

pub(in crate::pool) use change_set::PageCopies;
