//! Stores whose pages are compressed, in files.

use millpond::{Compression, Db, Options};

use super::place;

fn fill(db: &Db) {
    let tree = db.raw_tree("rows").unwrap();
    for row in 0..5000u32 {
        tree.put(&row.to_be_bytes(), &[row as u8; 700]).unwrap();
    }
}

fn holds(db: &Db, what: &str) {
    let tree = db.open_tree("rows").unwrap();
    assert_eq!(tree.len().unwrap(), 5000, "{what}");
    for row in 0..5000u32 {
        let value = tree.get(&row.to_be_bytes()).unwrap();
        assert_eq!(value, Some(vec![row as u8; 700]), "{what}");
    }
}

/// Fills a compressed store in `folder`, opens it again, without the option, and makes a backup.
fn lives_in(folder: &std::path::Path, page_size: u32) {
    let path = folder.join("pond.mp");
    let options = || Options::new().memory(16 << 20).page_size(page_size);
    let db = Db::open(&path, options().compression(Compression::Lz4)).unwrap();
    fill(&db);
    db.close().unwrap();
    let db = Db::open(&path, options()).unwrap();
    holds(&db, "opened");
    fill(&db);
    db.shrink().unwrap();
    let stats = db.stats();
    let pages = (stats.store_pages - stats.free_pages) * stats.page_size;
    assert!(stats.stored_bytes > 0 && stats.stored_bytes < pages / 3, "{stats}");
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length < pages / 2 + (2 << 20), "{length} bytes for {pages}");
    let copy = folder.join("copy.mp");
    db.backup_to(&copy).unwrap();
    holds(&db, "shrunk");
    db.close().unwrap();
    let db = Db::open(&copy, options()).unwrap();
    holds(&db, "a backup");
    db.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_compressed_store_is_smaller_and_holds_what_it_held() {
    for page_size in [4096, 16384, 65536] {
        let (folder, _) = place();
        lives_in(folder.path(), page_size);
    }
}

#[test]
fn a_file_system_in_memory_takes_a_compressed_store() {
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => lives_in(folder.path(), 4096),
        Err(error) => println!("left out: there is no file system in memory here: {error}"),
    }
}

#[test]
fn a_store_keeps_what_it_was_made_with() {
    let (_folder, path) = place();
    let options = || Options::new().memory(16 << 20);
    let db = Db::open(&path, options()).unwrap();
    fill(&db);
    db.close().unwrap();
    let db = Db::open(&path, options().compression(Compression::Lz4)).unwrap();
    fill(&db);
    db.shrink().unwrap();
    let stats = db.stats();
    let pages = (stats.store_pages - stats.free_pages - 1) * stats.page_size;
    assert_eq!(stats.stored_bytes, pages, "{stats}");
    holds(&db, "not compressed");
}
