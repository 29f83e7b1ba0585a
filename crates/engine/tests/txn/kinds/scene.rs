//! A tree, a hash index and a heap, and their contents.

use std::collections::BTreeMap;

use millpond::internals::heap::RecordId;
use millpond::{Db, HashIndex, Heap, Options, RawTree, Snapshot, Txn};

/// Few and small pages, so that everything splits, moves and is evicted all the time.
pub(super) fn small() -> Options {
    Options::new().page_size(512).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(150);
        lab.batch = Some(2);
    })
}

pub(super) struct Kinds {
    pub(super) tree: RawTree,
    pub(super) index: HashIndex<Vec<u8>, Vec<u8>>,
    pub(super) heap: Heap<Vec<u8>>,
}

impl Kinds {
    pub(super) fn of(db: &Db) -> Kinds {
        Kinds {
            tree: db.raw_tree("tree").unwrap(),
            index: db.raw_hash_index("index").unwrap(),
            heap: db.raw_heap("heap").unwrap(),
        }
    }
}

pub(super) type Bytes = Vec<u8>;

/// Expected contents of the three structures.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Model {
    pub(super) tree: BTreeMap<Bytes, Bytes>,
    pub(super) index: BTreeMap<Bytes, Bytes>,
    pub(super) heap: BTreeMap<u64, Bytes>,
}

pub(super) fn outside(kinds: &Kinds) -> Model {
    Model {
        tree: kinds.tree.iter().map(Result::unwrap).collect(),
        index: kinds.index.iter().map(Result::unwrap).collect(),
        heap: kinds.heap.records().unwrap().map(Result::unwrap).map(|(id, r)| (id.0, r)).collect(),
    }
}

pub(super) fn inside(tx: &Txn, kinds: &Kinds) -> Model {
    let records = tx.heap(&kinds.heap);
    Model {
        tree: tx.tree(&kinds.tree).iter().map(Result::unwrap).collect(),
        index: tx.hash_index(&kinds.index).iter().map(Result::unwrap).collect(),
        heap: records.records().unwrap().map(Result::unwrap).map(|(id, r)| (id.0, r)).collect(),
    }
}

pub(super) fn shown(snapshot: &Snapshot, kinds: &Kinds, backwards: bool) -> Model {
    let (index, heap) = (snapshot.hash_index(&kinds.index), snapshot.heap(&kinds.heap));
    let records = heap.records().unwrap();
    let records: Vec<_> = if backwards { records.rev().collect() } else { records.collect() };
    Model {
        tree: snapshot.tree(&kinds.tree).iter().map(Result::unwrap).collect(),
        index: index.iter().map(Result::unwrap).collect(),
        heap: records.into_iter().map(Result::unwrap).map(|(id, r)| (id.0, r)).collect(),
    }
}

pub(super) fn some_id(random: &mut fastrand::Rng, model: &Model) -> RecordId {
    let ids: Vec<u64> = model.heap.keys().copied().collect();
    RecordId(random.choice(ids).unwrap_or(random.u64(..1 << 20)))
}

pub(super) fn some_value(random: &mut fastrand::Rng) -> Bytes {
    vec![random.u8(..); random.usize(..90)]
}

/// One change in a transaction, checked against the model.
pub(super) fn change(tx: &Txn, kinds: &Kinds, model: &mut Model, random: &mut fastrand::Rng) {
    let (key, value) = (random.u16(..600).to_be_bytes().to_vec(), some_value(random));
    let (tree, index) = (tx.tree(&kinds.tree), tx.hash_index(&kinds.index));
    let (heap, id) = (tx.heap(&kinds.heap), some_id(random, model));
    match random.u8(..14) {
        0 | 1 => {
            assert_eq!(tree.insert(&key, &value).unwrap(), model.tree.insert(key, value));
        }
        2 => assert_eq!(tree.remove(&key).unwrap(), model.tree.remove(&key)),
        3 | 4 => {
            assert_eq!(index.insert(&key, &value).unwrap(), model.index.insert(key, value));
        }
        5 => {
            let was = model.index.insert(key.clone(), value.clone()).is_some();
            assert_eq!(index.put(&key, &value).unwrap(), was);
        }
        6 => assert_eq!(index.remove(&key).unwrap(), model.index.remove(&key)),
        7 => {
            let is_new = !model.index.contains_key(&key);
            assert_eq!(index.insert_if_absent(&key, &value).unwrap(), is_new);
            model.index.entry(key).or_insert(value);
        }
        8 => {
            index.update_in_place(&key, |value| value.fill(7)).unwrap();
            model.index.entry(key).and_modify(|value| value.fill(7));
        }
        9 | 10 => {
            let id = heap.append(&value).unwrap();
            assert_eq!(model.heap.insert(id.0, value), None, "{id:?} is used");
        }
        11 => assert_eq!(heap.remove(id).unwrap(), model.heap.remove(&id.0)),
        12 => {
            let is_there = model.heap.contains_key(&id.0);
            assert_eq!(heap.update(id, &value).unwrap(), is_there);
            model.heap.entry(id.0).and_modify(|record| record.clone_from(&value));
        }
        _ => {
            heap.update_in_place(id, |record| record.fill(9)).unwrap();
            model.heap.entry(id.0).and_modify(|record| record.fill(9));
        }
    }
}

/// Point reads of a transaction or a snapshot agree with the model, also of what is not there.
pub(super) fn points_agree(
    model: &Model,
    random: &mut fastrand::Rng,
    look: impl Fn(&[u8], RecordId) -> Seen,
) {
    for _ in 0..20 {
        let (key, id) = (random.u16(..600).to_be_bytes(), some_id(random, model));
        let expect = [
            model.tree.get(&key[..]).cloned(),
            model.index.get(&key[..]).cloned(),
            model.heap.get(&id.0).cloned(),
        ];
        assert_eq!(look(&key, id), expect, "{key:?} {id:?}");
    }
}

pub(super) type Seen = [Option<Bytes>; 3];
