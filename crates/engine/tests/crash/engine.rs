//! The engine itself.

use std::ops::ControlFlow;
use std::sync::Arc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store, rows_in_log};
use millpond::internals::btree::BulkOptions;
use millpond::internals::heap::RecordId;
use millpond::internals::io::PageStore;
use millpond::internals::pool::SyncMode;
use millpond::{
    Compression, Db, Error, EvictionMode, HashIndex, Heap, Isolation, KeyRange, Options, Placement,
    RawTree, Savepoint, Snapshot, Structure, Txn, TxnOptions,
    error::{BackupError, TierError},
};
use millpond_base::Share;
use millpond_base::cleaning::Cleaning;
use millpond_device::{Device, MemoryDevice, PowerSupply};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::BackTier;

use crate::oracle::{State, Tree};
use crate::plan::Start;
use crate::subject::{
    Answer, Devices, Durability, Entries, Failure, Store, Subject, Transaction, View,
};

pub struct Engine;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure {
            text: error.to_string(),
            may_retry: error.is_retriable() && !error.is_own_transaction(),
            is_violation: false,
        }
    }
}

impl From<Durability> for millpond::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Sync => Self::Sync,
            Durability::Group => Self::Group,
            Durability::Async => Self::Async,
            Durability::Bulk => Self::Bulk,
        }
    }
}

pub fn options(start: &Start) -> Options {
    let gap = if start.is_quiet { 1 << 40 } else { start.gap_bytes };
    let options = Options::new().page_size(start.page_size).policy(start.policy);
    let options = match second_tier(start) {
        None => options,
        Some((bytes, policy)) => {
            let options = options.second_tier("fast", bytes, policy);
            // In one life of eight what the tier has is given to the store first.
            options.write_back(start.back.is_some() && !(start.seed / 64).is_multiple_of(8))
        }
    };
    options
        .lab(|lab| lab.background_merge = !start.is_quiet)
        .log_gap(gap)
        .lab(|lab| {
            lab.tiny_pages = true;
            lab.frames = Some(start.frames);
            lab.batch = Some(2);
            lab.background_writer = !start.is_quiet;
            lab.log_segment = Some(start.segment_bytes);
            lab.seed = start.seed;
            lab.placement = placement(start);
            lab.cleaning = cleaning(start);
            lab.sync_mode = sync_mode(start);
            if lab.cleaning.is_some() {
                lab.eviction = EvictionMode::threads(1);
            }
        })
        .compression(compression(start))
}

/// Two lives in five have a second tier, of a few pages or of many; in some stories all of them
/// have one that writes back.
fn second_tier(start: &Start) -> Option<(u64, &'static str)> {
    const POLICIES: [&str; 6] = ["tq", "tq-io", "t2-lru", "mq-hints", "arc-io", "t2-rand"];
    let draw = start.seed / 1024;
    let pages = [12, 40, 400][(draw / 5 % 3) as usize];
    // There are no pages of 1,024 bytes: they have 4,096.
    let page = if start.page_size == 1024 { 4096 } else { u64::from(start.page_size) };
    let bytes = 16384 + pages * (page + 48);
    let policy = POLICIES[(draw / 15 % 6) as usize];
    if let Some(pages) = start.back {
        return Some((16384 + 65536 + pages * (page + 96), policy));
    }
    (draw % 5 < 2).then_some((bytes, policy))
}

/// Of the stories in place half sync ranges, and one in eight after each write, or some of them.
fn sync_mode(start: &Start) -> SyncMode {
    use SyncMode::*;
    match placement(start) {
        Placement::OutOfPlace => Checkpoint,
        Placement::InPlace => match start.seed / 4 % 8 {
            0 => EachWrite,
            1 => EachRecov,
            2 | 3 => Checkpoint,
            _ => Ranges,
        },
    }
}

/// Of the stories with threads of the store's own, one in eight has page cleaners.
fn cleaning(start: &Start) -> Option<Cleaning> {
    let cleans = !start.is_quiet && (start.seed / 8).is_multiple_of(8);
    cleans.then_some(Cleaning { dirty: Share(0.2), free: Share(0.1), neighbours: false })
}

