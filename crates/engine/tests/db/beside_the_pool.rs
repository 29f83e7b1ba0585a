//! Work beside the pool: each kind takes what docs/memory.md says, in a process of its own whose
//! pool is full already.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::internals::admin::dump::{DumpWriter, Form};
use millpond::internals::admin::salvage::salvage;
use millpond::internals::btree::BulkOptions;
use millpond::internals::io::PageStore;
use millpond_device::{Device, FileDevice, FileOptions};

use millpond::{Db, Options, Tree};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::BackTier;

use super::memory::{CHILD, grown, status};
use super::place;

const WORK: &str = "MILLPOND_TEST_WORK";
const SMALL: u64 = 4 << 20;
const ROWS: u64 = 40_000;

/// Does the work, and returns by how many bytes the process grew at most while it did.
type Work = fn(&Path) -> u64;

/// Kinds of work, and bytes that each may take beyond a full pool. On a busy machine the allocator
/// keeps more of the memory that several threads have freed: each has 2 MiB for that.
const WORKS: [(&str, u64, Work); 9] = [
    ("check", 3 << 20, |path| {
        let (db, _tree) = opened(path);
        measured(|| assert!(db.check().unwrap().is_sound()))
    }),
    ("check of a file", 7 << 20, |path| {
        let check = |path: &Path| check(path, CATALOG, CheckOptions::default()).unwrap();
        check(&small(path));
        measured(|| assert!(check(path).is_sound()))
    }),
    // A copy is recovered with as much as the store has.
    ("backup", SMALL + (3 << 20), |path| {
        let (db, _tree) = opened(path);
        measured(|| _ = db.backup_to(path.with_extension("copy")).unwrap())
    }),
    ("shrink", 3 << 20, |path| {
        let (db, tree) = opened(path);
        tree.remove_range(..ROWS / 2).unwrap();
        measured(|| _ = db.shrink().unwrap())
    }),
    ("load", 3 << 20, |path| {
        let (db, _tree) = opened(path);
        let loaded = db.tree::<u64, Vec<u8>>("loaded").unwrap();
        let rows = (0..ROWS).map(|i| (i, vec![i as u8; 900]));
        measured(|| assert_eq!(loaded.bulk_load(rows, BulkOptions::default()).unwrap(), ROWS))
    }),
    ("destage", 3 << 20, |path| {
        let options = Options::new().memory(SMALL).second_tier(cache_of(path), 8 << 20, "tq");
        let db = Db::open(path, options.write_back(true)).unwrap();
        let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
        for i in 0..ROWS {
            tree.put(&i, &[8u8; 900][..]).unwrap();
        }
        db.checkpoint().unwrap();
        drop(tree);
        let closing = measured(|| db.close().unwrap());
        let device = |path: &Path| FileDevice::open(path, &FileOptions::default()).unwrap();
        let (store, cache) = (device(path), device(&cache_of(path)));
        let options = BackTier::options_of(&store, &cache).unwrap().unwrap();
        let policy = ChosenPolicy::parse("t2-lru", Tier::Second).unwrap();
        let host = |shape: &_| policy.erased_host(shape);
        let tier = BackTier::open(Arc::new(store), Arc::new(cache), &options, host).unwrap();
        assert!(tier.counts().dirty > 500, "the tier has what the store has not");
        let destaging = measured(|| tier.give_up().unwrap());
        tier.release();
        closing.max(destaging)
    }),
    ("dump --salvage", 3 << 20, |path| {
        salvaged(&small(path));
        measured(|| assert_eq!(salvaged(path), ROWS))
    }),
    ("salvage without a superblock", 3 << 20, |path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[..4096].fill(0xEE);
        std::fs::write(path, bytes).unwrap();
        salvaged(&small(path));
        measured(|| assert!(salvaged(path) >= ROWS))
    }),
    // The log is damaged: what is in front of the hole is recovered.
    ("open_salvaging", SMALL + (4 << 20), |path| {
        let log = log_path(path);
        let mut bytes = std::fs::read(&log).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4096].fill(0xEE);
        std::fs::write(&log, bytes).unwrap();
        drop(Db::open_salvaging(small(path), Options::new().memory(SMALL)).unwrap());
        measured(|| drop(Db::open_salvaging(path, Options::new().memory(SMALL)).unwrap()))
    }),
];

fn copy(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
    std::fs::copy(log_path(from), log_path(to)).unwrap();
}

fn log_path(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-log", path.display()))
}

fn cache_of(path: &Path) -> PathBuf {
    path.with_extension("cache")
}

/// A small store: what is measured afterwards is not the program itself, which is read when it is
/// called first.
fn small(path: &Path) -> PathBuf {
    let path = path.with_extension("small");
    let db = Db::open(&path, Options::new().memory(SMALL)).unwrap();
    db.raw_tree("t").unwrap().put(b"key", b"value").unwrap();
    db.close().unwrap();
    path
}

/// Entries that a salvage of the file finds.
fn salvaged(path: &Path) -> u64 {
    let store = PageStore::open_for_salvage(path, None, &FileOptions::default()).unwrap();
    let mut out = DumpWriter::new(std::io::sink(), Form::Text).unwrap();
    salvage(&store, CATALOG, &mut out).unwrap();
    out.entries()
}

/// A store ten times as large as its memory, whose pool is full.
fn opened(path: &Path) -> (Db, Tree<u64, Vec<u8>>) {
    let db = Db::open(path, Options::new().memory(SMALL)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    assert_eq!(
        tree.iter().map(Result::unwrap).filter(|(_, value)| value.len() == 900).count(),
        40_000
    );
    (db, tree)
}

/// Returns by how much the process has grown at most while it did `work`.
fn measured(work: impl FnOnce()) -> u64 {
    // What the process had at most starts from zero, where that is allowed.
    let is_reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = status(if is_reset { "VmRSS" } else { "VmHWM" }).unwrap_or(0);
    work();
    status("VmHWM").unwrap_or(0).saturating_sub(before)
}

/// Not a test of its own: does the work that it is asked for.
#[test]
fn child_that_works_beside_the_pool() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let Some(work) = std::env::var_os(WORK) else { return };
    let (_, _, run) = WORKS.iter().find(|(name, ..)| OsStr::new(name) == work).unwrap();
    println!("grew by {}", run(Path::new(&path)));
}

#[test]
fn work_beside_the_pool_takes_what_the_page_on_memory_says() {
    let (_dir, killed) = place();
    grown("memory::child_that_is_killed_with_a_long_log", &killed);
    let (_dir, closed) = place();
    copy(&killed, &closed);
    Db::open(&closed, Options::new()).unwrap().close().unwrap();
    for (name, most, _) in WORKS {
        let (_dir, path) = place();
        copy(if name == "open_salvaging" { &killed } else { &closed }, &path);
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "db::beside_the_pool::child_that_works_beside_the_pool"])
            .args(["--nocapture"])
            .env(CHILD, &path)
            .env(WORK, name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&out.stderr));
        let grown = text.lines().filter_map(|line| line.split_once(" by "));
        let grown: Vec<u64> = grown.map(|(_, bytes)| bytes.trim().parse().unwrap()).collect();
        println!("{name}: {grown:?} bytes");
        assert!(!grown.is_empty(), "{name}: {text}");
        assert!(grown.iter().all(|grown| *grown <= most), "{name}: {grown:?} bytes, not {most}");
    }
}
