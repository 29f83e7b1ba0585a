//! Checks of a store file, page by page, without changing it.
//!
//! A check verifies:
//! - the superblock, and each used page's checksum, id (a page written to the wrong place is
//!   found), type and owner;
//! - each tree node's layout and key order, and its fences and level against its parent;
//! - each overflow page of large values, each page of hash indexes and heaps;
//! - that each used page is referred to once, from the catalog down;
//! - free space: used pages marked as free (dangerous), unreferenced pages marked as used (lost),
//!   inconsistent free maps;
//! - out of place, the page map: damaged nodes, two pages with one place.
//!
//! Free space is known only in a closed store, and checked only there. Out of place, the pages of
//! other stores are searched for in the whole file, and the newest version of each counts.
//! Unreachable pages below a damaged page are not reported as lost.

mod fault;
mod reader;
mod report;
mod rows;
mod run;
mod structure;
mod sweep;
mod walk;

pub use crate::store::entry::Structure;
pub use fault::Fault;
pub use report::{PageCounts, Problem, Report, StructureReport};
pub use rows::{Rows, rows_in_log};
pub use run::{CheckError, CheckOptions, Progress, check, check_store};
pub(crate) use structure::owns;
pub use structure::{CATALOG, Decode, Named, Roots};

pub(crate) use reader::{BATCH, PageReader};
pub(crate) use walk::Bits;
