//! Locks for which a thread would have to wait for itself, and how often a transaction is
//! restarted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use millpond::internals::lock::{LockError, TreeName};
use millpond::{
    BulkOptions, Db, Error, KeyRange, Options, RawTree, TransactOptions, Txn, TxnOptions,
    error::TxnError,
};

use crate::byte_calls::TxnCalls;

fn store() -> (Db, RawTree) {
    let db = Db::in_memory(Options::new().memory(16 << 20)).unwrap();
    let tree = db.raw_tree("accounts").unwrap();
    for key in [b"a", b"b", b"c"] {
        tree.put(key, b"100").unwrap();
    }
    (db, tree)
}

/// Asserts that the error names the transaction, the tree and the remedy.
fn assert_own<T: std::fmt::Debug>(done: Result<T, Error>, holder: u64) {
    let error = done.unwrap_err();
    assert!(error.is_own_transaction() && !error.is_retriable(), "{error}");
    let Error::Txn(TxnError::Lock(LockError::OwnTransaction { holder: found, tree })) = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((*found, tree.name.as_deref()), (holder, Some("accounts")));
    let text = error.to_string();
    assert!(text.contains("in tree 'accounts'") && text.contains("its own methods"), "{text}");
}

#[test]
fn a_plain_call_on_a_key_that_the_own_transaction_wrote_fails_at_once_and_is_not_tried_again() {
    let (db, tree) = store();
    let mut tries = 0;
    let done = db.transact(|tx| {
        tries += 1;
        tx.put(&tree, b"a", b"70")?;
        let id = tx.id();
        assert_own(tree.get(b"a"), id);
        assert_own(tree.contains(b"a"), id);
        assert_own(tree.delete(b"a"), id);
        assert_own(tree.insert_if_absent(b"a", b"0"), id);
        assert_own(tree.compare_and_swap::<_, [u8]>(b"a", None, None), id);
        assert_own(tree.update_in_place(b"a", |_| ()), id);
        assert_own(tree.put_from(b"a", 3, &b"30."[..]), id);
        assert_own(tree.clear(), id);
        assert_own(tree.remove_range(&KeyRange::ALL), id);
        // What needs none of its locks is as free as ever.
        tree.put(b"b", b"30")?;
        assert_eq!(tree.get(b"c")?.as_deref(), Some(&b"100"[..]));
        assert_eq!(tree.iter().count(), 3);
        tree.put(b"a", b"60")
    });
    assert_eq!(tries, 1);
    assert!(done.unwrap_err().is_own_transaction());
    // It was aborted, and is in nobody's way.
    assert_eq!(tree.get(b"a").unwrap().as_deref(), Some(&b"100"[..]));
    tree.put(b"a", b"60").unwrap();
    tree.clear().unwrap();
}

#[test]
fn what_the_own_transaction_only_read_can_be_read_by_plain_calls_and_not_written() {
    let (db, tree) = store();
    db.transact(|tx| {
        tx.get(&tree, b"a")?;
        tx.scan(&tree, &b"c"[..]..&b"f"[..], |_, _| true)?;
        assert!(tree.get(b"a")?.is_some());
        assert_own(tree.put(b"a", b"1"), tx.id());
        assert_own(tree.put(b"d", b"1"), tx.id());
        tree.put(b"b", b"1").map(drop)
    })
    .unwrap();
    tree.put(b"d", b"1").unwrap();
}

