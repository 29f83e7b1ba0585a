//! Stores as users see them: trees by name, every combination, closing and reopening.

mod any_store;
mod beside_the_pool;
mod bounds;
mod busy;
mod closed_log;
mod closing;
mod combinations;
mod compressed;
mod creation;
mod ending;
mod errors;
mod file_sizes;
mod fork;
mod in_place;
#[cfg(feature = "lab")]
mod lab_store;
mod len;
mod life;
mod many;
mod memory;
mod merging;
mod once_large;
mod opening;
mod passing;
mod paths;
mod policies;
mod read_ahead;
mod read_path;
mod remains;
mod scans;
mod small_stack;
mod spans;
mod stale;
mod statistics;
mod stores;
mod structures;
mod threads;
mod typed;
mod types;

use std::path::PathBuf;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::{Db, Options};

/// A path in a directory of its own, which is removed with the guard.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.mill");
    (dir, path)
}

/// Few and small pages, so that everything splits, merges and is evicted all the time.
fn tiny(frames: u32) -> Options {
    Options::new().page_size(512).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(frames);
        lab.batch = Some(2);
    })
}

/// Checks the closed store, and panics if that finds a problem.
fn assert_sound(path: &std::path::Path) {
    let report = check(path, CATALOG, CheckOptions::default()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Free pages of a store that was just opened, and so has reserved none for new pages.
fn free_pages(db: &Db) -> u64 {
    db.stats().free_pages
}
