//! Files of a store whose data file is missing, and data files that go while a store is open.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use millpond::{Db, Error, ErrorKind, Options};

use super::{place, tiny};
use crate::byte_calls::TxnCalls;

fn side(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// All files of a folder, with their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// A store with 500 rows in `folder`, closed or killed; its path, and its data file's contents.
fn store_in(folder: &Path, is_closed: bool) -> (PathBuf, Vec<u8>) {
    let (path, live) = (folder.join("s"), tempfile::tempdir().unwrap());
    let live = live.path().join("live");
    let db = Db::open(&live, tiny(64)).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    for key in 0..500 {
        tree.put(&key, &key).unwrap();
    }
    drop(tree);
    db.flush().unwrap();
    if is_closed {
        db.close().unwrap();
    }
    std::fs::copy(side(&live, "-log"), side(&path, "-log")).unwrap();
    (path, std::fs::read(live).unwrap())
}

/// Asserts that each way of opening fails with an error about `names`, and changes no file.
fn refused(path: &Path, names: &Path) {
    let before = files(path.parent().unwrap());
    let plain = || Options::new().lab(|lab| lab.log = false);
    let openings: [(&str, Result<Db, Error>); 5] = [
        ("open", Db::open(path, tiny(64))),
        ("salvage", Db::open_salvaging(path, tiny(64))),
        ("without a log", Db::open(path, plain())),
        ("not to create", Db::open(path, tiny(64).create_if_missing(false))),
        ("read only", Db::open(path, tiny(64).read_only(true))),
    ];
    for (how, opened) in openings {
        let error = opened.expect_err(how);
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{how}: {error}");
        let (text, name) = (error.to_string(), format!("{} beside it", names.display()));
        assert!(text.contains(&name) && text.contains("put the data file back"), "{how}: {text}");
        assert!(files(path.parent().unwrap()) == before, "{how} changed a file");
    }
}

#[test]
fn a_log_without_its_data_file_is_named_and_opens_again_with_it() {
    for (is_closed, is_empty) in [(false, false), (false, true), (true, false), (true, true)] {
        let folder = tempfile::tempdir().unwrap();
        let (path, data) = store_in(folder.path(), is_closed);
        if is_empty {
            std::fs::write(&path, b"").unwrap();
        }
        refused(&path, &side(&path, "-log"));
        std::fs::write(&path, data).unwrap();
        let db = Db::open(&path, tiny(64)).unwrap();
        assert_eq!(db.tree::<u32, u32>("t").unwrap().len().unwrap(), 500);
        db.close().unwrap();
    }
}

#[test]
fn a_log_whose_first_block_is_lost_and_a_file_of_somebody_else_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = store_in(folder.path(), false);
    let log = side(&path, "-log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[..4096].fill(0);
    std::fs::write(&log, bytes).unwrap();
    refused(&path, &log);
    std::fs::write(&log, b"a letter").unwrap();
    refused(&path, &log);
}

#[test]
fn a_data_file_of_zeros_does_not_cost_its_log() {
    // A page, and less than one; the header of the log damaged, of another version, or whole.
    for length in [1, 4096, 1 << 20] {
        for at in [Some(0), Some(8), None] {
            let folder = tempfile::tempdir().unwrap();
            let (path, data) = store_in(folder.path(), false);
            let log = side(&path, "-log");
            let whole = std::fs::read(&log).unwrap();
            let mut bytes = whole.clone();
            if let Some(at) = at {
                bytes[at..at + 4].fill(0xee);
            }
            std::fs::write(&log, &bytes).unwrap();
            std::fs::write(&path, vec![0; length]).unwrap();
            let before = files(folder.path());
            for options in [tiny(64), tiny(64).create_if_missing(false)] {
                Db::open(&path, options.clone()).expect_err("open");
                Db::open_salvaging(&path, options).expect_err("salvage");
                assert!(files(folder.path()) == before, "a file changed: {length}, {at:?}");
            }
            std::fs::write(&path, data).unwrap();
            std::fs::write(&log, whole).unwrap();
            let db = Db::open(&path, tiny(64)).unwrap();
            assert_eq!(db.tree::<u32, u32>("t").unwrap().len().unwrap(), 500);
        }
    }
}

#[test]
fn other_files_beside_a_store_that_is_missing_are_named() {
    for (suffix, bytes) in [
        ("-spill", &b"MPSPILL1 and rows"[..]),
        (".stat", b"{}"),
        ("-partial", b"pages"),
        ("-partial-log", b"records"),
    ] {
        let (_folder, path) = place();
        let other = side(&path, suffix);
        std::fs::write(&other, bytes).unwrap();
        refused(&path, &other);
        std::fs::remove_file(&other).unwrap();
        Db::open(&path, tiny(64)).unwrap().close().unwrap();
    }
}

#[test]
fn a_cache_that_has_what_its_missing_store_has_not_is_not_made_anew() {
    let (folder, path) = place();
    let cache = folder.path().join("cache");
    let tiered = |writes_back| {
        let options = Options::new().memory(16 << 20).second_tier(&cache, 4 << 20, "tq");
        options.write_back(writes_back)
    };
    let db = Db::open(&path, tiered(true)).unwrap();
    db.tree::<u32, u32>("t").unwrap().put(&1, &2).unwrap();
    db.close().unwrap();
    for suffix in ["", "-log", ".stat"] {
        std::fs::rename(side(&path, suffix), side(&folder.path().join("away"), suffix)).unwrap();
    }
    let before = files(folder.path());
    for writes_back in [true, false] {
        let error = Db::open(&path, tiered(writes_back)).unwrap_err();
        assert!(error.to_string().contains(&cache.display().to_string()), "{error}");
        assert!(files(folder.path()) == before, "a file changed");
    }
}

#[test]
fn what_an_interrupted_creation_leaves_is_no_store() {
    let (_folder, path) = place();
    Db::open(&path, tiny(64)).unwrap().close().unwrap();
    let whole = std::fs::read(side(&path, "-log")).unwrap();
    std::fs::remove_file(side(&path, ".stat")).unwrap();
    // Zeros; zeros and the header of a slot; that and the log's own header, and no record.
    for filled in [0..0, 4096..8192, 0..8192] {
        let mut log = vec![0; 128 << 10];
        log[filled.clone()].copy_from_slice(&whole[filled]);
        std::fs::write(side(&path, "-log"), log).unwrap();
        std::fs::write(&path, b"").unwrap();
        Db::open(&path, tiny(64)).unwrap();
        std::fs::remove_file(side(&path, ".stat")).unwrap();
    }
}

/// An open store of whose data file `change` does something.
fn displaced(change: impl Fn(&Path)) {
    displaced_of(|_| Options::new().memory(4 << 20), Path::to_path_buf, change);
}

/// An open store whose second tier writes back; `change` does something with the cache's file.
fn displaced_cache(change: impl Fn(&Path)) {
    displaced_of(written_back, |path| side(path, "-cache"), change);
}

/// A store whose second tier writes back.
fn written_back(path: &Path) -> Options {
    let options = Options::new().memory(16 << 20);
    options.second_tier(side(path, "-cache"), 4 << 20, "tq").write_back(true)
}

/// An open store; `change` does something with the one of its files that `file` names.
fn displaced_of(
    options: impl Fn(&Path) -> Options,
    file: impl Fn(&Path) -> PathBuf,
    change: impl Fn(&Path),
) {
    let (folder, path) = place();
    let (target, file) = (folder.path().join("backup"), file(&path));
    let db = Db::open(&path, options(&path)).unwrap();
    let tree = db.tree::<u32, u32>("t").unwrap();
    tree.put(&1, &2).unwrap();
    change(&file);
    tree.put(&3, &4).unwrap();
    for (how, done) in [("checkpoint", db.checkpoint()), ("flush", db.flush())] {
        let error = done.expect_err(how);
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{how}: {error}");
        let name = format!("{} was deleted, renamed or replaced", file.display());
        assert!(error.to_string().contains(&name), "{how}: {error}");
    }
    drop(tree);
    // What the message advises.
    db.backup_to(&target).unwrap();
    // With another handle left, and once more.
    for close in [db.clone(), db.clone(), db] {
        let error = close.close().unwrap_err();
        assert!(error.to_string().contains("was deleted, renamed or replaced"), "{error}");
    }
    let copy = Db::open(&target, Options::new().memory(4 << 20)).unwrap();
    assert_eq!(copy.tree::<u32, u32>("t").unwrap().len().unwrap(), 2);
}

#[test]
fn a_data_file_that_is_deleted_renamed_or_replaced_beneath_a_store_is_told() {
    displaced(|path| std::fs::remove_file(path).unwrap());
    displaced(|path| std::fs::rename(path, side(path, "-old")).unwrap());
    displaced(|path| {
        // With its folder.
        let folder = path.parent().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        std::fs::create_dir(folder).unwrap();
    });
    displaced(|path| {
        std::fs::copy(path, side(path, "-new")).unwrap();
        std::fs::rename(side(path, "-new"), path).unwrap();
    });
}

#[test]
fn a_cache_that_has_the_only_copy_and_is_deleted_or_replaced_beneath_a_store_is_named() {
    displaced_cache(|cache| std::fs::remove_file(cache).unwrap());
    displaced_cache(|cache| std::fs::rename(cache, side(cache, "-old")).unwrap());
    displaced_cache(|cache| {
        std::fs::copy(cache, side(cache, "-new")).unwrap();
        std::fs::rename(side(cache, "-new"), cache).unwrap();
    });
}

#[test]
fn a_cache_that_has_the_only_copy_and_is_put_back_is_right() {
    let (_folder, path) = place();
    let (cache, away) = (side(&path, "-cache"), side(&path, "-away"));
    let db = Db::open(&path, written_back(&path)).unwrap();
    db.tree::<u32, u32>("t").unwrap().put(&1, &2).unwrap();
    std::fs::rename(&cache, &away).unwrap();
    db.flush().unwrap_err();
    std::fs::rename(&away, &cache).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = Db::open(&path, written_back(&path)).unwrap();
    assert_eq!(db.tree::<u32, u32>("t").unwrap().get(&1).unwrap(), Some(2));
}

#[test]
fn a_cache_of_copies_may_be_deleted_beneath_a_store() {
    let (_folder, path) = place();
    let cache = side(&path, "-cache");
    let through = || Options::new().memory(16 << 20).second_tier(&cache, 4 << 20, "tq");
    let db = Db::open(&path, through()).unwrap();
    db.tree::<u32, u32>("t").unwrap().put(&1, &2).unwrap();
    std::fs::remove_file(&cache).unwrap();
    db.checkpoint().unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    for options in [through(), Options::new().memory(16 << 20)] {
        let db = Db::open(&path, options).unwrap();
        assert_eq!(db.tree::<u32, u32>("t").unwrap().get(&1).unwrap(), Some(2));
    }
}

#[test]
fn a_store_whose_folder_is_renamed_is_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    std::fs::create_dir(&old).unwrap();
    let db = Db::open(old.join("s"), tiny(64)).unwrap();
    db.tree::<u32, u32>("t").unwrap().put(&1, &2).unwrap();
    std::fs::rename(&old, &new).unwrap();
    db.checkpoint().unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = Db::open(new.join("s"), tiny(64)).unwrap();
    assert_eq!(db.tree::<u32, u32>("t").unwrap().get(&1).unwrap(), Some(2));
}