#[test]
fn another_transaction_of_a_closure_s_thread_does_not_wait_for_the_closure() {
    let (db, tree) = store();
    db.transact(|one| {
        one.put(&tree, b"a", b"1")?;
        let two = db.begin()?;
        two.put(&tree, b"b", b"2")?;
        assert_own(two.get(&tree, b"a"), one.id());
        assert_own(two.scan(&tree, .., |_, _| true), one.id());
        // Both are as they were.
        two.commit()?;
        one.put(&tree, b"b", b"1").map(drop)
    })
    .unwrap();
    assert_eq!(tree.get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_closure_that_asked_for_no_lock_leaves_its_thread_when_it_is_over() {
    let (db, tree) = store();
    db.transact(|_| Ok::<(), Error>(())).unwrap();
    // Transactions of a thread use one lock owner after the other.
    db.transact(|tx| {
        tx.put(&tree, b"a", b"1")?;
        assert_own(tree.put(b"a", b"2"), tx.id());
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn hash_indexes_and_heaps_are_used_inside_a_transaction_as_outside() {
    let (db, tree) = store();
    let index = db.raw_hash_index("index").unwrap();
    let heap = db.raw_heap("heap").unwrap();
    db.transact(|tx| {
        tx.put(&tree, b"a", b"1")?;
        index.put(b"a", b"2")?;
        heap.append(b"3")?;
        index.clear().map(drop)
    })
    .unwrap();
}

#[test]
fn a_transaction_that_another_thread_goes_on_with_is_waited_for() {
    let (db, tree) = store();
    for _ in 0..20 {
        let tx = db.begin().unwrap();
        tx.put(&tree, b"a", b"theirs").unwrap();
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let (tree, barrier) = (&tree, &barrier);
            scope.spawn(move || {
                tx.put(tree, b"b", b"theirs").unwrap();
                barrier.wait();
                tx.commit().unwrap();
            });
            barrier.wait();
            assert_eq!(tree.get(b"b").unwrap().as_deref(), Some(&b"theirs"[..]));
            tree.put(b"a", b"mine").unwrap();
        });
    }
}

#[test]
fn a_transaction_belongs_to_no_thread_so_its_locks_are_waited_for_on_the_same_one() {
    let (db, tree) = store();
    let brief = TxnOptions::default().wait_max(Duration::from_millis(5));
    let (one, two) = (db.begin_with(brief).unwrap(), db.begin_with(brief).unwrap());
    one.put(&tree, b"a", b"1").unwrap();
    two.put(&tree, b"b", b"2").unwrap();
    // Two tasks of one thread, say: each is told that it waited.
    for error in [two.get(&tree, b"a").unwrap_err(), one.get(&tree, b"b").unwrap_err()] {
        assert!(error.is_timeout() && !error.is_own_transaction(), "{error}");
    }
    two.commit().unwrap();
    one.put(&tree, b"b", b"1").unwrap();
    one.commit().unwrap();
    assert_eq!(tree.get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Two threads take turns at the steps of many tasks, as the workers of an executor do. Each task
/// has a transaction, which it keeps between its steps.
#[test]
fn tasks_keep_transactions_while_other_tasks_run_on_their_threads() {
    type Task<'t> = (usize, u32, Option<Txn>);
    const TASKS: usize = 16;
    const STEPS: u32 = 20;
    let (db, tree) = store();
    let ready: Mutex<VecDeque<Task<'_>>> = Mutex::default();
    ready.lock().unwrap().extend((0..TASKS).map(|task| (task, 0, None)));
    let step = |(task, step, txn): &mut Task<'_>| {
        let tx = match txn.take() {
            Some(tx) => tx,
            None => db.begin().unwrap(),
        };
        tx.put(&tree, &[*task as u8, *step as u8], b"x").unwrap();
        let shared = tx.tree(&tree);
        let rows = shared.range(&[*task as u8][..]..&[*task as u8 + 1][..]).count();
        assert_eq!(rows as u32, *step + 1, "it sees what it wrote on other threads");
        *step += 1;
        if *step == STEPS {
            tx.commit().unwrap();
        } else {
            *txn = Some(tx);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = ready.lock().unwrap().pop_front();
                    let Some(mut task) = next else { break };
                    step(&mut task);
                    if task.1 < STEPS {
                        ready.lock().unwrap().push_back(task);
                    }
                }
            });
        }
    });
    let rows = tree.range(&[0][..]..&[TASKS as u8][..]).count();
    assert_eq!(rows, TASKS * STEPS as usize);
}

