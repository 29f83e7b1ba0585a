//! Values read in their page, whose leaf is latched meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};

use millpond::internals::btree::{BTree, WriteError};
use millpond::internals::pool::{Pages, PoolError};

use crate::btree::harness::{Make, key, on_each, value};
use crate::btree::model::Map;

on_each!(
    a_value_is_seen_as_it_is_whatever_its_size,
    a_closure_sees_the_page_itself,
    a_closure_may_read_all_of_the_tree_and_write_another,
    a_write_to_the_leaf_that_a_closure_borrows_fails_and_the_tree_stays_usable,
    a_removal_beside_a_borrowed_leaf_is_applied_and_no_error,
    a_panic_in_a_closure_releases_the_leaf,
);

fn a_value_is_seen_as_it_is_whatever_its_size<P: Pages>(make: Make<P>) {
    for page in [512, 4096, 65536] {
        let tree = BTree::create(make(page), 1).unwrap();
        let mut random = fastrand::Rng::with_seed(page as u64);
        let mut map = Map::new();
        for _ in 0..600 {
            let k = key(&mut random, 40);
            match random.u8(..8) {
                0 => assert_eq!(tree.remove(&k).unwrap(), map.remove(&k).is_some()),
                1..4 => {
                    let most = if random.u8(..4) == 0 { page * 2 } else { 60 };
                    let len = random.usize(..most);
                    let v = value(&mut random, len);
                    tree.upsert(&k, &v).unwrap();
                    map.insert(k, v);
                }
                _ => {
                    let seen = tree.read(&k, |bytes| Some(bytes) == map.get(&k).map(|v| &v[..]));
                    assert_eq!(seen.unwrap(), map.contains_key(&k).then_some(true));
                }
            }
        }
        for (k, v) in &map {
            assert_eq!(tree.read(k, <[u8]>::to_vec).unwrap().as_ref(), Some(v));
        }
        assert_eq!(tree.check().unwrap().violations, []);
    }
}

fn a_closure_sees_the_page_itself<P: Pages>(make: Make<P>) {
    let tree = BTree::create(make(4096), 1).unwrap();
    tree.insert(b"key", &[7; 900]).unwrap();
    let place = tree.update_in_place(b"key", |bytes| bytes.as_ptr().addr()).unwrap();
    assert_eq!(tree.read(b"key", |bytes| bytes.as_ptr().addr()).unwrap(), place);
    let copy = tree.get(b"key", |bytes| bytes.as_ptr().addr()).unwrap();
    assert_ne!(copy, place);
}

fn numbered<P: Pages>(make: Make<P>) -> BTree<P> {
    let tree = BTree::create(make(512), 1).unwrap();
    for k in 0..300u16 {
        tree.insert(&k.to_be_bytes(), &[k as u8; 20]).unwrap();
    }
    tree
}

fn a_closure_may_read_all_of_the_tree_and_write_another<P: Pages>(make: Make<P>) {
    let (tree, other) = (numbered(make), BTree::create(make(512), 2).unwrap());
    for k in (0..300u16).step_by(29) {
        let done = tree.read(&k.to_be_bytes(), |bytes| {
            for other_key in 0..300u16 {
                let inner = tree.read(&other_key.to_be_bytes(), |inner| {
                    assert_eq!(bytes, [k as u8; 20]);
                    inner == [other_key as u8; 20]
                });
                assert_eq!(inner.unwrap(), Some(true));
                assert!(tree.contains(&other_key.to_be_bytes()).unwrap());
                other.upsert(&other_key.to_be_bytes(), bytes).unwrap();
            }
            tree.count().unwrap()
        });
        assert_eq!(done.unwrap(), Some(300));
        assert_eq!(other.get_owned(&[1, 0]).unwrap().unwrap(), [k as u8; 20]);
    }
    assert_eq!(other.check().unwrap().violations, []);
}

fn a_write_to_the_leaf_that_a_closure_borrows_fails_and_the_tree_stays_usable<P: Pages>(
    make: Make<P>,
) {
    let tree = numbered(make);
    let key = 77u16.to_be_bytes();
    let error = tree.read(&key, |bytes| {
        let error = tree.upsert(&key, b"new").unwrap_err();
        assert_eq!(bytes, [77; 20], "nothing changes under the closure");
        error
    });
    let error = error.unwrap().unwrap();
    assert!(matches!(error, WriteError::Pool(PoolError::Held { pages: 1 })), "{error}");
    // Two closures that borrow pages are both counted.
    let error = tree.read(&key, |_| tree.read(&[0, 0], |_| tree.remove(&key).unwrap_err()));
    assert!(matches!(error.unwrap().unwrap().unwrap().unwrap(), PoolError::Held { pages: 2 }));
    assert!(tree.upsert(&key, b"new").unwrap());
    assert_eq!(tree.get_owned(&key).unwrap().unwrap(), b"new");
    assert_eq!(tree.check().unwrap().violations, []);
}

fn a_removal_beside_a_borrowed_leaf_is_applied_and_no_error<P: Pages>(make: Make<P>) {
    let tree = numbered(make);
    let (mut removed, mut k) = (0, 150u16);
    // Until the leaf beside it becomes thin.
    tree.read(&150u16.to_be_bytes(), |_| {
        while removed < 20 {
            k += 1;
            match tree.remove(&k.to_be_bytes()) {
                Ok(true) => removed += 1,
                // It is in the leaf that the closure has borrowed.
                Err(PoolError::Held { .. }) => k += 4,
                other => panic!("{other:?}"),
            }
        }
    })
    .unwrap();
    assert_eq!(tree.count().unwrap(), 300 - removed);
    assert_eq!(tree.check().unwrap().violations, []);
}

fn a_panic_in_a_closure_releases_the_leaf<P: Pages>(make: Make<P>) {
    let tree = numbered(make);
    let key = 5u16.to_be_bytes();
    let result = catch_unwind(AssertUnwindSafe(|| tree.read(&key, |_| panic!("as ordered"))));
    assert!(result.is_err());
    assert!(tree.upsert(&key, b"new").unwrap());
    assert_eq!(tree.read(&key, <[u8]>::to_vec).unwrap().unwrap(), b"new");
}
