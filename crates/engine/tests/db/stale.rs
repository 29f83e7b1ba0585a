//! Pages replaced by their own older copies, as a device leaves them that loses a write. Checksum
//! and page id are right, so only the page that refers to one tells that it is not the newest.
//!
//! A story: a scan went on from the upper fence of each leaf. An older copy of a leaf, from before
//! it was split, has a fence far ahead of its place, or far behind. `scan` and `dump` read the same
//! leaves for ever, `scan --reverse` skipped rows, and lookups did not find rows that had moved to
//! a neighbour, all without an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use millpond::internals::admin::check::{CATALOG, CheckOptions, check};
use millpond::internals::btree::{Fences, StoredNode};
use millpond::internals::page::{PageBuffer, PageHeader, PageType};
use millpond::internals::pool::PoolError;
use millpond::internals::store::options::choices::TranslationMode;
use millpond::{Error, KeyRange, Options, Placement};
use millpond_base::PageId;

use super::any_store::{TestStore, TestTree, open};
use super::{place, tiny};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store at two moments, and its contents at the later one.
struct Aged {
    _dir: tempfile::TempDir,
    path: PathBuf,
    options: Options,
    page: usize,
    old: Vec<u8>,
    new: Vec<u8>,
    /// The log, if there is one, at the later moment.
    beside: Vec<(PathBuf, Vec<u8>)>,
    rows: Rows,
    others: Rows,
}

fn row(n: u64, bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![1 + (n % 250) as u8; bytes];
    value[..8].copy_from_slice(&n.to_be_bytes());
    (n.to_be_bytes().to_vec(), value)
}

/// A change of a store.
type Change<'a> = &'a dyn Fn(&dyn TestStore);

/// A store that was closed, copied, opened and changed, and closed again.
fn age(options: &Options, first: Change<'_>, then: Change<'_>) -> Aged {
    // Out of place the page map tells an older version from the newest.
    let options = &options.clone().lab(|lab| lab.placement = Placement::InPlace);
    let (dir, path) = place();
    let db = open(&path, options.clone()).unwrap();
    let page = db.page_size();
    first(&*db);
    db.close().unwrap();
    let old = std::fs::read(&path).unwrap();
    let db = open(&path, options.clone()).unwrap();
    then(&*db);
    db.close().unwrap();
    let new = std::fs::read(&path).unwrap();
    let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
    let beside = files.filter(|file| *file != path);
    let beside = beside.map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
    let (rows, others) = (Rows::new(), Rows::new());
    Aged { _dir: dir, path, options: options.clone(), page, old, new, beside, rows, others }
}

/// Trees that grow to four times their size, in random order.
fn grown(options: &Options, rows: u64, bytes: usize) -> Aged {
    let put = |db: &dyn TestStore, name: &str, which: &dyn Fn(u64) -> bool| {
        let tree = db.tree(name).unwrap();
        let mut keys: Vec<u64> = (0..rows).filter(|n| which(*n)).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut keys);
        for n in keys {
            let (key, value) = row(n, bytes);
            tree.put(&key, &value).unwrap();
        }
    };
    let first = |db: &dyn TestStore| {
        put(db, "others", &|n| n < rows / 4);
        put(db, "t", &|n| n % 4 == 0);
    };
    let mut aged = age(options, &first, &|db| put(db, "t", &|n| n % 4 != 0));
    aged.rows = (0..rows).map(|n| row(n, bytes)).collect();
    aged.others = (0..rows / 4).map(|n| row(n, bytes)).collect();
    aged
}

impl Aged {
    fn pages(&self) -> u64 {
        (self.old.len() / self.page) as u64
    }

