//! A pool without a structure's page kinds fails at once, with an error that names the page type.

use std::sync::Arc;

use millpond::internals::hash_index::{self, HashIndex};
use millpond::internals::heap::{self, Heap, RecordId};
use millpond::internals::page::PageType;
use millpond::internals::pool::{Pool, PoolError};
use millpond_base::Reason;
use millpond_policies::contract::Shape;

use crate::pool::storage::{MemoryStorage, tiny};
use crate::structures::harness::{PAGE, Swizzled, lean, pool};

fn unregistered(storage: &Arc<MemoryStorage>) -> Arc<Pool<Swizzled>> {
    let shape = Shape { frames: 24, pages_dense: None, seed: 3 };
    Arc::new(Pool::open(tiny(24), storage.clone(), lean(&shape)).unwrap())
}

#[track_caller]
fn names(error: &PoolError, wanted: PageType) {
    let PoolError::Unregistered { page_type } = error else { panic!("{error}") };
    assert_eq!(*page_type, wanted.0);
    let text = error.to_string();
    assert!(text.contains(&format!("type {page_type}")) && text.contains("register"), "{text}");
}

#[test]
fn growing_a_structure_whose_kinds_are_not_registered_fails_and_names_its_page_type() {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let pool = unregistered(&storage);
    let index = HashIndex::create(pool.clone(), 1, 7).unwrap();
    let error = (0u32..2000).find_map(|i| index.insert(&i.to_le_bytes(), &[1; 40]).err()).unwrap();
    let hash_index::WriteError::Pool(error) = error else { panic!("{error}") };
    names(&error, PageType::HASH_ROOT);
    // Nothing reaches storage: there would be pointers in it.
    names(&pool.flush(Reason::Recov).unwrap_err(), PageType::HASH_ROOT);
    let pool = unregistered(&storage);
    let heap = Heap::create(pool.clone(), 1).unwrap();
    let error = (0..2000).find_map(|_| heap.append(&[1; 60]).err()).unwrap();
    let heap::WriteError::Pool(error) = error else { panic!("{error}") };
    names(&error, PageType::HEAP_DIRECTORY);
}

#[test]
fn reading_a_structure_whose_kinds_are_not_registered_is_the_same_error() {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let registered = pool::<Swizzled>(24, &storage, &lean);
    let heap = Heap::create(registered.clone(), 1).unwrap();
    let ids: Vec<RecordId> = (0u8..200).map(|i| heap.append(&[i; 60]).unwrap()).collect();
    registered.flush(Reason::Recov).unwrap();
    let heap = Heap::open(unregistered(&storage), 1, heap.root()).unwrap();
    for id in [ids[0], ids[150], ids[0]] {
        names(&heap.get_owned(id).unwrap_err(), PageType::HEAP_DIRECTORY);
    }
}
