//! The structures of a store by name: opened once and shared, created, dropped.

use std::sync::{Arc, MutexGuard};

use crate::pool::borrowed::pages_borrowed;
use crate::pool::{PageMemory, Pages, PoolStrategy};
use crate::store::catalog::Catalog;
use crate::store::dropping::Dropping;
use crate::store::entry::{Entry, Structure, TypeNames};
use crate::store::error::{Error, ErrorKind};
use crate::store::handle::{StoreHandle, StoreHashIndex, StoreHeap, StoreTree};
use crate::store::named::Named;
use crate::store::opened::Opened;
use crate::store::store::Store;
use crate::store::types::recorded::{is_compatible, recorded};

impl<M: PoolStrategy> Store<M> {
    /// Locks the names once no drop of `name` is in progress, unless that drop may wait for this
    /// thread.
    fn named_to_open(&self, name: &str) -> MutexGuard<'_, Named<M>> {
        self.dropped.wait(self.named(), name, || {
            pages_borrowed() > 0 || self.txns.locks().is_some_and(|locks| locks.has_own_thread())
        })
    }

    /// Returns the structure of that name, which must be a `kind`; `None` if it does not exist.
    fn find(&self, name: &str, kind: Structure) -> Result<Option<Opened<M>>, Error> {
        self.may_read()?;
        self.find_in(&mut self.named_to_open(name), name, kind)
    }

    fn find_in(
        &self,
        named: &mut Named<M>,
        name: &str,
        kind: Structure,
    ) -> Result<Option<Opened<M>>, Error> {
        if let Some(open) = named.open.get(name) {
            expect(name, open.kind(), kind)?;
            return Ok(Some(open.clone()));
        }
        let Some(entry) = named.entry(name)? else { return Ok(None) };
        expect(name, entry.structure, kind)?;
        let opened = Opened::open(&self.pool, name, &entry)?;
        named.open.insert(name.to_string(), opened.clone());
        Ok(Some(opened))
    }

    /// Returns the structure of that name, which must exist.
    fn existing(&self, name: &str, kind: Structure) -> Result<Opened<M>, Error> {
        self.find(name, kind)?.ok_or_else(|| missing(name, kind))
    }

    /// Creates a structure of that name.
    fn create(&self, name: &str, kind: Structure) -> Result<Opened<M>, Error> {
        self.may_write()?;
        let create = || self.named().create(&self.pool, name, kind, &TypeNames::default());
        self.txns.to_end(create)
    }

    /// Returns the structure of that name, with keys and values of these types as far as either is
    /// known, or creates it.
    fn found_or_new(
        &self,
        name: &str,
        kind: Structure,
        types: &TypeNames,
    ) -> Result<Opened<M>, Error> {
        self.may_read()?;
        // Found or created under one lock: another thread may create or drop the same name.
        let mut named = self.named_to_open(name);
        if let Some(opened) = self.find_in(&mut named, name, kind)? {
            if *types != TypeNames::default()
                && let Some(catalog) = &named.catalog
            {
                expect_types(name, catalog.types(name)?, types)?;
            }
            return Ok(opened);
        }
        if self.is_read_only() {
            return Err(missing(name, kind));
        }
        self.txns.to_end(|| named.create(&self.pool, name, kind, types))
    }

    fn as_tree(self: &Arc<Self>, name: &str, opened: Opened<M>) -> Result<StoreTree<M>, Error> {
        match opened {
            Opened::Tree(tree) => Ok(StoreHandle::new(self.clone(), tree)),
            other => Err(other_kind(name, other.kind(), Structure::Tree)),
        }
    }

    fn as_hash_index(
        self: &Arc<Self>,
        name: &str,
        opened: Opened<M>,
    ) -> Result<StoreHashIndex<M>, Error> {
        match opened {
            Opened::Hash(index) => Ok(StoreHandle::new(self.clone(), index)),
            other => Err(other_kind(name, other.kind(), Structure::Hash)),
        }
    }

    fn as_heap(self: &Arc<Self>, name: &str, opened: Opened<M>) -> Result<StoreHeap<M>, Error> {
        match opened {
            Opened::Heap(heap) => Ok(StoreHandle::new(self.clone(), heap)),
            other => Err(other_kind(name, other.kind(), Structure::Heap)),
        }
    }

    /// Returns the tree of that name, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`Error`]: the name is invalid or another structure's, or the store failed.
    pub fn tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.tree_of(name, &TypeNames::default())
    }

    /// Returns the tree of that name, with keys and values of these types, and creates it if it
    /// does not exist.
    ///
    /// # Errors
    /// [`Error::OtherType`], or any error of [`Store::tree`].
    pub fn tree_of(self: &Arc<Self>, name: &str, types: &TypeNames) -> Result<StoreTree<M>, Error> {
        self.as_tree(name, self.found_or_new(name, Structure::Tree, types)?)
    }

    /// Opens the tree of that name.
    ///
    /// # Errors
    /// [`Error::NoTree`], or any error of [`Store::tree`].
    pub fn open_tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.as_tree(name, self.existing(name, Structure::Tree)?)
    }

    /// Creates an empty tree.
    ///
    /// # Errors
    /// [`Error::Exists`], or any error of [`Store::tree`].
    pub fn create_tree(self: &Arc<Self>, name: &str) -> Result<StoreTree<M>, Error> {
        self.as_tree(name, self.create(name, Structure::Tree)?)
    }

    /// Returns the hash index of that name, and creates it if it does not exist.
    ///
    /// # Errors
    /// Same as [`Store::tree`].
    pub fn hash_index(self: &Arc<Self>, name: &str) -> Result<StoreHashIndex<M>, Error> {
        self.hash_index_of(name, &TypeNames::default())
    }

    /// Returns the hash index of that name, with keys and values of these types, and creates it if
    /// it does not exist.
    ///
    /// # Errors
    /// Same as [`Store::tree_of`].
    pub fn hash_index_of(
        self: &Arc<Self>,
        name: &str,
        types: &TypeNames,
    ) -> Result<StoreHashIndex<M>, Error> {
        self.as_hash_index(name, self.found_or_new(name, Structure::Hash, types)?)
    }

    /// Opens the hash index of that name.
    ///
    /// # Errors
    /// [`Error::NoStructure`], or any error of [`Store::tree`].
    pub fn open_hash_index(self: &Arc<Self>, name: &str) -> Result<StoreHashIndex<M>, Error> {
        self.as_hash_index(name, self.existing(name, Structure::Hash)?)
    }

    /// Creates an empty hash index.
    ///
    /// # Errors
    /// [`Error::Exists`], or any error of [`Store::tree`].
    pub fn create_hash_index(self: &Arc<Self>, name: &str) -> Result<StoreHashIndex<M>, Error> {
        self.as_hash_index(name, self.create(name, Structure::Hash)?)
    }

    /// Returns the heap of that name, and creates it if it does not exist.
    ///
    /// # Errors
    /// Same as [`Store::tree`].
    pub fn heap(self: &Arc<Self>, name: &str) -> Result<StoreHeap<M>, Error> {
        self.heap_of(name, &TypeNames::default())
    }

    /// Returns the heap of that name, with records of this type, and creates it if it does not
    /// exist.
    ///
    /// # Errors
    /// Same as [`Store::tree_of`].
    pub fn heap_of(self: &Arc<Self>, name: &str, types: &TypeNames) -> Result<StoreHeap<M>, Error> {
        self.as_heap(name, self.found_or_new(name, Structure::Heap, types)?)
    }

    /// Opens the heap of that name.
    ///
    /// # Errors
    /// [`Error::NoStructure`], or any error of [`Store::tree`].
    pub fn open_heap(self: &Arc<Self>, name: &str) -> Result<StoreHeap<M>, Error> {
        self.as_heap(name, self.existing(name, Structure::Heap)?)
    }

    /// Creates an empty heap.
    ///
    /// # Errors
    /// [`Error::Exists`], or any error of [`Store::tree`].
    pub fn create_heap(self: &Arc<Self>, name: &str) -> Result<StoreHeap<M>, Error> {
        self.as_heap(name, self.create(name, Structure::Heap)?)
    }

    /// Returns the type names of the keys and values of a structure, as far as they are known.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn types(&self, name: &str) -> Result<TypeNames, Error> {
        self.may_read()?;
        let named = self.named();
        named.catalog.as_ref().map_or(Ok(TypeNames::default()), |catalog| catalog.types(name))
    }

    /// Returns the catalog entry of a name.
    ///
    /// # Errors
    /// [`Error::NoTree`], or the catalog cannot be read.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        self.may_read()?;
        self.named().entry(name)?.ok_or_else(|| missing(name, Structure::Tree))
    }

    /// Removes a structure, which must be a `kind`, and frees all its pages. It must have no open
    /// handles. Transactions that have read it are waited for, since they could otherwise find
    /// another tree of its name.
    ///
    /// # Errors
    /// [`Error::NoTree`] or [`Error::NoStructure`], [`Error::OtherKind`], [`Error::TreeInUse`], a
    /// lock was unavailable, or the store failed.
    pub fn drop_structure(&self, name: &str, kind: Structure) -> Result<(), Error> {
        self.may_write()?;
        loop {
            let (owner, _dropping) = self.owner_to_drop(name, kind)?;
            let drop = || self.drop_now(name, kind, owner);
            let dropped = if M::TREES_ONLY {
                drop()
            } else {
                // Not with the names locked, since the transactions waited for may look up a name.
                self.txns.alone_with(owner, drop)
            };
            if dropped? {
                if let Some(locks) = self.txns.locks() {
                    locks.forget_tree(owner);
                }
                return Ok(());
            }
        }
    }

    /// Announces the drop of a structure, which must be a `kind` without handles. Returns its owner
    /// id.
    fn owner_to_drop<'s>(
        &'s self,
        name: &'s str,
        kind: Structure,
    ) -> Result<(u32, Dropping<'s, M>), Error> {
        // The background merge must not count as a handle.
        let _gate = self.keep_from_merging()?;
        let mut named = self.named();
        let entry = named.entry(name)?.ok_or_else(|| missing(name, kind))?;
        expect(name, entry.structure, kind)?;
        match named.open.get(name).map_or(0, |opened| opened.others()) {
            0 => {
                let begun = Dropping::begin(&mut named, &self.named, &self.dropped, name);
                Ok((entry.owner, begun))
            }
            handles => Err(Error::TreeInUse { name: name.to_string(), handles }),
        }
    }

    /// Removes the structure of that name; `false`, with nothing changed, if it is no longer that
    /// of `owner`.
    fn drop_now(&self, name: &str, kind: Structure, owner: u32) -> Result<bool, Error> {
        let _gate = self.keep_from_merging()?;
        let mut named = self.named();
        let entry = named.entry(name)?.ok_or_else(|| missing(name, kind))?;
        if entry.owner != owner {
            return Ok(false);
        }
        let opened = match named.open.remove(name) {
            None => Opened::open(&self.pool, name, &entry)?,
            Some(opened) if opened.others() > 0 => {
                let handles = opened.others();
                named.open.insert(name.to_string(), opened);
                return Err(Error::TreeInUse { name: name.to_string(), handles });
            }
            Some(opened) => opened,
        };
        let room = self.pool.make_log_room(2 * self.pool.page_size());
        let removed = room.map_err(Error::from).and_then(|()| {
            named.catalog.as_ref().map_or(Ok(false), |catalog| catalog.remove(name, &entry))
        });
        if let Err(error) = removed {
            // It keeps its anchor: a second one would make a second swip to its root.
            named.open.insert(name.to_string(), opened);
            return Err(error);
        }
        let (splits, merges) = opened.tally();
        named.gone = (named.gone.0 + splits, named.gone.1 + merges);
        // It is gone, so the call succeeds even if the log has no room for the rest.
        if let Err(error) = opened.destroy().map_err(Error::from) {
            if error.kind() != ErrorKind::DiskFull {
                return Err(error);
            }
            tracing::warn!(%error, "pages of '{name}' are freed by the next opening");
        }
        self.pool.redo_log().rows().forget(owner);
        Ok(true)
    }

    /// Returns all names with their entries, in order.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub fn catalog(&self) -> Result<Vec<(String, Entry)>, Error> {
        self.may_read()?;
        self.named().catalog.as_ref().map_or(Ok(Vec::new()), Catalog::list)
    }
}

fn other_kind(name: &str, found: Structure, wanted: Structure) -> Error {
    Error::OtherKind { name: name.to_string(), found, wanted }
}

fn expect(name: &str, found: Structure, wanted: Structure) -> Result<(), Error> {
    if found == wanted { Ok(()) } else { Err(other_kind(name, found, wanted)) }
}

/// Refuses types that are not compatible, where both are known.
fn expect_types(name: &str, found: TypeNames, wanted: &TypeNames) -> Result<(), Error> {
    let pairs = [("keys", found.key, &wanted.key), ("values", found.value, &wanted.value)];
    for (what, found, wanted) in pairs {
        if let (Some(found), Some(wanted)) = (found, wanted)
            && !is_compatible(&found, wanted)
        {
            let (name, wanted) = (name.to_string(), recorded(wanted));
            return Err(Error::OtherType { name, what, found, wanted });
        }
    }
    Ok(())
}

fn missing(name: &str, wanted: Structure) -> Error {
    let name = name.to_string();
    match wanted {
        Structure::Tree => Error::NoTree { name },
        Structure::Hash | Structure::Heap => Error::NoStructure { name, wanted },
    }
}
