//! The conventional engines that the laboratory compares with: a page table, swips beside it or
//! not, shared latches, and the same log, locks and transactions (gilbert 2). Trees only, through
//! `Store<M>`.

use std::marker::PhantomData;
use std::ops::Bound;
use std::panic::Location;
use std::sync::Arc;

use millpond::internals::btree::WriteCondition;
use millpond::internals::pool::PoolStrategy;
use millpond::internals::store::{
    Builder, LatchingMode, Store as EngineStore, StoreTree, StoreTxn,
};
use millpond::internals::txn::{Bounds, Snapshot};
use millpond::{Error, Isolation, Options, Savepoint, Structure, TxnOptions};

use crate::engine::{Engine, options};
use crate::oracle::{State, Tree};
use crate::plan::Start;
use crate::subject::{Answer, Devices, Durability, Entries, Store, Subject, Transaction, View};

pub struct Conventional<M>(PhantomData<M>);

impl<M> Conventional<M> {
    pub fn new() -> Conventional<M> {
        Conventional(PhantomData)
    }
}

/// The store's translation is that of its combination.
fn options_of(start: &Start) -> Options {
    options(start).lab(|lab| lab.latching = LatchingMode::Latched)
}

impl<M: PoolStrategy> Subject for Conventional<M> {
    fn open(&self, devices: &Devices, start: &Start) -> Answer<Box<dyn Store>> {
        let (data, log) = (devices.data.clone(), devices.log.clone());
        let options = options_of(start);
        let builder = Builder::devices(data, log, &options);
        let store = builder.second_tier_on(devices.fast.clone()).open::<M>()?;
        Ok(Box::new(ConventionalStore { store, start: start.clone() }))
    }

    fn may_fail_early(&self) -> bool {
        true
    }

    fn check(&self, devices: &Devices) -> Answer<()> {
        Engine.check(devices)
    }
}

struct ConventionalStore<M: PoolStrategy> {
    store: Arc<EngineStore<M>>,
    start: Start,
}

impl<M: PoolStrategy> ConventionalStore<M> {
    fn tree(&self, name: &str) -> Answer<StoreTree<M>> {
        Ok(self.store.open_tree(name)?)
    }

    fn txn(&self, options: TxnOptions) -> Answer<ConventionalTransaction<'_, M>> {
        let txn = StoreTxn::begin(&self.store, options.wait_max(self.start.patience))?;
        Ok(ConventionalTransaction { store: self, txn, savepoints: Vec::new() })
    }

    /// One call, as a transaction of its own.
    fn alone<R>(
        &self,
        call: impl FnOnce(&mut ConventionalTransaction<'_, M>) -> Answer<R>,
    ) -> Answer<R> {
        let options = TxnOptions::default().durability(millpond::Durability::Async);
        let mut txn = self.txn(options)?;
        let done = call(&mut txn)?;
        Box::new(txn).commit()?;
        Ok(done)
    }
}

impl<M: PoolStrategy> Store for ConventionalStore<M> {
    fn create_tree(&self, tree: &str) -> Answer<()> {
        Ok(self.store.create_tree(tree).map(drop)?)
    }

    fn drop_tree(&self, tree: &str) -> Answer<()> {
        Ok(self.store.drop_structure(tree, Structure::Tree)?)
    }

    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool> {
        self.alone(|txn| txn.put(tree, key, value))
    }

