//! The catalog: the structures of a store by name. It is a B⁺-tree of its own (owner 0), whose root
//! is named in the superblock.
//!
//! `entry.rs` has the format of its entries.
//!
//! The root of a structure moves to another page only when the store shrinks, and its entry changes
//! in the same mini-transaction: the log has both, or neither. The catalog's own root is the first
//! page that a new store takes. So nothing is gained by moving it, and the superblock stays as it
//! is.
//!
//! A new owner id is one more than the largest in use, so ids of dropped structures are reused; by
//! then all their pages are free.

use std::ops::Bound;
use std::sync::Arc;

use millpond_base::PageId;

use crate::btree::{BTree, Patch};
use crate::page::PageType;
use crate::pool::{Anchor, Moved, Pages, Pool, PoolError, PoolStrategy};
use crate::store::entry::{ENTRY, Entry, ROOT, Structure, TypeNames};
use crate::store::error::Error;

/// Owner id of the catalog's own pages.
pub const CATALOG_OWNER: u32 = 0;
/// Maximum bytes of a name, if pages are large enough.
pub const NAME_MAX: usize = 255;

/// The catalog of a store.
pub struct Catalog<P: Pages> {
    tree: BTree<P>,
    next_owner: u32,
}

impl<P: Pages> Catalog<P> {
    /// Creates an empty catalog.
    ///
    /// # Errors
    /// There is no memory or no page for it.
    pub fn create(pages: Arc<P>) -> Result<Catalog<P>, Error> {
        Ok(Catalog { tree: BTree::create(pages, CATALOG_OWNER)?, next_owner: 1 })
    }

    /// Opens the catalog with its root page at `root`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(pages: Arc<P>, root: PageId) -> Result<Catalog<P>, Error> {
        let mut catalog = Catalog { tree: BTree::open(pages, CATALOG_OWNER, root)?, next_owner: 1 };
        let largest = catalog.list()?.iter().map(|(_, entry)| entry.owner).max();
        catalog.next_owner = largest.unwrap_or(0) + 1;
        Ok(catalog)
    }

    /// Returns the page of its root.
    pub fn root(&self) -> PageId {
        self.tree.root()
    }

    /// Returns the maximum bytes of a name.
    pub fn name_max(&self) -> usize {
        NAME_MAX.min(self.tree.limits().key_max)
    }

    fn check_name(&self, name: &str) -> Result<(), Error> {
        let (len, max) = (name.len(), self.name_max());
        if (1..=max).contains(&len) { Ok(()) } else { Err(Error::Name { len, max }) }
    }

    /// Returns the entry of `name`.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Entry>, Error> {
        self.check_name(name)?;
        let entry = self.tree.get(name.as_bytes(), Entry::from_bytes)?.transpose();
        entry.map_err(|reason| Error::Catalog { name: name.to_string(), reason })
    }

    /// Returns the type names of the keys and values of `name`; empty if there is no such name.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn types(&self, name: &str) -> Result<TypeNames, Error> {
        self.check_name(name)?;
        let names = |bytes: &[u8]| TypeNames::from_bytes(bytes.get(ENTRY..).unwrap_or(&[]));
        let names = self.tree.get(name.as_bytes(), names)?.transpose();
        let names = names.map_err(|reason| Error::Catalog { name: name.to_string(), reason })?;
        Ok(names.unwrap_or_default())
    }

    /// Returns an owner id for a structure to be created.
    pub fn new_owner(&mut self) -> u32 {
        self.next_owner += 1;
        self.next_owner - 1
    }

    /// Enters a new structure with keys and values of these `types`. The type names are left out if
    /// the entry would not fit into a leaf with them, in a store with tiny pages.
    ///
    /// # Errors
    /// The name is taken or invalid, or the catalog cannot be written.
    pub fn insert(&self, name: &str, entry: &Entry, types: &TypeNames) -> Result<(), Error> {
        self.check_name(name)?;
        debug_assert_ne!(entry.owner, CATALOG_OWNER, "the catalog's own pages have owner 0");
        debug_assert!(entry.owner < self.next_owner, "an owner id is drawn before it is entered");
        let (mut bytes, names) = (entry.to_bytes().to_vec(), types.to_bytes());
        if name.len() + bytes.len() + names.len() <= self.tree.limits().inline_max {
            bytes.extend_from_slice(&names);
        }
        if self.tree.insert_attaching(name.as_bytes(), &bytes, entry.root)? {
            return Ok(());
        }
        Err(Error::Exists { name: name.to_string() })
    }

    /// Removes the name of `entry`, whose root is an orphan from then on.
    ///
    /// # Errors
    /// The catalog cannot be written.
    pub fn remove(&self, name: &str, entry: &Entry) -> Result<bool, Error> {
        let kind = match entry.structure {
            Structure::Tree => PageType::BTREE_LEAF,
            Structure::Hash => PageType::HASH_ROOT,
            Structure::Heap => PageType::HEAP_DIRECTORY,
        };
        Ok(self.tree.remove_orphaning(name.as_bytes(), entry.root, kind.0)?)
    }

    /// Returns all names with their entries, in order.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn list(&self) -> Result<Vec<(String, Entry)>, Error> {
        let mut all = Vec::new();
        let mut wrong = None;
        self.tree.scan(Bound::Unbounded, Bound::Unbounded, |name, bytes| {
            let name = String::from_utf8_lossy(name).into_owned();
            match Entry::from_bytes(bytes) {
                Ok(entry) => all.push((name, entry)),
                Err(reason) => wrong = Some(Error::Catalog { name, reason }),
            }
            wrong.is_none()
        })?;
        wrong.map_or(Ok(all), Err)
    }
}