/// Of the stories out of place, half are of compressed pages.
fn compression(start: &Start) -> Compression {
    match start.seed / 4 % 2 {
        0 => Compression::None,
        _ => Compression::Lz4,
    }
}

/// Three stories of four write pages out of place, as the stores of users do.
fn placement(start: &Start) -> Placement {
    match start.seed % 4 {
        0 => Placement::InPlace,
        _ => Placement::OutOfPlace,
    }
}

impl Subject for Engine {
    fn open(&self, devices: &Devices, start: &Start) -> Answer<Box<dyn Store>> {
        let (data, log, fast) = (devices.data.clone(), devices.log.clone(), devices.fast.clone());
        let db = Db::open_on_tiered_devices(data, log, fast, options(start))?;
        Ok(Box::new(EngineStore { db, start: start.clone() }))
    }

    fn has_extras(&self) -> bool {
        true
    }

    fn may_fail_early(&self) -> bool {
        true
    }

    fn check(&self, devices: &Devices) -> Answer<()> {
        let device = whole(devices).map_err(Failure::new)?;
        let store = PageStore::salvage_on(device, None).map_err(Failure::new)?;
        let rows = rows_in_log(&store, devices.log.clone());
        let mut options = CheckOptions { rows, ..CheckOptions::default() };
        let report = check_store(&store, CATALOG, &mut options).map_err(Failure::new)?;
        if report.is_sound() && report.counts.lost == 0 {
            return Ok(());
        }
        let problems: Vec<String> =
            report.problems.iter().take(6).map(ToString::to_string).collect();
        let count = report.problem_count();
        Err(Failure::new(format!("{count} problems:\n    {}", problems.join("\n    "))))
    }
}

/// The data, with the part that a second tier has.
fn whole(devices: &Devices) -> Result<Arc<dyn Device>, TierError> {
    let (data, fast) = (devices.data.clone(), devices.fast.clone());
    match BackTier::options_of(&*data, &*fast)? {
        None => Ok(data),
        Some(options) => {
            let policy =
                ChosenPolicy::parse("t2-lru", Tier::Second).expect("a policy of a second tier");
            let host = |shape: &_| policy.erased_host(shape);
            Ok(Arc::new(BackTier::open(data, fast, &options, host)?))
        }
    }
}

struct EngineStore {
    db: Db,
    start: Start,
}

impl EngineStore {
    /// A handle for one operation: a tree that has handles cannot be dropped.
    fn tree(&self, name: &str) -> Answer<RawTree> {
        Ok(self.db.open_tree(name)?)
    }

    fn heap(&self, name: &str) -> Answer<Heap<Vec<u8>>> {
        Ok(self.db.open_heap(name)?)
    }

    fn index(&self, name: &str) -> Answer<HashIndex<Vec<u8>, Vec<u8>>> {
        Ok(self.db.open_hash_index(name)?)
    }
}

fn is_hash(name: &str) -> bool {
    name.starts_with('h')
}

fn is_heap(name: &str) -> bool {
    name.starts_with('g')
}

fn id_of(key: &[u8]) -> RecordId {
    RecordId(u64::from_be_bytes(key.try_into().unwrap()))
}

/// Returns the contents of a store. Nobody may write in the meantime.
fn contents(db: &Db) -> Answer<State> {
    let mut state = State::new();
    for (name, _) in db.trees()? {
        let mut entries = Tree::new();
        if is_hash(&name) {
            for entry in db.open_hash_index(&name)?.iter() {
                let (key, value) = entry?;
                entries.insert(key, Arc::from(value));
            }
        } else if is_heap(&name) {
            for record in db.open_heap(&name)?.records()? {
                let (id, value) = record?;
                entries.insert(id.0.to_be_bytes().to_vec(), Arc::from(value));
            }
        } else {
            let tree = db.open_tree(&name)?;
            for entry in tree.iter() {
                let (key, value) = entry?;
                entries.insert(key, Arc::from(value));
            }
            let counted = tree.len()?;
            if counted != entries.len() as u64 {
                let there = entries.len();
                let what = format!("{counted} entries are counted in {name}, not {there}");
                return Err(Failure::new(what));
            }
        }
        state.insert(name, entries);
    }
    Ok(state)
}

