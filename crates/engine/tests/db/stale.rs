//! Pages replaced by their own older copies: what a device leaves that loses a write. Checksum and
//! page id are right, so only the page that refers to one tells that it is not the newest.
//!
//! A story: a scan went on from the upper fence of each leaf. An older copy of a leaf, from before
//! it was split, has a fence far ahead of its place, or far behind: `scan` and `dump` came to the
//! same leaves for ever, `scan --reverse` passed rows over, and lookups did not find what had
//! moved to a neighbour, all without an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use millpond::btree::{Fences, StoredNode};
use millpond::db::check::{CATALOG, CheckOptions, check};
use millpond::db::choices::TranslationMode;
use millpond::db::{Db, Error, KeyRange, Options, RawTree};
use millpond::page::{PageBuffer, PageHeader, PageType};
use millpond::pool::PoolError;
use millpond_base::PageId;

use super::{place, tiny};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store at two moments, and what it holds at the later one.
struct Aged {
    _dir: tempfile::TempDir,
    path: PathBuf,
    options: Options,
    page: usize,
    old: Vec<u8>,
    new: Vec<u8>,
    rows: Rows,
    others: Rows,
}

fn row(n: u64, bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![1 + (n % 250) as u8; bytes];
    value[..8].copy_from_slice(&n.to_be_bytes());
    (n.to_be_bytes().to_vec(), value)
}

/// A change of a store.
type Change<'a> = &'a dyn Fn(&Db);

/// A store that was closed, copied, opened and changed, and closed again.
fn age(options: &Options, first: Change<'_>, then: Change<'_>) -> Aged {
    let (dir, path) = place();
    let db = Db::open(&path, options.clone()).unwrap();
    let page = db.page_size();
    first(&db);
    db.close().unwrap();
    let old = std::fs::read(&path).unwrap();
    let db = Db::open(&path, options.clone()).unwrap();
    then(&db);
    db.close().unwrap();
    let new = std::fs::read(&path).unwrap();
    let (rows, others) = (Rows::new(), Rows::new());
    Aged { _dir: dir, path, options: options.clone(), page, old, new, rows, others }
}

/// Trees that grow to four times their size, in random order.
fn grown(options: &Options, rows: u64, bytes: usize) -> Aged {
    let put = |db: &Db, name: &str, which: &dyn Fn(u64) -> bool| {
        let tree = db.raw_tree(name).unwrap();
        let mut keys: Vec<u64> = (0..rows).filter(|n| which(*n)).collect();
        fastrand::Rng::with_seed(7).shuffle(&mut keys);
        for n in keys {
            let (key, value) = row(n, bytes);
            tree.put(&key, &value).unwrap();
        }
    };
    let first = |db: &Db| {
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

    /// A fresh store in which that page is its older copy.
    fn with_old(&self, page: u64) -> &Path {
        let mut bytes = self.new.clone();
        let at = page as usize * self.page;
        bytes[at..at + self.page].copy_from_slice(&self.old[at..at + self.page]);
        for file in std::fs::read_dir(self.path.parent().unwrap()).unwrap() {
            let _ = std::fs::remove_file(file.unwrap().path());
        }
        std::fs::write(&self.path, bytes).unwrap();
        &self.path
    }

    fn open_with_old(&self, page: u64) -> Db {
        Db::open(self.with_old(page), self.options.clone()).unwrap()
    }
}

/// Whether `error` names the page.
#[track_caller]
fn assert_names(error: &Error, page: u64) {
    let Error::Pool(PoolError::Misfit { page: named, .. }) = error else {
        panic!("page {page}: not the error of a page that does not fit: {error}")
    };
    assert_eq!(named.0, page, "{error}");
}

/// Every row right up to the error; the error, unless all rows came.
#[track_caller]
fn assert_right<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    found: impl Iterator<Item = Result<(K, V), Error>>,
    expected: &mut dyn Iterator<Item = (&Vec<u8>, &Vec<u8>)>,
) -> Option<Error> {
    for entry in found {
        match entry {
            Ok((key, value)) => {
                let (k, v) = expected.next().expect("a row too many: it goes on for ever");
                assert_eq!((key.as_ref(), value.as_ref()), (&k[..], &v[..]));
            }
            Err(error) => return Some(error),
        }
    }
    assert!(expected.next().is_none(), "rows are missing, without an error");
    None
}

/// Asks for everything in every way, with nothing changed: right, or an error that names the page.
fn read_in_all_ways(tree: &RawTree, rows: &Rows, page: u64) {
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
    assert!(failed > 0, "page {page}: nobody came by");
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
    assert_names(&tree.len().unwrap_err(), page);
    assert_names(&tree.stats().unwrap_err(), page);
    assert_names(&tree.check().unwrap_err(), page);
    for end in [tree.first(), tree.last()] {
        if let Err(error) = end {
            assert_names(&error, page);
        }
    }
}

/// Every call comes back, right or with an error; nothing else in the store is harmed.
fn change_in_all_ways(aged: &Aged, page: u64) {
    let changes: [&dyn Fn(&Db, &RawTree) -> Result<u64, Error>; 6] = [
        &|_, tree| tree.remove_range(&KeyRange::ALL),
        &|_, tree| tree.clear(),
        &|_, tree| {
            while !tree.compact(10_000)? {}
            Ok(0)
        },
        &|db, _| db.shrink().map(|_| 0),
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
        let tree = db.raw_tree("t").unwrap();
        if let Err(error) = change(&db, &tree) {
            assert_names(&error, page);
        } else {
            // Nothing moves unless it has to, and nobody need have come by.
            assert_eq!(which, 3, "page {page}: no error");
        }
        let others = db.raw_tree("others").unwrap();
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
        let tree = db.raw_tree("t").unwrap();
        read_in_all_ways(&tree, &aged.rows, page);
        let others = db.raw_tree("others").unwrap();
        assert!(assert_right(others.iter(), &mut aged.others.iter()).is_none());
        drop((tree, others));
        db.close().unwrap();
    }
}

fn translated(options: Options, translation: TranslationMode) -> Options {
    options.lab(|lab| lab.translation = translation)
}

const TRANSLATIONS: [TranslationMode; 2] = [TranslationMode::Swizzled, TranslationMode::Hashed];

#[test]
fn a_leaf_replaced_by_its_older_copy_is_an_error_and_not_a_loop() {
    for translation in TRANSLATIONS {
        let aged = grown(&translated(Options::new().memory(16 << 20), translation), 4000, 200);
        let leaves = aged.moved_nodes(PageType::BTREE_LEAF);
        assert!(leaves.len() > 10, "{leaves:?}");
        assert_found_out(&aged, &a_few(&leaves, 8));
    }
}

#[test]
fn a_pool_of_sixteen_frames_finds_older_leaves_and_inner_nodes_out() {
    for translation in TRANSLATIONS {
        let aged = grown(&translated(tiny(16), translation), 2000, 20);
        for kind in [PageType::BTREE_LEAF, PageType::BTREE_INNER] {
            let nodes = aged.moved_nodes(kind);
            assert!(nodes.len() > 3, "{nodes:?}");
            assert_found_out(&aged, &a_few(&nodes, 5));
        }
    }
}

#[test]
fn changes_that_meet_an_older_page_come_back_and_harm_no_other_tree() {
    for translation in TRANSLATIONS {
        let aged = grown(&translated(tiny(24), translation), 1500, 20);
        for kind in [PageType::BTREE_LEAF, PageType::BTREE_INNER] {
            for page in a_few(&aged.moved_nodes(kind), 3) {
                change_in_all_ways(&aged, page);
            }
        }
    }
}
