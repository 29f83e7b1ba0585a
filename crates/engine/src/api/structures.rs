//! The structures of a store, by name: opening, creating, dropping and listing them.

use crate::api::context::Autocommit;
use crate::api::db::Db;
use crate::api::hash_index::HashIndex;
use crate::api::heap::Heap;
use crate::api::tree::{RawTree, Tree};
use crate::encoding::key::{DecodeKey, Key};
use crate::encoding::value::{DecodeValue, Value};
use crate::store::entry::{Entry, Structure, TypeNames};
use crate::store::error::Error;

impl Db {
    /// Opens the tree of that name, with keys and values of these types, or creates it. The tree
    /// keeps the names of the types that it was created with, as far as they have names
    /// ([`DecodeKey::type_name`](crate::encoding::key::DecodeKey::type_name)), and opens with no
    /// others. A tree created with byte strings, or before type names existed, has none, so its
    /// user must know its types. [`Tree::typed`] checks nothing.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.tree::<u64, String>("names")?.put(&7, "Ada")?;
    /// let wrong = db.tree::<String, String>("names").unwrap_err();
    /// assert!(wrong.to_string().contains("keys of type u64, not String"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherType`], [`Error::Name`], [`Error::OtherKind`], or the store failed.
    pub fn tree<K: Key, V: Value>(&self, name: &str) -> Result<Tree<K, V>, Error> {
        let types = types_of::<K, V>();
        let tree = self.store().tree_of(name, &types)?;
        Ok(Tree::new(tree, Autocommit))
    }

    /// Returns the names of the types that a structure was created with, as far as they are known.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.tree::<u64, String>("names")?;
    /// assert_eq!(db.types("names")?.key.as_deref(), Some("u64"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The catalog could not be read.
    pub fn types(&self, name: &str) -> Result<TypeNames, Error> {
        self.store().types(name)
    }

    /// Opens the tree of byte strings of that name, or creates it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.raw_tree("ponds")?.put(b"mill", b"deep")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::tree`].
    pub fn raw_tree(&self, name: &str) -> Result<RawTree, Error> {
        let tree = self.store().tree(name)?;
        Ok(Tree::new(tree, Autocommit))
    }

    /// Opens the tree of that name, which must exist.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(matches!(db.open_tree("ponds"), Err(Error::NoTree { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTree`], or any error of [`Db::tree`].
    pub fn open_tree(&self, name: &str) -> Result<RawTree, Error> {
        let tree = self.store().open_tree(name)?;
        Ok(Tree::new(tree, Autocommit))
    }

    /// Creates an empty tree of that name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.create_tree("ponds")?;
    /// assert!(matches!(db.create_tree("ponds"), Err(Error::Exists { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`], or any error of [`Db::tree`].
    pub fn create_tree(&self, name: &str) -> Result<RawTree, Error> {
        let tree = self.store().create_tree(name)?;
        Ok(Tree::new(tree, Autocommit))
    }

    /// Removes a tree and frees all its pages. No handle of the tree may be left. The call waits
    /// for transactions that have read the tree. A thread without a transaction that opens the tree
    /// in the meantime waits for the removal, for a second at most.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.create_tree("ponds")?;
    /// db.drop_tree("ponds")?;
    /// assert!(db.trees()?.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTree`], [`Error::TreeInUse`], or the store failed.
    pub fn drop_tree(&self, name: &str) -> Result<(), Error> {
        self.drop_structure(name, Structure::Tree)
    }

    /// Opens the hash index of that name, with keys and values of these types, or creates it. A
    /// hash index finds a key faster than a tree does, and has no order. Its types are kept as
    /// those of a tree are.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.hash_index::<String, u64>("sessions")?;
    /// sessions.put("4f1c", &17)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherType`], [`Error::Name`], [`Error::OtherKind`], or the
    /// store failed.
    pub fn hash_index<K: Key, V: Value>(&self, name: &str) -> Result<HashIndex<K, V>, Error> {
        self.hash_index_of(name, &types_of::<K, V>())
    }

    /// Opens the hash index of byte strings of that name, or creates it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.raw_hash_index("sessions")?.put(b"4f1c", b"17")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::hash_index`].
    pub fn raw_hash_index(&self, name: &str) -> Result<HashIndex<Vec<u8>, Vec<u8>>, Error> {
        self.hash_index_of(name, &TypeNames::default())
    }

    fn hash_index_of<K, V>(&self, name: &str, types: &TypeNames) -> Result<HashIndex<K, V>, Error> {
        let index = self.store().hash_index_of(name, types)?;
        Ok(HashIndex::new(index, Autocommit))
    }