    /// The page as it was, and as it is; `None` if it was no page of that type, or was not sound.
    fn both(&self, page: u64, kind: PageType) -> Option<[PageBuffer; 2]> {
        let at = page as usize * self.page;
        let both = [&self.old, &self.new].map(|bytes| {
            bytes.get(at..at + self.page).filter(|bytes| {
                let header = PageHeader::read(bytes);
                header.kind == kind && PageHeader::is_sound(PageId(page), bytes)
            })
        });
        let [old, new] = [both[0]?, both[1]?];
        let same_owner = PageHeader::read(old).owner == PageHeader::read(new).owner;
        (same_owner && old != new).then(|| [old, new].map(PageBuffer::copy_of))
    }

    /// The nodes of that type whose fences moved.
    fn moved_nodes(&self, kind: PageType) -> Vec<u64> {
        let fences = |page: &PageBuffer| -> Fences {
            StoredNode::of(page.view()).map(StoredNode::fences).unwrap_or_default()
        };
        let moved = |page: &u64| {
            let both = self.both(*page, kind);
            both.is_some_and(|[old, new]| fences(&old) != fences(&new))
        };
        (2..self.pages()).filter(moved).collect()
    }

    /// Pages of that type whose bytes `place`, which describe their place, differ from before.
    fn moved(&self, kind: PageType, place: std::ops::Range<usize>) -> Vec<u64> {
        let moved = |page: &u64| {
            let both = self.both(*page, kind);
            both.is_some_and(|[old, new]| old.bytes()[place.clone()] != new.bytes()[place.clone()])
        };
        (2..self.pages()).filter(moved).collect()
    }

    /// Pages that belonged to another structure, and are of type `kind` now.
    fn inherited(&self, kind: PageType) -> Vec<u64> {
        let header = |bytes: &[u8], page: u64| {
            let at = page as usize * self.page;
            let bytes = bytes.get(at..at + self.page)?;
            PageHeader::is_sound(PageId(page), bytes).then(|| PageHeader::read(bytes))
        };
        let passed = |page: &u64| match (header(&self.old, *page), header(&self.new, *page)) {
            (Some(old), Some(new)) => new.kind == kind && old.owner != new.owner,
            _ => false,
        };
        (2..self.pages()).filter(passed).collect()
    }

    /// A fresh store in which that page is its older copy.
    fn with_old(&self, page: u64) -> &Path {
        let mut bytes = self.new.clone();
        let at = page as usize * self.page;
        bytes[at..at + self.page].copy_from_slice(&self.old[at..at + self.page]);
        for file in std::fs::read_dir(self.path.parent().unwrap()).unwrap() {
            let _ = std::fs::remove_file(file.unwrap().path());
        }
        std::fs::write(&self.path, bytes).unwrap();
        for (file, bytes) in &self.beside {
            std::fs::write(file, bytes).unwrap();
        }
        &self.path
    }

    fn open_with_old(&self, page: u64) -> Box<dyn TestStore> {
        open(self.with_old(page), self.options.clone()).unwrap()
    }
}

/// Asserts that `error` names the page, or one that it refers to in vain.
#[track_caller]
fn assert_names(error: &Error, page: u64) {
    let Error::Pool(PoolError::Misfit { page: named, parent, .. }) = error else {
        panic!("page {page}: not the error of a page that does not fit: {error}")
    };
    assert!(named.0 == page || *parent == Some(PageId(page)), "page {page}: {error}");
}

/// Asserts that every row up to the error is right. Returns the error, or `None` after all rows.
#[track_caller]
fn assert_right<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    found: impl Iterator<Item = Result<(K, V), Error>>,
    expected: &mut dyn Iterator<Item = (&Vec<u8>, &Vec<u8>)>,
) -> Option<Error> {
    for entry in found {
        match entry {
            Ok((key, value)) => {
                let (k, v) = expected.next().expect("a row too many: the walk does not end");
                assert_eq!((key.as_ref(), value.as_ref()), (&k[..], &v[..]));
            }
            Err(error) => return Some(error),
        }
    }
    assert!(expected.next().is_none(), "rows are missing, without an error");
    None
}

