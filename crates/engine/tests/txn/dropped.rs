//! Trees that are dropped, emptied and made anew beside transactions that read them: no transaction
//! reads two different ones under one name.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use millpond::{Db, Error, Options, Structure, Txn};
use millpond_base::rounds::rounds;

use crate::byte_calls::TxnCalls;

fn store() -> Db {
    Db::in_memory(Options::new().memory(16 << 20)).unwrap()
}

fn fill(db: &Db, name: &str, number: u32) {
    let tree = db.raw_tree(name).unwrap();
    let put_all = |tx: &mut Txn| {
        (0..4u8).try_for_each(|key| tx.put(&tree, &[key], &number.to_le_bytes()).map(drop))
    };
    db.transact(put_all).unwrap();
}

/// Returns a transaction's value of a key, through a handle that goes away again.
fn number(db: &Db, tx: &Txn, name: &str, key: u8) -> Result<Option<u32>, Error> {
    let tree = db.open_tree(name)?;
    let bytes = tx.get(&tree, &[key])?;
    Ok(bytes.map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())))
}

#[test]
fn a_tree_that_a_transaction_has_read_is_dropped_when_that_is_over() {
    let db = store();
    fill(&db, "a", 1);
    std::thread::scope(|scope| {
        let mut dropping = None;
        db.transact(|tx| {
            assert_eq!(number(&db, tx, "a", 0)?, Some(1));
            dropping.get_or_insert_with(|| {
                scope.spawn(|| {
                    db.drop_tree("a").unwrap();
                    fill(&db, "a", 2);
                })
            });
            for round in 0..2000u32 {
                std::thread::yield_now();
                assert_eq!(number(&db, tx, "a", round as u8 % 4)?, Some(1));
            }
            Ok::<(), Error>(())
        })
        .unwrap();
        // A handle that was in the way is a typed error; here none was left when the lock came.
        dropping.unwrap().join().unwrap();
    });
    let tx = db.begin().unwrap();
    assert_eq!(number(&db, &tx, "a", 3).unwrap(), Some(2));
}

#[test]
fn a_transaction_of_the_thread_that_drops_a_tree_is_not_waited_for() {
    let db = store();
    fill(&db, "a", 1);
    let done = db.transact(|tx| {
        assert_eq!(number(&db, tx, "a", 0)?, Some(1));
        db.drop_tree("a")
    });
    assert!(done.unwrap_err().is_own_transaction());
    // What it has not touched it may drop.
    db.transact(|_| db.drop_structure("a", Structure::Tree)).unwrap();
    assert!(db.trees().unwrap().is_empty());
}

#[test]
fn a_handle_that_is_asked_for_while_a_drop_waits_does_not_make_it_fail() {
    let db = store();
    fill(&db, "a", 1);
    std::thread::scope(|scope| {
        let (dropping, opening) = db
            .transact(|tx| {
                assert_eq!(number(&db, tx, "a", 0)?, Some(1));
                let dropping = scope.spawn(|| db.drop_tree("a"));
                while db.stats().lock_waits == 0 {
                    std::thread::yield_now();
                }
                let begun = Arc::new(Barrier::new(2));
                let theirs = begun.clone();
                let opening = scope.spawn({
                    let db = &db;
                    move || {
                        theirs.wait();
                        db.open_tree("a")
                    }
                });
                begun.wait();
                // The thread of the transaction that is waited for gets its handle at once.
                assert_eq!(number(&db, tx, "a", 2)?, Some(1));
                Ok::<_, Error>((dropping, opening))
            })
            .unwrap();
        dropping.join().unwrap().unwrap();
        assert!(matches!(opening.join().unwrap(), Err(Error::NoTree { .. })));
    });
}

#[test]
fn a_transaction_in_no_closure_gets_a_handle_after_a_moment_while_a_drop_waits_for_it() {
    let db = store();
    fill(&db, "a", 1);
    let tx = db.begin().unwrap();
    assert_eq!(number(&db, &tx, "a", 0).unwrap(), Some(1));
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| db.drop_tree("a"));
        while db.stats().lock_waits == 0 {
            std::thread::yield_now();
        }
        assert_eq!(number(&db, &tx, "a", 2).unwrap(), Some(1));
        tx.commit().unwrap();
        dropping.join().unwrap().unwrap();
    });
}

#[test]
fn histories_of_readers_beside_drops_clears_and_creations_show_one_tree_to_each_transaction() {
    let rounds = rounds(6, 60);
    let (db, is_over, seen) = (store(), AtomicBool::new(false), AtomicU32::new(0));
    fill(&db, "a", 0);
    let read = |rng: &mut fastrand::Rng| {
        let tx = db.begin().unwrap();
        let mut found = Vec::new();
        for _ in 0..rng.u8(2..5) {
            match number(&db, &tx, "a", rng.u8(..4)) {
                Ok(number) => found.push(number),
                // Between a drop and the next creation; a transaction that has read sees no drop.
                Err(Error::NoTree { .. }) if found.is_empty() => return,
                Err(error) => {
                    assert!(error.is_retriable(), "after {found:?}: {error}");
                    return;
                }
            }
            std::thread::yield_now();
        }
        tx.commit().unwrap();
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
        seen.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (read, is_over) = (&read, &is_over);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                while !is_over.load(Ordering::SeqCst) {
                    read(&mut rng);
                }
            });
        }
        // On a busy machine it may take more rounds until readers get a turn.
        let mut round = 0;
        while round < rounds || seen.load(Ordering::Relaxed) == 0 && round < 40 * rounds {
            round += 1;
            if round % 3 == 0 {
                db.raw_tree("a").unwrap().clear().unwrap();
            } else {
                while let Err(error) = db.drop_tree("a") {
                    assert!(matches!(error, Error::TreeInUse { .. }), "{error}");
                    std::thread::yield_now();
                }
            }
            fill(&db, "a", round);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(seen.load(Ordering::Relaxed) > 0);
}
