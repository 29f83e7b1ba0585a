//! Processes that really die: `kill -9` under load, again and again, on a real file.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::{Db, Durability, Options, RawTree, TxnOptions};
use millpond_base::rounds::rounds;

const CHILD: &str = "MILLPOND_TEST_KILLED";
const THREADS: u8 = 2;
/// A thread deletes what it wrote this number of transactions ago.
const KEPT: u32 = 50;

fn open(path: &Path) -> Db {
    // Small everything: pages are evicted, segments used again, checkpoints taken all the time.
    let options = Options::new().page_size(512).log_gap(64 << 10).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(64);
        lab.log_segment = Some(32 << 10);
    });
    Db::open(path, options).unwrap()
}

/// Number of a thread's last transaction.
fn done(tree: &RawTree, thread: u8) -> u32 {
    let value = tree.get(&[thread]).unwrap();
    value.map_or(0, |value| u32::from_be_bytes(value.try_into().unwrap()))
}

fn key_of(thread: u8, number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_be_bytes();
    [thread, a, b, c, d]
}

fn value_of(thread: u8, number: u32) -> Vec<u8> {
    // Some do not fit a page.
    let length = if number.is_multiple_of(7) { 2000 } else { number as usize * 37 % 150 };
    vec![thread ^ number as u8; length]
}

/// A transaction of several changes that are there together or not at all.
fn transaction(db: &Db, tree: &RawTree, thread: u8, number: u32) {
    let is_sync = number.is_multiple_of(2);
    let durability = if is_sync { Durability::Sync } else { Durability::Async };
    let mut tx = db.begin_with(TxnOptions::default().durability(durability)).unwrap();
    tx.put(tree, &key_of(thread, number), &value_of(thread, number)).unwrap();
    if let Some(old) = number.checked_sub(KEPT) {
        tx.delete(tree, &key_of(thread, old)).unwrap();
    }
    tx.put(tree, &[thread], &number.to_be_bytes()).unwrap();
    tx.commit().unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "done {thread} {number}").unwrap();
    out.flush().unwrap();
}

/// Not a test of its own: what the killed process does.
#[test]
fn child_under_load() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = open(path.as_ref());
    let tree = db.raw_tree("t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, tree) = (&db, &tree);
            let from = done(tree, thread) + 1;
            scope.spawn(move || {
                (from..=u32::MAX).for_each(|number| transaction(db, tree, thread, number))
            });
        }
    });
}

/// Lets a process work until it has reported a number of commits, and kills it. Returns, for each
/// thread, the last durable commit that it reported.
fn work_and_die(path: &Path, commits: usize) -> [u32; THREADS as usize] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child_under_load", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut durable = [0; THREADS as usize];
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut told = 0;
    for line in lines {
        let mut words = line.split_whitespace().rev().map(str::parse::<u32>);
        let (Some(Ok(number)), Some(Ok(thread))) = (words.next(), words.next()) else { continue };
        if number.is_multiple_of(2) {
            durable[thread as usize] = number;
        }
        told += 1;
        if told == commits {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(told >= commits, "the process ended by itself after {told} commits");
    durable
}

#[test]
fn a_killed_process_loses_no_commit_that_was_durable_and_leaves_no_half_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.mill");
    let mut random = fastrand::Rng::with_seed(9);
    for round in 0..rounds(4, 10_u64) {
        let durable = work_and_die(&path, random.usize(1..150));
        let db = open(&path);
        let tree = db.raw_tree("t").unwrap();
        let mut expected = Vec::new();
        for (thread, durable) in (0..THREADS).zip(durable) {
            let last = done(&tree, thread);
            assert!(last >= durable, "round {round}: {last} is before {durable}");
            if last > 0 {
                expected.push((vec![thread], last.to_be_bytes().to_vec()));
            }
            let kept = last.saturating_sub(KEPT) + 1..=last;
            let entry = |n| (key_of(thread, n).to_vec(), value_of(thread, n));
            expected.extend(kept.map(entry));
        }
        let found: Vec<_> = tree.iter().map(Result::unwrap).collect();
        assert!(found == expected, "round {round}: {} entries", found.len());
        if round % 2 == 0 {
            drop(tree);
            db.close().unwrap();
            let report = check(&path, CATALOG, CheckOptions::default()).unwrap();
            assert!(report.is_sound() && report.counts.lost == 0, "{:?}", report.problems);
        } else {
            // What recovered dies, too, in the next round's place.
            std::mem::drop((tree, db));
        }
    }
}
