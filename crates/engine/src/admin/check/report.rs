//! Report of a check.

use std::fmt;
use std::path::PathBuf;

use millpond_base::PageId;

use crate::admin::check::fault::Fault;
use crate::page::superblock::Superblock;
use crate::page::{PageSize, PageType};
use crate::store::entry::Structure;

/// A fault and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The page.
    pub page: PageId,
    /// Offset of the page in the file, in bytes.
    pub offset: u64,
    /// Name of the structure that the page belongs to, if it is known.
    pub structure: Option<String>,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} (offset {}", self.page, self.offset)?;
        if let Some(name) = &self.structure {
            write!(f, ", {name}")?;
        }
        write!(f, "): {}", self.fault)
    }
}

/// Result of the walk through a named structure.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StructureReport {
    /// Name of the structure.
    pub name: String,
    /// Owner id in its pages.
    pub owner: u32,
    /// Kind of the structure.
    pub kind: Structure,
    /// Page of its root.
    pub root: PageId,
    /// Levels of a tree, 1 if its root is a leaf; 0 for other structures.
    pub height: u32,
    /// Entries of a tree or hash index, records of a heap.
    pub entries: u64,
    /// Pages of inner nodes.
    pub inner_pages: u64,
    /// Pages of leaves.
    pub leaf_pages: u64,
    /// Pages of values too large for a leaf.
    pub overflow_pages: u64,
    /// Pages of other kinds.
    pub other_pages: u64,
    /// Bytes in use in leaves, for entries and fences.
    pub leaf_bytes_used: u64,
    /// Bytes available for them in leaves.
    pub leaf_bytes: u64,
    /// Set if the structure has a fault, so that the figures are too low.
    pub damaged: bool,
}

impl StructureReport {
    /// Returns the number of all its pages.
    pub fn pages(&self) -> u64 {
        self.inner_pages + self.leaf_pages + self.overflow_pages + self.other_pages
    }

    /// Returns the used share of the leaves, or 0 without leaves.
    pub fn fill(&self) -> f64 {
        if self.leaf_bytes == 0 {
            0.0
        } else {
            self.leaf_bytes_used as f64 / self.leaf_bytes as f64
        }
    }
}

/// Numbers of pages by use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageCounts {
    /// The superblock and the maps of free pages.
    pub own: u64,
    /// Pages in use, reached from the catalog.
    pub used: u64,
    /// Free pages.
    pub free: u64,
    /// Pages marked as used, and not reached.
    pub lost: u64,
    /// Pages, reserved or in use, that could not be read.
    pub unreadable: u64,
}

/// Report of a check.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Path of the store.
    pub path: PathBuf,
    /// Page size of the store.
    pub page_size: PageSize,
    /// Pages in the file.
    pub pages: u64,
    /// The superblock, if it is sound.
    pub superblock: Option<Superblock>,
    /// Pages by use.
    pub counts: PageCounts,
    /// Pages in use by type: [`PageType`] and number.
    pub by_type: Vec<(PageType, u64)>,
    /// The structures in the catalog's order; the catalog itself is the first.
    pub structures: Vec<StructureReport>,
    /// The problems found, up to a limit.
    pub problems: Vec<Problem>,
    /// Number of further problems, which were not kept.
    pub problems_left_out: u64,
}

impl Report {
    /// Returns `true` if there is no problem.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.problems_left_out == 0
    }

    /// Returns the number of all problems, including those left out.
    pub fn problem_count(&self) -> u64 {
        self.problems.len() as u64 + self.problems_left_out
    }
}
