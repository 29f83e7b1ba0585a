//! Cursors and transactions that end in either order.

use std::ops::Bound;

use millpond::{Db, ErrorKind, KeyRange, Options, RawTree, TransactOptions};
use millpond_handles::{Cursor, Fault, Transaction, transact};

fn store() -> (Db, RawTree) {
    let db = Db::in_memory(Options::new().memory(16 << 20)).expect("a store in memory");
    let tree = db.raw_tree("t").expect("a tree");
    for number in 0..100u8 {
        tree.put(&[number * 2], &[number]).expect("it is put");
    }
    (db, tree)
}

fn within(low: u8, high: u8) -> KeyRange {
    KeyRange { start: Bound::Included(vec![low]), end: Bound::Excluded(vec![high]) }
}

/// Returns all entries of a cursor, in one direction.
fn all(cursor: &mut Cursor, forward: bool) -> Vec<u8> {
    let mut keys = Vec::new();
    let mut on = if forward { cursor.first() } else { cursor.last() };
    while on.expect("it is read") {
        keys.push(cursor.entry().expect("it is on an entry").0[0]);
        on = if forward { cursor.next() } else { cursor.prev() };
    }
    assert_eq!(cursor.entry(), None);
    keys
}

#[test]
fn a_cursor_moves_both_ways_within_its_range_in_all_places() {
    let (db, tree) = store();
    let tx = Transaction::begin(&db, None).expect("a transaction");
    let snapshot = db.snapshot().expect("a snapshot");
    let mut cursors = [
        Cursor::alone(&tree, within(10, 20)),
        Cursor::in_snapshot(&snapshot, &tree, within(10, 20)),
        tx.cursor(&tree, within(10, 20)).expect("a cursor"),
    ];
    drop(snapshot); // the cursor keeps it
    for cursor in &mut cursors {
        assert_eq!(all(cursor, true), [10, 12, 14, 16, 18]);
        assert_eq!(all(cursor, false), [18, 16, 14, 12, 10]);
        let key = |cursor: &Cursor| cursor.entry().map(|(key, _)| key[0]);
        // Seeks stay within the range.
        assert!(cursor.seek(&[0]).unwrap() && key(cursor) == Some(10));
        assert!(cursor.seek(&[13]).unwrap() && key(cursor) == Some(14));
        assert!(!cursor.seek(&[19]).unwrap() && key(cursor).is_none());
        assert!(cursor.seek_back(&[13]).unwrap() && key(cursor) == Some(12));
        assert!(cursor.seek_back(&[200]).unwrap() && key(cursor) == Some(18));
        assert!(!cursor.seek_back(&[9]).unwrap());
        // It turns round where it is.
        assert!(cursor.seek(&[14]).unwrap());
        assert!(cursor.next().unwrap() && key(cursor) == Some(16));
        assert!(cursor.prev().unwrap() && key(cursor) == Some(14));
        assert!(cursor.prev().unwrap() && key(cursor) == Some(12));
        assert!(cursor.next().unwrap() && key(cursor) == Some(14));
        // Past the end, and back.
        assert!(cursor.last().unwrap() && !cursor.next().unwrap() && !cursor.next().unwrap());
        assert!(cursor.prev().unwrap() && key(cursor) == Some(16));
    }
}

#[test]
fn a_cursor_of_a_transaction_sees_its_writes() {
    let (db, tree) = store();
    let tx = Transaction::begin(&db, None).expect("a transaction");
    let mut cursor = tx.cursor(&tree, within(10, 20)).expect("a cursor");
    assert!(cursor.first().unwrap());
    tx.call(|txn| txn.tree(&tree).put(&[11], b"new")).expect("it is put");
    tx.call(|txn| txn.tree(&tree).delete(&[12])).expect("it is deleted");
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.entry(), Some((&[11][..], &b"new"[..])));
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.entry().map(|entry| entry.0[0]), Some(14));
    tx.abort().expect("it is aborted");
    assert_eq!(tree.get(&[11]).unwrap(), None);
}

