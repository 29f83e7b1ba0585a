//! Queues in trees: each entry is popped once, in order, by transactions and plain calls at once.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use millpond::{Db, Durability, Error, Options, TransactOptions, TxnOptions};

fn store() -> Db {
    Db::in_memory(Options::new().memory(16 << 20)).unwrap()
}

const JOBS: u64 = 2000;

#[test]
fn workers_pop_each_job_once_and_in_order_while_others_add_more() {
    let db = store();
    let (jobs, done) = (db.tree::<u64, u64>("jobs").unwrap(), db.tree::<u64, u64>("done").unwrap());
    let (tries, calls) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_filled = AtomicBool::new(false);
    let order = Mutex::new(Vec::new());
    let work = |worker: u64| {
        let options =
            TransactOptions::default().txn(TxnOptions::default().durability(Durability::Async));
        let mut aborts = 0;
        loop {
            let was_filled = is_filled.load(Ordering::Acquire);
            calls.fetch_add(1, Ordering::Relaxed);
            let popped = db.transact_with(options, |tx| {
                tries.fetch_add(1, Ordering::Relaxed);
                let Some((job, _)) = tx.tree(&jobs).pop_first()? else { return Ok(None) };
                // The worker that pops the next job waits for this transaction, so this is the
                // order of commits.
                order.lock().unwrap().push((worker, job, aborts));
                if job % 7 == worker && aborts < 20 {
                    aborts += 1;
                    order.lock().unwrap().pop();
                    return Err(Error::ReadOnly);
                }
                assert!(tx.tree(&done).insert_if_absent(&job, &worker)?);
                Ok(Some(job))
            });
            match popped {
                Ok(None) if was_filled => return,
                Ok(None) => std::thread::yield_now(),
                Ok(Some(_)) | Err(Error::ReadOnly) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|worker| drop(scope.spawn(move || work(worker))));
        for job in 0..JOBS {
            jobs.put(&job, &job).unwrap();
        }
        is_filled.store(true, Ordering::Release);
    });
    assert!(jobs.is_empty().unwrap());
    assert_eq!(done.len().unwrap(), JOBS);
    let order: Vec<u64> = order.into_inner().unwrap().into_iter().map(|(_, job, _)| job).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(order.len() as u64, JOBS);
    let (tries, calls) = (tries.into_inner(), calls.into_inner());
    assert!(tries - calls < JOBS / 50, "{tries} tries of {calls} transactions");
}

#[test]
fn plain_calls_and_transactions_pop_from_both_ends_and_each_entry_comes_out_once() {
    let db = store();
    let jobs = db.tree::<u64, String>("jobs").unwrap();
    (0..JOBS).for_each(|job| _ = jobs.put(&job, &format!("{job}")).unwrap());
    let out = Mutex::new(BTreeSet::new());
    let take = |which: u64| {
        loop {
            let popped = match which {
                0 => jobs.pop_first().unwrap(),
                1 => jobs.pop_last().unwrap(),
                2 => db.transact(|tx| tx.tree(&jobs).pop_first()).unwrap(),
                _ => db.transact(|tx| tx.tree(&jobs).pop_last()).unwrap(),
            };
            let Some((job, text)) = popped else { return };
            assert_eq!(text, format!("{job}"));
            assert!(out.lock().unwrap().insert(job));
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|which| drop(scope.spawn(move || take(which)))));
    assert_eq!(out.into_inner().unwrap().len() as u64, JOBS);
}

#[test]
fn who_adds_behind_the_first_entry_waits_for_no_transaction_that_has_popped_it() {
    let db = store();
    let jobs = db.tree::<u64, u64>("jobs").unwrap();
    (0..3).for_each(|job| _ = jobs.put(&job, &job).unwrap());
    let tx = db.begin().unwrap();
    assert_eq!(tx.tree(&jobs).pop_first().unwrap(), Some((0, 0)));
    std::thread::scope(|scope| {
        scope.spawn(|| (1..9).for_each(|job| _ = jobs.put(&job, &7).unwrap())).join().unwrap();
        // Who pops waits: which entry is first depends on how the transaction ends.
        let brief = TxnOptions::default().wait_max(Duration::from_millis(20));
        let (db, jobs) = (&db, &jobs);
        let waits = scope.spawn(move || {
            db.begin_with(brief).unwrap().tree(jobs).pop_first().unwrap_err().is_timeout()
        });
        assert!(waits.join().unwrap());
    });
    // The transaction itself goes on popping.
    assert_eq!(tx.tree(&jobs).pop_first().unwrap(), Some((1, 7)));
    tx.abort().unwrap();
    assert_eq!(jobs.pop_first().unwrap(), Some((0, 0)));
}