#[test]
fn a_range_of_a_transaction_shows_what_another_thread_writes_in_it_ahead_of_the_range() {
    let (db, tree) = store();
    for i in 0..2000u16 {
        tree.put(&[&[200][..], &i.to_be_bytes()].concat(), b"x").unwrap();
    }
    let tx = db.begin().unwrap();
    let key = |i: u16| [&[200][..], &i.to_be_bytes()].concat();
    let mut rows = tx.tree(&tree).into_range(&[200][..]..);
    let (mut shown, mut removed) = (Vec::new(), Vec::new());
    for i in 0..2000usize {
        if i % 100 == 50 {
            let last: &Vec<u8> = shown.last().unwrap();
            let next = key(u16::from_be_bytes([last[1], last[2]]) + 1);
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(tx.tree(&tree).delete(&next).unwrap()));
            });
            removed.push(next);
        }
        let Some(row) = rows.next() else { break };
        shown.push(row.unwrap().0);
    }
    assert_eq!((removed.len(), shown.len()), (20, 1980));
    assert!(removed.iter().all(|key| !shown.contains(key)));
    drop(rows);
    tx.abort().unwrap();
}

#[test]
fn threads_share_a_transaction_and_their_calls_are_made_one_after_the_other() {
    let (db, tree) = store();
    let tx = db.begin().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (tx, tree) = (&tx, &tree);
            scope.spawn(move || {
                let inside = tx.tree(tree);
                for i in 0..100u8 {
                    inside.put(&[200, thread, i], b"x").unwrap();
                }
                let mine = inside.prefix(&[200, thread]);
                assert_eq!(mine.count(), 100);
            });
        }
    });
    assert_eq!(tx.tree(&tree).prefix(&[200]).count(), 400);
    tx.commit().unwrap();
    assert_eq!(tree.prefix(&[200]).count(), 400);
}

/// Each of two threads holds a key in its transaction, and wants the other's by a plain call.
#[test]
fn a_circle_through_plain_calls_inside_transactions_is_a_deadlock_that_one_of_them_loses() {
    let (db, tree) = store();
    let (both, tries) = (Barrier::new(2), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for (own, other) in [(b"a", b"b"), (b"b", b"a")] {
            let (db, tree, both, tries) = (&db, &tree, &both, &tries);
            scope.spawn(move || {
                let mut is_first = true;
                db.transact(|tx| {
                    tries.fetch_add(1, Ordering::SeqCst);
                    tx.put(tree, own, b"in the transaction")?;
                    if std::mem::take(&mut is_first) {
                        both.wait();
                    }
                    tree.put(other, b"by itself").map(drop)
                })
                .unwrap();
            });
        }
    });
    assert!(tries.load(Ordering::SeqCst) > 2);
}

#[test]
fn a_lock_that_was_waited_for_too_long_is_not_tried_again_unless_that_is_asked_for() {
    let (db, tree) = store();
    let brief = TxnOptions::default().wait_max(Duration::from_millis(5));
    for (retry, expected) in [(false, 1), (true, 3)] {
        let (locked, is_locked) = channel();
        let (go, wait) = channel::<()>();
        std::thread::scope(|scope| {
            let (db, tree) = (&db, &tree);
            let holder = scope.spawn(move || {
                let tx = db.begin().unwrap();
                tx.put(tree, b"a", b"kept").unwrap();
                locked.send(()).unwrap();
                wait.recv().unwrap();
                tx.commit().unwrap();
            });
            is_locked.recv().unwrap();
            let mut holder = Some(holder);
            let mut tries = 0;
            let options = TransactOptions::default().txn(brief).retry_timeouts(retry);
            let done = db.transact_with(options, |tx| {
                tries += 1;
                if tries == 3 {
                    go.send(()).unwrap();
                    holder.take().unwrap().join().unwrap();
                }
                tx.put(tree, b"a", b"mine")
            });
            assert_eq!((tries, done.is_ok()), (expected, retry));
            if let Err(error) = done {
                assert!(error.is_timeout() && error.is_retriable(), "{error}");
                assert!(error.to_string().contains("in tree 'accounts'"), "{error}");
                go.send(()).unwrap();
            }
        });
    }
}