#[test]
fn a_log_that_is_deleted_beneath_a_store_is_told_and_one_put_back_is_right() {
    let (_folder, path) = place();
    let (log, away) = (side(&path, "-log"), side(&path, "-away"));
    let db = Db::open(&path, tiny(64)).unwrap();
    std::fs::rename(&log, &away).unwrap();
    for done in [db.checkpoint(), db.flush()] {
        let error = done.unwrap_err();
        assert!(error.to_string().contains(&log.display().to_string()), "{error}");
    }
    std::fs::rename(&away, &log).unwrap();
    db.checkpoint().unwrap();
    db.flush().unwrap();
    // A store that is closed needs no log.
    std::fs::remove_file(&log).unwrap();
    db.close().unwrap();
    Db::open(&path, tiny(64)).unwrap().close().unwrap();
}

#[test]
fn a_log_may_be_a_link_to_where_it_is_to_be() {
    let (dir, path) = place();
    let target = dir.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, side(&path, "-log")).unwrap();
    let db = Db::open(&path, tiny(64)).unwrap();
    db.tree::<u32, u32>("t").unwrap().put(&1, &2).unwrap();
    assert!(std::fs::metadata(&target).unwrap().len() > 0);
    db.close().unwrap();
    let db = Db::open(&path, tiny(64)).unwrap();
    assert_eq!(db.tree::<u32, u32>("t").unwrap().get(&1).unwrap(), Some(2));
}

