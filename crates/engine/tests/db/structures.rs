//! Hash indexes and heaps beside trees, by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use millpond::internals::heap::RecordId;
use millpond::{Db, Error, HashIndex, Heap, Options, Structure};
use millpond_base::rounds::rounds;
use millpond_device::{FaultyDevice, MemoryDevice};

use super::{assert_sound, free_pages, place, tiny};

type Entries = HashMap<Vec<u8>, Vec<u8>>;
type Records = BTreeMap<RecordId, Vec<u8>>;

fn step_index(
    index: &HashIndex<Vec<u8>, Vec<u8>>,
    model: &mut Entries,
    random: &mut fastrand::Rng,
) {
    let key = format!("key {}", random.u32(..400)).into_bytes();
    let value = vec![random.u8(..); random.usize(..40)];
    match random.u8(..9) {
        0..3 => assert_eq!(index.insert(&key, &value).unwrap(), model.insert(key, value)),
        3 => {
            let is_new = !model.contains_key(&key);
            assert_eq!(index.insert_if_absent(&key, &value).unwrap(), is_new);
            model.entry(key).or_insert(value);
        }
        4 => assert_eq!(index.remove(&key).unwrap(), model.remove(&key)),
        5 => {
            let old = model.get(&key).cloned();
            assert!(index.compare_and_swap(&key, old.as_deref(), Some(&value)).unwrap());
            assert!(!index.compare_and_swap(&key, Some(b"never"), None).unwrap());
            model.insert(key, value);
        }
        6 => {
            let flip = |bytes: &mut [u8]| bytes.iter_mut().for_each(|b| *b ^= 0x55);
            let found = index.update_in_place(&key, flip).unwrap().is_some();
            assert_eq!(found, model.get_mut(&key).map(|v| flip(v)).is_some());
        }
        7 => {
            let found = index.replace(&key, &value).unwrap();
            assert_eq!(found, model.get_mut(&key).map(|old| *old = value).is_some());
        }
        _ => {
            assert_eq!(index.contains(&key).unwrap(), model.contains_key(&key));
            assert_eq!(index.get(&key).unwrap().as_ref(), model.get(&key));
        }
    }
}

fn step_heap(heap: &Heap<Vec<u8>>, model: &mut Records, random: &mut fastrand::Rng) {
    let record = vec![random.u8(..); random.usize(..60)];
    let id = match model.len() {
        0 => RecordId(0),
        len => *model.keys().nth(random.usize(..len)).unwrap(),
    };
    match random.u8(..7) {
        0..3 => {
            let id = heap.append(&record).unwrap();
            assert!(model.insert(id, record).is_none(), "the id is new");
        }
        3 => {
            let found = heap.update(id, &record).unwrap();
            assert_eq!(found, model.get_mut(&id).map(|old| *old = record).is_some());
        }
        4 => assert_eq!(heap.remove(id).unwrap(), model.remove(&id)),
        5 => {
            let flip = |bytes: &mut [u8]| bytes.iter_mut().for_each(|b| *b ^= 0x55);
            let found = heap.update_in_place(id, flip).unwrap().is_some();
            assert_eq!(found, model.get_mut(&id).map(|v| flip(v)).is_some());
        }
        _ => {
            assert_eq!(heap.contains(id).unwrap(), model.contains_key(&id));
            assert_eq!(heap.get(id).unwrap().as_ref(), model.get(&id));
        }
    }
}

