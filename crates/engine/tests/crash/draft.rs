//! A transaction of a store in memory: its changes wait until it commits.

use std::ops::Bound;

use crate::oracle::{Change, State, Tree};
use crate::subject::{Answer, Durability, Entries, Transaction};
use crate::toy::Bug;

/// A store in memory that commits all changes at once.
pub trait Keeper {
    fn tree(&self, tree: &str) -> Tree;
    fn commit(&self, changes: &[Change], durability: Durability) -> Answer<()>;

    /// Returns the bug of the store, if any.
    fn bug(&self) -> Bug {
        Bug::None
    }

    /// Writes changes that never took place: only bugs do.
    fn log_only(&self, _changes: &[Change], _sync: bool) -> Answer<()> {
        Ok(())
    }
}

pub struct Draft<'a> {
    store: &'a dyn Keeper,
    durability: Durability,
    changes: Vec<Change>,
    savepoints: Vec<usize>,
    /// Changes that were rolled back, for the bug that forgets the rollback.
    forgotten: Vec<Change>,
}

impl<'a> Draft<'a> {
    pub fn new(store: &'a dyn Keeper, durability: Durability) -> Draft<'a> {
        let (changes, savepoints, forgotten) = (Vec::new(), Vec::new(), Vec::new());
        Draft { store, durability, changes, savepoints, forgotten }
    }

    fn see(&self, tree: &str) -> State {
        let mut state = State::from([(tree.to_string(), self.store.tree(tree))]);
        if self.store.bug() != Bug::StaleRead {
            self.changes.iter().for_each(|change| change.apply(&mut state));
        }
        state
    }
}

impl Transaction for Draft<'_> {
    fn get(&mut self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        Ok(self.see(tree)[tree].get(key).map(|value| value.to_vec()))
    }

    fn put(&mut self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool> {
        let was_there = self.get(tree, key)?.is_some();
        let (tree, key) = (tree.to_string(), key.to_vec());
        self.changes.push(Change::Put { tree, key, value: value.into() });
        Ok(was_there)
    }

    fn delete(&mut self, tree: &str, key: &[u8]) -> Answer<bool> {
        let was_there = self.get(tree, key)?.is_some();
        self.changes.push(Change::Delete { tree: tree.to_string(), key: key.to_vec() });
        Ok(was_there)
    }

    fn range(&mut self, tree: &str, lower: &[u8], upper: &[u8]) -> Answer<Entries> {
        if lower >= upper {
            return Ok(Vec::new());
        }
        let bounds = (Bound::Included(lower), Bound::Excluded(upper));
        let state = self.see(tree);
        let entries = state[tree].range::<[u8], _>(bounds);
        Ok(entries.map(|(key, value)| (key.clone(), value.to_vec())).collect())
    }

    fn savepoint(&mut self) -> Answer<()> {
        self.savepoints.push(self.changes.len());
        Ok(())
    }

    fn rollback_to(&mut self, savepoint: usize) -> Answer<()> {
        let gone = self.changes.drain(self.savepoints[savepoint]..);
        self.forgotten.extend(gone);
        self.savepoints.truncate(savepoint + 1);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Answer<()> {
        if self.store.bug() == Bug::ForgottenRollback && !self.forgotten.is_empty() {
            let all = [&self.changes[..], &self.forgotten].concat();
            self.store.log_only(&all, true)?;
        }
        self.store.commit(&self.changes, self.durability)
    }

    fn abort(self: Box<Self>) -> Answer<()> {
        if self.store.bug() == Bug::Resurrected {
            self.store.log_only(&self.changes, false)?;
        }
        Ok(())
    }
}