    fn delete(&self, tree: &str, key: &[u8]) -> Answer<bool> {
        self.alone(|txn| txn.delete(tree, key))
    }

    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        self.alone(|txn| txn.get(tree, key))
    }

    fn begin(&self, durability: Durability, relaxed: bool) -> Answer<Box<dyn Transaction + '_>> {
        let isolation = if relaxed { Isolation::ReadCommitted } else { Isolation::Serializable };
        let options = TxnOptions::default().durability(durability.into()).isolation(isolation);
        Ok(Box::new(self.txn(options)?))
    }

    fn snapshot(&self) -> Answer<Box<dyn View + '_>> {
        let snapshot = self.store.begin_snapshot(Location::caller())?;
        Ok(Box::new(ConventionalView { store: self, snapshot }))
    }

    fn checkpoint(&self) -> Answer<()> {
        Ok(self.store.checkpoint()?)
    }

    fn flush(&self) -> Answer<()> {
        Ok(self.store.flush()?)
    }

    fn contents(&self) -> Answer<State> {
        let mut state = State::new();
        for (name, _) in self.store.catalog()? {
            let tree = self.tree(&name)?;
            let mut range = tree.btree().range(Bound::Unbounded, Bound::Unbounded);
            let mut entries = Tree::new();
            while let Some((key, value)) = range.next().map_err(Error::from)? {
                entries.insert(key.to_vec(), Arc::from(value));
            }
            drop(range);
            state.insert(name, entries);
        }
        Ok(state)
    }

    fn close(self: Box<Self>) -> Answer<bool> {
        self.store.close()?;
        Ok(true)
    }
}

struct ConventionalView<'a, M: PoolStrategy> {
    store: &'a ConventionalStore<M>,
    snapshot: Arc<Snapshot>,
}

impl<M: PoolStrategy> View for ConventionalView<'_, M> {
    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        let tree = self.store.tree(tree)?;
        Ok(self.snapshot.get(tree.btree(), key, <[u8]>::to_vec).map_err(Error::from)?)
    }

    fn range(&self, tree: &str, lower: &[u8], upper: &[u8], back: bool) -> Answer<Entries> {
        let mut entries = Entries::new();
        if lower >= upper {
            return Ok(entries);
        }
        let tree = self.store.tree(tree)?;
        let bounds = (Bound::Included(lower), Bound::Excluded(upper));
        let mut range = self.snapshot.range(tree.btree(), bounds.0, bounds.1);
        loop {
            let next = if back { range.next_back() } else { range.next() };
            let Some((key, value)) = next.map_err(Error::from)? else { break };
            entries.push((key.to_vec(), value.to_vec()));
        }
        if back {
            entries.reverse();
        }
        Ok(entries)
    }
}

struct ConventionalTransaction<'a, M: PoolStrategy> {
    store: &'a ConventionalStore<M>,
    txn: StoreTxn<M>,
    savepoints: Vec<Savepoint>,
}

impl<M: PoolStrategy> Transaction for ConventionalTransaction<'_, M> {
    fn get(&mut self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        Ok(self.txn.get(&self.store.tree(tree)?, key, <[u8]>::to_vec)?)
    }

    fn put(&mut self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool> {
        let tree = self.store.tree(tree)?;
        Ok(self.txn.write(&tree, key, Some(value), WriteCondition::Always)?.existed)
    }

    fn delete(&mut self, tree: &str, key: &[u8]) -> Answer<bool> {
        let tree = self.store.tree(tree)?;
        Ok(self.txn.write(&tree, key, None, WriteCondition::Present)?.applied)
    }

    fn range(&mut self, tree: &str, lower: &[u8], upper: &[u8]) -> Answer<Entries> {
        let mut entries = Entries::new();
        if lower < upper {
            let bounds = Bounds { lower: Bound::Included(lower), upper: Bound::Excluded(upper) };
            self.txn.scan(&self.store.tree(tree)?, bounds, |key, value| {
                entries.push((key.to_vec(), value.to_vec()));
                true
            })?;
        }
        Ok(entries)
    }

    fn savepoint(&mut self) -> Answer<()> {
        self.savepoints.push(self.txn.savepoint());
        Ok(())
    }

    fn rollback_to(&mut self, savepoint: usize) -> Answer<()> {
        self.savepoints.truncate(savepoint + 1);
        Ok(self.txn.rollback_to(&self.savepoints[savepoint])?)
    }

    fn commit(self: Box<Self>) -> Answer<()> {
        Ok(self.txn.commit()?)
    }

    fn abort(self: Box<Self>) -> Answer<()> {
        Ok(self.txn.abort()?)
    }
}
