//! Threads that are ending: destructors of thread-local values use a store.

use std::cell::RefCell;
use std::path::Path;

use millpond::{Db, Options, RawTree, Txn};

use super::place;
use crate::byte_calls::{SnapshotCalls, TxnCalls};

fn options() -> Options {
    Options::new().memory(8 << 20)
}

/// Does something when its thread ends.
struct Late(Option<Box<dyn FnOnce()>>);

impl Drop for Late {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

thread_local! {
    static LATE: RefCell<Late> = const { RefCell::new(Late(None)) };
}

/// Runs `early` in a thread and `late` when that ends, before and after what the store keeps for
/// the thread is dropped: values are destroyed in an order that depends on their first use.
fn in_an_ending_thread(
    early: impl Fn() + Send + Sync,
    late: impl Fn() -> Box<dyn FnOnce()> + Send + Sync,
) {
    let register = || LATE.with_borrow_mut(|value| value.0 = Some(late()));
    for is_first in [true, false] {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                if is_first {
                    register();
                }
                early();
                if !is_first {
                    register();
                }
            });
            // The end of the scope does not wait for destructors, and this does.
            thread.join().unwrap();
        });
    }
}

fn each_kind(db: &Db, tree: &RawTree, key: &[u8]) {
    tree.put(key, b"late").unwrap();
    tree.put(b"large", &vec![7; 100_000]).unwrap();
    assert_eq!(tree.get(b"large").unwrap().unwrap().len(), 100_000);
    let rows = tree.iter().filter(Result::is_ok).count();
    assert!(rows > 300, "{rows}");
    db.transact(|tx| tx.put(tree, key, b"later")).unwrap();
    let snapshot = db.snapshot().unwrap();
    assert_eq!(snapshot.get(tree, key).unwrap().as_deref(), Some(&b"later"[..]));
    db.hash_index::<u32, u32>("h").unwrap().put(&1, &2).unwrap();
    db.heap::<u32>("heap").unwrap().append(&1).unwrap();
    db.flush().unwrap();
    db.checkpoint().unwrap();
}

fn filled(path: &Path) -> (Db, RawTree) {
    let db = Db::open(path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for key in 0..400u32 {
        tree.put(&key.to_be_bytes(), &[1; 100]).unwrap();
    }
    (db, tree)
}

#[test]
fn a_store_does_everything_for_a_thread_that_is_ending() {
    let (_folder, path) = place();
    let (db, tree) = filled(&path);
    in_an_ending_thread(
        || each_kind(&db, &tree, b"early"),
        || {
            let (db, tree) = (db.clone(), tree.clone());
            Box::new(move || each_kind(&db, &tree, b"ending"))
        },
    );
    assert!(tree.get(b"ending").unwrap().is_some());
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn a_changed_transaction_is_undone_by_a_thread_that_is_ending() {
    let (_folder, path) = place();
    let (db, tree) = filled(&path);
    in_an_ending_thread(
        || tree.put(b"early", b"1").map(drop).unwrap(),
        || {
            let tx: Txn = db.begin().unwrap();
            tx.put(&tree, b"undone", b"1").unwrap();
            Box::new(move || drop(tx))
        },
    );
    assert_eq!(tree.get(b"undone").unwrap(), None);
}

#[test]
fn a_store_is_opened_and_closed_by_a_thread_that_is_ending() {
    let (_folder, path) = place();
    in_an_ending_thread(
        || drop(filled(&path)),
        || {
            let (path, (folder, new)) = (path.clone(), place());
            Box::new(move || {
                // One that is there, and a new one.
                for path in [&path, &new] {
                    let (db, tree) = filled(path);
                    db.create_tree("late").unwrap();
                    db.drop_tree("late").unwrap();
                    drop(tree);
                    db.close().unwrap();
                }
                drop(folder);
            })
        },
    );
    assert!(Db::open(&path, options()).unwrap().check().unwrap().is_sound());
}
