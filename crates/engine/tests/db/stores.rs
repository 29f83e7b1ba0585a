//! Stores of one combination, as measurements use them.

use std::sync::{Arc, Mutex};

use millpond::internals::pool::recording::recorder::{Reference, Sink};
use millpond::internals::store::combinations::SwizzledAny;
#[cfg(feature = "lab")]
use millpond::internals::store::combinations::{
    HashedLatchedAny, SwizzledUnlatchedWatt, TableLatchedAny,
};
use millpond::internals::store::{Builder, Combination};
use millpond::{Db, Error, Structure};
#[cfg(feature = "lab")]
use millpond::{
    TxnOptions,
    internals::{
        btree::WriteCondition,
        pool::PoolStrategy,
        store::{Store, StoreTxn},
    },
};

use super::any_store::in_memory;
use super::{assert_sound, place, tiny};

#[test]
fn the_same_file_is_opened_by_any_combination() {
    let (_dir, path) = place();
    let store = Builder::file(&path, &tiny(32)).open::<SwizzledAny>().unwrap();
    let tree = store.tree("t").unwrap();
    for i in 0..500u32 {
        tree.btree().upsert(&i.to_be_bytes(), &[7; 20]).unwrap();
    }
    drop(tree);
    store.close().unwrap();
    #[cfg(feature = "lab")]
    {
        let lru = tiny(32).policy("lru");
        let wrong = Builder::file(&path, &lru).open::<SwizzledUnlatchedWatt>();
        let wrong = wrong.err().unwrap();
        assert!(matches!(wrong, Error::PolicyFit(_)), "lru does not fit: {wrong}");
        write_one(Builder::file(&path, &lru).open::<HashedLatchedAny>().unwrap(), 500);
        write_one(Builder::file(&path, &lru).open::<TableLatchedAny>().unwrap(), 501);
    }
    let db = Db::open(&path, tiny(32)).unwrap();
    let committed = 2 * u64::from(cfg!(feature = "lab"));
    assert_eq!(db.raw_tree("t").unwrap().len().unwrap(), 500 + committed);
    db.close().unwrap();
    assert_sound(&path);
}

/// Adds a row to the `rows` that are there.
#[cfg(feature = "lab")]
fn write_one<M: PoolStrategy>(store: Arc<Store<M>>, rows: u64) {
    assert_eq!(store.tree("t").unwrap().btree().count().unwrap(), rows);
    assert_eq!(store.pool().policy(), "lru");
    let mut tx = StoreTxn::begin(&store, TxnOptions::default()).unwrap();
    let tree = store.tree("t").unwrap();
    let key = [b"key", rows.to_string().as_bytes()].concat();
    tx.write(&tree, &key, Some(b"value"), WriteCondition::Always).unwrap();
    tx.commit().unwrap();
    drop(tree);
    store.close().unwrap();
}

#[test]
fn structures_of_other_kinds_have_names_too() {
    let device = Arc::new(millpond_device::MemoryDevice::new());
    let store = Builder::device(device, &tiny(32)).open::<SwizzledAny>().unwrap();
    let index = store.hash_index("h").unwrap();
    assert_eq!(store.entry("h").unwrap().root, index.structure().root());
    assert!(matches!(store.tree("h").err().unwrap(), Error::OtherKind { .. }));
    drop(index);
    store.drop_structure("h", Structure::Hash).unwrap();
    assert!(matches!(store.entry("h").unwrap_err(), Error::NoTree { .. }));
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Reference>>>);

impl Sink for Kept {
    fn take(&mut self, references: &[Reference]) -> Result<(), String> {
        self.0.lock().unwrap().extend_from_slice(references);
        Ok(())
    }
}

#[test]
fn a_store_that_was_asked_to_records_its_references_and_no_other() {
    let all = Combination::ALL.iter().copied();
    let all = all.filter(|c| c.records() || *c == Combination::SwizzledAny);
    assert_eq!(all.clone().count(), if cfg!(feature = "recording") { 2 } else { 1 });
    for combination in all {
        let records = combination.records();
        let options =
            tiny(64).lab(|lab| lab.background_merge = false).lab(|lab| lab.records = records);
        let db = in_memory(options).unwrap();
        assert_eq!(db.combination(), combination);
        let tree = db.tree("t").unwrap();
        let kept = Kept::default();
        for i in 0..200u32 {
            tree.put(&i.to_be_bytes(), &[1; 40]).unwrap();
        }
        db.recorder().start(Box::new(kept.clone()), false);
        for i in 0..200u32 {
            assert!(tree.contains(&i.to_be_bytes()).unwrap());
        }
        let height = tree.stats().unwrap().height();
        let count = db.recorder().stop().unwrap();
        let kept = kept.0.lock().unwrap();
        assert_eq!(count, kept.len() as u64);
        if records {
            assert!(height > 1 && kept.len() >= 200 * height, "{height}: {}", kept.len());
        } else {
            assert!(kept.is_empty());
        }
    }
}

#[test]
fn leaves_are_counted_apart_from_inner_pages() {
    // The background merge would add references of its own.
    let db = Db::in_memory(tiny(24).lab(|lab| lab.background_merge = false)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..2000u32 {
        tree.put(&i.to_be_bytes(), &[1; 40]).unwrap();
    }
    let height = tree.stats().unwrap().height() as u64;
    let before = db.stats();
    for i in 0..2000u32 {
        assert!(tree.contains(&(i * 7919 % 2000).to_be_bytes()).unwrap());
    }
    let did = db.stats().since(&before);
    // No lookup reads the catalog: each is a descent from the root to one leaf.
    assert_eq!(did.leaf_references, 2000);
    assert_eq!(did.references, 2000 * height);
    assert!(0 < did.leaf_misses && did.leaf_misses <= did.misses, "{did}");
    assert!(did.leaf_misses <= did.leaf_references, "{did}");
}
