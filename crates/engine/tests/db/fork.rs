//! Forks of a process that has a store open: the child leaves it alone. This file needs `unsafe`.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::{Db, Error, ErrorKind, HashIndex, Heap, Options, Tree};

use super::place;
use crate::byte_calls::TxnCalls;

const CHILD: &str = "MILLPOND_TEST_FORKS";
const KILLED: &str = "MILLPOND_TEST_FORKS_KILLED";

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

/// Asserts that an iterator advanced in the child ends with an error.
fn fails<R>(what: &str, entries: impl IntoIterator<Item = Result<R, Error>>) {
    // What was read ahead before the fork may come first.
    let error = entries.into_iter().find_map(Result::err);
    forked(what, error.map_or(Ok(()), Err));
}

/// The handles of a store.
struct Handles {
    db: Db,
    tree: Tree<u32, u32>,
    hash: HashIndex<u32, u32>,
    heap: Heap<u32>,
}

impl Handles {
    /// Makes each kind of call outside transactions in the child.
    fn fail(&self) {
        let Handles { db, tree, hash, heap } = self;
        forked("put", tree.put(&1, &2));
        forked("get", tree.get(&1));
        forked("get of a changed key", tree.get(&600));
        forked("hash put", hash.put(&1, &2));
        forked("hash get", hash.get(&1));
        forked("append", heap.append(&1));
        forked("begin", db.begin());
        forked("begin a snapshot", db.snapshot());
        forked("flush", db.flush());
        forked("checkpoint", db.checkpoint());
        forked("shrink", db.shrink());
        forked("trees", db.trees());
        forked("open a tree", db.raw_tree("t"));
    }

    /// Forks with a transaction, a snapshot and a range under way; the parent commits.
    fn fork(&self, path: &OsStr, round: u32) {
        let (db, tree) = (&self.db, &self.tree);
        let tx = db.begin().unwrap();
        tx.tree(tree).put(&(600 + round), &1).unwrap();
        tx.put(&db.raw_tree("raw").unwrap(), b"large", &vec![7; 300_000]).unwrap();
        let (mut tx, mut snapshot) = (Some(tx), Some(db.snapshot().unwrap()));
        let (mut range, mut cursor) = (Some(tree.iter()), Some(tree.cursor()));
        range.as_mut().unwrap().next().unwrap().unwrap();
        cursor.as_mut().unwrap().first().unwrap();
        let status = in_a_fork(|| {
            self.fail();
            forked("tx put", tx.as_ref().unwrap().tree(tree).put(&1, &2));
            forked("tx get", tx.as_ref().unwrap().tree(tree).get(&1));
            forked("snapshot get", snapshot.as_ref().unwrap().tree(tree).get(&1));
            fails("an iterator", range.as_mut().unwrap());
            let cursor = cursor.as_mut().unwrap();
            fails("a cursor", std::iter::from_fn(|| cursor.next().transpose()));
            fails("a snapshot's iterator", snapshot.as_ref().unwrap().tree(tree).iter());
            let tx = tx.take().unwrap();
            match round {
                0 => forked("commit", tx.commit()),
                1 => forked("abort", tx.abort()),
                _ => drop(tx),
            }
            drop((snapshot.take(), range.take()));
            // The store's lock is the parent's, whatever the child drops.
            assert!(matches!(Db::open(path, options()), Err(Error::Open(_))));
        });
        assert_eq!(status, 0, "round {round}");
        tx.unwrap().commit().unwrap();
    }

    /// Forks with a commit pending: the thread that makes it durable is the parent's, so the child
    /// must not wait for it.
    fn fork_before_it_is_durable(&self) {
        let tx = self.db.begin().unwrap();
        tx.tree(&self.tree).put(&2_000_000, &1).unwrap();
        let mut commit = Some(tx.commit_async().unwrap());
        let status = in_a_fork(|| {
            // It may have been durable before the fork.
            if let Err(error) = commit.take().unwrap().wait() {
                forked::<()>("wait", Err(error));
            }
        });
        assert_eq!(status, 0);
        commit.unwrap().wait().unwrap();
    }

    /// Forks while another thread is in calls.
    fn fork_beside_a_writer(&self, path: &OsStr) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut number = 0;
                while !over.load(Ordering::Relaxed) {
                    number += 1;
                    self.tree.put(&1_000_000, &number).unwrap();
                    self.tree.get(&7).unwrap();
                }
                number
            });
            let ends = Ends(&over);
            (0..5).for_each(|round| self.fork(path, round));
            (0..20).for_each(|_| self.fork_before_it_is_durable());
            drop(ends);
            let counted = worker.join().unwrap();
            assert_eq!(self.tree.get(&1_000_000).unwrap(), Some(counted));
        });
    }
}

/// Ends a thread, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Not a test of its own: the child of the next one, a process with its own threads.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn child_that_forks_with_a_store_open() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(&path, options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    for key in 0..500 {
        tree.put(&key, &key).unwrap();
    }
    let (hash, heap) = (db.hash_index("h").unwrap(), db.heap("notes").unwrap());
    let handles = Handles { db, tree, hash, heap };
    handles.fork_beside_a_writer(&path);
    let mut kept = Some(handles.db.clone());
    drop(handles);
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
    drop(tree);
    db.close().unwrap();
    // A daemon goes on with a store of its own.
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
    assert_eq!(tree.len().unwrap(), 500 + 1 + 5 + 20 + 1 + 1);
    assert!(db.check().unwrap().is_sound());
}

/// Not a test of its own: the process that the next one kills, once its own children have ended.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn child_that_forks_and_is_killed() {
    let Some(path) = std::env::var_os(KILLED) else { return };
    let db = Db::open(&path, options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    for key in 0..100 {
        tree.put(&key, &key).unwrap();
    }
    let (hash, heap) = (db.hash_index("h").unwrap(), db.heap("notes").unwrap());
    let handles = Handles { db, tree, hash, heap };
    for round in 0..10 {
        handles.fork(&path, round % 3);
        let put = |tx: &mut millpond::Txn| tx.tree(&handles.tree).put(&(1000 + round), &round);
        handles.db.transact(put).unwrap();
        println!("acknowledged {round}");
    }
    // SAFETY: it ends this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

#[test]
fn commits_that_a_parent_acknowledged_beside_its_children_survive_its_kill() {
    let (_folder, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "db::fork::child_that_forks_and_is_killed", "--nocapture"]);
    let out = child.env(KILLED, &path).output().unwrap();
    let text = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(out.status.signal(), Some(libc::SIGKILL), "{text:?}");
    assert_eq!(text[0].matches("acknowledged").count(), 10, "{text:?}");
    let db = Db::open(&path, options()).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    for round in 0..10 {
        assert_eq!(tree.get(&(1000 + round)).unwrap(), Some(round));
    }
    for round in 0..3 {
        assert_eq!(tree.get(&(600 + round)).unwrap(), Some(1));
    }
    assert!(db.check().unwrap().is_sound());
}
