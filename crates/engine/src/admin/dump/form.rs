//! The forms of a dump.

use crate::store::entry::Structure;

/// Notation of keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Text with escapes.
    #[default]
    Text,
    /// Hexadecimal digits.
    Hex,
    /// One JSON object per line.
    Json,
}

/// Version of the format, the only one written or read.
pub(crate) const VERSION: u64 = 1;
/// Beginning of the first line of text and hex dumps.
pub(crate) const HEADER: &str = "@millpond-dump ";
/// The words, and the names of the JSON members, at the beginning of a structure's section.
pub(crate) const WORDS: [(Structure, &str); 3] =
    [(Structure::Tree, "tree"), (Structure::Hash, "hash"), (Structure::Heap, "heap")];
/// Names of the JSON members with the names of types.
pub(crate) const KEYS: &str = "keys";
pub(crate) const VALUES: &str = "values";