const CHILD: &str = "MILLPOND_TEST_LIMITED";

/// Not a test of its own: creates a store in a process that may open, or write, only so much.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn child_that_creates_a_store_within_a_limit() {
    let Some(place) = std::env::var_os(CHILD) else { return };
    let error = Db::open(place, tiny(64)).unwrap_err();
    println!("refused: {error}");
}

/// Creates a store at `path` in a child of a shell that sets `limit`; returns whether that fails.
fn is_refused(path: &Path, limit: &str) -> bool {
    let program = std::env::current_exe().unwrap();
    let child = "db::remains::child_that_creates_a_store_within_a_limit";
    let line = format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" --exact {child} --nocapture");
    let mut shell = Command::new("bash");
    let out = shell.args(["-c", &line]).arg(program).env(CHILD, path).output().unwrap();
    String::from_utf8_lossy(&out.stdout).contains("refused: ")
}

#[test]
fn a_creation_that_fails_leaves_no_file() {
    let (folder, path) = place();
    for (name, what) in [(253, "the log's name is too long"), (256, "its own is")] {
        let path = folder.path().join("n".repeat(name));
        Db::open(&path, tiny(64)).expect_err(what);
        assert!(files(folder.path()).is_empty(), "{what}");
    }
    // Blocks of 1 KiB that a file may have: the data file needs 512 of them.
    for size in [0, 100, 500] {
        assert!(is_refused(&path, &format!("-f {size}")), "{size}");
        assert!(files(folder.path()).is_empty(), "{size}: {:?}", files(folder.path()).keys());
    }
    let mut failed = 0;
    for descriptors in 4..40 {
        if is_refused(&path, &format!("-n {descriptors}")) {
            failed += 1;
            assert!(files(folder.path()).is_empty(), "{descriptors} descriptors");
        }
        for (file, _) in files(folder.path()) {
            std::fs::remove_file(file).unwrap();
        }
    }
    assert!(failed > 0, "no limit made it fail");
}

