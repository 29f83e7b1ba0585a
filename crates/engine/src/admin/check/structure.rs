//! The structures of a store, and the catalog that a check reads them from.

use millpond_base::PageId;

use crate::page::PageType;
use crate::store::catalog::CATALOG_OWNER;
use crate::store::entry::{ENTRY, Entry, Structure, TypeNames};

/// Returns `true` if pages of type `page` belong to structures of that kind.
pub(crate) fn owns(kind: Structure, page: PageType) -> bool {
    let types: &[PageType] = match kind {
        Structure::Tree => &[PageType::BTREE_INNER, PageType::BTREE_LEAF, PageType::OVERFLOW],
        Structure::Hash => &[PageType::HASH_ROOT, PageType::HASH_BUCKET],
        Structure::Heap => &[PageType::HEAP_DIRECTORY, PageType::HEAP_DATA],
    };
    types.contains(&page)
}

/// An entry of a catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Name of the structure.
    pub name: String,
    /// Owner id in its pages.
    pub owner: u32,
    /// Kind of the structure.
    pub kind: Structure,
    /// Page of its root.
    pub root: PageId,
    /// Type names of its keys and values, as far as they are known.
    pub types: TypeNames,
}

/// Decodes a catalog entry: into a structure, nothing, or the reason that it is invalid.
pub type Decode = fn(key: &[u8], value: &[u8]) -> Result<Option<Named>, String>;

/// Reader of a catalog, which is a tree: the owner id of its pages, and the decoder of its entries.
#[derive(Clone, Copy)]
pub struct Roots {
    /// Owner id in the catalog's own pages.
    pub owner: u32,
    /// Decodes an entry.
    pub decode: Decode,
}

/// The catalog in the format of `store::catalog`.
pub const CATALOG: Roots = Roots { owner: CATALOG_OWNER, decode };

fn decode(key: &[u8], value: &[u8]) -> Result<Option<Named>, String> {
    let Entry { owner, structure: kind, root, .. } = Entry::from_bytes(value)?;
    let name = String::from_utf8_lossy(key).into_owned();
    let types = TypeNames::from_bytes(value.get(ENTRY..).unwrap_or(&[]))?;
    Ok(Some(Named { name, owner, kind, root, types }))
}
