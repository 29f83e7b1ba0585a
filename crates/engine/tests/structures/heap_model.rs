//! Every operation of the heap against a map of ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond::internals::heap::{Heap, RecordId, WriteError};
use millpond::internals::pool::{Optimistic, Pages, Twin};
use millpond_base::Reason;

use crate::pool::storage::MemoryStorage;
use crate::structures::harness::{Job, PAGE, Swizzled, lean, on_pools, on_twins, pool};

type Model = BTreeMap<RecordId, Vec<u8>>;

fn record(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(..8) == 0 { random.usize(..440) } else { random.usize(..60) };
    vec![random.u8(..); len]
}

/// An id that exists, mostly.
fn pick(model: &Model, random: &mut fastrand::Rng) -> RecordId {
    let any = RecordId(random.u64(..20) << 16 | random.u64(..8));
    if random.u8(..8) == 0 {
        return any;
    }
    let n = random.usize(..model.len().max(1));
    model.keys().nth(n).copied().unwrap_or(any)
}

fn step<P: Pages>(heap: &Heap<P>, model: &mut Model, random: &mut fastrand::Rng, grow: u8) {
    let (id, new) = (pick(model, random), record(random));
    match random.u8(..8) {
        0 => assert_eq!(heap.get_owned(id).unwrap().as_ref(), model.get(&id)),
        1 => assert_eq!(heap.contains(id).unwrap(), model.contains_key(&id)),
        2 | 3 => {
            assert_eq!(heap.update(id, &new).unwrap(), model.contains_key(&id));
            model.entry(id).and_modify(|old| *old = new);
        }
        4 => {
            let reverse = |bytes: &mut [u8]| {
                bytes.reverse();
                bytes.len()
            };
            let changed = heap.update_in_place(id, reverse).unwrap();
            assert_eq!(changed, model.get(&id).map(Vec::len));
            model.entry(id).and_modify(|old| old.reverse());
        }
        _ if random.u8(..10) >= grow => {
            if random.bool() {
                assert_eq!(heap.remove(id).unwrap(), model.contains_key(&id));
            } else {
                assert_eq!(heap.remove_returning(id).unwrap().as_ref(), model.get(&id));
            }
            model.remove(&id);
        }
        _ => {
            let id = heap.append(&new).unwrap();
            assert_eq!(model.insert(id, new), None, "the id of a record that exists");
        }
    }
}

fn compare<P: Pages>(heap: &Heap<P>, model: &Model) {
    let expect: Vec<_> = model.iter().map(|(id, record)| (*id, record.clone())).collect();
    let forward: Vec<_> = heap.records().unwrap().map(Result::unwrap).collect();
    assert!(forward == expect, "a scan forward differs");
    let mut backward: Vec<_> = heap.records().unwrap().rev().map(Result::unwrap).collect();
    backward.reverse();
    assert!(backward == expect, "a scan backward differs");
    let (mut records, mut ends) = (heap.records().unwrap(), (Vec::new(), Vec::new()));
    while let Some(first) = records.next() {
        ends.0.push(first.unwrap());
        ends.1.extend(records.next_back().map(Result::unwrap));
    }
    ends.0.extend(ends.1.into_iter().rev());
    assert!(ends.0 == expect, "a scan from both ends differs");
    if let Some((&middle, _)) = model.iter().nth(model.len() / 2) {
        let tail: Vec<_> = heap.records_from(middle).unwrap().map(Result::unwrap).collect();
        assert!(tail == expect[model.len() / 2..], "a scan from the middle differs");
    }
    let report = heap.check().unwrap();
    assert_eq!(report.violations, []);
    let stats = heap.stats().unwrap();
    assert_eq!((stats.records, report.records), (model.len() as u64, model.len() as u64));
    assert_eq!(stats.raw_bytes, model.values().map(|r| r.len() as u64).sum::<u64>());
    assert_eq!(heap.is_empty().unwrap(), model.is_empty());
}

struct Operations(usize);

impl Job for Operations {
    fn run<P: Pages>(&self, pages: &Arc<P>, _: bool) {
        let mut random = fastrand::Rng::with_seed(12);
        let heap = Heap::create(pages.clone(), 6).unwrap();
        let mut model = Model::new();
        for grow in [9, 2, 7, 0] {
            for _ in 0..self.0 {
                step(&heap, &mut model, &mut random, grow);
            }
            compare(&heap, &model);
        }
        heap.clear().unwrap();
        model.clear();
        compare(&heap, &model);
        step(&heap, &mut model, &mut random, 10);
        heap.destroy().unwrap();
    }
}

#[test]
fn every_operation_does_what_a_map_of_ids_does_on_the_twin() {
    on_twins(&Operations(2500));
}

#[test]
fn every_operation_does_what_a_map_of_ids_does_on_thrashing_pools() {
    on_pools(&Operations(500));
}

