//! A tree on a pool on a page store on a device that fails. Errors name the operation and the
//! place, nothing else is harmed, and pages that could not be written stay in memory until they can
//! be.

use std::sync::Arc;

use millpond::internals::btree::{self, BTree, WriteError as TreeError};
use millpond::internals::io::{AllocateError, PageStore, ReadError, WriteError};
use millpond::internals::page::PageSize;
use millpond::internals::pool::{
    EvictionMode, HostedPolicy, Optimistic, Pool, PoolError, PoolOptions, Workers,
};
use millpond::internals::store::combinations::Compiled;
use millpond_base::{PageId, Reason};
use millpond_device::{Device, Faults, FaultyDevice, MemoryDevice};
use millpond_policies::config::Spec;
use millpond_policies::contract::{PolicySpec, Shape};
use millpond_policies::policy::LeanEvict;

type Strategies = Compiled<Optimistic, <LeanEvict as PolicySpec>::Hook, true>;

type Tree = BTree<Pool<Strategies>>;

const PAGE: u64 = 4096;
const ROWS: u32 = 3000;
const FRAMES: u32 = 40;

fn pool_over(store: &Arc<PageStore>, options: PoolOptions) -> Arc<Pool<Strategies>> {
    let shape = Shape { frames: options.frames, pages_dense: None, seed: 3 };
    let hosted =
        HostedPolicy::exact::<LeanEvict>(&Spec::parse("lean-evict").unwrap(), &shape).unwrap();
    let pool = Pool::open(options, store.clone(), hosted).unwrap();
    for (page_type, kind) in btree::KINDS {
        pool.register(page_type, kind);
    }
    Arc::new(pool)
}

fn options() -> PoolOptions {
    PoolOptions { batch: 4, background_writer: false, ..PoolOptions::new(FRAMES) }
}

fn value(n: u32, version: u8) -> [u8; 100] {
    let mut value = [version; 100];
    value[..4].copy_from_slice(&n.to_be_bytes());
    value
}

/// A tree of `ROWS` rows, about twice the pool, all of it on the device.
fn made() -> (Arc<FaultyDevice>, Arc<PageStore>, Tree) {
    let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 11));
    let store = PageStore::create_on(device.clone(), PageSize::new(PAGE).unwrap()).unwrap();
    let store = Arc::new(store);
    let tree = Tree::create(pool_over(&store, options()), 1).unwrap();
    for n in 0..ROWS {
        tree.insert(&n.to_be_bytes(), &value(n, 0)).unwrap();
    }
    tree.pages().flush(Reason::Recov).unwrap();
    (device, store, tree)
}

/// Opens the tree anew, over the contents of the device.
fn again(store: &Arc<PageStore>, tree: Tree) -> Tree {
    let root = tree.root();
    tree.pages().flush(Reason::Recov).unwrap();
    drop(tree);
    Tree::open(pool_over(store, options()), 1, root).unwrap()
}

fn get(tree: &Tree, n: u32) -> Result<Option<Vec<u8>>, PoolError> {
    tree.get_owned(&n.to_be_bytes())
}

/// The rows that cannot be read, and the first error.
fn unreadable(tree: &Tree) -> (Vec<u32>, Option<PoolError>) {
    let (mut rows, mut first) = (Vec::new(), None);
    for n in 0..ROWS {
        match get(tree, n) {
            Ok(found) => assert_eq!(found.unwrap(), value(n, 0)),
            Err(error) => {
                rows.push(n);
                first.get_or_insert(error);
            }
        }
    }
    (rows, first)
}

/// Returns the error of the page store.
fn said<E: std::error::Error + Clone + 'static>(error: &PoolError) -> E {
    let PoolError::Storage(storage) = error else { panic!("not the storage's: {error}") };
    let said = storage.0.downcast_ref::<E>();
    said.unwrap_or_else(|| panic!("another error: {storage:?}")).clone()
}