fn same(
    index: &HashIndex<Vec<u8>, Vec<u8>>,
    entries: &Entries,
    heap: &Heap<Vec<u8>>,
    records: &Records,
) {
    let found: Vec<_> = index.iter().map(Result::unwrap).collect();
    assert_eq!((found.len(), index.len().unwrap()), (entries.len(), entries.len() as u64));
    assert_eq!(&found.into_iter().collect::<Entries>(), entries);
    assert_eq!(heap.len().unwrap(), records.len() as u64);
    assert!(heap.records().unwrap().map(Result::unwrap).eq(records.clone()));
    assert!(
        heap.records().unwrap().rev().map(Result::unwrap).eq(records.clone().into_iter().rev())
    );
    if let Some((id, _)) = records.iter().nth(records.len() / 2) {
        let from = heap.records_from(*id).unwrap().map(Result::unwrap);
        assert!(from.eq(records.range(id..).map(|(id, record)| (*id, record.clone()))));
    }
}

fn run(policy: &str, steps: u32) {
    let options = || tiny(24).policy(policy);
    let (_dir, path) = place();
    let mut random = fastrand::Rng::with_seed(23 + policy.len() as u64);
    let (mut entries, mut records) = (Entries::new(), Records::new());
    for _ in 0..2 {
        let db = Db::open(&path, options()).unwrap();
        let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
        same(&index, &entries, &heap, &records);
        for _ in 0..steps {
            step_index(&index, &mut entries, &mut random);
            step_heap(&heap, &mut records, &mut random);
        }
        same(&index, &entries, &heap, &records);
        assert!(db.stats().evictions > u64::from(steps) / 40, "{policy}: it thrashes");
        drop((index, heap));
        db.close().unwrap();
        assert_sound(&path);
    }
}

#[test]
fn with_every_hot_half_indexes_and_heaps_do_what_maps_do_while_the_pool_thrashes() {
    // Hits that do nothing, that rescue from the cooling stage, that WATT tests, that another hot
    // half gets, and that the policy hears under its mutex.
    for policy in ["random", "lean-evict", "watt", "clock", "lru"] {
        run(policy, rounds(500, 1500));
    }
}

#[test]
#[cfg(feature = "lab")]
fn stores_of_the_laboratory_refuse_everything_but_trees() {
    use millpond::internals::store::combinations::{Combination, SwizzledLatchedAny};
    use millpond::internals::store::{Builder, LabError};

    let (_dir, path) = place();
    let db = Db::open(&path, tiny(32)).unwrap();
    db.create_hash_index("i").unwrap();
    db.create_heap("h").unwrap();
    db.close().unwrap();
    assert!(Combination::SwizzledLatchedAny.has_trees_only());
    let store = Builder::file(&path, &tiny(32).policy("lean-evict")).open::<SwizzledLatchedAny>();
    let store = store.unwrap();
    let refused = [
        store.hash_index("i").err().unwrap(),
        store.open_heap("h").err().unwrap(),
        store.create_heap("new").err().unwrap(),
        store.drop_structure("h", Structure::Heap).unwrap_err(),
    ];
    let is_trees_only = |error: &Error| matches!(error, Error::Lab(LabError::TreesOnly { .. }));
    assert!(refused.iter().all(is_trees_only), "{refused:?}");
    assert!(matches!(store.tree("i").err().unwrap(), Error::OtherKind { .. }));
    assert_eq!(store.catalog().unwrap().len(), 2);
    store.close().unwrap();
    assert_sound(&path);
}

#[test]
fn a_name_is_of_one_kind_and_another_is_refused() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(32)).unwrap();
    assert!(matches!(
        db.open_hash_index("i").unwrap_err(),
        Error::NoStructure { wanted: Structure::Hash, .. }
    ));
    let missing = db.open_heap("h").unwrap_err();
    assert_eq!(missing.to_string(), "there is no heap 'h': create it, or see the list of trees");
    db.create_hash_index("i").unwrap().put(b"k", b"v").unwrap();
    db.create_heap("h").unwrap().append(b"r").unwrap();
    db.create_tree("t").unwrap().put(b"k", b"w").unwrap();
    // While they are open, and when only the catalog knows them.
    wrong_kinds(&db);
    db.close().unwrap();
    let db = Db::open(&path, tiny(32)).unwrap();
    wrong_kinds(&db);
    let kinds: Vec<_> = db.trees().unwrap().into_iter().map(|(_, e)| e.structure).collect();
    assert_eq!(kinds, [Structure::Heap, Structure::Hash, Structure::Tree]);
    assert_eq!(db.raw_hash_index("i").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
    assert_eq!(db.raw_heap("h").unwrap().get(RecordId(0)).unwrap(), Some(b"r".to_vec()));
}