#[test]
fn a_transaction_that_always_loses_is_given_up_when_its_time_is_over() {
    let (db, _tree) = store();
    let lose = || {
        let tree = TreeName { id: 1, name: None };
        let error = LockError::Deadlock { victim: 7, tree, cycle: vec![7, 5] };
        Err::<(), Error>(error.into())
    };
    let mut tries = 0;
    let once = TransactOptions::default().retry_time(Duration::ZERO);
    let mut count = |options| {
        tries = 0;
        let done = db.transact_with(options, |_| {
            tries += 1;
            lose()
        });
        assert!(done.unwrap_err().is_retriable());
        tries
    };
    assert_eq!(count(once), 1);
    assert!(count(once.retry_time(Duration::from_millis(200))) > 1);
}

#[test]
fn a_bulk_load_whose_source_uses_the_tree_that_is_loaded_fails_at_once() {
    let (db, other) = store();
    let tree = db.raw_tree("loaded").unwrap();
    let is_own = |done: Result<(), Error>| done.is_err_and(|error| error.is_own_transaction());
    let mut refused = Vec::new();
    let rows = [b"a", b"b"].map(|key| (key.to_vec(), b"1".to_vec()));
    let rows = rows.into_iter().inspect(|(key, _)| {
        refused.push(is_own(tree.get(key).map(drop)));
        refused.push(is_own(tree.put(key, b"2").map(drop)));
        refused.push(is_own(db.transact(|tx| tx.get(&tree, key).map(drop))));
        // Other trees are as free as ever.
        assert!(other.get(b"a").unwrap().is_some());
    });
    assert_eq!(tree.bulk_load(rows, BulkOptions::default()).unwrap(), 2);
    assert_eq!(refused, [true; 6]);
    tree.put(b"c", b"3").unwrap();
}

#[test]
fn an_update_that_lost_twice_locks_its_key_and_runs_its_closure_a_last_time() {
    let (db, tree) = store();
    let typed = db.tree::<String, u64>("typed").unwrap();
    let mut runs = 0;
    let done = tree.update(b"a", |value| {
        runs += 1;
        // Somebody else is quicker, where nothing keeps him from it.
        let quicker = tree.put(b"a", format!("{runs}").as_bytes());
        assert_eq!(quicker.is_err_and(|error| error.is_own_transaction()), runs == 3);
        Some([&value?[..], b"!"].concat())
    });
    assert_eq!((runs, done.unwrap().as_deref()), (3, Some(&b"2!"[..])));
    let mut runs = 0;
    let done = typed.update("a", |count| {
        runs += 1;
        let quicker = typed.put("a", &runs);
        assert_eq!(quicker.is_err_and(|error| error.is_own_transaction()), runs == 3);
        Some(count.unwrap_or(0) + 10)
    });
    assert_eq!((runs, done.unwrap(), typed.get("a").unwrap()), (3, Some(12), Some(12)));
    // One that removes, and one that leaves nothing where nothing is.
    let mut runs = 0;
    let none = tree.update(b"b", |_| {
        runs += 1;
        drop(tree.put(b"b", format!("{runs}").as_bytes()));
        None
    });
    assert_eq!((none.unwrap(), tree.get(b"b").unwrap()), (None, None));
    let none = tree.update(b"none", |_| {
        let other = tree.contains(b"none").and_then(|is_there| match is_there {
            true => tree.delete(b"none"),
            false => tree.put(b"none", b""),
        });
        drop(other);
        None
    });
    assert_eq!((none.unwrap(), tree.get(b"none").unwrap()), (None, None));
}

#[test]
fn without_locks_an_update_tries_until_nobody_is_quicker() {
    let db = Db::in_memory(Options::new().memory(16 << 20).lab(|lab| lab.locks = false)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut runs = 0;
    let done = tree.update(b"a", |value| {
        runs += 1;
        if runs < 8 {
            tree.put(b"a", format!("{runs}").as_bytes()).unwrap();
        }
        Some([&value.unwrap_or_default()[..], b"!"].concat())
    });
    assert_eq!((runs, done.unwrap().as_deref()), (8, Some(&b"7!"[..])), "no write is lost");
}
