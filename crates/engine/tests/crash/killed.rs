//! Processes that really die: `kill -9` under load, again and again, on a real file, and on the two
//! of a store below a second tier that writes back.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::{Db, Durability, ErrorKind, Options, RawTree, TxnOptions};
use millpond_base::rounds::rounds;

const CHILD: &str = "MILLPOND_TEST_KILLED";
/// Set where its store has a second tier.
const TIERED: &str = "MILLPOND_TEST_KILLED_TIERED";
const THREADS: u8 = 2;
/// A thread deletes the rows that it wrote this number of transactions ago.
const KEPT: u32 = 50;

/// Layer between a store and its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Below {
    Nothing,
    /// A second tier that has data that the file lacks.
    WriteBack,
    /// A second tier that writes its data to the file when it is opened.
    WriteThrough,
}

fn open(path: &Path, below: Below) -> Db {
    // Small everything: pages are evicted, segments used again, checkpoints taken all the time.
    let options = Options::new().page_size(512).log_gap(64 << 10).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(64);
        lab.log_segment = Some(32 << 10);
    });
    let options = match below {
        Below::Nothing => options,
        // Room for a hundred pages, old versions included.
        _ => options.second_tier(path.with_extension("tier"), 144 << 10, "tq-io"),
    };
    Db::open(path, options.write_back(below == Below::WriteBack)).unwrap()
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
    let tx = db.begin_with(TxnOptions::default().durability(durability)).unwrap();
    tx.tree(tree).put(&key_of(thread, number), &value_of(thread, number)).unwrap();
    if let Some(old) = number.checked_sub(KEPT) {
        tx.tree(tree).delete(&key_of(thread, old)).unwrap();
    }
    tx.tree(tree).put(&[thread], &number.to_be_bytes()).unwrap();
    tx.commit().unwrap();
    let mut out = std::io::stdout().lock();
    if number.is_multiple_of(8) {
        writeln!(out, "destaged {}", db.stats().tier_destaged).unwrap();
    }
    writeln!(out, "done {thread} {number}").unwrap();
    out.flush().unwrap();
}

/// Not a test of its own: the process that is killed.
#[test]
fn child_under_load() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let is_tiered = std::env::var_os(TIERED).is_some();
    println!("opening");
    let db = open(path.as_ref(), if is_tiered { Below::WriteBack } else { Below::Nothing });
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