fn wrong_kinds(db: &Db) {
    let wrong = [
        db.raw_tree("i").unwrap_err(),
        db.raw_heap("i").unwrap_err(),
        db.open_tree("h").unwrap_err(),
        db.raw_hash_index("h").unwrap_err(),
        db.open_hash_index("t").unwrap_err(),
        db.open_heap("t").unwrap_err(),
        db.drop_tree("i").unwrap_err(),
        db.drop_structure("t", Structure::Heap).unwrap_err(),
    ];
    assert!(wrong.iter().all(|error| matches!(error, Error::OtherKind { .. })), "{wrong:?}");
    assert_eq!(wrong[0].to_string(), "'i' is a hash index, not a tree");
    assert!(matches!(db.create_tree("i").unwrap_err(), Error::Exists { .. }));
    assert!(matches!(db.create_heap("h").unwrap_err(), Error::Exists { .. }));
}

#[test]
fn a_dropped_index_or_heap_frees_all_its_pages() {
    let (_dir, path) = place();
    let reopened = || Db::open(&path, tiny(48)).unwrap();
    let db = reopened();
    let index = db.raw_hash_index("index").unwrap();
    let heap = db.raw_heap("heap").unwrap();
    for i in 0..3000u32 {
        index.put(&i.to_be_bytes(), &[i as u8; 30]).unwrap();
        heap.append(&[i as u8; 30]).unwrap();
    }
    for (name, kind) in [("index", Structure::Hash), ("heap", Structure::Heap)] {
        let in_use = db.drop_structure(name, kind).unwrap_err();
        assert!(matches!(in_use, Error::TreeInUse { handles: 1, .. }), "{in_use}");
    }
    drop((index, heap));
    db.drop_structure("index", Structure::Hash).unwrap();
    assert!(matches!(db.open_hash_index("index").unwrap_err(), Error::NoStructure { .. }));
    db.close().unwrap();
    assert_sound(&path);
    // The other one was not opened since.
    let db = reopened();
    db.drop_structure("heap", Structure::Heap).unwrap();
    db.create_heap("index").unwrap();
    db.close().unwrap();
    assert_sound(&path);
    let db = reopened();
    let (free, pages) = (free_pages(&db), db.stats().store_pages);
    // The superblock, the maps of free pages, the catalog, the new heap.
    assert!(pages - free <= 4 + pages / 1000, "{free} of {pages} are free");
}

#[test]
fn typed_indexes_and_heaps_read_what_they_wrote() {
    let db = Db::in_memory(tiny(64)).unwrap();
    let ages = db.hash_index::<String, u32>("ages").unwrap();
    for i in 0..500 {
        assert_eq!(ages.insert(&format!("name {i}"), &i).unwrap(), None);
    }
    assert_eq!(ages.insert("name 7", &70).unwrap(), Some(7));
    assert_eq!(ages.get("name 7").unwrap(), Some(70));
    assert!(ages.put("name 8", &80).unwrap() && !ages.insert_if_absent("name 8", &8).unwrap());
    assert_eq!(ages.remove("name 9").unwrap(), Some(9));
    assert!(!ages.contains("name 9").unwrap() && !ages.delete("name 9").unwrap());
    let sum: u32 = ages.iter().map(|entry| entry.unwrap().1).sum();
    assert_eq!(sum, (0..500).sum::<u32>() + 63 + 72 - 9);
    let heap = db.heap::<(String, u64)>("people").unwrap();
    let ids: Vec<RecordId> =
        (0..300).map(|i| heap.append(&(format!("n{i}"), i)).unwrap()).collect();
    assert!(heap.update(ids[5], &("a longer name than before".repeat(9), 5)).unwrap());
    assert_eq!(heap.get(ids[5]).unwrap().unwrap().0.len(), 225);
    assert_eq!(heap.remove(ids[6]).unwrap(), Some(("n6".to_string(), 6)));
    let numbers: Vec<u64> = heap.records().unwrap().rev().map(|r| r.unwrap().1.1).collect();
    assert_eq!(numbers, (0..300).rev().filter(|i| *i != 6).collect::<Vec<_>>());
    // Bytes that are no such value are an error that names the index, and end an iteration.
    let raw = db.raw_hash_index("ages").unwrap();
    raw.clear().unwrap();
    raw.put(b"x", b"three").unwrap();
    assert!(ages.get("x").unwrap_err().to_string().contains("in 'ages'"));
    let mut entries = ages.iter();
    assert!(entries.next().unwrap().is_err() && entries.next().is_none());
}

