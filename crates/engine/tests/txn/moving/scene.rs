//! Stores to shrink, what they hold, and whether they hold it afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::internals::heap::RecordId;
use millpond::internals::io::PageStore;
use millpond::{Db, Durability, Options, Placement, RawTree, report::Shrunk};
use millpond_device::Device;

pub const PAGE: u64 = 4096;

pub const PLACEMENTS: [Placement; 2] = [Placement::OutOfPlace, Placement::InPlace];

/// Out of place, page ids stay and pages are copied; in place, ids move.
pub fn placed(frames: u32, placement: Placement) -> Options {
    options(frames).lab(|lab| lab.placement = placement)
}

pub fn options(frames: u32) -> Options {
    let options = Options::new().page_size(PAGE as u32).durability(Durability::Async);
    options.lab(|lab| lab.background_merge = false).log_gap(256 << 10).lab(|lab| {
        lab.frames = Some(frames);
        lab.log_segment = Some(64 << 10);
    })
}

pub fn sound(device: Arc<dyn Device>, what: &str) {
    let store = PageStore::open_on(device, None, true).unwrap();
    let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.problems);
}

pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub const TREES: [&str; 2] = ["tree", "other tree"];

/// Expected contents of a store.
#[derive(Default, Clone)]
pub struct Model {
    trees: [Rows; 2],
    index: Rows,
    heap: BTreeMap<RecordId, Vec<u8>>,
}

/// Bytes of a value: some fit into one page of their own, some need several.
pub fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(0..40) {
        0 => random.usize(4000..60_000),
        1..3 => random.usize(1000..4000),
        _ => random.usize(0..400),
    };
    vec![random.u8(..); len]
}

pub fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    random.u32(0..4000).to_be_bytes().to_vec()
}

impl Model {
    pub fn change(&mut self, db: &Db, random: &mut fastrand::Rng) {
        let which = random.usize(0..2);
        match random.u8(0..12) {
            0..4 => {
                let (key, value) = (key(random), value(random));
                db.raw_tree(TREES[which]).unwrap().put(&key, &value).unwrap();
                self.trees[which].insert(key, value);
            }
            4..6 => {
                let key = key(random);
                db.raw_tree(TREES[which]).unwrap().delete(&key).unwrap();
                self.trees[which].remove(&key);
            }
            6..8 => {
                let (key, mut value) = (key(random), value(random));
                value.truncate(600);
                db.raw_hash_index("index").unwrap().put(&key, &value).unwrap();
                self.index.insert(key, value);
            }
            8 => {
                let key = key(random);
                db.raw_hash_index("index").unwrap().delete(&key).unwrap();
                self.index.remove(&key);
            }
            9..11 => {
                let mut value = value(random);
                value.truncate(900);
                let heap = db.raw_heap("heap").unwrap();
                let some = self.heap.keys().nth(random.usize(0..self.heap.len().max(4)));
                let id = match some.copied().filter(|_| random.bool()) {
                    Some(id) => {
                        assert!(heap.update(id, &value).unwrap());
                        id
                    }
                    None => heap.append(&value).unwrap(),
                };
                self.heap.insert(id, value);
            }
            _ => {
                let some = self.heap.keys().nth(random.usize(0..self.heap.len().max(1)));
                if let Some(id) = some.copied() {
                    assert!(db.raw_heap("heap").unwrap().delete(id).unwrap());
                    self.heap.remove(&id);
                }
            }
        }
    }

    /// Removes most of the contents.
    pub fn thin_out(&mut self, db: &Db, random: &mut fastrand::Rng) {
        for (name, rows) in TREES.iter().zip(&mut self.trees) {
            let tree = db.raw_tree(name).unwrap();
            rows.retain(|key, _| random.u8(0..10) == 0 || !tree.delete(key).unwrap());
        }
        let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
        self.index.retain(|key, _| random.u8(0..10) == 0 || !index.delete(key).unwrap());
        self.heap.retain(|id, _| random.u8(0..10) == 0 || !heap.delete(*id).unwrap());
    }

