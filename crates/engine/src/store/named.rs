//! The names of a store: its catalog, and the open structures.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::pool::{PageMemory, Pages, Pool, PoolStrategy};
use crate::store::catalog::Catalog;
use crate::store::entry::{Entry, Structure, TypeNames};
use crate::store::error::Error;
use crate::store::opened::Opened;
use crate::txn::TransactionManager;

/// The catalog and the open structures.
pub(crate) struct Named<M: PoolStrategy> {
    /// `None` only in a store that is open for reading and has never had one.
    pub(crate) catalog: Option<Catalog<Pool<M>>>,
    pub(crate) open: HashMap<String, Opened<M>>,
    /// Splits and merges of dropped trees.
    pub(crate) gone: (u64, u64),
    /// Names of structures about to be dropped.
    pub(crate) dropping: Vec<String>,
}

impl<M: PoolStrategy> Named<M> {
    /// Returns the open structure of that name.
    pub(crate) fn opened(&self, name: &str) -> Option<Opened<M>> {
        self.open.get(name).cloned()
    }

    /// Returns owner ids and names of the open trees.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (u32, String)> {
        self.open.iter().filter_map(|(name, opened)| match opened {
            Opened::Tree(tree) => Some((tree.structure().owner(), name.clone())),
            Opened::Hash(_) | Opened::Heap(_) => None,
        })
    }

    /// Opens the structure whose pages carry the id `owner`, and keeps it open.
    pub(crate) fn owned_by(
        &mut self,
        pool: &Arc<Pool<M>>,
        owner: u32,
    ) -> Result<Option<Opened<M>>, Error> {
        if let Some(open) = self.open.values().find(|opened| opened.owner() == owner) {
            return Ok(Some(open.clone()));
        }
        let all = self.catalog.as_ref().map_or(Ok(Vec::new()), Catalog::list)?;
        let Some((name, entry)) = all.into_iter().find(|(_, entry)| entry.owner == owner) else {
            return Ok(None);
        };
        let opened = Opened::open(pool, &name, &entry)?;
        self.open.insert(name, opened.clone());
        Ok(Some(opened))
    }

    /// Restricts the entry counts to existing trees, once everything is undone and freed.
    pub(in crate::store) fn keep_counts(&self, pool: &Arc<Pool<M>>) -> Result<(), Error> {
        let all = self.catalog.as_ref().map_or(Ok(Vec::new()), Catalog::list)?;
        let trees = all.iter().filter(|(_, entry)| entry.structure == Structure::Tree);
        let trees: HashSet<u32> = trees.map(|(_, entry)| entry.owner).collect();
        let rows = pool.redo_log().rows();
        rows.retain(|owner| trees.contains(&owner));
        rows.settle();
        Ok(())
    }

    /// Returns the entry of that name, if it exists.
    pub(crate) fn entry(&self, name: &str) -> Result<Option<Entry>, Error> {
        self.catalog.as_ref().map_or(Ok(None), |catalog| catalog.get(name))
    }

    /// Opens the structure of that name, and returns it with its entry.
    pub(crate) fn open_to_move(
        &mut self,
        pool: &Arc<Pool<M>>,
        name: &str,
    ) -> Result<Option<(Opened<M>, Entry)>, Error> {
        let Some(entry) = self.entry(name)? else { return Ok(None) };
        if let Some(opened) = self.open.get(name) {
            return Ok(Some((opened.clone(), entry)));
        }
        let opened = Opened::open(pool, name, &entry)?;
        self.open.insert(name.to_string(), opened.clone());
        Ok(Some((opened, entry)))
    }

    /// Returns the catalog, if there is one.
    pub(crate) fn catalog(&self) -> Option<&Catalog<Pool<M>>> {
        self.catalog.as_ref()
    }

    /// Creates a structure and enters it into the catalog.
    pub(crate) fn create(
        &mut self,
        pool: &Arc<Pool<M>>,
        name: &str,
        structure: Structure,
        types: &TypeNames,
    ) -> Result<Opened<M>, Error> {
        let Some(catalog) = &mut self.catalog else { return Err(Error::ReadOnly) };
        if catalog.get(name)?.is_some() {
            return Err(Error::Exists { name: name.to_string() });
        }
        pool.make_log_room(2 * pool.page_size())?;
        let owner = catalog.new_owner();
        let made = Opened::create(pool, name, owner, structure)?;
        let created = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let created_ms = u64::try_from(created.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry { owner, structure, root: made.root(), created_ms };
        if let Err(error) = catalog.insert(name, &entry, types) {
            // Its pages would be lost otherwise.
            if let Err(error) = made.destroy() {
                tracing::warn!(%error, "the first pages of '{name}' are lost: `check` finds them");
            }
            return Err(error);
        }
        self.open.insert(name.to_string(), made.clone());
        Ok(made)
    }
}

/// Lets errors of locks show the users' names of trees. No thread waits for a lock while it holds
/// the names.
pub(crate) fn name_trees<M: PoolStrategy>(txns: &TransactionManager, named: &Arc<Mutex<Named<M>>>) {
    let Some(locks) = txns.locks() else { return };
    let named = Arc::downgrade(named);
    locks.name_trees_by(Box::new(move |owner| {
        let named = named.upgrade()?;
        let named = named.lock().past_poison();
        let mut open = named.open.iter();
        open.find(|(_, opened)| opened.owner() == owner).map(|(name, _)| name.clone())
    }));
}