fn twin() -> Arc<Twin<Optimistic>> {
    Arc::new(Twin::new(PAGE).unwrap())
}

#[test]
fn a_bulk_append_fills_pages_and_grows_by_directories() {
    let heap = Heap::create(twin(), 6).unwrap();
    let root = heap.root();
    let records: Vec<Vec<u8>> =
        (0..40_000u32).map(|n| n.to_be_bytes().repeat(1 + n as usize % 4)).collect();
    let mut ids = Vec::new();
    assert_eq!(heap.append_all(&records, |id| ids.push(id)).unwrap(), 40_000);
    assert!(ids.is_sorted() && ids.len() == 40_000);
    assert_eq!(heap.root(), root);
    let stats = heap.stats().unwrap();
    assert!(stats.data_pages > 1024, "two levels of directories are full: {stats:?}");
    // Records of 4 to 16 bytes take 8 to 16 and a slot of 4.
    assert!(stats.raw_bytes * 10 > stats.total_bytes * 5, "pages are full: {stats:?}");
    for (id, record) in ids.iter().zip(&records).step_by(17) {
        assert_eq!(heap.get_owned(*id).unwrap().as_ref(), Some(record));
    }
    assert_eq!(heap.check().unwrap().violations, []);
    let too_long = [vec![1; 10], vec![2; PAGE]];
    let error = heap.append_all(&too_long, |id| ids.push(id)).unwrap_err();
    assert!(matches!(error, WriteError::TooLong { len: PAGE, .. }), "{error}");
    assert_eq!(ids.len(), 40_001, "the record before the one that is too long is there");
}

#[test]
fn free_space_that_removals_leave_is_used_again() {
    let heap = Heap::create(twin(), 6).unwrap();
    let mut ids: Vec<RecordId> = (0..4000).map(|_| heap.append(&[1; 40]).unwrap()).collect();
    let pages = heap.stats().unwrap().data_pages;
    let mut random = fastrand::Rng::with_seed(1);
    random.shuffle(&mut ids);
    for id in ids.drain(..3000) {
        assert!(heap.remove(id).unwrap());
    }
    for _ in 0..3000 {
        ids.push(heap.append(&[2; 40]).unwrap());
    }
    let again = heap.stats().unwrap();
    assert_eq!(again.records, 4000);
    assert!(again.data_pages <= pages + pages / 10, "{pages} pages became {again:?}");
    for id in ids {
        assert!(heap.remove(id).unwrap());
    }
    assert!(heap.stats().unwrap().data_pages <= 1, "pages without records are given back");
    assert_eq!(heap.check().unwrap().violations, []);
}

#[test]
fn a_record_that_outgrows_its_page_keeps_its_id() {
    let heap = Heap::create(twin(), 6).unwrap();
    let ids: Vec<RecordId> = (0..100).map(|n| heap.append(&[n; 8]).unwrap()).collect();
    let max = heap.limits().record_max;
    for len in [100, max, 3, 200, max] {
        for (n, id) in ids.iter().enumerate() {
            assert!(heap.update(*id, &vec![n as u8; len]).unwrap());
        }
        let seen: Vec<_> = heap.records().unwrap().map(Result::unwrap).collect();
        for (n, (id, record)) in seen.iter().enumerate() {
            assert_eq!((*id, record), (ids[n], &vec![n as u8; len]));
        }
        assert_eq!(heap.check().unwrap().violations, []);
    }
    assert!(heap.stats().unwrap().forwarded > 90);
    let error = heap.update(ids[0], &vec![0; max + 1]).unwrap_err();
    assert!(matches!(error, WriteError::TooLong { .. }), "{error}");
    for id in ids {
        assert_eq!(heap.remove_returning(id).unwrap().unwrap().len(), max);
    }
    assert_eq!(heap.check().unwrap().records, 0);
}

#[test]
fn a_stored_heap_is_opened_again_by_its_root() {
    let storage = Arc::new(MemoryStorage::new(PAGE));
    let (root, ids) = {
        let pool = pool::<Swizzled>(32, &storage, &lean);
        let heap = Heap::create(pool.clone(), 5).unwrap();
        let ids: Vec<RecordId> =
            (0..5000u32).map(|n| heap.append(&n.to_le_bytes()).unwrap()).collect();
        pool.flush(Reason::Recov).unwrap();
        (heap.root(), ids)
    };
    let pool = pool::<Swizzled>(16, &storage, &lean);
    let heap = Heap::open(pool.clone(), 5, root).unwrap();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(heap.get_owned(*id).unwrap(), Some((n as u32).to_le_bytes().to_vec()));
    }
    assert!(heap.append(b"one more").unwrap() > ids[4999]);
    assert_eq!(heap.check().unwrap().violations, []);
    let error = Heap::open(pool.clone(), 5, millpond_base::PageId(root.0 + 1)).err().unwrap();
    assert!(error.to_string().contains("not the root of a heap"), "{error}");
}
