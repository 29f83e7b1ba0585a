//! A store of this format version as a power failure left it, with its log: it opens, is recovered,
//! and holds what was committed.
//!
//! A change of either format bumps its version and adds files beside the old ones, which then have
//! to be refused by name, or read. To write them:
//! `MILLPOND_BLESS=1 cargo test -p millpond --test stores txn::golden`

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::internals::admin::log_view::read_log;
use millpond::internals::page::superblock::FORMAT_VERSION;
use millpond::{Db, Error, Options, RawTree, report::Phase};
use millpond_device::{FaultyDevice, MemoryDevice};

use crate::byte_calls::TxnCalls;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new().memory(16 << 20).page_size(4096).lab(|lab| lab.log_segment = Some(64 << 10))
}

fn golden_path(ending: &str) -> PathBuf {
    let name = format!("tests/golden/crashed-v{FORMAT_VERSION}.{ending}.gz");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

/// Returns the rows that recovery has to find.
fn expected() -> [(&'static str, Rows); 2] {
    let row = |row: u32, fill: u8| (key(row).to_vec(), vec![fill; 60]);
    let mut birds: Rows = (0..400).map(|at| row(at, at as u8)).collect();
    birds.retain(|key, _| !key.ends_with(&[7]));
    birds.extend((200..210).map(|at| row(at, 0xBB)));
    birds.insert(b"large".to_vec(), vec![0x1A; 30_000]);
    let fish: Rows = (0..50).map(|at| row(at, 0xF1)).collect();
    [("birds", birds), ("fish", fish)]
}

/// Does what leaves that behind, and one of each kind of record: checkpoint and commits, an abort,
/// a savepoint gone back to, trees made and dropped, and a transaction under way.
fn tell_story(db: &Db) -> Result<(), Error> {
    let birds = db.raw_tree("birds")?;
    for row in 0..400u32 {
        birds.put(&key(row), &[row as u8; 60])?;
    }
    let gone = db.raw_tree("gone")?;
    gone.put(b"large", &[9; 20_000])?;
    db.checkpoint()?;
    let tx = db.begin()?;
    for row in (0..400).filter(|row| row % 256 == 7) {
        tx.delete(&birds, &key(row))?;
    }
    for row in 200..210 {
        tx.put(&birds, &key(row), &[0xBB; 60])?;
    }
    tx.put(&birds, b"large", &[0x1A; 30_000])?;
    tx.commit()?;
    drop(gone);
    db.drop_tree("gone")?;
    let fish = db.raw_tree("fish")?;
    let mut tx = db.begin()?;
    for row in 0..50 {
        tx.put(&fish, &key(row), &[0xF1; 60])?;
    }
    let savepoint = tx.savepoint().unwrap();
    tx.put(&fish, b"back", b"again")?;
    tx.rollback_to(&savepoint)?;
    tx.commit()?;
    let tx = db.begin()?;
    tx.put(&birds, &key(1), b"aborted")?;
    tx.delete(&birds, b"large")?;
    tx.abort()
}

/// Changes that are in the log, of a transaction that does not end.
fn leave_open(db: &Db, then: impl FnOnce()) -> Result<(), Error> {
    let (birds, fish) = (db.raw_tree("birds")?, db.raw_tree("fish")?);
    let tx = db.begin()?;
    for row in 100..150 {
        tx.put(&birds, &key(row), &[0xEE; 60])?;
    }
    tx.delete(&birds, b"large")?;
    tx.put(&fish, b"other", &[0xEE; 20_000])?;
    db.flush()?;
    then();
    tx.abort()
}

/// Store and log as a power failure leaves them.
fn crashed_today() -> [Vec<u8>; 2] {
    let device = || Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), 1));
    let (data, log) = (device(), device());
    let db = Db::open_on_devices(data.clone(), log.clone(), options()).unwrap();
    tell_story(&db).unwrap();
    let mut left = None;
    leave_open(&db, || {
        left = Some([data.crash(1).unwrap().to_bytes(), log.crash(2).unwrap().to_bytes()]);
    })
    .unwrap();
    db.close().unwrap();
    left.unwrap()
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::best());
    file.write_all(bytes).unwrap();
    file.finish().unwrap()
}