impl Store for EngineStore {
    fn create_tree(&self, tree: &str) -> Answer<()> {
        if is_hash(tree) {
            return Ok(self.db.create_hash_index(tree).map(drop)?);
        }
        if is_heap(tree) {
            return Ok(self.db.create_heap(tree).map(drop)?);
        }
        Ok(self.db.create_tree(tree).map(drop)?)
    }

    fn drop_tree(&self, tree: &str) -> Answer<()> {
        if is_hash(tree) {
            return Ok(self.db.drop_structure(tree, Structure::Hash)?);
        }
        if is_heap(tree) {
            return Ok(self.db.drop_structure(tree, Structure::Heap)?);
        }
        Ok(self.db.drop_tree(tree)?)
    }

    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool> {
        if is_hash(tree) {
            return Ok(self.index(tree)?.put(key, value)?);
        }
        if is_heap(tree) {
            return Ok(self.db.open_heap(tree)?.update(id_of(key), value)?);
        }
        Ok(self.tree(tree)?.put(key, value)?)
    }

    fn delete(&self, tree: &str, key: &[u8]) -> Answer<bool> {
        if is_hash(tree) {
            return Ok(self.index(tree)?.delete(key)?);
        }
        if is_heap(tree) {
            return Ok(self.db.open_heap(tree)?.delete(id_of(key))?);
        }
        Ok(self.tree(tree)?.delete(key)?)
    }

    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        if is_hash(tree) {
            return Ok(self.index(tree)?.get(key)?);
        }
        if is_heap(tree) {
            return Ok(self.db.open_heap(tree)?.get(id_of(key))?);
        }
        Ok(self.tree(tree)?.get(key)?)
    }

    fn snapshot(&self) -> Answer<Box<dyn View + '_>> {
        Ok(Box::new(EngineView { store: self, snapshot: self.db.snapshot()? }))
    }

    fn begin(&self, durability: Durability, relaxed: bool) -> Answer<Box<dyn Transaction + '_>> {
        let isolation = if relaxed { Isolation::ReadCommitted } else { Isolation::Serializable };
        let options = TxnOptions::default().durability(durability.into()).isolation(isolation);
        let options = options.wait_max(self.start.patience);
        let txn = self.db.begin_with(options)?;
        Ok(Box::new(EngineTransaction { store: self, txn, savepoints: Vec::new() }))
    }

    fn checkpoint(&self) -> Answer<()> {
        Ok(self.db.checkpoint()?)
    }

    fn flush(&self) -> Answer<()> {
        Ok(self.db.flush()?)
    }

    fn append(&self, heap: &str, record: &[u8]) -> Answer<Vec<u8>> {
        Ok(self.db.open_heap(heap)?.append(record)?.0.to_be_bytes().to_vec())
    }

    fn clear(&self, tree: &str) -> Answer<()> {
        if is_hash(tree) {
            return Ok(self.index(tree)?.clear().map(drop)?);
        }
        if is_heap(tree) {
            return Ok(self.db.open_heap(tree)?.clear()?);
        }
        Ok(self.tree(tree)?.clear().map(drop)?)
    }

    fn remove_range(&self, tree: &str, lower: &[u8], upper: &[u8]) -> Answer<u64> {
        Ok(self.tree(tree)?.remove_range(KeyRange::of::<Vec<u8>, &[u8]>(lower..upper))?)
    }

    fn load(&self, tree: &str, entries: &Tree) -> Answer<()> {
        let rows = entries.iter().map(|(key, value)| (key.clone(), value.to_vec()));
        let loaded = self.tree(tree)?.bulk_load(rows, BulkOptions::default())?;
        let is_all = loaded == entries.len() as u64;
        is_all.then_some(()).ok_or_else(|| Failure::new(format!("loaded {loaded} entries")))
    }

    fn shrink(&self) -> Answer<()> {
        match self.db.shrink() {
            Err(Error::Backup(BackupError::UnderWay)) => Ok(()),
            shrunk => Ok(shrunk.map(drop)?),
        }
    }

    fn backup(&self, amid: &mut dyn FnMut() -> bool) -> Answer<State> {
        let supply = PowerSupply::new();
        let [data, log] = ["copy", "copy-log"].map(|name| supply.device(name, MemoryDevice::new()));
        let targets: [Arc<dyn Device>; 2] = [data.clone(), log.clone()];
        let mut watch = |_| if amid() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        self.db.backup_to_devices(&targets[0], &targets[1], &mut watch)?;
        let start = Start { is_quiet: true, ..self.start.clone() };
        let failed = |what: &str, error: Error| Failure::new(format!("{what} a backup: {error}"));
        let (target, target_log) = (data.clone(), log.clone());
        let fast = supply.device("fast", MemoryDevice::new());
        let copy = Db::open_on_tiered_devices(target, target_log, fast.clone(), options(&start));
        let copy = copy.map_err(|error| failed("opening", error))?;
        let found = contents(&copy)
            .map_err(|failure| Failure::new(format!("reading: {}", failure.text)))?;
        copy.close().map_err(|error| failed("closing", error))?;
        Engine.check(&Devices { data, log, fast })?;
        Ok(found)
    }

    fn contents(&self) -> Answer<State> {
        contents(&self.db)
    }

    fn close(self: Box<Self>) -> Answer<bool> {
        match self.start.seed / 4096 % 3 {
            0 => close_beside_handles(self.db).map(|()| false),
            _ => Ok(self.db.close().map(|()| true)?),
        }
    }
}

