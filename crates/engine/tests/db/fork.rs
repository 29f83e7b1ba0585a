//! Forks of a process that has a store open: the child leaves it alone. This file needs `unsafe`.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::{Db, Error, ErrorKind, Options};

use super::place;

const CHILD: &str = "MILLPOND_TEST_FORKS";

/// Runs `work` in a forked child, and returns its exit status: 0 if `work` returned, 9 if it
/// panicked, the number of the signal that ended it, negative, otherwise.
fn in_a_fork(work: impl FnOnce()) -> i32 {
    // SAFETY: the child works with what glibc's `fork` leaves usable, memory and files, and ends
    // by `_exit`; a lock of another thread that it waits for ends it by the alarm.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "a child");
        if child == 0 {
            libc::alarm(30);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            libc::_exit(if done.is_ok() { 0 } else { 9 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
    }
}

fn options() -> Options {
    Options::new().memory(8 << 20)
}

fn forked<R>(what: &str, done: Result<R, Error>) {
    let Err(error) = done else { panic!("{what} does something in the child of a fork") };
    assert_eq!(error.kind(), ErrorKind::InUse, "{what}: {error}");
    assert!(error.to_string().contains("fork"), "{what}: {error}");
}

/// Not a test of its own: what the child of the next one does, a process with its own threads.
#[test]
fn child_that_forks_with_a_store_open() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(&path, options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    let hash = db.hash_index::<u32, u32>("h").unwrap();
    let heap = db.heap::<u32>("notes").unwrap();
    for key in 0..500 {
        tree.put(&key, &key).unwrap();
    }
    let over = AtomicBool::new(false);
    /// Ends the worker, also when the test fails.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        // Others are in calls while the process forks.
        let worker = scope.spawn(|| {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                number += 1;
                tree.put(&1_000_000, &number).unwrap();
                tree.get(&7).unwrap();
            }
            number
        });
        let ends = Ends(&over);
        for round in 0..5 {
            let tx = db.begin().unwrap();
            tx.tree(&tree).put(&(600 + round), &1).unwrap();
            let large = vec![7; 300_000];
            let (snapshot, raw) = (db.snapshot().unwrap(), db.raw_tree("raw").unwrap());
            tx.raw_tree(&raw).put(b"large", &large).unwrap();
            let mut range = Some(tree.iter());
            range.as_mut().unwrap().next().unwrap().unwrap();
            let (mut tx, mut snapshot) = (Some(tx), Some(snapshot));
            let status = in_a_fork(|| {
                forked("put", tree.put(&1, &2));
                forked("get", tree.get(&1));
                forked("get of a changed key", tree.get(&(600 + round)));
                forked("hash put", hash.put(&1, &2));
                forked("hash get", hash.get(&1));
                forked("append", heap.append(&1));
                forked("tx put", tx.as_ref().unwrap().tree(&tree).put(&1, &2));
                forked("tx get", tx.as_ref().unwrap().tree(&tree).get(&1));
                forked("snapshot get", snapshot.as_ref().unwrap().tree(&tree).get(&1));
                forked("begin", db.begin());
                forked("begin a snapshot", db.snapshot());
                forked("flush", db.flush());
                forked("checkpoint", db.checkpoint());
                forked("shrink", db.shrink());
                forked("trees", db.trees());
                forked("open a tree", db.raw_tree("t"));
                let tx = tx.take().unwrap();
                match round {
                    0 => forked("commit", tx.commit()),
                    1 => forked("abort", tx.abort()),
                    _ => drop(tx),
                }
                drop((snapshot.take(), range.take()));
                // The store's lock is the parent's, whatever the child drops.
                assert!(matches!(Db::open(&path, options()), Err(Error::Open(_))));
            });
            assert_eq!(status, 0, "round {round}");
            tx.unwrap().commit().unwrap();
        }
        drop(ends);
        let counted = worker.join().unwrap();
        assert_eq!(tree.get(&1_000_000).unwrap(), Some(counted));
    });
    drop((tree, hash, heap));
    let mut kept = Some(db);
    let status = in_a_fork(|| forked("close", kept.take().unwrap().close()));
    assert_eq!(status, 0, "the child closes");
    let status = in_a_fork(|| drop(kept.take()));
    assert_eq!(status, 0, "the child drops");
    let db = kept.unwrap();
    let again = Db::open(&path, options()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InUse, "the lock is still held: {again}");
    let tree = db.tree::<u32, u32>("t").unwrap();
    for key in 0..20 {
        db.transact(|tx| tx.tree(&tree).put(&(700 + key), &key)).unwrap();
    }
    // As a daemon that detaches without closing: its child goes on with a store of its own.
    drop(tree);
    db.close().unwrap();
    let status = in_a_fork(|| {
        let db = Db::open(&path, options()).unwrap();
        db.tree::<u32, u32>("t").unwrap().put(&800, &1).unwrap();
        db.close().unwrap();
    });
    assert_eq!(status, 0, "the child opens the store itself");
    println!("all done");
}

#[test]
fn the_child_of_a_fork_gets_errors_and_leaves_the_store_alone() {
    let (_folder, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "db::fork::child_that_forks_with_a_store_open", "--nocapture"]);
    let out = child.env(CHILD, &path).output().unwrap();
    let text = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(out.status.success() && text[0].contains("all done"), "{}: {text:?}", out.status);
    let db = Db::open(&path, options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    assert_eq!(tree.len().unwrap(), 500 + 1 + 5 + 20 + 1);
    assert!(db.check().unwrap().is_sound());
}