#[test]
fn handles_go_in_any_order() {
    let (db, tree) = store();
    // The transaction ends first: it is aborted, and does not wait for the cursor.
    let tx = Transaction::begin(&db, None).expect("a transaction");
    tx.call(|txn| txn.tree(&tree).put(&[1], b"never")).expect("it is put");
    let mut cursor = tx.cursor(&tree, KeyRange::ALL).expect("a cursor");
    assert!(cursor.first().unwrap());
    drop(tx);
    assert!(matches!(cursor.next(), Err(Fault::TransactionOver)));
    assert_eq!(cursor.entry(), None);
    assert_eq!(tree.get(&[1]).unwrap(), None, "it was aborted, and has no locks");
    // Then the tree and the store: the cursor keeps them.
    let mut outside = Cursor::alone(&tree, KeyRange::ALL);
    let other = db.clone();
    drop((db, tree, cursor));
    assert_eq!(all(&mut outside, true).len(), 100);
    // Once the store is closed, the cursor fails.
    other.close().expect("it closes");
    assert!(outside.first().is_err_and(|fault| fault.kind() == ErrorKind::Closed));
}

#[test]
fn what_ends_a_transaction_ends_its_cursors() {
    let (db, tree) = store();
    for commit in [true, false] {
        let tx = Transaction::begin(&db, None).expect("a transaction");
        let mut cursor = tx.cursor(&tree, KeyRange::ALL).expect("a cursor");
        assert!(cursor.first().unwrap() && tx.is_open());
        if commit { tx.commit() } else { tx.abort() }.expect("it ends");
        assert!(!tx.is_open());
        for refused in [cursor.next(), cursor.first(), cursor.seek(b"a")] {
            assert!(matches!(refused, Err(Fault::TransactionOver)));
        }
        assert!(matches!(tx.commit(), Err(Fault::TransactionOver)));
        assert!(matches!(tx.abort(), Err(Fault::TransactionOver)));
        assert!(matches!(tx.savepoint(), Err(Fault::TransactionOver)));
        assert!(matches!(tx.cursor(&tree, KeyRange::ALL), Err(Fault::TransactionOver)));
        assert!(matches!(tx.claim_thread(), Err(Fault::TransactionOver)));
        let refused = tx.call(|txn| txn.tree(&tree).get(b"a"));
        assert!(matches!(refused, Err(Fault::TransactionOver)));
    }
}

#[test]
fn savepoints_by_number() {
    let (db, tree) = store();
    let tx = Transaction::begin(&db, None).expect("a transaction");
    let put = |key: u8| tx.call(|txn| txn.tree(&tree).put(&[key], b"x")).expect("it is put");
    put(1);
    let first = tx.savepoint().expect("a savepoint");
    put(3);
    let second = tx.savepoint().expect("a savepoint");
    put(5);
    let mut cursor = tx.cursor(&tree, KeyRange::ALL).expect("a cursor");
    assert!(cursor.first().unwrap());
    tx.rollback_to(first).expect("it goes back");
    assert!(matches!(cursor.next(), Err(Fault::CursorOver)));
    assert!(matches!(tx.rollback_to(second), Err(Fault::NoSavepoint { number: 1, there: 1 })));
    put(7);
    tx.rollback_to(first).expect("it is still there");
    put(9);
    tx.commit().expect("it commits");
    let there: Vec<bool> =
        [1, 3, 5, 7, 9].iter().map(|key| tree.contains(&[*key]).unwrap()).collect();
    assert_eq!(there, [true, false, false, false, true]);
}

#[test]
fn work_may_end_its_transaction_or_fail() {
    let (db, tree) = store();
    let put = |tx: &Transaction, key: u8| tx.call(|txn| txn.tree(&tree).put(&[key], b"x"));
    transact(&db, TransactOptions::default(), |tx| {
        put(tx, 1)?;
        tx.abort()
    })
    .expect("its work wanted that");
    #[derive(Debug)]
    enum Refused {
        Mine,
        Fault(Fault),
    }
    impl From<Fault> for Refused {
        fn from(fault: Fault) -> Refused {
            Refused::Fault(fault)
        }
    }
    let failed = transact(&db, TransactOptions::default(), |tx| {
        put(tx, 3)?;
        Err::<(), _>(Refused::Mine)
    });
    assert!(matches!(failed, Err(Refused::Mine)));
    let over = transact(&db, TransactOptions::default(), |tx| {
        tx.commit()?;
        put(tx, 5)?;
        Ok::<_, Refused>(())
    });
    assert!(matches!(over, Err(Refused::Fault(Fault::TransactionOver))));
    assert!([1, 3, 5].iter().all(|key| !tree.contains(&[*key]).unwrap()));
}