    pub fn is_in(&self, db: &Db, what: &str) {
        for (name, rows) in TREES.iter().zip(&self.trees) {
            let tree = db.raw_tree(name).unwrap();
            assert_eq!(all_of(&tree), *rows, "{what}: {name}");
            assert!(tree.check().unwrap().violations.is_empty(), "{what}: {name}");
        }
        let index = db.raw_hash_index("index").unwrap();
        assert_eq!(index.len().unwrap(), self.index.len() as u64, "{what}");
        for (key, value) in &self.index {
            assert_eq!(index.get(key).unwrap().as_ref(), Some(value), "{what}");
        }
        let heap = db.raw_heap("heap").unwrap();
        assert_eq!(heap.len().unwrap(), self.heap.len() as u64, "{what}");
        for (id, value) in &self.heap {
            assert_eq!(heap.get(*id).unwrap().as_ref(), Some(value), "{what}");
        }
    }
}

pub fn all_of(tree: &RawTree) -> Rows {
    let (mut rows, mut range) = (Rows::new(), tree.iter());
    while let Some((key, value)) = range.next_entry().unwrap() {
        rows.insert(key.to_vec(), value.to_vec());
    }
    rows
}

/// `rows` rows of which every 40th is large.
pub fn fill(db: &Db, name: &str, rows: u32) {
    let tree = db.raw_tree(name).unwrap();
    for row in 0..rows {
        let len = if row % 40 == 0 { 1500 + row as usize % 9000 } else { 300 };
        tree.put(&row.to_be_bytes(), &vec![row as u8; len]).unwrap();
    }
}

pub fn holds(db: &Db, name: &str, rows: u32, what: &str) {
    let tree = db.open_tree(name).unwrap();
    assert_eq!(tree.len().unwrap(), u64::from(rows), "{what}");
    for row in 0..rows {
        let len = if row % 40 == 0 { 1500 + row as usize % 9000 } else { 300 };
        assert_eq!(tree.get(&row.to_be_bytes()).unwrap(), Some(vec![row as u8; len]), "{what}");
    }
}

/// A structure of each kind whose pages, the roots among them, lie behind what a tree leaves free
/// that was made before and is dropped.
pub fn build(db: &Db, gone: u32, rows: u32) -> BTreeMap<RecordId, Vec<u8>> {
    fill(db, "gone", gone);
    fill(db, "kept", rows);
    let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
    let mut records = BTreeMap::new();
    for row in 0..rows {
        index.put(&row.to_be_bytes(), &[row as u8; 100]).unwrap();
        let record = vec![row as u8; 150];
        records.insert(heap.append(&record).unwrap(), record);
    }
    db.drop_tree("gone").unwrap();
    records
}

pub fn is_built(db: &Db, rows: u32, records: &BTreeMap<RecordId, Vec<u8>>, what: &str) {
    holds(db, "kept", rows, what);
    let index = db.open_hash_index("index").unwrap();
    assert_eq!(index.len().unwrap(), u64::from(rows), "{what}");
    for row in 0..rows {
        assert_eq!(index.get(&row.to_be_bytes()).unwrap(), Some(vec![row as u8; 100]), "{what}");
    }
    let heap = db.open_heap("heap").unwrap();
    assert_eq!(heap.len().unwrap(), records.len() as u64, "{what}");
    for (id, record) in records {
        assert_eq!(heap.get(*id).unwrap().as_ref(), Some(record), "{what}");
    }
}

/// The file is as long as its pages in use need, but for what a store that is used grows by ahead
/// of need, at any time.
pub fn is_tight(device: &dyn Device, db: &Db, shrunk: &Shrunk) {
    assert_eq!(shrunk.pages_left, 0, "{shrunk:?}");
    let stats = db.stats();
    let used = (stats.store_pages - stats.free_pages).max(256);
    let pages = device.length() / PAGE;
    assert!(pages <= used + used / 8 + 300, "{pages} pages, {used} in use: {shrunk:?}");
}
