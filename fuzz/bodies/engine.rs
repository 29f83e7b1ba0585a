//! Bodies of the fuzz targets of the engine.
//!
//! The same functions are run by `crates/engine/tests/mutations.rs` over bytes drawn by seed, so
//! that every test run exercises them without cargo-fuzz.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, LazyLock};

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::internals::admin::dump::{DumpWriter, Form};
use millpond::internals::admin::salvage::salvage;
use millpond::internals::btree::{self, StoredNode, check_page};
use millpond::internals::io::PageStore;
use millpond::internals::page::{PageBuffer, PageHeader, PageSize};
use millpond::{Db, Error, Options, RawTree};
use millpond_base::PageId;
use millpond_device::MemoryDevice;

/// Bytes of a page, everywhere here.
const PAGE: usize = 512;
/// Operations of one input, and entries that are looked at in a damaged store.
const ENOUGH: usize = 2000;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(frames: u32) -> Options {
    Options::new().page_size(PAGE as u32).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(frames);
        lab.batch = Some(2);
    })
}

/// Keys that share prefixes, some of them long.
fn key(n: u8) -> Vec<u8> {
    let mut key = vec![n >> 4; usize::from(n >> 3 & 3) * 12];
    key.push(n);
    key
}

/// Operations on a tree of tiny pages in a tiny pool, compared with a map: three bytes each say
/// which, on which key, and how long the value is. The store is closed and opened again among them.
pub fn tree(data: &[u8]) {
    let device = Arc::new(MemoryDevice::new());
    let mut map = Map::new();
    let mut db = Db::open_on(device.clone(), options(24)).unwrap();
    let mut tree = db.raw_tree("t").unwrap();
    for (at, op) in data.chunks_exact(3).take(ENOUGH).enumerate() {
        if op[0] == 255 {
            drop(tree);
            db.close().unwrap();
            db = Db::open_on(device.clone(), options(24)).unwrap();
            tree = db.open_tree("t").unwrap();
            same(&tree, &map);
        } else {
            operate(&tree, &mut map, op, at);
        }
    }
    same(&tree, &map);
    assert_eq!(tree.check().unwrap().violations, []);
    drop(tree);
    db.close().unwrap();
    let store = PageStore::salvage_on(device, PageSize::new(PAGE as u64).ok()).unwrap();
    let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

fn operate(tree: &RawTree, map: &mut Map, op: &[u8], at: usize) {
    let k = key(op[1]);
    // A few are too long for a leaf.
    let len = if op[2] >= 250 { usize::from(op[2]) * 4 } else { usize::from(op[2]) / 4 };
    let v = vec![at as u8; len];
    match op[0] % 16 {
        0..=5 => assert_eq!(tree.insert(&k, &v).unwrap(), map.insert(k, v)),
        6..=9 => assert_eq!(tree.remove(&k).unwrap(), map.remove(&k)),
        10 => {
            let fresh = !map.contains_key(&k);
            assert_eq!(tree.insert_if_absent(&k, &v).unwrap(), fresh);
            map.entry(k).or_insert(v);
        }
        11 => {
            let expected = map.get(&k).cloned();
            assert!(tree.compare_and_swap(&k, expected.as_deref(), Some(&v)).unwrap());
            map.insert(k, v);
        }
        12 => {
            let end = key(op[1].saturating_add(op[2] / 16));
            let range = (Bound::Included(k.as_slice()), Bound::Excluded(end.as_slice()));
            let mut entries = tree.range(range);
            let mut expected = map.iter().filter(|(key, _)| **key >= k && **key < end);
            while let Some(entry) = entries.next_entry().unwrap() {
                let expected =
                    expected.next().map(|(key, value)| (key.as_slice(), value.as_slice()));
                assert_eq!(expected, Some(entry));
            }
            assert_eq!(expected.next(), None);
        }
        13 => drop(tree.compact(8).unwrap()),
        _ => assert_eq!(tree.get(&k).unwrap().as_ref(), map.get(&k)),
    }
}

fn same(tree: &RawTree, map: &Map) {
    let mut entries = tree.iter();
    for (key, value) in map {
        let entry = entries.next_entry().unwrap().expect("an entry is missing");
        assert_eq!(entry, (key.as_slice(), value.as_slice()));
    }
    assert!(entries.next_entry().unwrap().is_none(), "an entry too many");
    assert_eq!(tree.len().unwrap(), map.len() as u64);
}

/// A small store with two trees and a few large values, as a file's bytes.
pub static STORE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let device = Arc::new(MemoryDevice::new());
    let db = Db::open_on(device.clone(), options(64)).unwrap();
    let (words, large) = (db.raw_tree("words").unwrap(), db.raw_tree("large").unwrap());
    for i in 0..400u32 {
        words.put(format!("word {:04}", i * 7919 % 10_007).as_bytes(), &[i as u8; 12]).unwrap();
    }
    for i in 0..4u8 {
        large.put(&[i], &vec![i; 300 + usize::from(i) * 1500]).unwrap();
    }
    drop((words, large));
    db.close().unwrap();
    device.to_bytes()
});

