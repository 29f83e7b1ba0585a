//! The interface of a store that the campaign needs. It is small, so that a toy can be put to the
//! test as well, and with it the campaign itself.

use std::fmt;
use std::sync::Arc;

use millpond_device::FaultyDevice;

use crate::oracle::{State, Tree};
use crate::plan::Start;

/// When a commit may be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Never.
    Sync,
    /// Never; it may wait for company.
    Group,
    /// With all that came after it, until something makes them durable.
    Async,
    /// With all that came after it, like `Async`.
    Bulk,
}

impl Durability {
    pub const ALL: [Durability; 4] =
        [Durability::Sync, Durability::Group, Durability::Async, Durability::Bulk];

    pub fn is_durable(self) -> bool {
        matches!(self, Durability::Sync | Durability::Group)
    }
}

/// Why something did not work.
#[derive(Clone, Debug)]
pub struct Failure {
    pub text: String,
    /// Another attempt may succeed: a deadlock, or a lock that did not come in time.
    pub may_retry: bool,
    /// The store did something that it never may, whatever its disk does.
    pub is_violation: bool,
}

impl Failure {
    pub fn new(error: impl fmt::Display) -> Failure {
        Failure { text: error.to_string(), may_retry: false, is_violation: false }
    }

    pub fn violation(text: String) -> Failure {
        Failure { text, may_retry: false, is_violation: true }
    }
}

pub type Answer<T> = Result<T, Failure>;
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The devices of a store.
#[derive(Clone)]
pub struct Devices {
    pub data: Arc<FaultyDevice>,
    pub log: Arc<FaultyDevice>,
    /// For the cache of a second tier.
    pub fast: Arc<FaultyDevice>,
}

/// A kind of store.
pub trait Subject: Send + Sync {
    /// Opens the store on the devices, recovering it if it was not closed; makes it if they are
    /// empty.
    fn open(&self, devices: &Devices, start: &Start) -> Answer<Box<dyn Store>>;

    /// Returns `true` if the power may fail before there is a whole store.
    fn may_fail_early(&self) -> bool {
        false
    }

    /// Returns `true` if the process may die while the machine goes on.
    fn may_die(&self) -> bool {
        true
    }

    /// Returns `true` if stores have heaps and shared keys, change whole trees, and are backed up.
    fn has_extras(&self) -> bool {
        false
    }

    /// Looks for damage and for lost space in a store that was closed.
    fn check(&self, devices: &Devices) -> Answer<()>;
}

/// An open store.
pub trait Store: Sync {
    /// A name that begins with an `h` is a hash index's, one with a `g` a heap's: it has no ranges.
    fn create_tree(&self, tree: &str) -> Answer<()>;
    fn drop_tree(&self, tree: &str) -> Answer<()>;
    /// A transaction of its own that is not durable when it returns, as [`Store::delete`].
    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool>;
    fn delete(&self, tree: &str, key: &[u8]) -> Answer<bool>;
    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>>;
    /// `relaxed`: the transaction needs no more isolation than read committed.
    fn begin(&self, durability: Durability, relaxed: bool) -> Answer<Box<dyn Transaction + '_>>;
    /// Returns a view of the committed state.
    fn snapshot(&self) -> Answer<Box<dyn View + '_>> {
        Ok(Box::new(Still(self.contents()?)))
    }
    fn checkpoint(&self) -> Answer<()>;
    /// Makes everything durable that was acknowledged before.
    fn flush(&self) -> Answer<()>;
    /// Appends a record to a heap, whose name begins with a `g`; answers its id.
    fn append(&self, _heap: &str, _record: &[u8]) -> Answer<Vec<u8>> {
        Err(Failure::new("no heaps"))
    }
    /// Removes all that is in a structure.
    fn clear(&self, _tree: &str) -> Answer<()> {
        Err(Failure::new("trees are not cleared"))
    }
    /// Removes the entries between two keys, the second one not included; returns their number.
    fn remove_range(&self, _tree: &str, _lower: &[u8], _upper: &[u8]) -> Answer<u64> {
        Err(Failure::new("ranges are not removed"))
    }
    /// Fills an empty tree.
    fn load(&self, _tree: &str, _entries: &Tree) -> Answer<()> {
        Err(Failure::new("trees are not loaded"))
    }
    /// Gives room back.
    fn shrink(&self) -> Answer<()> {
        Err(Failure::new("files do not shrink"))
    }
    /// Makes a backup, calling `amid` from time to time, until that answers `false`; what is in
    /// it, once it was recovered and checked.
    fn backup(&self, _amid: &mut dyn FnMut() -> bool) -> Answer<State> {
        Err(Failure::new("no backups"))
    }
    /// All trees, and all that is in them.
    fn contents(&self) -> Answer<State>;
    /// Closes the store. Returns whether it is at rest: no recovery is needed, and it can be
    /// checked.
    fn close(self: Box<Self>) -> Answer<bool>;
}

/// The committed state at one moment.
pub trait View {
    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>>;
    /// Entries from `lower` on and below `upper`, read backwards if `back`.
    fn range(&self, tree: &str, lower: &[u8], upper: &[u8], back: bool) -> Answer<Entries>;
}

/// A copy of everything.
struct Still(State);

impl View for Still {
    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        Ok(self.0.get(tree).and_then(|tree| tree.get(key)).map(|value| value.to_vec()))
    }

    fn range(&self, tree: &str, lower: &[u8], upper: &[u8], _: bool) -> Answer<Entries> {
        let entries = self.0.get(tree).into_iter().flatten();
        let inside = entries.filter(|(key, _)| key.as_slice() >= lower && key.as_slice() < upper);
        Ok(inside.map(|(key, value)| (key.clone(), value.to_vec())).collect())
    }
}

/// A transaction; it aborts when it is dropped.
pub trait Transaction {
    fn get(&mut self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>>;
    /// Like `get`, for a key that is to be written.
    fn get_for_update(&mut self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        self.get(tree, key)
    }
    /// Returns `true` if the key was there.
    fn put(&mut self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool>;
    /// Returns `true` if the key was there.
    fn delete(&mut self, tree: &str, key: &[u8]) -> Answer<bool>;
    /// Entries from `lower` on and below `upper`.
    fn range(&mut self, tree: &str, lower: &[u8], upper: &[u8]) -> Answer<Entries>;
    /// Savepoints are numbered from 0 on; those behind one that was rolled back to are gone.
    fn savepoint(&mut self) -> Answer<()>;
    fn rollback_to(&mut self, savepoint: usize) -> Answer<()>;
    fn commit(self: Box<Self>) -> Answer<()>;
    fn abort(self: Box<Self>) -> Answer<()>;
}
