//! Closures and sources of the user's that panic: nothing of a store is lost by that, and it goes
//! on.

use std::io::Read;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::{Db, KeyRange, Options, RawTree};

use crate::byte_calls::{SnapshotCalls, TxnCalls};

fn panics<R>(call: impl FnOnce() -> R) {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
}

/// A source that returns a number of bytes, and then panics.
struct Until(u64);

impl Read for Until {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        assert!(self.0 > 0, "as ordered");
        let given = out.len().min(self.0 as usize);
        out[..given].fill(7);
        self.0 -= given as u64;
        Ok(given)
    }
}

fn open(path: &Path) -> (Db, RawTree) {
    let db = Db::open(path, Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("tree").unwrap();
    (db, tree)
}

/// Every page of the closed store at `path` is one of a structure, or free.
fn assert_whole(path: &Path) {
    let report = check(path, CATALOG, CheckOptions::default()).unwrap();
    assert!(report.is_sound() && report.counts.lost == 0, "{:?}", report.counts);
}

fn assert_goes_on(db: &Db, tree: &RawTree) {
    let rows: Vec<_> = tree.iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 101);
    assert!(rows[..100].iter().all(|(_, value)| value == b"a small value"), "{:?}", rows[0]);
    assert_eq!(rows[100].1, vec![1; 300_000]);
    db.transact(|tx| tx.put(tree, b"zz", b"1")).unwrap();
    tree.delete(b"zz").unwrap();
    assert_eq!(tree.check().unwrap().violations, []);
}

fn filled(path: &Path) -> (Db, RawTree) {
    let (db, tree) = open(path);
    for key in 0..100u8 {
        tree.put(&[key], b"a small value").unwrap();
    }
    tree.put(b"z", &vec![1; 300_000]).unwrap();
    (db, tree)
}

#[test]
fn a_panic_inside_a_transaction_after_large_changes_loses_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (db, tree) = filled(&path);
    for round in 0..3u8 {
        panics(|| {
            db.transact::<(), millpond::Error>(|tx| {
                for key in 0..50 {
                    tx.put(&tree, &[key, round], &vec![key; 100_000])?;
                }
                tx.put(&tree, b"z", &vec![2; 500_000])?;
                let savepoint = tx.savepoint().unwrap();
                tx.delete(&tree, b"z")?;
                tx.rollback_to(&savepoint)?;
                let made = db.raw_tree("made")?;
                tx.put(&made, &[round], &[3; 200_000])?;
                tree.reader(b"z")?;
                panic!("as ordered")
            })
        });
        assert_goes_on(&db, &tree);
        // The creation was no part of the transaction; its rows were.
        assert!(db.open_tree("made").unwrap().is_empty().unwrap());
        db.drop_tree("made").unwrap();
    }
    drop(tree);
    db.close().unwrap();
    assert_whole(&path);
    let (db, tree) = open(&path);
    assert_goes_on(&db, &tree);
}

#[test]
fn a_source_of_a_large_value_that_panics_leaves_no_pages_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (db, tree) = filled(&path);
    for given in [0, 1000, 100_000, 399_999] {
        panics(|| tree.put_from(b"z", 400_000, Until(given)));
        panics(|| db.transact(|_| tree.put_from(b"z", 400_000, Until(given))));
    }
    assert_goes_on(&db, &tree);
    drop(tree);
    db.close().unwrap();
    assert_whole(&path);
}

#[test]
fn a_panic_in_any_other_closure_leaves_a_whole_store_and_nothing_locked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (db, tree) = filled(&path);
    let other = db.raw_tree("other").unwrap();
    let index = db.raw_hash_index("index").unwrap();
    index.put(b"a", b"1").unwrap();
    let heap = db.raw_heap("heap").unwrap();
    let record = heap.append(b"1").unwrap();
    for _ in 0..3 {
        panics(|| tree.get_with(&[1], |_| panic!("as ordered")));
        panics(|| tree.read(&[1], |_| panic!("as ordered")));
        panics(|| tree.read(b"z", |_| panic!("as ordered")));
        panics(|| tree.update_in_place(&[1], |_| panic!("as ordered")));
        panics(|| tree.update_in_place(b"z", |_| panic!("as ordered")));
        panics(|| index.read(b"a", |_| panic!("as ordered")));
        panics(|| index.update_in_place(b"a", |_| panic!("as ordered")));
        panics(|| heap.get_with(record, |_| panic!("as ordered")));
        panics(|| {
            let row = |n: u32| {
                assert!(n < 3000, "as ordered");
                (
                    n.to_be_bytes().to_vec(),
                    vec![1; if n.is_multiple_of(100) { 20_000 } else { 100 }],
                )
            };
            other.bulk_load((0..).map(row), Default::default())
        });
        other.clear().unwrap();
        panics(|| {
            db.transact::<(), millpond::Error>(|tx| {
                tx.put(&other, b"a", b"1")?;
                tx.scan(&tree, .., |_, _| panic!("as ordered"))
            })
        });
        panics(|| {
            let snapshot = db.snapshot().unwrap();
            tree.put(&[1], b"a small value").unwrap();
            snapshot.get_with(&tree, &[1], |_| panic!("as ordered"))
        });
        let all = KeyRange { start: Bound::Unbounded, end: Bound::Unbounded };
        assert_eq!(other.remove_range(&all).unwrap(), 0);
        assert_goes_on(&db, &tree);
    }
    drop((tree, other, index, heap));
    db.close().unwrap();
    assert_whole(&path);
}