/// Writes the golden store and its log to `path`.
fn unpack(path: &Path) {
    let bless = std::env::var_os("MILLPOND_BLESS").is_some();
    let [data, log] = ["mill", "mill-log"].map(golden_path);
    if bless {
        let [data_today, log_today] = crashed_today();
        std::fs::write(&data, pack(&data_today)).unwrap();
        std::fs::write(&log, pack(&log_today)).unwrap();
    }
    for (golden, path) in [(data, path.to_path_buf()), (log, log_of(path))] {
        let packed = std::fs::read(&golden).unwrap_or_else(|e| panic!("{}: {e}", golden.display()));
        let mut bytes = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-log", path.display()))
}

fn rows_of(tree: &RawTree) -> Rows {
    let mut rows = tree.iter();
    let mut found = Rows::new();
    while let Some((key, value)) = rows.next_entry().unwrap() {
        found.insert(key.to_vec(), value.to_vec());
    }
    found
}

fn assert_recovered(db: &Db) {
    let names: Vec<String> = db.trees().unwrap().into_iter().map(|tree| tree.0).collect();
    assert_eq!(names, ["birds", "fish"]);
    for (name, rows) in expected() {
        let tree = db.open_tree(name).unwrap();
        assert!(rows_of(&tree) == rows, "{name} is not what was committed");
    }
    let recovery = db.recovery().unwrap();
    assert_eq!(recovery.losers, 1, "{recovery:?}");
    assert!(recovery.undone > 0 && recovery.pages > 0, "{recovery:?}");
}

#[test]
fn the_golden_store_with_a_log_is_recovered_to_what_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("golden.mill");
    unpack(&path);
    let mut kinds = BTreeSet::new();
    read_log(&path, None, |record| {
        kinds.insert(record.kind);
        true
    })
    .unwrap();
    let all = ["abort", "checkpoint", "commit", "compensation", "pages", "superblock", "update"];
    assert_eq!(Vec::from_iter(kinds), all, "the file has every kind of record");
    let db = Db::open(&path, options()).unwrap();
    assert_recovered(&db);
    db.close().unwrap();
    let report = check(&path, CATALOG, CheckOptions::default()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    // Closed cleanly, it opens without recovery, with the same rows.
    let db = Db::open(&path, options()).unwrap();
    assert!(db.recovery().is_none());
    for (name, rows) in expected() {
        assert!(rows_of(&db.open_tree(name).unwrap()) == rows, "{name} lost something");
    }
}

#[test]
fn what_a_crash_leaves_today_is_recovered_to_the_same() {
    let [data, log] = crashed_today().map(|bytes| Arc::new(MemoryDevice::from_bytes(&bytes)));
    let db = Db::open_on_devices(data, log, options()).unwrap();
    assert_recovered(&db);
    db.close().unwrap();
}

#[test]
fn whoever_watches_a_recovery_is_told_of_all_its_parts_to_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("golden.mill");
    unpack(&path);
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = told.clone();
    let options = options().watch_recovery(move |progress| notes.lock().unwrap().push(progress));
    drop(Db::open(&path, options).unwrap());
    let told = told.lock().unwrap();
    for phase in [Phase::Analysis, Phase::Redo, Phase::Undo] {
        let of = told.iter().filter(|progress| progress.phase == phase);
        let all: Vec<(u64, u64)> = of.map(|progress| (progress.done, progress.total)).collect();
        assert!(all.is_sorted(), "{phase:?}: {all:?}");
        let (first, last) = (all.first().unwrap(), all.last().unwrap());
        assert_eq!((first.0, last.0), (0, last.1), "{phase:?}: {all:?}");
        assert!(last.1 > 0, "{phase:?}");
    }
}
