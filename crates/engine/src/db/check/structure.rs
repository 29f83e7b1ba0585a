//! The structures of a store, and how a check learns of them.

use millpond_base::PageId;

use crate::page::PageType;

/// What a structure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum StructureKind {
    /// A B⁺-tree.
    #[default]
    Tree,
    /// A hash index.
    HashIndex,
    /// A heap.
    Heap,
}

impl StructureKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            StructureKind::Tree => "tree",
            StructureKind::HashIndex => "hash index",
            StructureKind::Heap => "heap",
        }
    }

    /// Whether pages of this type belong to such a structure.
    pub(crate) fn owns(self, page: PageType) -> bool {
        let types: &[PageType] = match self {
            StructureKind::Tree => {
                &[PageType::BTREE_INNER, PageType::BTREE_LEAF, PageType::OVERFLOW]
            }
            StructureKind::HashIndex => &[PageType::HASH_ROOT, PageType::HASH_BUCKET],
            StructureKind::Heap => &[PageType::HEAP_DIRECTORY, PageType::HEAP_DATA],
        };
        types.contains(&page)
    }
}

/// An entry of a catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The id that its pages carry.
    pub owner: u32,
    /// What it is.
    pub kind: StructureKind,
    /// The page of its root.
    pub root: PageId,
}

/// Reads an entry of a catalog: what it names, nothing, or why it cannot be read.
pub type Decode = fn(key: &[u8], value: &[u8]) -> Result<Option<Named>, String>;

/// How to read a catalog, which is a tree: what owner its pages carry, and what its entries say.
#[derive(Clone, Copy)]
pub struct Roots {
    /// The id that the catalog's own pages carry.
    pub owner: u32,
    /// What an entry says.
    pub decode: Decode,
}
