//! Loads of a dump into a store.
//!
//! Entries of a tree are loaded in bulk, page by page, as long as they are in key order. From the
//! first one out of order on, they are written one by one, and a later entry replaces an earlier
//! one of the same key. Records of a heap are appended in the order of the dump, and get new ids.

use std::io::BufRead;

use crate::admin::dump::reader::{DumpError, DumpReader, Item};
use crate::store::entry::{Structure, TypeNames};

/// A store that a dump is loaded into.
pub trait Loader {
    /// Error of the store.
    type Error;

    /// Creates the structure `name` if it does not exist, with the types of keys and values that
    /// the dump names. Called before all other methods that name it. By default it creates nothing,
    /// and ignores the types.
    ///
    /// # Errors
    /// The store's error: the structure exists, with other types.
    fn make(&mut self, kind: Structure, name: &str, types: &TypeNames) -> Result<(), Self::Error> {
        let _ = (kind, name, types);
        Ok(())
    }

    /// Loads rows with ascending keys into the tree `name`, which is created if it does not exist.
    /// Returns their number.
    ///
    /// # Errors
    /// The store's error.
    fn sorted(
        &mut self,
        name: &str,
        rows: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<u64, Self::Error>;

    /// Writes one entry into that tree.
    ///
    /// # Errors
    /// The store's error.
    fn put(&mut self, name: &str, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Creates the hash index or heap `name` if it does not exist; its entries follow.
    ///
    /// # Errors
    /// The store's error.
    fn begin(&mut self, kind: Structure, name: &str) -> Result<(), Self::Error>;

    /// Writes one entry into the hash index or heap that was begun last. The key of a heap's record
    /// is its former id, in digits.
    ///
    /// # Errors
    /// The store's error.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;
}

/// Result of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Number of sections: trees, hash indexes and heaps.
    pub trees: u64,
    /// Number of entries read.
    pub entries: u64,
    /// Number of entries loaded in bulk.
    pub sorted: u64,
}

/// Reason that a dump was not loaded completely.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError<E: std::fmt::Display> {
    /// The dump is faulty.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The store failed.
    #[error("before line {line} of the dump: {error}")]
    Store {
        /// The last line that was read.
        line: u64,
        /// The store's error.
        error: E,
    },
}

/// The item of a line, with its key and value.
type Line = (Item, Vec<u8>, Vec<u8>);

/// Entries of the dump, as long as they are in order.
struct Ascending<'r, R: BufRead> {
    reader: &'r mut DumpReader<R>,
    first: Option<(Vec<u8>, Vec<u8>)>,
    last: Vec<u8>,
    /// The line or error that ended it.
    next: Option<Result<Line, DumpError>>,
}

impl<R: BufRead> Iterator for Ascending<'_, R> {
    type Item = (Vec<u8>, Vec<u8>);

    fn next(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        if let Some((key, value)) = self.first.take() {
            self.last.clone_from(&key);
            return Some((key, value));
        }
        if self.next.is_some() {
            return None;
        }
        let (mut key, mut value) = (Vec::new(), Vec::new());
        match self.reader.read(&mut key, &mut value) {
            Ok(Item::Entry) if key > self.last => {
                self.last.clone_from(&key);
                Some((key, value))
            }
            other => {
                self.next = Some(other.map(|item| (item, key, value)));
                None
            }
        }
    }
}

/// Loads a whole dump.
///
/// # Errors
/// The input is not a dump, or incomplete, or the store failed; everything before the fault is
/// loaded.
pub fn load<R: BufRead, L: Loader>(
    reader: &mut DumpReader<R>,
    store: &mut L,
    mut progress: impl FnMut(&Loaded),
) -> Result<Loaded, LoadError<L::Error>>
where
    L::Error: std::fmt::Display,
{
    let mut loaded = Loaded::default();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut tree = String::new();
    // Set if the next entry is the first of a tree's section.
    let mut fresh = false;
    let mut kind = Structure::Tree;
    let mut next = None;
    loop {
        let item = match next.take() {
            Some((item, next_key, next_value)) => {
                (key, value) = (next_key, next_value);
                item
            }
            None => reader.read(&mut key, &mut value)?,
        };
        let fail = |line| move |error| LoadError::Store { line, error };
        match item {
            Item::End | Item::Structure(..) if fresh => {
                // A tree without entries; the line that ends it is returned again.
                let line = reader.line();
                store.sorted(&tree, &mut std::iter::empty()).map_err(fail(line))?;
                next = Some((item, std::mem::take(&mut key), std::mem::take(&mut value)));
                fresh = false;
            }
            Item::End => {
                reader.expect_end()?;
                return Ok(loaded);
            }
            Item::Structure(of, name, types) => {
                kind = of;
                loaded.trees += 1;
                store.make(kind, &name, &types).map_err(fail(reader.line()))?;
                if kind == Structure::Tree {
                    (tree, fresh) = (name, true);
                } else {
                    store.begin(kind, &name).map_err(fail(reader.line()))?;
                }
            }
            Item::Entry if fresh => {
                let first = Some((std::mem::take(&mut key), std::mem::take(&mut value)));
                let mut rows =
                    Ascending { reader: &mut *reader, first, last: Vec::new(), next: None };
                let result = store.sorted(&tree, &mut rows);
                let after = rows.next.take();
                let count = result.map_err(fail(reader.line()))?;
                loaded.entries += count;
                loaded.sorted += count;
                next = after.transpose()?;
                fresh = false;
            }
            Item::Entry => {
                let put = match kind {
                    Structure::Tree => store.put(&tree, &key, &value),
                    Structure::Hash | Structure::Heap => store.add(&key, &value),
                };
                put.map_err(fail(reader.line()))?;
                loaded.entries += 1;
            }
        }
        progress(&loaded);
    }
}
