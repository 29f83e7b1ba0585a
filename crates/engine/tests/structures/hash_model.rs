//! Every operation of the hash index against `HashMap`.

use std::collections::HashMap;
use std::sync::Arc;

use millpond::internals::hash_index::{HashIndex, WriteError};
use millpond::internals::pool::{Optimistic, Pages, Twin};
use millpond_base::Reason;

use crate::pool::storage::MemoryStorage;
use crate::structures::harness::{Job, PAGE, Swizzled, lean, on_pools, on_twins, pool};

type Model = HashMap<Vec<u8>, Vec<u8>>;

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let n = random.u16(..400);
    match n % 3 {
        0 => n.to_be_bytes().to_vec(),
        1 => format!("key {n}").into_bytes(),
        _ => vec![n as u8; usize::from(n % 40)],
    }
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    vec![random.u8(..); random.usize(..50)]
}

/// One random operation on both; `grow` of ten operations that change the number insert.
fn step<P: Pages>(index: &HashIndex<P>, model: &mut Model, random: &mut fastrand::Rng, grow: u8) {
    let (key, new) = (key(random), value(random));
    let now = model.get(&key).cloned();
    match random.u8(..16) {
        0 => assert_eq!(index.get_owned(&key).unwrap(), now),
        1 => assert_eq!(index.contains(&key).unwrap(), now.is_some()),
        2 => {
            assert_eq!(index.replace(&key, &new).unwrap(), now.is_some());
            if now.is_some() {
                model.insert(key, new);
            }
        }
        3 => {
            let changed = index.update_in_place(&key, |v| {
                v.reverse();
                v.len()
            });
            assert_eq!(changed.unwrap(), now.as_ref().map(Vec::len));
            if let Some(v) = model.get_mut(&key) {
                v.reverse();
            }
        }
        4 => {
            let expected = if random.bool() { now.clone() } else { Some(value(random)) };
            let wanted = random.bool().then_some(&new[..]);
            let swapped = index.compare_and_swap(&key, expected.as_deref(), wanted).unwrap();
            assert_eq!(swapped, expected == now);
            if swapped {
                match wanted {
                    Some(new) => model.insert(key, new.to_vec()),
                    None => model.remove(&key),
                };
            }
        }
        _ if random.u8(..10) >= grow => {
            if random.bool() {
                assert_eq!(index.remove(&key).unwrap(), now.is_some());
            } else {
                assert_eq!(index.remove_returning(&key).unwrap(), now);
            }
            model.remove(&key);
        }
        n if n % 3 == 0 => {
            assert_eq!(index.insert(&key, &new).unwrap(), now.is_none());
            model.entry(key).or_insert(new);
        }
        n if n % 3 == 1 => {
            assert_eq!(index.upsert(&key, &new).unwrap(), now.is_some());
            model.insert(key, new);
        }
        _ => {
            assert_eq!(index.upsert_returning(&key, &new).unwrap(), now);
            model.insert(key, new);
        }
    }
}

fn compare<P: Pages>(index: &HashIndex<P>, model: &Model) {
    let all: Vec<_> = index.entries().map(Result::unwrap).collect();
    assert_eq!(all.len(), model.len(), "no entry comes twice");
    assert_eq!(&all.into_iter().collect::<Model>(), model);
    let report = index.check().unwrap();
    assert_eq!(report.violations, []);
    let stats = index.stats().unwrap();
    assert_eq!((stats.entries, report.entries), (model.len() as u64, model.len() as u64));
    assert_eq!(stats.buckets + stats.directories, report.pages.len() as u64);
    let raw: usize = model.iter().map(|(k, v)| k.len() + v.len()).sum();
    assert_eq!(stats.raw_bytes, raw as u64);
    assert_eq!(index.is_empty().unwrap(), model.is_empty());
}

struct Operations(usize);

impl Job for Operations {
    fn run<P: Pages>(&self, pages: &Arc<P>, _: bool) {
        let mut random = fastrand::Rng::with_seed(11);
        let index = HashIndex::create(pages.clone(), 5, 17).unwrap();
        let mut model = Model::new();
        for grow in [9, 1, 6, 2] {
            for _ in 0..self.0 {
                step(&index, &mut model, &mut random, grow);
            }
            compare(&index, &model);
        }
        assert_eq!(index.clear().unwrap(), model.len() as u64);
        compare(&index, &Model::new());
        assert_eq!(index.stats().unwrap().directories, 1, "an empty index is its root");
        step(&index, &mut Model::new(), &mut random, 10);
        index.destroy().unwrap();
    }
}

#[test]
fn every_operation_does_what_a_hash_map_does_on_the_twin() {
    on_twins(&Operations(5000));
}

