//! Commits that return before they are durable: what was waited for is there after a crash, each is
//! told its outcome once and in order, and no way to end a store leaves one waiting.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use millpond::{Db, Durability, Error, Options, PendingCommit, TxnOptions};
use millpond_device::{FaultyDevice, MemoryDevice};

fn options() -> Options {
    Options::new().memory(16 << 20)
}

fn faulty() -> (Arc<FaultyDevice>, Arc<FaultyDevice>) {
    let device = |seed| Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed));
    (device(1), device(2))
}

/// Puts `key` by a transaction of its own, with the usual durability.
fn put(db: &Db, key: u64) -> Result<PendingCommit, Error> {
    let tree = db.tree::<u64, u64>("tree")?;
    let tx = db.begin()?;
    tx.tree(&tree).put(&key, &key)?;
    tx.commit_async()
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_commit_that_was_waited_for_survives_a_crash_in_each_way_of_waiting() {
    let (data, log) = faulty();
    let db = Db::open_on_devices(data.clone(), log.clone(), options()).unwrap();
    let survives = |key: u64| {
        let (data, log) = (data.crash(key).unwrap(), log.crash(key).unwrap());
        let db = Db::open_on_devices(Arc::new(data), Arc::new(log), options()).unwrap();
        let found = db.tree::<u64, u64>("tree").unwrap().get(&key).unwrap();
        assert_eq!(found, Some(key));
    };
    put(&db, 1).unwrap().wait().unwrap();
    survives(1);
    let (told, hears) = mpsc::channel();
    put(&db, 2).unwrap().on_durable(move |outcome| told.send(outcome).unwrap());
    hears.recv().unwrap().unwrap();
    survives(2);
    block_on(put(&db, 3).unwrap()).unwrap();
    survives(3);
    // Nobody waits for this one, and the one behind it.
    drop(put(&db, 4).unwrap());
    put(&db, 5).unwrap().wait().unwrap();
    survives(4);
    // The commit of one that does not ask for it becomes durable, too.
    let tree = db.tree::<u64, u64>("tree").unwrap();
    let tx = db.begin_with(TxnOptions::default().durability(Durability::Async)).unwrap();
    tx.tree(&tree).put(&6, &6).unwrap();
    tx.commit_async().unwrap().wait().unwrap();
    survives(6);
    db.close().unwrap();
}

#[test]
fn others_read_the_changes_at_once_and_read_only_ones_wait_for_what_they_read() {
    let (data, log) = faulty();
    let db = Db::open_on_devices(data.clone(), log.clone(), options()).unwrap();
    let tree = db.tree::<u64, u64>("tree").unwrap();
    let commit = put(&db, 7).unwrap();
    let reader = db.begin().unwrap();
    assert_eq!(reader.tree(&tree).get(&7).unwrap(), Some(7));
    reader.commit_async().unwrap().wait().unwrap();
    let (data, log) = (data.crash(3).unwrap(), log.crash(3).unwrap());
    let after = Db::open_on_devices(Arc::new(data), Arc::new(log), options()).unwrap();
    let found = after.tree::<u64, u64>("tree").unwrap().get(&7).unwrap();
    assert_eq!(found, Some(7), "what the reader read is durable");
    commit.wait().unwrap();
}

#[test]
fn calls_come_in_the_order_of_the_commits_and_once_each() {
    const THREADS: u64 = 4;
    const EACH: u64 = 200;
    let (data, log) = faulty();
    let db = Db::open_on_devices(data, log, options()).unwrap();
    let (told, hears) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, told) = (&db, told.clone());
            scope.spawn(move || {
                for number in 0..EACH {
                    let told = told.clone();
                    let commit = put(db, thread * EACH + number).unwrap();
                    commit.on_durable(move |outcome| {
                        told.send((thread, number, outcome.is_ok())).unwrap();
                    });
                }
            });
        }
    });
    drop(told);
    db.flush().unwrap();
    let mut next = [0; THREADS as usize];
    let mut sum = 0;
    for (thread, number, is_ok) in hears {
        assert!(is_ok);
        assert_eq!(number, next[thread as usize], "thread {thread}");
        next[thread as usize] += 1;
        sum += 1;
    }
    assert_eq!(sum, THREADS * EACH);
}

#[test]
fn a_log_that_fails_tells_all_that_wait() {
    let (data, log) = faulty();
    let db = Db::open_on_devices(data, log.clone(), options()).unwrap();
    put(&db, 1).unwrap().wait().unwrap();
    log.fail_next_sync();
    let failed = Arc::new(AtomicU64::new(0));
    let mut listened = 0;
    for key in 2..20 {
        // Once it has failed, a transaction cannot write.
        let Ok(commit) = put(&db, key) else { break };
        let failed = failed.clone();
        commit.on_durable(move |outcome| {
            assert!(outcome.is_err());
            failed.fetch_add(1, Ordering::Relaxed);
        });
        listened += 1;
    }
    assert!(listened > 0);
    let _ = db.close();
    assert_eq!(failed.load(Ordering::Relaxed), listened);
}

#[test]
fn closing_a_store_ends_its_commits_and_a_call_may_close_it() {
    let (data, log) = faulty();
    let db = Db::open_on_devices(data, log, options()).unwrap();
    let commits: Vec<PendingCommit> = (0..50).map(|key| put(&db, key).unwrap()).collect();
    db.close().unwrap();
    for commit in commits {
        assert!(commit.has_ended());
        commit.wait().unwrap();
    }
    let (data, log) = faulty();
    let db = Db::open_on_devices(data, log, options()).unwrap();
    let (told, hears) = mpsc::channel();
    let commit = put(&db, 1).unwrap();
    commit.on_durable(move |outcome| told.send((outcome.is_ok(), db.close().is_ok())).unwrap());
    assert_eq!(hears.recv().unwrap(), (true, true));
}

#[test]
fn a_call_may_commit_again_and_may_panic() {
    let (data, log) = faulty();
    let db = Db::open_on_devices(data, log, options()).unwrap();
    let (told, hears) = mpsc::channel();
    let again = db.clone();
    put(&db, 1).unwrap().on_durable(move |outcome| {
        outcome.unwrap();
        put(&again, 2).unwrap().on_durable(move |outcome| told.send(outcome.is_ok()).unwrap());
    });
    assert!(hears.recv().unwrap());
    let commit = put(&db, 3).unwrap();
    // In the log's thread; or here, if it is durable by now.
    let here = AssertUnwindSafe(|| commit.on_durable(|_| panic!("a fault of the user's")));
    let _ = catch_unwind(here);
    put(&db, 4).unwrap().wait().unwrap();
    db.close().unwrap();
}