/// Reads everything in every way: each result is right, or an error that names the page.
fn read_in_all_ways(tree: &dyn TestTree, rows: &Rows, page: u64) {
    let mut failed = 0;
    for (key, value) in rows {
        match tree.get(key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value), "page {page}"),
            Err(error) => {
                assert_names(&error, page);
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "page {page}: no lookup reads it");
    let error = assert_right(tree.iter(), &mut rows.iter());
    assert_names(&error.expect("forwards"), page);
    let error = assert_right(tree.iter().rev(), &mut rows.iter().rev());
    assert_names(&error.expect("backwards"), page);
    for prefix in 0..=(rows.len() as u64 >> 8) {
        let prefix = &prefix.to_be_bytes()[..7];
        let mut inside = rows.iter().filter(|(key, _)| key.starts_with(prefix));
        if let Some(error) = assert_right(tree.prefix(prefix), &mut inside) {
            assert_names(&error, page);
        }
    }
    assert_names(&tree.stats().unwrap_err(), page);
    assert_names(&tree.check().unwrap_err(), page);
    for end in [tree.first(), tree.last()] {
        if let Err(error) = end {
            assert_names(&error, page);
        }
    }
}

/// Something that changes a tree.
type Attempt<'a> = &'a dyn Fn(&dyn TestStore, &dyn TestTree) -> Result<u64, Error>;

/// Changes the tree in every way: each call returns, and no other tree is harmed.
fn change_in_all_ways(aged: &Aged, page: u64) {
    let backup = aged.path.with_extension("backup");
    let changes: [Attempt<'_>; 7] = [
        // It copies pages as they are, and needs a log, which a store of tiny pages has not.
        &|db, _| if aged.page < 4096 { Ok(0) } else { db.db().backup_to(&backup).map(|_| 0) },
        &|db, _| db.shrink().map(|_| 0),
        &|_, tree| tree.remove_range(&KeyRange::ALL),
        &|_, tree| tree.clear(),
        &|_, tree| {
            while !tree.compact(10_000)? {}
            Ok(0)
        },
        &|_, tree| {
            let mut first = Ok(0);
            for key in aged.rows.keys() {
                first = first.and(tree.delete(key).map(u64::from));
            }
            first
        },
        &|_, tree| {
            let mut first = Ok(0);
            for (key, value) in &aged.rows {
                first = first.and(tree.put(key, value).map(u64::from));
            }
            first
        },
    ];
    for (which, change) in changes.into_iter().enumerate() {
        let db = aged.open_with_old(page);
        let tree = db.tree("t").unwrap();
        if let Err(error) = change(&*db, &*tree) {
            assert_names(&error, page);
        } else {
            // A backup and a shrink need not have read the page.
            assert!(which < 2, "page {page}: no error");
        }
        let others = db.tree("others").unwrap();
        assert!(assert_right(others.iter(), &mut aged.others.iter()).is_none());
        drop((tree, others));
        db.close().unwrap();
    }
}

fn a_few(pages: &[u64], most: usize) -> Vec<u64> {
    let step = (pages.len() / most).max(1);
    pages.iter().copied().step_by(step).take(most).collect()
}

fn assert_found_out(aged: &Aged, pages: &[u64]) {
    for &page in pages {
        let report = check(aged.with_old(page), CATALOG, CheckOptions::default()).unwrap();
        assert!(!report.problems.is_empty(), "page {page}: `check` finds nothing");
        let db = aged.open_with_old(page);
        let tree = db.tree("t").unwrap();
        read_in_all_ways(&*tree, &aged.rows, page);
        let others = db.tree("others").unwrap();
        assert!(assert_right(others.iter(), &mut aged.others.iter()).is_none());
        drop((tree, others));
        db.close().unwrap();
    }
}

fn translated(options: Options, translation: TranslationMode) -> Options {
    options.lab(|lab| lab.translation = translation)
}

const TRANSLATIONS: &[TranslationMode] = if cfg!(feature = "lab") {
    &[TranslationMode::Swizzled, TranslationMode::Hashed]
} else {
    &[TranslationMode::Swizzled]
};