    /// Opens the hash index of that name, which must exist.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.open_hash_index("sessions").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoStructure`], or any error of [`Db::hash_index`].
    pub fn open_hash_index(&self, name: &str) -> Result<HashIndex<Vec<u8>, Vec<u8>>, Error> {
        let index = self.store().open_hash_index(name)?;
        Ok(HashIndex::new(index, Autocommit))
    }

    /// Creates an empty hash index of that name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.create_hash_index("sessions")?;
    /// assert!(db.create_hash_index("sessions").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`], or any error of [`Db::hash_index`].
    pub fn create_hash_index(&self, name: &str) -> Result<HashIndex<Vec<u8>, Vec<u8>>, Error> {
        let index = self.store().create_hash_index(name)?;
        Ok(HashIndex::new(index, Autocommit))
    }

    /// Opens the heap of that name, with records of this type, or creates it. The type is kept as
    /// those of a tree are.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.get(id)?.as_deref(), Some("quiet"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherType`], [`Error::Name`], [`Error::OtherKind`], or the
    /// store failed.
    pub fn heap<V: Value>(&self, name: &str) -> Result<Heap<V>, Error> {
        let types = TypeNames::new(None, <V as DecodeValue<'_>>::type_name());
        self.heap_of(name, &types)
    }

    /// Opens the heap of byte strings of that name, or creates it.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.raw_heap("notes")?.append(b"quiet")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::heap`].
    pub fn raw_heap(&self, name: &str) -> Result<Heap<Vec<u8>>, Error> {
        self.heap_of(name, &TypeNames::default())
    }

    fn heap_of<V>(&self, name: &str, types: &TypeNames) -> Result<Heap<V>, Error> {
        let heap = self.store().heap_of(name, types)?;
        Ok(Heap::new(heap, Autocommit))
    }

    /// Opens the heap of that name, which must exist.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.open_heap("notes").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoStructure`], or any error of [`Db::heap`].
    pub fn open_heap(&self, name: &str) -> Result<Heap<Vec<u8>>, Error> {
        let heap = self.store().open_heap(name)?;
        Ok(Heap::new(heap, Autocommit))
    }

    /// Creates an empty heap of that name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.create_heap("notes")?;
    /// assert!(db.create_heap("notes").is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`], or any error of [`Db::heap`].
    pub fn create_heap(&self, name: &str) -> Result<Heap<Vec<u8>>, Error> {
        let heap = self.store().create_heap(name)?;
        Ok(Heap::new(heap, Autocommit))
    }

    /// Removes a tree, hash index or heap, according to `kind`, and frees all its pages. No handle
    /// of it may be left; see [`Db::drop_tree`].
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.create_heap("notes")?;
    /// db.drop_structure("notes", millpond::Structure::Heap)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTree`] or [`Error::NoStructure`], [`Error::OtherKind`], [`Error::TreeInUse`], or
    /// the store failed.
    pub fn drop_structure(&self, name: &str, kind: Structure) -> Result<(), Error> {
        self.store().drop_structure(name, kind)
    }

    /// Returns all named structures, in the order of their names.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.create_heap("notes")?;
    /// db.create_tree("ponds")?;
    /// let names: Vec<String> = db.trees()?.into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["notes", "ponds"]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The catalog could not be read.
    pub fn trees(&self) -> Result<Vec<(String, Entry)>, Error> {
        self.store().catalog()
    }

    /// Creates a structure with keys and values of these types, unless the name exists. For
    /// programs that know types by name only, such as one that loads a dump. An existing structure
    /// stays unchanged.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let types = millpond::TypeNames::default();
    /// db.make(millpond::Structure::Tree, "ponds", &types)?;
    /// db.open_tree("ponds")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::OtherType`] or [`Error::OtherKind`] if the existing structure differs,
    /// [`Error::Name`], or the store failed.
    pub fn make(&self, kind: Structure, name: &str, types: &TypeNames) -> Result<(), Error> {
        match kind {
            Structure::Tree => self.store().tree_of(name, types).map(drop),
            Structure::Hash => self.store().hash_index_of(name, types).map(drop),
            Structure::Heap => self.store().heap_of(name, types).map(drop),
        }
    }
}

/// Returns the names of these types.
fn types_of<K: Key, V: Value>() -> TypeNames {
    TypeNames::new(<K as DecodeKey<'_>>::type_name(), <V as DecodeValue<'_>>::type_name())
}
