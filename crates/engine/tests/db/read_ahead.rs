//! Pages that were read ahead are the pages that were asked for.
//!
//! A story: the page store returned a batch of reads in the order of its pages, and the pool took
//! the results in the order of its own list. A tree whose keys came in random order has its
//! leaves anywhere in the file, so a scan with read-ahead gave a damaged page's error to one of its
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

/// Where in the file the value of `key` is, or was: pages keep dead copies of moved rows.
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