#[test]
fn handles_are_used_by_other_threads_and_lose_nothing() {
    const THREADS: u32 = 4;
    const EACH: u32 = 800;
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(64)).unwrap();
    let index = db.hash_index::<u32, u64>("by number").unwrap();
    let heap = db.raw_heap("records").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (index, heap) = (index.clone(), heap.clone());
            scope.spawn(move || {
                for i in 0..EACH {
                    let number = i * THREADS + thread;
                    let id = heap.append(&number.to_le_bytes()).unwrap();
                    assert!(index.insert_if_absent(&number, &id.0).unwrap());
                    let before = number.saturating_sub(THREADS * 50);
                    let id = index.get(&before).unwrap();
                    if before % THREADS == thread || id.is_some() {
                        let record = heap.get(RecordId(id.unwrap())).unwrap().unwrap();
                        assert_eq!(record, before.to_le_bytes());
                    }
                }
            });
        }
    });
    assert_eq!(index.len().unwrap(), u64::from(THREADS * EACH));
    assert_eq!(heap.len().unwrap(), u64::from(THREADS * EACH));
    drop((index, heap));
    db.close().unwrap();
    assert_sound(&path);
}

#[test]
fn in_a_store_that_is_open_for_reading_indexes_and_heaps_are_read_and_not_written() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(64)).unwrap();
    db.raw_hash_index("i").unwrap().put(b"k", b"v").unwrap();
    let id = db.raw_heap("h").unwrap().append(b"r").unwrap();
    db.close().unwrap();
    let db = Db::open(&path, tiny(64).read_only(true)).unwrap();
    let (index, heap) = (db.raw_hash_index("i").unwrap(), db.raw_heap("h").unwrap());
    assert_eq!(index.get(b"k").unwrap(), Some(b"v".to_vec()));
    assert_eq!(heap.get(id).unwrap(), Some(b"r".to_vec()));
    let refused = [
        index.put(b"k", b"w").unwrap_err(),
        index.clear().unwrap_err(),
        heap.append(b"s").unwrap_err(),
        heap.delete(id).unwrap_err(),
        db.create_heap("n").unwrap_err(),
        db.drop_structure("h", Structure::Heap).unwrap_err(),
    ];
    assert!(refused.iter().all(|error| matches!(error, Error::ReadOnly)), "{refused:?}");
    assert!(matches!(db.raw_heap("n").unwrap_err(), Error::NoStructure { .. }));
}

