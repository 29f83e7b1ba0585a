//! Faults of a store.

use millpond_base::PageId;

use crate::btree::Violation;
use crate::io::{MapError, ReadError, named};
use crate::page::superblock::SuperblockError;
use crate::{hash_index, heap};

/// A fault of a store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Page 0 is not a valid superblock.
    #[error("no superblock that can be used: {0}")]
    Superblock(SuperblockError),
    /// The file ends before the store does.
    #[error("the file is cut off: the superblock counts {expected} pages, and there are {found}")]
    Truncated {
        /// Expected number of pages.
        expected: u64,
        /// Number of pages in the file.
        found: u64,
    },
    /// The store was not closed.
    #[error(
        "the store was not closed (process {pid} had it open): its map of free pages is out of \
         date and not compared, and its pages need not fit together"
    )]
    NotClosed {
        /// The process that had the store open.
        pid: u32,
    },
    /// A closed store does not open, because it refuses the log beside it.
    #[error(
        "the store does not open with the log beside it: {reason}; `millpond recover --salvage` \
         opens it without"
    )]
    Log {
        /// The error of opening.
        reason: String,
    },
    /// The page cannot be read, or differs from the page written there.
    #[error("{}", unreadable(.0))]
    Unreadable(#[from] ReadError),
    /// The page is inconsistent, or contradicts its parent.
    #[error(transparent)]
    Node(#[from] Violation),
    /// A page of a hash index is faulty.
    #[error(transparent)]
    Hash(#[from] hash_index::Violation),
    /// A page of a heap is faulty.
    #[error(transparent)]
    Heap(#[from] heap::Violation),
    /// The root or a child of a structure is a page of another type.
    #[error("the page has type {found}, which does not belong here")]
    Type {
        /// Type in the page.
        found: u8,
    },
    /// A page of a hash index or a heap contradicts the page that refers to it: one of them is an
    /// older version of itself.
    #[error("the page does not fit the one that refers to it: {what}")]
    Misfit {
        /// The mismatch.
        what: String,
    },
    /// A swip on storage is not a page id.
    #[error("the reference at byte {at} is no page id ({word:#018x})")]
    Swip {
        /// Offset in the page.
        at: usize,
        /// The word found.
        word: u64,
    },
    /// A reference to a page that cannot exist.
    #[error("the reference at byte {at} leads to page {child}, and the store has {pages} pages")]
    Beyond {
        /// Offset in the page; 0 for a root that is named elsewhere.
        at: usize,
        /// The page referred to.
        child: PageId,
        /// Pages of the store.
        pages: u64,
    },
    /// A reference to the superblock or to a free map.
    #[error("the reference at byte {at} leads to page {child}, which is the store's own")]
    Reserved {
        /// Offset in the page; 0 for a root that is named elsewhere.
        at: usize,
        /// The page referred to.
        child: PageId,
    },
    /// The page has two parents.
    #[error("the page is referred to twice{}", by(.parent))]
    Twice {
        /// The second parent that was found; `None` if the page is also a root.
        parent: Option<PageId>,
    },
    /// The page is both in use and free: it would be allocated again.
    #[error("the page is in use, but is free in the map of free pages: dangerous")]
    Free,
    /// The page is not free, and nothing refers to it.
    #[error("the page is marked as used, and nothing refers to it: its space is lost")]
    Leaked,
    /// Pages without a reference, most likely because the referring page is damaged.
    #[error("{pages} pages, this one and later ones, cannot be reached any more")]
    CutOff {
        /// Number of pages.
        pages: u64,
    },
    /// The map of free pages has an impossible state for the page.
    #[error("this page is {said} in the map of free pages, page {map}")]
    FreeMap {
        /// The page of the map.
        map: PageId,
        /// The map's state: free, though reserved; or used, though beyond the end.
        said: &'static str,
    },
    /// The page map is damaged.
    #[error("{0}; the pages were looked for in the whole file")]
    PageMap(MapError),
    /// A page of the store itself has the wrong type.
    #[error("a page of the store itself has type {found}, not {expected}")]
    OwnType {
        /// Type in the page.
        found: u8,
        /// Type required at that place.
        expected: u8,
    },
    /// The superblock names no catalog, so nothing can be reached.
    #[error("the superblock names no catalog of trees")]
    NoCatalog,
    /// The log's count of a tree's entries is wrong.
    #[error("{counted} entries are counted in the log, and the tree has {found}")]
    Rows {
        /// The number in the log.
        counted: u64,
        /// The number found.
        found: u64,
    },
    /// An entry of the catalog is invalid.
    #[error("entry {entry} of the catalog's page is no structure: {why}")]
    Catalog {
        /// Number of the entry in the page.
        entry: usize,
        /// The fault.
        why: String,
    },
}

fn by(parent: &Option<PageId>) -> String {
    match parent {
        Some(page) => format!(", the second time by page {page}"),
        None => ", the second time as a root".to_string(),
    }
}

/// Describes the fault without the page, which the report names anyway.
fn unreadable(error: &ReadError) -> String {
    match error {
        ReadError::Checksum { stored, computed, .. } => {
            format!("damaged: checksum stored {stored:#018x}, computed {computed:#018x}")
        }
        ReadError::Misplaced { found, .. } => {
            let found = named(*found);
            format!("{found} stands in its place: a write was lost, or went to the wrong place")
        }
        ReadError::Stale { .. } => "an older version stands in its place: a write was lost".into(),
        ReadError::Nowhere { .. } => "the page map has no place for it".into(),
        ReadError::Device { error: source, .. } => format!("cannot be read: {source}"),
        other => other.to_string(),
    }
}