/// A store that was damaged: four bytes each give a position and the byte to put there; every other
/// page gets a valid checksum again, so that the code behind the checksums is reached. Opening,
/// reading, writing, checking and saving give errors, and nothing else.
pub fn damaged_store(data: &[u8]) {
    let mut bytes = STORE.clone();
    for change in data.chunks_exact(4).take(64) {
        let at = u32::from_le_bytes([change[0], change[1], change[2] & 0x7f, 0]) as usize;
        let at = at % bytes.len();
        bytes[at] = change[3];
        let page = at / PAGE;
        if change[2] & 0x80 == 0 && page > 0 {
            PageHeader::seal(PageId(page as u64), &mut bytes[page * PAGE..(page + 1) * PAGE]);
        }
    }
    if let [.., cut @ 0..=9] = data {
        bytes.truncate(bytes.len() - bytes.len() / 10 * usize::from(*cut) - 1);
    }
    let device = Arc::new(MemoryDevice::from_bytes(&bytes));
    let size = PageSize::new(PAGE as u64).ok();
    if let Ok(store) = PageStore::salvage_on(device.clone(), size) {
        if let Ok(report) = check_store(&store, CATALOG, &mut CheckOptions::default()) {
            drop(format!("{report:?}"));
        }
        let mut out = DumpWriter::new(Vec::new(), Form::Text).unwrap();
        drop(salvage(&store, CATALOG, &mut out));
    }
    if let Err(error) = use_store(device) {
        assert!(!error.to_string().is_empty());
    }
}

fn use_store(device: Arc<MemoryDevice>) -> Result<(), Error> {
    let db = Db::open_on(device, options(16))?;
    for (name, _) in db.trees()? {
        let Ok(tree) = db.open_tree(&name) else { continue };
        let mut entries = tree.iter();
        for _ in 0..ENOUGH {
            if !matches!(entries.next_entry(), Ok(Some(_))) {
                break;
            }
        }
        for i in 0..40u32 {
            let key = format!("word {:04}", i * 251);
            drop((tree.get(key.as_bytes()), tree.get(&[i as u8])));
            drop((tree.put(key.as_bytes(), &[1; 30]), tree.delete(&[i as u8])));
        }
        drop((tree.check(), tree.stats()));
    }
    db.close()
}

/// Any bytes as a page: what looks at pages believes nothing, and stays inside.
pub fn page(data: &[u8]) {
    let mut page = PageBuffer::new(PAGE);
    let len = data.len().min(PAGE);
    page.bytes_mut()[..len].copy_from_slice(&data[..len]);
    drop(check_page(page.view()));
    for (_, kind) in btree::KINDS {
        let mut visited = 0;
        kind.swips(page.view(), &mut |at| {
            assert!(at % 8 == 0 && at + 8 <= PAGE, "a swip at byte {at}");
            visited += 1;
            visited < 10_000
        });
        let word = u64::from_le_bytes([1, 0, 0, 0, 0, 0, 0, page.bytes()[40]]);
        assert!(kind.find(page.view(), word, page.view()).is_none_or(|at| at + 8 <= PAGE));
    }
    if let Ok(node) = StoredNode::of(page.view()) {
        drop((node.children(), node.fences(), node.large_values().count()));
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for i in 0..node.count() {
            let _ = node.entry(i, &mut key, &mut value);
        }
    }
}