/// Closes a store that has handles left, one of them a transaction that changed something: the next
/// opening undoes it, and the handles do nothing any more.
fn close_beside_handles(db: Db) -> Answer<()> {
    let (tree, other) = (db.open_tree("s0")?, db.clone());
    let (txn, snapshot) = (db.begin()?, db.snapshot()?);
    txn.tree(&tree).put(&[255, 255], b"never committed")?;
    db.close()?;
    let done = [
        tree.get(b"k").is_ok(),
        snapshot.tree(&tree).get(b"k").is_ok(),
        txn.commit().is_ok(),
        other.flush().is_ok(),
    ];
    if done.contains(&true) {
        let text = format!("handles of a closed store do something: {done:?}");
        return Err(Failure::violation(text));
    }
    Ok(())
}

struct EngineView<'a> {
    store: &'a EngineStore,
    snapshot: Snapshot,
}

impl View for EngineView<'_> {
    fn get(&self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        if is_hash(tree) {
            return Ok(self.snapshot.hash_index(&self.store.index(tree)?).get(key)?);
        }
        if is_heap(tree) {
            return Ok(self.snapshot.heap(&self.store.heap(tree)?).get(id_of(key))?);
        }
        Ok(self.snapshot.tree(&self.store.tree(tree)?).get(key)?)
    }

    fn range(&self, tree: &str, lower: &[u8], upper: &[u8], back: bool) -> Answer<Entries> {
        if lower >= upper {
            return Ok(Vec::new());
        }
        let is_inside = |key: &[u8]| key >= lower && key < upper;
        if is_hash(tree) {
            let index = self.store.index(tree)?;
            let mut entries =
                self.snapshot.hash_index(&index).iter().collect::<Result<Entries, Error>>()?;
            entries.retain(|(key, _)| is_inside(key));
            entries.sort();
            return Ok(entries);
        }
        if is_heap(tree) {
            let heap = self.store.heap(tree)?;
            let heap = self.snapshot.heap(&heap);
            let records = heap.records()?;
            let entry = |record: Result<(RecordId, Vec<u8>), Error>| {
                record.map(|(id, record)| (id.0.to_be_bytes().to_vec(), record))
            };
            let entries: Result<Entries, Error> = if back {
                records.rev().map(entry).collect()
            } else {
                records.map(entry).collect()
            };
            let mut entries = entries?;
            if back {
                entries.reverse();
            }
            entries.retain(|(key, _)| is_inside(key));
            return Ok(entries);
        }
        let tree = self.store.tree(tree)?;
        let (counted, all) = (self.snapshot.tree(&tree).len()?, &b""[..]..);
        let there = self.snapshot.tree(&tree).count(all)?;
        if counted != there {
            return Err(Failure::new(format!("a snapshot counts {counted} entries, not {there}")));
        }
        let range = self.snapshot.tree(&tree).into_range(lower..upper);
        let entries: Result<Entries, Error> =
            if back { range.rev().collect() } else { range.collect() };
        let mut entries = entries?;
        if back {
            entries.reverse();
        }
        Ok(entries)
    }
}