#[test]
fn a_creation_that_fails_leaves_the_link_that_its_log_was_to_follow() {
    let (folder, path) = place();
    let (link, target) = (side(&path, "-log"), folder.path().join("elsewhere"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let mut failed = 0;
    for descriptors in 4..40 {
        if is_refused(&path, &format!("-n {descriptors}")) {
            failed += 1;
            assert!(link.is_symlink() && !target.exists() && !path.exists(), "{descriptors}");
        } else if path.exists() {
            break;
        }
    }
    assert!(failed > 0, "no limit made it fail");
}

#[test]
fn a_creation_that_fails_leaves_an_empty_file_that_was_there_and_takes_it_later() {
    let (folder, _) = place();
    let path = folder.path().join("n".repeat(253));
    std::fs::write(&path, b"").unwrap();
    Db::open(&path, tiny(64)).unwrap_err();
    assert_eq!(files(folder.path()).len(), 1);
    let short = folder.path().join("short");
    std::fs::rename(&path, &short).unwrap();
    Db::open(&short, tiny(64)).unwrap().close().unwrap();
}

#[test]
fn files_beside_a_store_have_its_mode() {
    let (folder, path) = place();
    Db::open(&path, tiny(64)).unwrap().close().unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    for suffix in ["-log", ".stat"] {
        std::fs::remove_file(side(&path, suffix)).unwrap();
    }
    let options = Options::new().memory(4 << 20).second_tier(side(&path, "-tier"), 1 << 20, "tq");
    let db = Db::open(&path, options).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let tx = db.begin().unwrap();
    for key in 0..40_000u32 {
        tx.put(&tree, &key.to_be_bytes(), &[1; 20]).unwrap();
    }
    assert!(side(&path, "-spill").exists(), "the undo went to the spill file");
    tx.abort().unwrap();
    db.backup_with(side(&path, "-copy"), &mut |_| {
        for suffix in ["", "-log", "-spill", ".stat", "-tier", "-copy-partial", "-copy-partial-log"]
        {
            let mode = std::fs::metadata(side(&path, suffix)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "'{suffix}'");
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    for (file, _) in files(folder.path()) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

/// Opening probes direct I/O by a block of zeros, which a kill at that moment leaves.
#[test]
fn a_block_of_zeros_that_a_killed_opening_left_is_taken_for_an_empty_file() {
    for (suffix, asks_for_tier) in [("", false), ("-log", false), ("-cache", true)] {
        let (_dir, path) = place();
        std::fs::write(side(&path, suffix), [0; 4096]).unwrap();
        let cache = |options: Options| options.second_tier(side(&path, "-cache"), 1 << 20, "tq");
        let options = if asks_for_tier { cache(tiny(64)) } else { tiny(64) };
        let db = Db::open(&path, options.clone()).unwrap();
        db.raw_tree("t").unwrap().put(b"k", b"v").unwrap();
        db.close().unwrap();
        let db = Db::open(&path, options).unwrap();
        assert_eq!(db.raw_tree("t").unwrap().get(b"k").unwrap().unwrap(), b"v", "{suffix}");
    }
}
