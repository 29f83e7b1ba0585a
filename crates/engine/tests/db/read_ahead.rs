//! Pages that were read ahead are the pages that were asked for.
//!
//! A story: the page store returned a batch of reads in the order of its pages, and the pool took
//! the results in the order of its own list. A tree whose keys came in random order has its leaves
//! anywhere in the file. A scan with read-ahead gave a damaged page's error to one of its
//! neighbours, and took the damaged page for a sound one. Its bytes were shown as rows, and written
//! back under a checksum that fits.

use std::os::unix::fs::FileExt;
use std::path::Path;

use millpond::{Db, Options};

use super::{assert_sound, place};

const ROWS: u64 = 8000;

fn options() -> Options {
    Options::new().memory(16 << 20)
}

/// A value whose every byte follows from its key.
fn value(key: u64) -> [u8; 200] {
    let mut value = [1 + (key % 250) as u8; 200];
    value[..8].copy_from_slice(&key.to_be_bytes());
    value
}

/// A closed store with a tree whose keys were inserted in random order.
fn make(path: &Path, seed: u64) {
    let db = Db::open(path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut keys: Vec<u64> = (0..ROWS).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut keys);
    for key in keys {
        tree.put(&key.to_be_bytes(), &value(key)).unwrap();
    }
    drop(tree);
    db.close().unwrap();
}

/// Returns an offset of the value of `key` in the file: pages keep dead copies of moved rows.
fn find(path: &Path, key: u64) -> u64 {
    let all = std::fs::read(path).unwrap();
    let value = value(key);
    all.windows(value.len()).position(|window| window == value).unwrap() as u64
}

/// Flips the lowest bit of the byte at `offset`.
fn flip(path: &Path, offset: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

#[test]
fn a_scan_with_read_ahead_over_a_damaged_page_shows_right_rows_and_ends_with_an_error() {
    let (_dir, path) = place();
    make(&path, 1);
    for round in 0..12 {
        let key = round * 613 % ROWS;
        let place = find(&path, key) + 100;
        flip(&path, place);
        let db = Db::open(&path, options()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        let (mut rows, mut failed) = (0, None);
        for row in tree.iter() {
            match row {
                Ok((found, bytes)) => {
                    let n = u64::from_be_bytes(found[..].try_into().unwrap());
                    assert_eq!(n, rows, "round {round}: no row is missing");
                    assert_eq!(bytes[..], value(n), "round {round}: row {n}");
                    rows += 1;
                }
                Err(error) => failed = Some(error),
            }
        }
        let error = failed.unwrap_or_else(|| panic!("round {round}: {rows} rows, and no error"));
        assert!(error.to_string().contains("checksum"), "{error}");
        assert!(tree.get(&rows.to_be_bytes()).is_err(), "the damaged page is not in the pool");
        drop(tree);
        db.close().unwrap();
        // Nothing of the damage was written elsewhere: with that bit as it was, the store is sound.
        flip(&path, place);
        assert_sound(&path);
    }
}

/// A closed store with a tree of three levels, `leaves` of it about 8,000.
fn make_high(path: &Path) -> u64 {
    const ROWS: u64 = 24_000;
    let options = Options::new().page_size(512).memory(64 << 20).lab(|lab| lab.tiny_pages = true);
    let db = Db::open(path, options).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut keys: Vec<u64> = (0..ROWS).collect();
    fastrand::Rng::with_seed(3).shuffle(&mut keys);
    for key in keys {
        tree.put(&key.to_be_bytes(), &[7; 100]).unwrap();
    }
    assert!(tree.stats().unwrap().levels.len() >= 4, "inner nodes have inner nodes above");
    drop(tree);
    db.close().unwrap();
    ROWS
}

/// Returns the rows of a scan, the misses of the scan itself, and the pages read for it.
fn scanned(path: &Path, scan: impl Fn(&Db) -> u64) -> (u64, u64, u64) {
    let options = Options::new().read_only(true).lab(|lab| {
        lab.frames = Some(2000);
        lab.tiny_pages = true;
    });
    let db = Db::open(path, options).unwrap();
    let rows = scan(&db);
    let stats = db.stats();
    db.close().unwrap();
    (rows, stats.misses, stats.reads)
}

/// A story: a scan was to order the next parent's first leaves before it had left its own parent.
/// It did so for the first parent only; from the second on it took the fence of the one before for
/// the fence between them. A third of the leaves was read by the scan itself. Less than a
/// twenty-fifth is left. These are inner nodes from which their first leaves were ordered, and that
/// left the small queue of `tide` before the scan reached them. The queue is of a hundred frames
/// here.
#[test]
fn a_long_scan_reads_hardly_a_page_itself_and_passes_from_parent_to_parent() {
    let (_dir, path) = place();
    let all = make_high(&path);
    let forward = |db: &Db| db.open_tree("t").unwrap().iter().map(|row| drop(row.unwrap())).count();
    let back = |db: &Db| {
        let tree = db.open_tree("t").unwrap();
        tree.iter().rev().map(|row| drop(row.unwrap())).count()
    };
    for (rows, misses, reads) in
        [scanned(&path, |db| forward(db) as u64), scanned(&path, |db| back(db) as u64)]
    {
        assert_eq!(rows, all);
        assert!(reads > 6000, "{reads}");
        assert!(misses < reads / 25, "{misses} of {reads} pages were read by the scan");
    }
}

#[test]
fn a_range_reads_nothing_beyond_its_end() {
    let (_dir, path) = place();
    make_high(&path);
    let ranges = |db: &Db| {
        let tree = db.open_tree("t").unwrap();
        let count = |from: u64| {
            let (from, to) = (from.to_be_bytes(), (from + 300).to_be_bytes());
            tree.range(&from[..]..&to[..]).map(|row| drop(row.unwrap())).count() as u64
        };
        (0..16).map(|n| count(n * 1400)).sum()
    };
    let (rows, _, reads) = scanned(&path, ranges);
    assert_eq!(rows, 4800);
    // Two or three rows to a leaf, and the way there.
    assert!((1600..2280).contains(&reads), "{reads}");
}

/// A story of point look-ups of keys in their order, one in each leaf. The tree was made by inserts
/// in order, so that leaves are in the file as they are in the tree.
#[test]
fn look_ups_read_ahead_if_that_is_asked_for_and_find_the_same() {
    let (_dir, path) = place();
    let db = Db::open(&path, options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for key in 0..ROWS {
        tree.put(&key.to_be_bytes(), &value(key)).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    let looked_up = |read_ahead| {
        let options = options().lab(|lab| {
            lab.read_ahead = read_ahead;
            lab.frames = Some(64);
        });
        let db = Db::open(&path, options).unwrap();
        let tree = db.raw_tree("t").unwrap();
        // The thread that reads has begun once it takes an order of a scan.
        while db.stats().prefetches == 0 {
            tree.iter().for_each(|row| drop(row.unwrap()));
        }
        let before = db.stats();
        for key in (0..ROWS).step_by(5) {
            assert_eq!(tree.get(&key.to_be_bytes()).unwrap().as_deref(), Some(&value(key)[..]));
        }
        drop(tree);
        let stats = db.stats();
        db.close().unwrap();
        (stats.misses - before.misses, stats.prefetches - before.prefetches)
    };
    let (plain, none) = looked_up(false);
    let (fewer, ahead) = looked_up(true);
    assert_eq!(none, 0, "only scans read ahead");
    assert!(ahead > plain / 4 && fewer < plain * 3 / 4, "{plain}, or {fewer} and {ahead} ahead");
    assert_sound(&path);
}