struct EngineTransaction<'a> {
    store: &'a EngineStore,
    txn: Txn,
    savepoints: Vec<Savepoint>,
}

impl Transaction for EngineTransaction<'_> {
    fn get(&mut self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        if is_hash(tree) {
            return Ok(self.txn.hash_index(&self.store.index(tree)?).get(key)?);
        }
        if is_heap(tree) {
            return Ok(self.txn.heap(&self.store.heap(tree)?).get(id_of(key))?);
        }
        Ok(self.txn.tree(&self.store.tree(tree)?).get(key)?)
    }

    fn get_for_update(&mut self, tree: &str, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        if is_hash(tree) {
            return Ok(self.txn.hash_index(&self.store.index(tree)?).get_for_update(key)?);
        }
        if is_heap(tree) {
            return Ok(self.txn.heap(&self.store.heap(tree)?).get_for_update(id_of(key))?);
        }
        Ok(self.txn.tree(&self.store.tree(tree)?).get_for_update(key)?)
    }

    fn put(&mut self, tree: &str, key: &[u8], value: &[u8]) -> Answer<bool> {
        if is_hash(tree) {
            return Ok(self.txn.hash_index(&self.store.index(tree)?).put(key, value)?);
        }
        if is_heap(tree) {
            return Ok(self.txn.heap(&self.store.heap(tree)?).update(id_of(key), value)?);
        }
        Ok(self.txn.tree(&self.store.tree(tree)?).put(key, value)?)
    }

    fn delete(&mut self, tree: &str, key: &[u8]) -> Answer<bool> {
        if is_hash(tree) {
            return Ok(self.txn.hash_index(&self.store.index(tree)?).delete(key)?);
        }
        if is_heap(tree) {
            return Ok(self.txn.heap(&self.store.heap(tree)?).delete(id_of(key))?);
        }
        Ok(self.txn.tree(&self.store.tree(tree)?).delete(key)?)
    }

    fn range(&mut self, tree: &str, lower: &[u8], upper: &[u8]) -> Answer<Entries> {
        if lower >= upper {
            return Ok(Vec::new());
        }
        let tree = self.store.tree(tree)?;
        // The whole range is locked first.
        self.txn.tree(&tree).count(lower..upper)?;
        Ok(self.txn.tree(&tree).range(lower..upper).collect::<Result<_, Error>>()?)
    }

    fn savepoint(&mut self) -> Answer<()> {
        self.savepoints.push(self.txn.savepoint()?);
        Ok(())
    }

    fn rollback_to(&mut self, savepoint: usize) -> Answer<()> {
        self.savepoints.truncate(savepoint + 1);
        Ok(self.txn.rollback_to(&self.savepoints[savepoint])?)
    }

    fn commit(self: Box<Self>) -> Answer<()> {
        // Some return before they are durable, and the story waits for that.
        match self.txn.id() % 3 {
            0 => Ok(self.txn.commit_async()?.wait()?),
            _ => Ok(self.txn.commit()?),
        }
    }

    fn abort(self: Box<Self>) -> Answer<()> {
        Ok(self.txn.abort()?)
    }
}
