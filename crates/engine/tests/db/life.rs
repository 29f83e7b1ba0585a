//! Opening, closing, dropping: nothing is lost, and nothing is kept.

use std::process::Command;

use millpond::internals::io::OpenError;
use millpond::{Db, Error, ErrorKind, Freshness, Published, Structure};

use super::{free_pages, place, tiny};

#[test]
fn many_trees_come_back_after_closing() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(32)).unwrap();
    for i in 0..60u32 {
        let tree = db.tree::<u32, u32>(&format!("tree {i:02}")).unwrap();
        for key in 0..i {
            tree.put(&key, &(key * i)).unwrap();
        }
    }
    db.close().unwrap();
    let db = Db::open(&path, tiny(32)).unwrap();
    let trees = db.trees().unwrap();
    assert_eq!(trees.len(), 60);
    assert!(trees.iter().all(|(_, entry)| entry.structure == Structure::Tree));
    assert!(trees.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order of their names");
    for i in (0..60u32).rev() {
        let tree = db.open_tree(&format!("tree {i:02}")).unwrap().typed::<u32, u32>();
        let rows: Vec<_> = tree.iter().map(Result::unwrap).collect();
        assert_eq!(rows, (0..i).map(|key| (key, key * i)).collect::<Vec<_>>());
    }
    let taken = db.create_tree("tree 07").unwrap_err();
    assert!(matches!(taken, Error::Exists { .. }), "{taken}");
    assert!(matches!(db.open_tree("tree").unwrap_err(), Error::NoTree { .. }));
}

#[test]
fn the_last_handle_closes_and_no_other() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(32)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let other = db.clone();
    tree.put(b"k", b"v").unwrap();
    drop((db, other));
    tree.put(b"k", b"v").unwrap();
    // The tree's handle is the last one, and its end closes the store.
    drop(tree);
    let db = Db::open(&path, tiny(32)).unwrap();
    assert_eq!(db.raw_tree("t").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
}

