//! An entry of the catalog: the kind of a structure, its root, and its types.
//!
//! ```text
//! key     the name, UTF-8, 1 to 255 bytes (less where pages are tiny)
//! value   offset size
//!              0    4  owner: the id that the structure's pages carry, from 1 on
//!              4    1  what it is: 1 tree, 2 hash index, 3 heap
//!              5    3  reserved, 0
//!              8    8  page of its root
//!             16    8  when it was made, in ms since 1970
//!             24    2  bytes of the name of its keys' type; from here on only if it was made with
//!                      types that have names (`DecodeKey::type_name`)
//!             26       that name, UTF-8 (`types/recorded.rs`); empty: not known
//!                   2  bytes of the name of its values' type
//!                      that name
//! ```
//! All integers are little-endian. An entry ends at byte 24 if its store is older than type names,
//! or if its structure was created for byte strings.

use std::fmt;

use millpond_base::PageId;
use millpond_base::little_endian::{u32_at, u64_at};

use crate::store::types::recorded::recorded;

pub(crate) const ENTRY: usize = 24;
/// Offset of the root in an entry.
pub(in crate::store) const ROOT: usize = 8;

/// Kind of a named structure.
///
/// ```
/// # use millpond::{Db, Error, Options, Structure};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// db.heap::<String>("notes")?;
/// assert!(db.trees()?.iter().any(|(_, entry)| entry.structure == Structure::Heap));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Structure {
    /// A B⁺-tree.
    #[default]
    Tree,
    /// A hash index.
    Hash,
    /// A heap.
    Heap,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Structure::Tree => "tree",
            Structure::Hash => "hash index",
            Structure::Heap => "heap",
        })
    }
}

/// Names of the key and value types of a structure, as its catalog entry keeps them.
///
/// ```
/// # use millpond::{Db, Error, Options, Structure, TypeNames};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let types = TypeNames::new(Some("String".to_string()), Some("u32".to_string()));
/// db.make(Structure::Tree, "birds", &types)?;
/// assert!(db.tree::<String, u32>("birds")?.is_empty()?);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TypeNames {
    /// Name of its keys' type; `None` if it is unknown.
    pub key: Option<String>,
    /// Name of its values' or records' type; `None` if it is unknown.
    pub value: Option<String>,
}

impl TypeNames {
    /// Returns the type names of a structure with such keys and values.
    ///
    /// ```
    /// use millpond::TypeNames;
    /// assert_eq!(TypeNames::new(None, None), TypeNames::default());
    /// ```
    pub fn new(key: Option<String>, value: Option<String>) -> TypeNames {
        TypeNames { key, value }
    }

    /// Returns the bytes that follow an entry; none if there are no names.
    pub(in crate::store) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.key.is_none() && self.value.is_none() {
            return bytes;
        }
        for name in [&self.key, &self.value] {
            let name = name.as_deref().map(recorded).unwrap_or_default();
            bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }

    /// Parses the bytes that [`TypeNames::to_bytes`] wrote behind an entry.
    ///
    /// # Errors
    /// The defect of the bytes.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Result<TypeNames, &'static str> {
        if bytes.is_empty() {
            return Ok(TypeNames::default());
        }
        let mut next = || {
            let (len, rest) = bytes.split_first_chunk::<2>()?;
            let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
            bytes = rest;
            Some(name)
        };
        let names = [next(), next()];
        let [Some(key), Some(value)] = names else { return Err("its types' names are cut off") };
        if !bytes.is_empty() {
            return Err("something follows its types' names");
        }
        let text = |name: &[u8]| {
            let name = str::from_utf8(name).map_err(|_| "its types' names are not UTF-8")?;
            Ok::<_, &'static str>((!name.is_empty()).then(|| name.to_string()))
        };
        Ok(TypeNames { key: text(key)?, value: text(value)? })
    }
}

/// A catalog entry.
///
/// ```
/// # use millpond::{Db, Error, Options, Structure};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// db.tree::<String, u32>("birds")?;
/// let (name, entry) = db.trees()?.remove(0);
/// assert_eq!((name.as_str(), entry.structure), ("birds", Structure::Tree));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Owner id in its pages.
    pub owner: u32,
    /// Kind of the structure.
    pub structure: Structure,
    /// Root page of the structure.
    pub root: PageId,
    /// Time of its creation, in ms since 1970.
    pub created_ms: u64,
}

impl Entry {
    /// Returns the entry in the catalog's format.
    #[doc(hidden)]
    pub fn to_bytes(&self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..4].copy_from_slice(&self.owner.to_le_bytes());
        bytes[4] = match self.structure {
            Structure::Tree => 1,
            Structure::Hash => 2,
            Structure::Heap => 3,
        };
        bytes[8..16].copy_from_slice(&self.root.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.created_ms.to_le_bytes());
        bytes
    }

    /// Parses the bytes that [`Entry::to_bytes`] wrote, whatever type names follow.
    ///
    /// # Errors
    /// The defect of the bytes.
    #[doc(hidden)]
    pub fn from_bytes(bytes: &[u8]) -> Result<Entry, &'static str> {
        let (bytes, names) =
            bytes.split_first_chunk::<ENTRY>().ok_or("it has less than 24 bytes")?;
        TypeNames::from_bytes(names)?;
        let structure = match bytes[4] {
            1 => Structure::Tree,
            2 => Structure::Hash,
            3 => Structure::Heap,
            _ => return Err("its kind is unknown"),
        };
        let (owner, root) = (u32_at(bytes, 0), PageId(u64_at(bytes, 8)));
        Ok(Entry { owner, structure, root, created_ms: u64_at(bytes, 16) })
    }
}
