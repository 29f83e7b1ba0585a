//! The heap: records that keep their ids (leanstore IV-E).
//!
//! A heap is a B⁺-tree with the record's number as key. Its keys are nearly dense, so the path from
//! a number to its page is computed, and inner nodes need only swips, no keys. A radix tree of
//! directory pages with a fan-out of 2ᵇ leads to data pages. Data pages are numbered in the order
//! in which they were allocated, and hold records in slots that keep their numbers. A record's id
//! is the page's number and the slot.
//!
//! ```text
//! id = page number · 2¹⁶ + slot        root (level 2)
//!                                      ├─ directory (level 1) ─ data 0, data 1, … data 2ᵇ − 1
//!                                      └─ directory (level 1) ─ data 2ᵇ, …
//! ```
//! The root keeps its page: when all pages below it are full, its content moves into a new child,
//! and the root is one level higher.
//!
//! A record that no longer fits on its page moves to another one, as a *guest* that carries its id;
//! a forward stays in its slot. When a guest moves again, its forward is changed, so there is never
//! more than one step. Scans skip guests and follow forwards, so they see records in the order of
//! their ids. A removed record leaves free space that is found again. A page without records is
//! freed, and its number is reused later. A record that a transaction removes keeps its slot until
//! the transaction is over (`write.rs`).
//!
//! # Synchronisation
//!
//! Readers validate versions and restart; a reader that follows a forward validates its first page
//! again once the record is copied. A writer latches only the page of its record, or that page and
//! the guest's. A guest is written before a forward points to it, and removed after its forward no
//! longer does. An operation that fails in between leaves a guest that no reader sees, which
//! [`Heap::check`] reports.

mod append;
mod change;
mod check;
mod clear;
mod data;
mod descend;
mod directory;
mod error;
mod kind;
mod lookup;
mod room;
mod scan;
mod stored;
mod table;
mod write;

pub(crate) use append::Placing;
pub use check::{Report, Violation, check_page};
pub use error::WriteError;
pub use kind::{DirectoryKind, KINDS};
pub use scan::{HeapStats, Records};
pub use stored::{StoredChild, stored_children, stored_numbers, stored_records};
pub use table::{Heap, Limits, RecordId};