#[test]
fn the_error_of_what_is_too_long_names_the_limit() {
    let db = Db::in_memory(tiny(64)).unwrap();
    let (index, heap) = (db.raw_hash_index("i").unwrap(), db.raw_heap("h").unwrap());
    let (entry_max, record_max) = (index.limits().entry_max, heap.limits().record_max);
    index.put(b"k", &vec![1; entry_max - 1]).unwrap();
    let error = index.put(b"k", &vec![1; entry_max]).unwrap_err();
    assert!(matches!(error, Error::HashWrite(_)), "{error}");
    assert!(error.to_string().contains(&entry_max.to_string()), "{error}");
    heap.append(&vec![1; record_max]).unwrap();
    let error = heap.append(&vec![1; record_max + 1]).unwrap_err();
    assert!(matches!(error, Error::HeapWrite(_)), "{error}");
    assert!(error.to_string().contains(&record_max.to_string()), "{error}");
}

/// Creates structures until the device, on which `pages` pages are free, is full. Returns whether
/// the root of the last one was freed because the catalog had no room for its name.
fn fill(kind: Structure, pages: usize) -> bool {
    let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 5));
    let db = Db::open_on(device.clone(), tiny(64).lab(|lab| lab.background_merge = false)).unwrap();
    let large = db.raw_tree("large").unwrap();
    device.limit_room(0);
    // All but a few pages are taken at once.
    let free = db.stats().free_pages as usize;
    large.put(b"v", &vec![1; (free - pages) * 440]).unwrap();
    let freed = db.stats().pages_freed;
    let mut made = 0;
    let error = loop {
        let name = format!("{} {made}", "a long name ".repeat(3));
        let new = match kind {
            Structure::Tree => db.create_tree(&name).map(drop),
            Structure::Hash => db.create_hash_index(&name).map(drop),
            Structure::Heap => db.create_heap(&name).map(drop),
        };
        match new {
            Ok(()) => made += 1,
            Err(error) => break error,
        }
        assert!(made < 500, "the device is full");
    };
    assert!(matches!(error, Error::Pool(_)), "{error}");
    assert_eq!(db.trees().unwrap().len(), made + 1);
    let given_back = db.stats().pages_freed - freed;
    assert!(given_back <= 1, "{given_back}");
    drop(large);
    db.close().unwrap();
    let store = millpond::internals::io::PageStore::open_on(device, None, true).unwrap();
    let report = millpond::internals::admin::check::check_store(
        &store,
        millpond::internals::admin::check::CATALOG,
        &mut millpond::internals::admin::check::CheckOptions::default(),
    );
    let report = report.unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    given_back == 1
}

#[test]
fn a_structure_whose_name_does_not_fit_into_the_catalog_frees_its_root() {
    for kind in [Structure::Tree, Structure::Hash, Structure::Heap] {
        // The catalog needs a page for every few names: with one of these numbers it needs one when
        // the structure has allocated the last.
        let is_given_back = (150..250).any(|pages| fill(kind, pages));
        assert!(is_given_back, "a {kind} was never the one that found no room for its name");
    }
}

#[test]
fn pages_that_were_damaged_and_growth_are_counted() {
    let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 5));
    let options = Options::new().memory(16 << 20).lab(|lab| lab.background_merge = false);
    let db = Db::open_on(device.clone(), options.clone()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    assert_eq!(db.stats().checksum_failures, 0);
    let before = db.stats().file_extensions;
    for i in 0..40_000u32 {
        tree.put(&i.to_be_bytes(), &[i as u8; 100]).unwrap();
    }
    let grown = db.stats().file_extensions - before;
    assert!((1..100).contains(&grown), "{grown}");
    drop(tree);
    db.close().unwrap();
    // The same bit in every page that is neither the superblock nor the catalog's root.
    let db = Db::open_on(device.clone(), options.create_if_missing(false)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    assert!(tree.first().unwrap().is_some());
    for page in 20..60u64 {
        device.flip_bit(page * 4096 + 3000, 1).unwrap();
    }
    let failures = (0..40_000u32).filter(|i| tree.get(&i.to_be_bytes()).is_err()).count();
    assert!(failures > 0);
    let stats = db.stats();
    assert_eq!(stats.checksum_failures, stats.read_errors);
    assert!(stats.checksum_failures > 0);
}