#[test]
fn a_leaf_replaced_by_its_older_copy_is_an_error_and_not_a_loop() {
    for &translation in TRANSLATIONS {
        let aged = grown(&translated(Options::new().memory(16 << 20), translation), 4000, 200);
        let leaves = aged.moved_nodes(PageType::BTREE_LEAF);
        assert!(leaves.len() > 10, "{leaves:?}");
        assert_found_out(&aged, &a_few(&leaves, 8));
    }
}

#[test]
fn a_pool_of_sixteen_frames_finds_older_leaves_and_inner_nodes_out() {
    for &translation in TRANSLATIONS {
        let aged = grown(&translated(tiny(16), translation), 2000, 20);
        for kind in [PageType::BTREE_LEAF, PageType::BTREE_INNER] {
            let nodes = aged.moved_nodes(kind);
            assert!(nodes.len() > 1, "{nodes:?}");
            assert_found_out(&aged, &a_few(&nodes, 5));
        }
    }
}

#[test]
fn changes_that_meet_an_older_page_return_and_harm_no_other_tree() {
    for &translation in TRANSLATIONS {
        let aged = grown(&translated(tiny(24), translation), 1500, 20);
        for kind in [PageType::BTREE_LEAF, PageType::BTREE_INNER] {
            for page in a_few(&aged.moved_nodes(kind), 3) {
                change_in_all_ways(&aged, page);
            }
        }
    }
    let aged = grown(&Options::new().memory(16 << 20).lab(|lab| lab.log = true), 4000, 200);
    assert!(!aged.beside.is_empty());
    change_in_all_ways(&aged, aged.moved_nodes(PageType::BTREE_LEAF)[3]);
}

#[test]
fn an_older_inner_node_whose_fences_stayed_leads_to_pages_that_do_not_fit_it() {
    for &translation in TRANSLATIONS {
        let aged = grown(&translated(tiny(16), translation), 2000, 20);
        // Count of separators.
        let nodes = aged.moved(PageType::BTREE_INNER, 32..34);
        let moved = aged.moved_nodes(PageType::BTREE_INNER);
        let stayed: Vec<u64> = nodes.into_iter().filter(|page| !moved.contains(page)).collect();
        assert!(!stayed.is_empty());
        assert_found_out(&aged, &a_few(&stayed, 5));
    }
}

#[test]
fn threads_that_load_one_older_page_all_get_its_error_and_no_frame_is_lost() {
    for &translation in TRANSLATIONS {
        let aged = grown(&translated(tiny(24), translation), 1000, 20);
        let page = *aged.moved_nodes(PageType::BTREE_LEAF).first().unwrap();
        let db = aged.open_with_old(page);
        let tree = db.tree("t").unwrap();
        let read_all = || {
            let mut failed = 0;
            for (key, value) in aged.rows.iter().cycle().take(4 * aged.rows.len()) {
                match tree.get(key) {
                    Ok(found) => assert_eq!(found.as_ref(), Some(value), "page {page}"),
                    Err(error) => {
                        assert_names(&error, page);
                        failed += 1;
                    }
                }
            }
            failed
        };
        let failed = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(read_all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<u32>>()
        });
        assert!(failed.iter().all(|n| *n > 24 && *n == failed[0]), "{failed:?}");
        drop(tree);
        db.close().unwrap();
    }
}

/// Asserts that every entry up to the error is right and returned once. Returns the error.
#[track_caller]
fn assert_entries<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    found: impl Iterator<Item = Result<(K, V), Error>>,
    rows: &Rows,
) -> Option<Error> {
    let mut left = rows.clone();
    for entry in found {
        match entry {
            Ok((key, value)) => {
                let right = left.remove(key.as_ref());
                assert_eq!(right.as_deref(), Some(value.as_ref()), "twice, or wrong");
            }
            Err(error) => return Some(error),
        }
    }
    assert!(left.is_empty(), "{} entries are missing, without an error", left.len());
    None
}

