//! Report of a salvage: saved entries and losses.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::admin::check::{Problem, Structure};
use crate::admin::dump::notation::escaped;
use crate::btree::Fences;
use crate::heap::RecordId;

/// Bytes of a key that messages show.
const KEY_SHOWN: usize = 40;

/// Data that is lost with a page.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lost {
    /// The entries with keys in this range, unless another page has them.
    Keys(Fences),
    /// The value of this key.
    Value(Vec<u8>),
    /// The entries of a hash index whose keys have these hashes, unless another page has them.
    Hashes(RangeInclusive<u64>),
    /// The records of a heap in the data pages with these numbers, unless another page has them.
    Records(RangeInclusive<u64>),
    /// Names of structures.
    Names,
}

/// An unusable page, and the data that is lost with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The problem and its place.
    pub problem: Problem,
    /// The data that is lost.
    pub lost: Lost,
}

fn shown(key: &[u8]) -> String {
    match key.get(..KEY_SHOWN) {
        Some(start) if key.len() > KEY_SHOWN => format!("\"{}…\"", escaped(start)),
        _ => format!("\"{}\"", escaped(key)),
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; ", self.problem)?;
        match &self.lost {
            Lost::Keys(Fences { lower, upper: None }) if lower.is_empty() => {
                write!(f, "all keys are lost")
            }
            Lost::Keys(Fences { lower, upper: None }) => {
                write!(f, "keys from {} on are lost", shown(lower))
            }
            Lost::Keys(Fences { lower, upper: Some(upper) }) => {
                write!(f, "keys from {} up to {} are lost", shown(lower), shown(upper))
            }
            Lost::Value(key) => write!(f, "the value of {} is lost", shown(key)),
            Lost::Hashes(hashes) => {
                let share = (u128::from(u64::MAX) + 1)
                    / (u128::from(hashes.end().saturating_sub(*hashes.start())) + 1);
                match share {
                    1 => write!(f, "all entries are lost"),
                    share => write!(f, "about one entry in {share} is lost"),
                }
            }
            Lost::Records(pages) => {
                let first = RecordId(pages.start().saturating_mul(1 << 16)).0;
                match pages.end().checked_add(1).and_then(|end| end.checked_mul(1 << 16)) {
                    Some(end) => write!(f, "records {first} to {} are lost", end - 1),
                    None => write!(f, "records from {first} on are lost"),
                }
            }
            Lost::Names => write!(f, "names of structures are lost"),
        }
    }
}

/// A tree, hash index or heap, and its saved entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SalvagedTree {
    /// Name of the structure, or an invented one if that is lost.
    pub name: String,
    /// Kind of the structure.
    pub kind: Structure,
    /// Owner id in its pages.
    pub owner: u32,
    /// Entries reached from its root.
    pub entries: u64,
    /// Entries found by searching all pages for leaves, buckets and data pages, to replace lost
    /// ones. They may be out of date, and some may occur twice.
    pub found: u64,
    /// Number of lost ranges of keys, and of lost values.
    pub losses: u64,
}

/// Report of a salvage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SalvageReport {
    /// Path of the store.
    pub path: PathBuf,
    /// Set if the store was closed cleanly; otherwise the last writes may be missing.
    pub was_closed: bool,
    /// Path of the second tier's cache, if it has pages that the file lacks. They are not saved:
    /// entries may be missing, or be older.
    pub lost_cache: Option<PathBuf>,
    /// The trees, hash indexes and heaps.
    pub trees: Vec<SalvagedTree>,
    /// Parts that could not be read at their places.
    pub losses: Vec<Loss>,
    /// Number of further losses that are not listed.
    pub losses_left_out: u64,
}

impl SalvageReport {
    /// Returns `true` if every entry of the store is known to be saved.
    pub fn is_complete(&self) -> bool {
        let losses = self.losses.len() as u64 + self.losses_left_out;
        self.was_closed && self.lost_cache.is_none() && losses == 0
    }

    /// Returns the number of saved entries.
    pub fn entries(&self) -> u64 {
        self.trees.iter().map(|tree| tree.entries + tree.found).sum()
    }
}