/// Lets a process work until it has reported a number of commits, and kills it; while it opens its
/// store, if that is none. Returns, for each thread, the last durable commit that it reported; and
/// how many pages it had destaged.
fn work_and_die(path: &Path, below: Below, commits: usize) -> ([u32; THREADS as usize], u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::child_under_load", "--nocapture"]).env(CHILD, path);
    if below == Below::WriteBack {
        command.env(TIERED, "yes");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (mut durable, mut destaged) = ([0; THREADS as usize], 0);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut told = 0;
    for line in lines {
        if commits == 0 && line.ends_with("opening") {
            child.kill().unwrap();
        }
        if let Some((_, count)) = line.split_once("destaged ") {
            destaged = count.parse().unwrap_or(destaged);
            continue;
        }
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
    (durable, destaged)
}

/// Verifies that the store holds exactly the committed transactions, and that no durable one is
/// lost. Returns the number of each thread's last transaction.
fn verify(db: &Db, durable: [u32; THREADS as usize], round: u64) -> [u32; THREADS as usize] {
    let tree = db.raw_tree("t").unwrap();
    let mut expected = Vec::new();
    let mut lasts = durable;
    for (thread, last) in (0..THREADS).zip(&mut lasts) {
        let durable = std::mem::replace(last, done(&tree, thread));
        assert!(*last >= durable, "round {round}: {last} is before {durable}");
        if *last > 0 {
            expected.push((vec![thread], last.to_be_bytes().to_vec()));
        }
        let kept = last.saturating_sub(KEPT) + 1..=*last;
        let entry = |n| (key_of(thread, n).to_vec(), value_of(thread, n));
        expected.extend(kept.map(entry));
    }
    let found: Vec<_> = tree.iter().map(Result::unwrap).collect();
    assert!(found == expected, "round {round}: {} entries", found.len());
    lasts
}

fn is_sound(path: &Path) {
    let report = check(path, CATALOG, CheckOptions::default()).unwrap();
    assert!(report.is_sound() && report.counts.lost == 0, "{:?}", report.problems);
}

/// Appends some bytes to the files of a store that nobody has open, and asks for it while its data
/// file is missing: that is an error.
fn disturb(path: &Path, random: &mut fastrand::Rng) {
    let log = PathBuf::from(format!("{}-log", path.display()));
    for file in [path, &log] {
        let mut file = std::fs::OpenOptions::new().append(true).open(file).unwrap();
        file.write_all(&vec![random.u8(..); random.usize(1..512)]).unwrap();
    }
    let (away, before) = (path.with_extension("away"), std::fs::read(&log).unwrap());
    std::fs::rename(path, &away).unwrap();
    let error = Db::open(path, Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    assert!(!path.exists() && std::fs::read(&log).unwrap() == before, "a file changed");
    std::fs::rename(&away, path).unwrap();
}

#[test]
fn a_killed_process_loses_no_commit_that_was_durable_and_leaves_no_half_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.mill");
    let mut random = fastrand::Rng::with_seed(9);
    for round in 0..rounds(4, 10_u64) {
        let (durable, _) = work_and_die(&path, Below::Nothing, random.usize(1..150));
        disturb(&path, &mut random);
        let db = open(&path, Below::Nothing);
        verify(&db, durable, round);
        if round % 2 == 0 {
            db.close().unwrap();
            is_sound(&path);
        }
        // Else what recovered dies, too, in the next round's place.
    }
}

/// The cache has pages that the file has not, and a thread that writes them there when the process
/// dies: at work, or while the two are opened.
#[test]
fn a_process_killed_above_a_cache_that_writes_back_loses_no_commit_that_was_durable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.mill");
    let mut random = fastrand::Rng::with_seed(11);
    let (mut least, mut dirty, mut destaged) = ([0; THREADS as usize], 0, 0);
    for round in 0..rounds(8, 40_u64) {
        let commits = if round % 4 == 3 { 0 } else { random.usize(1..200) };
        let (durable, written) = work_and_die(&path, Below::WriteBack, commits);
        for (least, durable) in least.iter_mut().zip(durable) {
            *least = durable.max(*least);
        }
        let db = open(&path, Below::WriteBack);
        least = verify(&db, least, round);
        (dirty, destaged) = (dirty + db.stats().tier_dirty, destaged + written);
        if round % 4 == 1 {
            db.close().unwrap();
            // The cache is given up: the file alone is the store, and the next round makes a pair.
            let db = open(&path, Below::WriteThrough);
            verify(&db, least, round);
            db.close().unwrap();
            is_sound(&path);
        } else if round % 4 == 2 {
            db.close().unwrap();
        }
    }
    assert!(dirty > 0 && destaged > 0, "{dirty} were in the cache only, {destaged} were destaged");
}

/// A block of zeros was left, to try a direct read in: no store was opened there any more.
#[test]
fn a_process_that_is_killed_while_it_creates_a_store_leaves_a_path_that_opens() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..rounds(60, 1000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed::child_under_load", "--nocapture"]).env(CHILD, &path);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut lines = lines.skip_while(|line| !line.ends_with("opening"));
        assert!(lines.next().is_some(), "{seed}: the process did not begin");
        std::thread::sleep(Duration::from_micros(random.u64(..12_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(lines);
        lengths.insert(std::fs::metadata(&path).map_or(0, |found| found.len()));
        let db = open(&path, Below::Nothing);
        let tree = db.raw_tree("t").unwrap();
        tree.put(b"later", b"value").unwrap();
        drop(tree);
        db.close().unwrap();
        let report = check(&path, CATALOG, CheckOptions::default()).unwrap();
        assert!(report.is_sound(), "{seed}: {:?}", report.problems);
    }
    println!("files of {lengths:?} bytes were left");
}