#[test]
fn an_older_bucket_of_a_hash_index_is_an_error() {
    let put = |db: &dyn TestStore, which: &dyn Fn(u64) -> bool| {
        let index = db.db().raw_hash_index("t").unwrap();
        for n in (0..1500).filter(|n| which(*n)) {
            let (key, value) = row(n, 20);
            index.put(&key, &value).unwrap();
        }
    };
    let options = tiny(16);
    let first = |db: &dyn TestStore| put(db, &|n| n % 4 == 0);
    let mut aged = age(&options, &first, &|db| put(db, &|n| n % 4 != 0));
    aged.rows = (0..1500).map(|n| row(n, 20)).collect();
    // Leading bits; and of directories, how many hash bits each slot's child shares.
    let buckets = aged.moved(PageType::HASH_BUCKET, 34..36);
    let directories = aged.moved(PageType::HASH_ROOT, 64..96);
    assert!(buckets.len() > 10 && !directories.is_empty(), "{buckets:?} {directories:?}");
    for page in a_few(&buckets, 5).into_iter().chain(a_few(&directories, 3)) {
        let report = check(aged.with_old(page), CATALOG, CheckOptions::default()).unwrap();
        assert!(!report.problems.is_empty(), "page {page}: `check` finds nothing");
        let db = aged.open_with_old(page);
        let index = db.db().raw_hash_index("t").unwrap();
        let mut failed = 0;
        for (key, value) in &aged.rows {
            match index.get(key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value), "page {page}"),
                Err(error) => {
                    assert_names(&error, page);
                    failed += 1;
                }
            }
        }
        assert!(failed > 0, "page {page}: no lookup reads it");
        let error = assert_entries(index.iter(), &aged.rows);
        assert_names(&error.expect("an older page"), page);
        assert_names(&index.len().unwrap_err(), page);
        assert_names(&index.clear().unwrap_err(), page);
        drop(index);
        db.close().unwrap();
    }
}

#[test]
fn an_older_directory_of_a_heap_is_an_error_unless_it_is_the_last() {
    let append = |db: &dyn TestStore, rows: std::ops::Range<u64>| {
        let heap = db.db().raw_heap("t").unwrap();
        for n in rows {
            heap.append(&row(n, 20).1).unwrap();
        }
    };
    let options = tiny(16);
    let first = |db: &dyn TestStore| append(db, 0..700);
    let aged = age(&options, &first, &|db| append(db, 700..4000));
    // Children.
    let directories = aged.moved(PageType::HEAP_DIRECTORY, 32..34);
    let below: Vec<u64> = directories
        .into_iter()
        .filter(|page| aged.both(*page, PageType::HEAP_DIRECTORY).unwrap()[1].bytes()[29] == 1)
        .collect();
    assert!(!below.is_empty());
    for page in below {
        let report = check(aged.with_old(page), CATALOG, CheckOptions::default()).unwrap();
        assert!(!report.problems.is_empty(), "page {page}: `check` finds nothing");
        let db = aged.open_with_old(page);
        let heap = db.db().raw_heap("t").unwrap();
        for backwards in [false, true] {
            let mut records = heap.records().unwrap();
            let mut n = 0;
            let error = loop {
                let next = if backwards { records.next_back() } else { records.next() };
                let Some(next) = next else { panic!("records are missing, without an error") };
                let Ok((_, record)) = next else { break next.unwrap_err() };
                let at = if backwards { 3999 - n } else { n };
                assert_eq!(record, row(at, 20).1, "page {page}");
                n += 1;
            };
            assert_names(&error, page);
        }
        assert_names(&heap.len().unwrap_err(), page);
        drop(heap);
        db.close().unwrap();
    }
}