/// A leaf: its id, and the rows in it, by the error of reading it.
fn a_leaf(device: &FaultyDevice, tree: &Tree) -> (u64, Vec<u32>) {
    for page in 20.. {
        tree.pages().evict_all().unwrap();
        device.fail_reads_at(page * PAGE);
        let (rows, _) = unreadable(tree);
        device.heal();
        if (1..200).contains(&rows.len()) {
            return (page, rows);
        }
    }
    unreachable!()
}

#[test]
fn a_read_error_names_page_and_offset_and_ends_with_its_cause() {
    let (device, _, tree) = made();
    let (page, rows) = a_leaf(&device, &tree);
    tree.pages().evict_all().unwrap();
    device.fail_reads_at(page * PAGE);
    for _ in 0..3 {
        let (bad, error) = unreadable(&tree);
        assert_eq!(bad, rows, "all others can be read");
        let error = error.unwrap();
        assert!(error.to_string().contains(&format!("offset {}", page * PAGE)), "{error}");
        assert!(
            matches!(said::<ReadError>(&error), ReadError::Device { page: at, .. } if at.0 == page)
        );
    }
    // What is intact can be changed, too.
    let other = (rows[0] + ROWS / 2) % ROWS;
    tree.upsert(&other.to_be_bytes(), &value(other, 0)).unwrap();
    device.heal();
    assert!(unreadable(&tree).0.is_empty());
}

#[test]
fn a_damaged_page_is_told_by_its_checksum_and_the_others_stay_usable() {
    let (device, store, tree) = made();
    let (page, rows) = a_leaf(&device, &tree);
    tree.pages().evict_all().unwrap();
    device.flip_bit(page * PAGE + 1000, 3).unwrap();
    let (bad, error) = unreadable(&tree);
    assert_eq!(bad, rows);
    let ReadError::Checksum { page: at, offset, stored, computed, .. } = said(&error.unwrap())
    else {
        panic!("not told by its checksum")
    };
    assert_eq!((at, offset), (PageId(page), page * PAGE));
    assert_ne!(stored, computed);
    let tree = again(&store, tree);
    assert_eq!(unreadable(&tree).0, rows, "after it was opened again, too");
    device.flip_bit(page * PAGE + 1000, 3).unwrap();
    assert!(unreadable(&tree).0.is_empty());
}

#[test]
fn pages_that_cannot_be_written_stay_dirty_and_keep_no_others_from_storage() {
    let (device, store, tree) = made();
    let (page, rows) = a_leaf(&device, &tree);
    tree.pages().flush(Reason::Recov).unwrap();
    device.fail_writes_at(page * PAGE);
    let neighbours = rows[0].saturating_sub(150)..(rows[0] + 150).min(ROWS);
    for n in neighbours.clone() {
        tree.upsert(&n.to_be_bytes(), &value(n, 1)).unwrap();
    }
    for _ in 0..2 {
        let error = tree.pages().flush(Reason::Recov).unwrap_err();
        assert!(error.to_string().contains(&format!("offset {}", page * PAGE)), "{error}");
        let said = said::<WriteError>(&error);
        assert!(matches!(said, WriteError::Device { page: at, .. } if at.0 == page), "{said}");
        assert_eq!(tree.pages().frames_dirty(), 1, "only the page that cannot be written");
    }
    // The pool goes on around it.
    for n in (0..ROWS).filter(|n| !neighbours.contains(n)) {
        assert_eq!(get(&tree, n).unwrap().unwrap(), value(n, 0));
    }
    for n in neighbours.clone() {
        assert_eq!(get(&tree, n).unwrap().unwrap(), value(n, 1));
    }
    device.heal();
    let tree = again(&store, tree);
    for n in neighbours {
        assert_eq!(get(&tree, n).unwrap().unwrap(), value(n, 1));
    }
}