impl<M: PoolStrategy> Catalog<Pool<M>> {
    /// Returns the anchor of the catalog's own root swip.
    pub(crate) fn anchor(&self) -> Anchor {
        self.tree.anchor()
    }

    /// Moves the root below `anchor`, of the structure `name`, to a page below `bound`, unless it
    /// is there already. Returns its new page.
    ///
    /// # Errors
    /// The catalog or the root cannot be read.
    pub(crate) fn move_root(
        &self,
        name: &str,
        anchor: Anchor,
        bound: PageId,
    ) -> Result<(Moved, Option<PageId>), PoolError> {
        let pool = self.tree.pages();
        loop {
            let mut tries = 0;
            let patched = self.tree.patch(name.as_bytes(), ROOT, |mtr| {
                tries += 1;
                if tries > Pool::<M>::MOVE_TRIES {
                    return Ok(Patch { bytes: None, result: (Some(Moved::Busy), None) });
                }
                let (moved, root) = pool.move_root(mtr, anchor, bound)?;
                let bytes = root.map(|root| root.0.to_le_bytes());
                Ok(Patch { bytes, result: (moved, root) })
            });
            match patched {
                Ok(Some((Some(moved), root))) => return Ok((moved, root)),
                Ok(Some((None, _))) => pool.make_frames(1)?,
                // The structure was dropped in the meantime.
                Ok(None) => return Ok((Moved::Nothing, None)),
                // A closure of this thread looks at one of the pages.
                Err(PoolError::Held { .. }) => return Ok((Moved::Busy, None)),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::types::recorded::TYPE_NAME_MAX;

    #[test]
    fn an_entry_comes_back_as_it_was_and_anything_else_is_refused() {
        for structure in [Structure::Tree, Structure::Hash, Structure::Heap] {
            let (root, created_ms) = (PageId(u64::MAX - 9), 1 << 40);
            let entry = Entry { owner: u32::MAX - 1, structure, root, created_ms };
            let bytes = entry.to_bytes();
            assert_eq!(Entry::from_bytes(&bytes), Ok(entry));
            assert!(Entry::from_bytes(&bytes[1..]).is_err() && Entry::from_bytes(&[]).is_err());
        }
        let some = |name: &str| Some(name.to_string());
        let all = [
            TypeNames::default(),
            TypeNames::new(some("(String, u32)"), some("Option<Vec<u8>>")),
            TypeNames::new(some("u64"), None),
            TypeNames::new(None, some("()")),
        ];
        for names in all {
            let bytes = names.to_bytes();
            assert_eq!(TypeNames::from_bytes(&bytes), Ok(names));
            let entry = [&[1; ENTRY][..], &bytes].concat();
            assert!(Entry::from_bytes(&entry).is_ok());
            if !bytes.is_empty() {
                assert!((1..bytes.len()).all(|len| TypeNames::from_bytes(&bytes[..len]).is_err()));
                assert!(Entry::from_bytes(&entry[..entry.len() - 1]).is_err());
            }
        }
        let long = TypeNames::new(some(&"x".repeat(TYPE_NAME_MAX + 1)), some("u8"));
        let kept = TypeNames::from_bytes(&long.to_bytes()).unwrap();
        assert_eq!(kept.key.map(|name| name.len()), Some(TYPE_NAME_MAX));
        assert_eq!(Entry::from_bytes(&[9; ENTRY]), Err("its kind is unknown"));
    }
}