#[test]
fn an_older_part_of_a_large_value_is_an_error() {
    for &translation in TRANSLATIONS {
        // Up to two levels of references above the data.
        let lens = [400usize, 3000, 40_000, 464, 9000, 27_000];
        let values = |salt: u64| -> Rows {
            let value = |n: usize| vec![(salt + n as u64) as u8; lens[n % 6] + 300];
            (0..18).map(|n| (vec![n as u8], value(n))).collect()
        };
        let put = |db: &dyn TestStore, salt: u64| {
            let tree = db.tree("t").unwrap();
            for (key, value) in values(salt) {
                tree.put(&key, &value).unwrap();
            }
        };
        let options = translated(tiny(24), translation);
        let mut aged = age(&options, &|db| put(db, 1), &|db| put(db, 100));
        aged.rows = values(100);
        // The stamp.
        let parts = aged.moved(PageType::OVERFLOW, 32..40);
        assert!(parts.len() > 20, "{parts:?}");
        for page in a_few(&parts, 12) {
            let report = check(aged.with_old(page), CATALOG, CheckOptions::default()).unwrap();
            assert!(!report.problems.is_empty(), "page {page}: `check` finds nothing");
            let db = aged.open_with_old(page);
            let tree = db.tree("t").unwrap();
            let mut failed = 0;
            for (key, value) in &aged.rows {
                match tree.get(key) {
                    Ok(found) => assert_eq!(found.as_ref(), Some(value), "page {page}"),
                    Err(error) => {
                        assert_names(&error, page);
                        failed += 1;
                    }
                }
            }
            assert_eq!(failed, 1, "page {page}: one value is lost");
            let error = assert_right(tree.iter(), &mut aged.rows.iter());
            assert_names(&error.expect("forwards"), page);
            let error = assert_right(tree.iter().rev(), &mut aged.rows.iter().rev());
            assert_names(&error.expect("backwards"), page);
            assert_names(&tree.clear().unwrap_err(), page);
            drop(tree);
            db.close().unwrap();
        }
    }
}

#[test]
fn a_page_as_it_was_when_it_belonged_to_another_structure_is_an_error() {
    let first = |db: &dyn TestStore| {
        let gone = db.tree("gone").unwrap();
        db.tree("stays").unwrap();
        for n in 0..2000 {
            let (key, value) = row(n, 40);
            gone.put(&key, &value).unwrap();
        }
    };
    let then = |db: &dyn TestStore| {
        db.db().drop_tree("gone").unwrap();
        let (tree, heap) = (db.tree("t").unwrap(), db.db().raw_heap("h").unwrap());
        let index = db.db().raw_hash_index("i").unwrap();
        for n in 0..300 {
            let (key, value) = row(n, 40);
            tree.put(&key, &value).unwrap();
            index.put(&key, &value).unwrap();
            heap.append(&value).unwrap();
        }
    };
    let mut aged = age(&tiny(16), &first, &then);
    aged.rows = (0..300).map(|n| row(n, 40)).collect();
    for kind in [PageType::BTREE_LEAF, PageType::HASH_BUCKET, PageType::HEAP_DATA] {
        let pages = aged.inherited(kind);
        assert!(pages.len() > 3, "{kind:?}: {pages:?}");
        for page in a_few(&pages, 3) {
            let db = aged.open_with_old(page);
            let tree = db.tree("t").unwrap();
            let index = db.db().raw_hash_index("i").unwrap();
            let heap = db.db().raw_heap("h").unwrap();
            let records =
                heap.records().unwrap().map(|next| next.map(|(_, r)| (r[..8].to_vec(), r)));
            let errors = [
                assert_right(tree.iter(), &mut aged.rows.iter()),
                assert_entries(index.iter(), &aged.rows),
                assert_entries(records, &aged.rows),
            ];
            let errors: Vec<&Error> = errors.iter().flatten().collect();
            assert_eq!(errors.len(), 1, "page {page}: one structure has it: {errors:?}");
            assert_names(errors[0], page);
            drop((tree, index, heap));
            db.close().unwrap();
        }
    }
}
