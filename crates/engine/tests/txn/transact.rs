//! `transact` with an error type of the user's.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use millpond::{Db, Error, Options, Tree};

#[derive(Debug)]
enum Refused {
    TooFew(u64),
    Store,
}

impl From<Error> for Refused {
    fn from(_: Error) -> Refused {
        // Nothing of the store's error is kept.
        Refused::Store
    }
}

fn store() -> (Db, Tree<u32, u64>) {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let tree = db.tree("counts").unwrap();
    (db, tree)
}

#[test]
fn what_the_closure_refuses_is_returned_as_it_is_after_one_try_and_nothing_stays() {
    let (db, tree) = store();
    let mut tries = 0;
    let refused = db.transact(|tx| {
        tries += 1;
        tx.tree(&tree).put(&1, &7)?;
        Err::<(), _>(Refused::TooFew(3))
    });
    assert!(matches!(refused, Err(Refused::TooFew(3))));
    assert_eq!((tries, tree.len().unwrap()), (1, 0));
}

/// Both read, both want to write: one of them is the victim of a deadlock, and its error says
/// nothing of that any more.
#[test]
fn the_victim_of_a_deadlock_is_retried_whatever_its_error_is() {
    let (db, tree) = store();
    tree.put(&1, &0).unwrap();
    let (both, tries) = (Barrier::new(2), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut is_first = true;
                db.transact(|tx| {
                    tries.fetch_add(1, Ordering::SeqCst);
                    let count = tx.tree(&tree).get(&1)?.unwrap_or(0);
                    if std::mem::take(&mut is_first) {
                        both.wait();
                    }
                    tx.tree(&tree).put(&1, &(count + 1))?;
                    Ok::<_, Refused>(())
                })
                .unwrap();
            });
        }
    });
    assert_eq!(tree.get(&1).unwrap(), Some(2));
    assert!(tries.into_inner() > 2);
}

#[test]
fn an_error_that_the_closure_got_over_is_no_reason_to_retry() {
    let (db, tree) = store();
    tree.put(&1, &0).unwrap();
    let holder = db.begin().unwrap();
    holder.tree(&tree).put(&1, &1).unwrap();
    let brief = millpond::TxnOptions::default().wait_max(std::time::Duration::from_millis(5));
    let options = millpond::TransactOptions::default().txn(brief).retry_timeouts(true);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| {
            let mut tries = 0;
            let done = db.transact_with(options, |tx| {
                tries += 1;
                assert!(tx.tree(&tree).get(&1).unwrap_err().is_timeout());
                tx.tree(&tree).put(&2, &2)?;
                Err::<(), _>(Refused::TooFew(tries))
            });
            matches!(done, Err(Refused::TooFew(1)))
        });
        assert!(refused.join().unwrap());
    });
}

#[test]
fn a_transaction_for_whose_locks_others_left_no_memory_is_run_again() {
    let (db, tree) = store();
    let mut holders = Vec::new();
    let error = loop {
        let tx = db.begin().unwrap();
        let key = holders.len() as u32;
        match tx.tree(&tree).get(&key) {
            Ok(_) => holders.push(tx),
            Err(error) => break error,
        }
        assert!(holders.len() < 10_000, "they have no limit");
    };
    assert!(error.is_retriable(), "{error}");
    let mut tries = 0;
    db.transact(|tx| {
        tries += 1;
        if tries == 3 {
            holders.clear();
        }
        tx.tree(&tree).put(&1_000_000, &1)?;
        Ok::<_, Refused>(())
    })
    .unwrap();
    assert_eq!(tries, 3);
}
