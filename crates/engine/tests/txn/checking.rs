//! `Db::check` while the store is used.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond::{Db, Options, Structure};

/// Few and small pages, so that everything splits, merges and is evicted all the time.
fn store() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().page_size(512).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(200);
        lab.batch = Some(2);
    });
    let db = Db::open(dir.path().join("store.mill"), options).unwrap();
    (dir, db)
}

#[test]
fn a_check_finds_no_fault_while_threads_split_merge_and_replace_everything() {
    let (_dir, db) = store();
    let tree = db.tree::<u32, Vec<u8>>("tree").unwrap();
    let index = db.hash_index::<u32, u32>("index").unwrap();
    let heap = db.heap::<Vec<u8>>("heap").unwrap();
    let is_over = AtomicBool::new(false);
    let write = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        while !is_over.load(Ordering::Relaxed) {
            let key = random.u32(..4000);
            let len = if random.u8(..30) == 0 { 3000 } else { random.usize(..60) };
            match random.u8(..12) {
                0..5 => drop(tree.put(&key, &vec![7; len]).unwrap()),
                5..8 => drop(tree.delete(&key).unwrap()),
                8 => drop(tree.remove_range(key..key + 200).unwrap()),
                9 => drop(index.put(&key, &key).unwrap()),
                10 => drop(index.delete(&key).unwrap()),
                _ => drop(heap.append(&vec![7; len.min(100)]).unwrap()),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..2).for_each(|seed| drop(scope.spawn(move || write(seed))));
        let mut pages = 0;
        for _ in 0..25 {
            let report = db.check_with(&mut |progress| {
                pages = progress.pages;
                ControlFlow::Continue(())
            });
            let report = report.unwrap();
            assert!(report.is_sound() && !report.is_partial, "{report:?}");
            assert_eq!(report.structures.len(), 3);
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(pages > 0);
    });
    let report = db.check().unwrap();
    let entries = |kind| {
        let of_kind = report.structures.iter().find(|structure| structure.kind == kind);
        of_kind.unwrap().entries
    };
    assert_eq!(entries(Structure::Tree), tree.len().unwrap());
    assert_eq!(entries(Structure::Hash), index.len().unwrap());
    assert_eq!(entries(Structure::Heap), heap.len().unwrap());
}

#[test]
fn a_check_that_the_watch_ends_says_that_it_is_partial() {
    let (_dir, db) = store();
    for name in ["a", "b"] {
        let tree = db.tree::<u32, [u8; 60]>(name).unwrap();
        (0..4000).for_each(|i| _ = tree.put(&i, &[7; 60]).unwrap());
    }
    let report = db.check_with(&mut |progress| match progress.structures {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    let report = report.unwrap();
    assert!(report.is_partial && report.structures.len() == 1);
    let report = db.check_with(&mut |_| ControlFlow::Break(())).unwrap();
    assert!(report.is_partial && report.structures.is_empty() && report.is_sound());
}