/// A program that keeps its trees in a struct closes the store that it has in there as well.
#[test]
fn closing_is_for_all_handles_that_are_left_and_what_was_written_is_durable() {
    let (dir, path) = place();
    let db = Db::open(&path, tiny(32)).unwrap();
    let (tree, other) = (db.raw_tree("t").unwrap(), db.clone());
    let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
    tree.put(b"k", b"v").unwrap();
    let (tx, snapshot, mut rows) = (db.begin().unwrap(), db.snapshot().unwrap(), tree.iter());
    tx.tree(&tree).put(b"k", b"undone").unwrap();
    db.close().unwrap();
    let copy = dir.path().join("copy.mp");
    let refused = [
        tree.get(b"k").map(drop),
        tree.put(b"k", b"w").map(drop),
        tree.len().map(drop),
        tree.update(b"k", |_| None).map(drop),
        tree.iter().try_for_each(|row| row.map(drop)),
        rows.next_entry().map(drop),
        tx.tree(&tree).get(b"k").map(drop),
        tx.tree(&tree).put(b"k", b"w").map(drop),
        tx.commit(),
        snapshot.tree(&tree).get(b"k").map(drop),
        index.get(b"k").map(drop),
        index.put(b"k", b"w").map(drop),
        heap.append(b"w").map(drop),
        other.raw_tree("t").map(drop),
        other.begin().map(drop),
        other.snapshot().map(drop),
        other.flush(),
        other.checkpoint(),
        other.trees().map(drop),
        other.check().map(drop),
        other.backup_to(&copy).map(drop),
    ];
    for (call, done) in refused.iter().enumerate() {
        let kind = done.as_ref().map_err(Error::kind);
        assert_eq!(kind, Err(ErrorKind::Closed), "call {call}: {done:?}");
    }
    // Closed once more, it is closed.
    other.clone().close().unwrap();
    // The transaction that is left is undone, as after a crash.
    let db = Db::open(&path, tiny(32)).unwrap();
    assert_eq!(db.recovery().map(|recovery| recovery.losers), Some(1));
    drop(rows);
    drop((tree, index, heap, snapshot, other));
    assert_eq!(db.raw_tree("t").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn a_dropped_tree_gives_all_its_pages_back() {
    let (_dir, path) = place();
    let reopened = || Db::open(&path, tiny(48)).unwrap();
    let db = reopened();
    db.raw_tree("stays").unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    let db = reopened();
    let (before, pages) = (free_pages(&db), db.stats().store_pages);
    let tree = db.raw_tree("goes").unwrap();
    for i in 0..3000u32 {
        let value = vec![i as u8; if i % 100 == 0 { 5000 } else { 30 }];
        tree.put(&i.to_be_bytes(), &value).unwrap();
    }
    let in_use = db.drop_tree("goes").unwrap_err();
    assert!(matches!(in_use, Error::TreeInUse { handles: 1, .. }), "{in_use}");
    assert!(in_use.to_string().contains("in use by 1 handle, "), "{in_use}");
    // A `main` that returns it prints this.
    assert_eq!(format!("{in_use:?}"), in_use.to_string());
    drop(tree);
    db.drop_tree("goes").unwrap();
    assert!(matches!(db.drop_tree("goes").unwrap_err(), Error::NoTree { .. }));
    db.close().unwrap();
    let db = reopened();
    let grown = db.stats().store_pages - pages;
    // Of what grew, at most the maps of free pages are not free.
    let free = free_pages(&db);
    assert!(free + 1 + grown / 1000 >= before + grown, "{free} of {before} + {grown}");
    assert_eq!(db.trees().unwrap().len(), 1);
    // A name can be used again, also for a tree that was never opened since.
    db.create_tree("goes").unwrap();
    db.close().unwrap();
    let db = reopened();
    db.drop_tree("goes").unwrap();
    assert_eq!(free_pages(&reopen(db, &path)), free);
}

/// Runs of leaves are removed at once, and with them all children of an inner node, or all but one:
/// the fewer fit into a node, the more often.
#[test]
fn a_cleared_tree_is_one_leaf_whatever_its_shape_was() {
    let db = Db::in_memory(tiny(2000)).unwrap();
    for rows in (1..500u32).step_by(7) {
        let tree = db.raw_tree("t").unwrap();
        for i in 0..rows {
            // Neighbours differ late, and have no more in common with others.
            let group = (i / 3).wrapping_mul(0x9e37_79b9).to_be_bytes();
            let mut key = group.repeat(13);
            key.push(i as u8);
            tree.put(&key, &[7; 60]).unwrap();
        }
        assert_eq!(tree.clear().unwrap(), u64::from(rows));
        assert_eq!(tree.stats().unwrap().height(), 1, "{rows} rows");
        drop(tree);
        db.drop_tree("t").unwrap();
    }
}

fn reopen(db: Db, path: &std::path::Path) -> Db {
    db.close().unwrap();
    Db::open(path, tiny(48)).unwrap()
}

const CHILD: &str = "MILLPOND_TEST_CHILD";

/// Not a test of its own: the process that the next one kills.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let db = Db::open(path, tiny(32)).unwrap();
    db.raw_tree("t").unwrap().put(b"k", b"v").unwrap();
    db.flush().unwrap();
    println!("ready");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_store_is_locked_while_its_process_lives_and_recovered_after_it_was_killed() {
    use std::io::{BufRead, BufReader};
    let (_dir, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "db::life::child_that_is_killed", "--nocapture"])
        .env(CHILD, &path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.lines().map_while(Result::ok).any(|line| line.contains("ready")));
    let locked = Db::open(&path, tiny(32)).unwrap_err();
    assert!(locked.to_string().contains(&format!("pid {}", child.id())), "{locked}");
    child.kill().unwrap();
    child.wait().unwrap();
    // Without its log it is refused, with it recovered.
    for without in [tiny(32).lab(|lab| lab.log = false), tiny(32).read_only(true)] {
        let error = Db::open(&path, without).unwrap_err();
        assert!(matches!(error, Error::MustRecover { .. }), "{error}");
    }
    let freshness = Published::read(&path).unwrap().freshness();
    assert_eq!(freshness, Freshness::Gone);
    let db = Db::open(&path, tiny(32)).unwrap();
    assert_eq!(db.open_tree("t").unwrap().get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
    db.close().unwrap();
}

#[test]
fn a_store_without_a_log_is_not_opened_again_after_its_process_was_killed() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(32).lab(|lab| lab.log = false)).unwrap();
    db.raw_tree("t").unwrap().put(b"k", b"v").unwrap();
    // Nothing closes it: as good as killed, but for the lock, which lies in the old file.
    let copy = path.with_extension("copy");
    std::fs::copy(&path, &copy).unwrap();
    for log in [true, false] {
        let error = Db::open(&copy, tiny(32).lab(|lab| lab.log = log)).unwrap_err();
        assert!(matches!(error, Error::Open(OpenError::NotClean { .. })), "{error}");
        assert!(error.to_string().contains("dump --salvage"), "{error}");
    }
    drop(db);
}

#[test]
fn statistics_are_published_while_the_store_runs_and_after() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(32)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for i in 0..500u32 {
        tree.put(&i.to_be_bytes(), &[1; 20]).unwrap();
    }
    for i in 0..500u32 {
        assert!(tree.contains(&i.to_be_bytes()).unwrap());
    }
    // A store publishes before it is handed out.
    let published = Published::read(&path).unwrap();
    assert!(matches!(published.freshness(), Freshness::Live { .. }));
    assert_eq!((published.stats.page_size, published.stats.frames), (512, 32));
    let stats = db.stats();
    assert_eq!((stats.puts, stats.gets), (500, 500));
    assert_eq!(stats.free_frames + stats.resident_frames, 32);
    assert!(stats.splits > 10 && stats.store_pages > stats.free_pages, "{stats}");
    assert!(stats.evictions > 0 && stats.reads > 0 && stats.writes() > 0, "{stats}");
    drop(tree);
    db.close().unwrap();
    let last = Published::read(&path).unwrap();
    assert_eq!((last.freshness(), last.stats.puts), (Freshness::Closed, 500));
}