#[test]
fn a_full_device_refuses_new_pages_and_keeps_what_is_there() {
    let (device, store, tree) = made();
    device.limit_room(0);
    let mut inserted = ROWS;
    let error = loop {
        match tree.insert(&inserted.to_be_bytes(), &value(inserted, 0)) {
            Ok(_) => inserted += 1,
            Err(TreeError::Pool(error)) => break error,
            Err(other) => panic!("{other}"),
        }
        assert!(inserted < 1_000_000, "the device is never full");
    };
    let AllocateError::Grow { .. } = said(&error) else { panic!("{error}") };
    assert!(error.to_string().contains("is full"), "{error}");
    for n in (0..inserted).rev() {
        assert_eq!(get(&tree, n).unwrap().unwrap(), value(n, 0), "{n} of {inserted}");
    }
    assert!(tree.insert(&inserted.to_be_bytes(), &value(inserted, 0)).is_err(), "still full");
    // Room can be made.
    for n in 0..ROWS {
        assert!(tree.remove(&n.to_be_bytes()).unwrap());
    }
    for n in 0..ROWS / 2 {
        tree.insert(&n.to_be_bytes(), &value(n, 2)).unwrap();
    }
    let tree = again(&store, tree);
    assert_eq!(get(&tree, 0).unwrap().unwrap(), value(0, 2));
    assert_eq!(get(&tree, inserted - 1).unwrap().unwrap(), value(inserted - 1, 0));
}

#[test]
fn a_device_on_which_no_write_finds_room_loses_nothing() {
    let (device, store, tree) = made();
    device.fill();
    let mut changed = 0;
    let error = loop {
        match tree.upsert(&u32::to_be_bytes(changed), &value(changed, 1)) {
            Ok(_) => changed += 1,
            Err(TreeError::Pool(error)) => break error,
            Err(other) => panic!("{other}"),
        }
        assert!(changed < ROWS, "the pool holds half of the rows");
    };
    assert!(matches!(said(&error), WriteError::Device { .. }), "{error}");
    assert!(error.to_string().contains("is full"), "{error}");
    // What is in memory can be read while nothing can be written.
    assert_eq!(get(&tree, 0).unwrap().unwrap(), value(0, 1));
    device.heal();
    let tree = again(&store, tree);
    for n in 0..ROWS {
        assert_eq!(get(&tree, n).unwrap().unwrap(), value(n, u8::from(n < changed)), "{n}");
    }
}

/// Threads meet errors by chance, in the background and in the foreground.
#[test]
fn after_a_storm_of_errors_every_row_is_one_that_was_written() {
    for evictors in [EvictionMode::Worker, EvictionMode::threads(1)] {
        let (device, store, tree) = made();
        let root = tree.root();
        drop(tree);
        let options = PoolOptions { evictors, background_writer: true, ..options() };
        let pool = pool_over(&store, options);
        let workers = Workers::start(pool.clone()).unwrap();
        let tree = Tree::open(pool, 1, root).unwrap();
        let faults = Faults { read_error: 0.05, write_error: 0.1, ..Faults::default() };
        device.set_faults(faults);
        let last: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let storm = |thread: u32| {
                let tree = &tree;
                move || {
                    let mut random = fastrand::Rng::with_seed(u64::from(thread));
                    // The version that row 2 i + thread must have at least.
                    let mut last = vec![0u8; ROWS as usize / 2];
                    for _ in 0..4000 {
                        let at = random.usize(..last.len());
                        let n = at as u32 * 2 + thread;
                        match tree.upsert(&n.to_be_bytes(), &value(n, last[at] + 1)) {
                            Ok(_) => last[at] += 1,
                            Err(error) => assert!(error.to_string().contains("offset"), "{error}"),
                        }
                    }
                    last
                }
            };
            let threads = [scope.spawn(storm(0)), scope.spawn(storm(1))];
            threads.map(|t| t.join().unwrap()).into()
        });
        assert!(device.struck() > 50, "{}", device.struck());
        device.heal();
        drop(workers);
        let tree = again(&store, tree);
        for n in 0..ROWS {
            let version = last[n as usize % 2][n as usize / 2];
            assert_eq!(get(&tree, n).unwrap().unwrap(), value(n, version), "{n}");
        }
        assert!(device.length() > 0);
    }
}