#[test]
fn every_operation_does_what_a_hash_map_does_on_thrashing_pools() {
    on_pools(&Operations(700));
}

/// Enough entries for directories below directories.
struct Deep;

impl Job for Deep {
    fn run<P: Pages>(&self, pages: &Arc<P>, _: bool) {
        let index = HashIndex::create(pages.clone(), 5, 1).unwrap();
        let count = 9000u32;
        for n in 0..count {
            assert!(index.insert(&n.to_be_bytes(), &[n as u8; 20]).unwrap());
        }
        let stats = index.stats().unwrap();
        assert!(stats.height >= 3, "{stats:?}");
        assert!(stats.total_bytes < 3 * stats.used_bytes, "{stats:?}");
        for n in (0..count).step_by(7) {
            assert_eq!(index.get(&n.to_be_bytes(), |v| v[0]).unwrap(), Some(n as u8));
        }
        assert_eq!(index.check().unwrap().violations, []);
        for n in 0..count {
            assert!(index.remove(&n.to_be_bytes()).unwrap(), "{n}");
        }
        let stats = index.stats().unwrap();
        assert_eq!((stats.entries, stats.directories), (0, 1), "{stats:?}");
        assert!(stats.buckets <= 1, "{stats:?}");
        index.destroy().unwrap();
    }
}

#[test]
fn an_index_grows_by_directories_and_shrinks_back_to_its_root() {
    on_twins(&Deep);
}

#[test]
fn a_stored_index_is_opened_again_by_its_root() {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let root = {
        let pool = pool::<Swizzled>(32, &storage, &lean);
        let index = HashIndex::create(pool.clone(), 5, 99).unwrap();
        for n in 0..2000u32 {
            index.insert(&n.to_be_bytes(), &n.to_le_bytes()).unwrap();
        }
        pool.flush(Reason::Recov).unwrap();
        index.root()
    };
    let pool = pool::<Swizzled>(16, &storage, &lean);
    let index = HashIndex::open(pool.clone(), 5, root).unwrap();
    for n in 0..2000u32 {
        assert_eq!(index.get_owned(&n.to_be_bytes()).unwrap(), Some(n.to_le_bytes().to_vec()));
    }
    assert_eq!(index.check().unwrap().violations, []);
    let error = HashIndex::open(pool.clone(), 5, millpond_base::PageId(root.0 + 1)).err().unwrap();
    assert!(error.to_string().contains("not the root of a hash index"), "{error}");
}

#[test]
fn an_entry_that_is_too_long_is_refused() {
    let index = HashIndex::create(Arc::new(Twin::<Optimistic>::new(PAGE).unwrap()), 5, 0).unwrap();
    let max = index.limits().entry_max;
    index.insert(&vec![1; max - 1], &[2]).unwrap();
    index.insert(&[1], &vec![2; max - 1]).unwrap();
    for n in 0..40 {
        index.insert(&[n; 3], &vec![n; max - 3]).unwrap();
    }
    assert_eq!(index.get(&[39; 3], <[u8]>::len).unwrap(), Some(max - 3));
    let error = index.insert(&[1], &vec![2; max]).unwrap_err();
    assert!(matches!(error, WriteError::TooLong { key: 1, .. }), "{error}");
    assert_eq!(index.check().unwrap().violations, []);
}

#[test]
fn an_iteration_resumes_from_a_position() {
    let index = HashIndex::create(Arc::new(Twin::<Optimistic>::new(PAGE).unwrap()), 5, 0).unwrap();
    for n in 0..3000u32 {
        index.insert(&n.to_be_bytes(), &[0; 9]).unwrap();
    }
    let mut seen = HashMap::new();
    let mut position = Some(Default::default());
    while let Some(from) = position {
        let mut entries = index.entries_from(from);
        let Some(first) = entries.next() else { break };
        *seen.entry(first.unwrap().0).or_insert(0) += 1;
        position = entries.position();
        // The rest of the bucket is before the position.
        while let (Some(entry), true) = (entries.next(), entries.position() == position) {
            *seen.entry(entry.unwrap().0).or_insert(0) += 1;
        }
        // The index may grow or shrink in between.
        if seen.len() == 1 {
            for n in 3000..6000u32 {
                index.insert(&n.to_be_bytes(), &[0; 9]).unwrap();
            }
            for n in 3000..6000u32 {
                index.remove(&n.to_be_bytes()).unwrap();
            }
        }
    }
    let old = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap()) < 3000;
    assert_eq!(seen.iter().filter(|(key, times)| old(key) && **times == 1).count(), 3000);
}
