//! One transaction, its cursors and many threads; transactions that lose in deadlocks.

use std::sync::atomic::{AtomicU64, Ordering};

use millpond::{Db, Durability, KeyRange, Options, TransactOptions, TxnOptions};
use millpond_handles::{Cursor, Fault, Transaction, transact};

fn store() -> Db {
    let options = Options::new().memory(16 << 20).durability(Durability::Async);
    Db::in_memory(options).expect("a store in memory")
}

#[test]
fn threads_share_a_transaction() {
    let db = store();
    let tree = db.raw_tree("t").expect("a tree");
    for round in 0..20u8 {
        let tx = Transaction::begin(&db, None).expect("a transaction");
        let (written, over) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let (tx, tree, written, over) = (&tx, &tree, &written, &over);
                scope.spawn(move || {
                    let mut cursor: Option<Cursor> = None;
                    for step in 0..50u8 {
                        let key = [round, thread, step];
                        match tx.call(|txn| txn.tree(tree).put(&key, b"x")) {
                            Ok(_) => written.fetch_add(1, Ordering::Relaxed),
                            Err(Fault::TransactionOver) => over.fetch_add(1, Ordering::Relaxed),
                            Err(other) => panic!("{other}"),
                        };
                        match cursor.as_mut().map(Cursor::next) {
                            None | Some(Ok(false) | Err(Fault::CursorOver)) => {
                                cursor = tx.cursor(tree, KeyRange::ALL).ok();
                            }
                            Some(Ok(true) | Err(Fault::TransactionOver)) => {}
                            Some(Err(other)) => panic!("{other}"),
                        }
                        if thread == 3 && step == 25 {
                            tx.commit().expect("nobody else commits");
                        }
                    }
                    cursor
                });
            }
        });
        // Everything written before the commit is there, and nothing else.
        let there = tree.prefix(&[round]).count() as u64;
        assert_eq!(there, written.load(Ordering::Relaxed));
        assert_eq!(there + over.load(Ordering::Relaxed), 200);
        assert!(over.load(Ordering::Relaxed) >= 24);
    }
}

#[test]
fn cursors_move_between_threads() {
    let db = store();
    let tree = db.raw_tree("t").expect("a tree");
    for key in 0..1000u32 {
        tree.put(&key.to_be_bytes(), b"x").expect("it is put");
    }
    let tx = Transaction::begin(&db, None).expect("a transaction");
    let snapshot = db.snapshot().expect("a snapshot");
    let cursors = [
        Cursor::alone(&tree, KeyRange::ALL),
        Cursor::in_snapshot(&snapshot, &tree, KeyRange::ALL),
        tx.cursor(&tree, KeyRange::ALL).expect("a cursor"),
    ];
    for mut cursor in cursors {
        let mut seen = 0;
        // Each thread takes a hundred entries.
        while seen < 1000 {
            (cursor, seen) = std::thread::scope(|scope| {
                let moved = scope.spawn(move || {
                    for _ in 0..100 {
                        assert!(cursor.next().expect("it is read"));
                        seen += 1;
                    }
                    (cursor, seen)
                });
                moved.join().expect("it does not panic")
            });
        }
        assert!(!cursor.next().expect("it is read"));
    }
}

#[test]
fn transactions_that_lose_are_run_again() {
    let db = store();
    let tree = db.raw_tree("counts").expect("a tree");
    for key in 0..2u8 {
        tree.put(&[key], &0u64.to_le_bytes()).expect("it is put");
    }
    let runs = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (db, tree, runs) = (&db, &tree, &runs);
            scope.spawn(move || {
                for _ in 0..100 {
                    // Half of them lock in the opposite order.
                    let keys = if thread % 2 == 0 { [0, 1] } else { [1, 0] };
                    transact(db, TransactOptions::default(), |tx| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        for key in keys {
                            tx.call(|txn| {
                                let tree = txn.tree(tree);
                                let old = tree.get_for_update(&[key])?.unwrap_or_default();
                                let old = u64::from_le_bytes(old.try_into().unwrap_or_default());
                                tree.put(&[key], &(old + 1).to_le_bytes())
                            })?;
                            std::thread::yield_now();
                        }
                        Ok::<_, Fault>(())
                    })
                    .expect("it succeeds in the end");
                }
            });
        }
    });
    for key in 0..2u8 {
        let count = tree.get(&[key]).expect("it is read").expect("it is there");
        assert_eq!(count, 400u64.to_le_bytes());
    }
    assert!(runs.into_inner() >= 400);
}

#[test]
fn a_timeout_is_retried_only_if_told() {
    let db = store();
    let tree = db.raw_tree("t").expect("a tree");
    let holder = Transaction::begin(&db, None).expect("a transaction");
    holder.call(|txn| txn.tree(&tree).put(b"k", b"held")).expect("it is put");
    let brief = TxnOptions::default().wait_max(std::time::Duration::from_millis(2));
    let runs = AtomicU64::new(0);
    let put = |retry: bool| {
        let options = TransactOptions::default()
            .txn(brief)
            .retry_timeouts(retry)
            .retry_time(std::time::Duration::from_millis(50));
        transact(&db, options, |tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            tx.call(|txn| txn.tree(&tree).put(b"k", b"mine"))
        })
    };
    assert!(matches!(put(false), Err(Fault::Engine(error)) if error.is_timeout()));
    assert_eq!(runs.swap(0, Ordering::Relaxed), 1);
    assert!(matches!(put(true), Err(Fault::Engine(error)) if error.is_timeout()));
    assert!(runs.swap(0, Ordering::Relaxed) > 1);
    holder.commit().expect("it commits");
    put(false).expect("nobody holds it");
}

/// Returns `true` if a plain write of the calling thread fails because it would wait for its own
/// transaction.
fn would_wait_for_itself(tree: &millpond::RawTree) -> bool {
    tree.put(b"k", b"plain").is_err_and(|error| error.is_own_transaction())
}

#[test]
fn a_transaction_is_of_the_thread_that_claimed_it_and_of_no_other_that_makes_a_call() {
    let db = store();
    let tree = db.raw_tree("t").expect("a tree");
    let options = TxnOptions::default().wait_max(std::time::Duration::ZERO);
    let tx = Transaction::begin(&db, None).expect("a transaction");
    let put = || tx.call(|txn| txn.tree(&tree).put(b"k", b"x")).map(drop);
    tx.claim_thread().expect("it is open");
    put().expect("it is put");
    assert!(would_wait_for_itself(&tree));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            put().expect("it is put");
            // It waits as for any other transaction.
            let other = Transaction::begin(&db, Some(options)).expect("a transaction");
            let refused = other.call(|txn| txn.tree(&tree).put(b"k", b"y"));
            assert!(refused.is_err_and(|fault| fault.kind() == millpond::ErrorKind::Timeout));
            // Also while a cursor of the transaction is open.
            let mut cursor = tx.cursor(&tree, KeyRange::ALL).expect("a cursor");
            assert!(cursor.first().expect("it is read"));
            let refused = other.call(|txn| txn.tree(&tree).put(b"k", b"y"));
            assert!(refused.is_err_and(|fault| fault.kind() == millpond::ErrorKind::Timeout));
        });
    });
    put().expect("it is put");
    assert!(would_wait_for_itself(&tree));
    tx.commit().expect("it is committed");
    assert!(!would_wait_for_itself(&tree));
}
