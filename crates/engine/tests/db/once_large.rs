//! Stores that were large once: dropped structures leave many page ids and few places in the file.
//!
//! Readers bounded the page ids by the length of the file, and no writer kept that bound. A store
//! of 60 MB whose contents were dropped could not be opened after a shrink, nor could its backup.

use std::sync::Arc;

use millpond::internals::admin::check::CATALOG;
use millpond::internals::admin::dump::{DumpReader, DumpWriter, Form, Item};
use millpond::internals::admin::salvage::salvage;
use millpond::internals::btree::BulkOptions;
use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond::{Compression, Db, Durability, KeyRange, Options, Placement};
use millpond_base::rounds::rounds;
use millpond_device::{AlignedBuffer, Device, MemoryDevice, PowerSupply};

const KEPT: u32 = 200;

/// Ways to write pages.
const FORMS: [(Placement, Compression); 3] = [
    (Placement::OutOfPlace, Compression::None),
    (Placement::OutOfPlace, Compression::Lz4),
    (Placement::InPlace, Compression::None),
];

fn options(size: PageSize, form: (Placement, Compression)) -> Options {
    let options = Options::new().memory(16 << 20).durability(Durability::Async);
    let options = options.page_size(size.bytes() as u32).compression(form.1);
    options.lab(|lab| lab.placement = form.0)
}

/// A value that hardly gets shorter by compression.
fn value(key: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(u64::from(key));
    std::iter::repeat_with(|| random.u8(..)).take(1000).collect()
}

fn fill(db: &Db, name: &str, keys: std::ops::Range<u32>) {
    let rows = keys.map(|key| (key.to_be_bytes().to_vec(), value(key)));
    db.raw_tree(name).unwrap().bulk_load(rows, BulkOptions::default()).unwrap();
}

/// A store in which a tree of `megabytes` was dropped and another one is kept.
fn once_large(data: Arc<dyn Device>, log: Arc<dyn Device>, options: Options, megabytes: u32) -> Db {
    let db = Db::open_on_devices(data, log, options).unwrap();
    fill(&db, "gone", 0..megabytes * 1000);
    fill(&db, "kept", 0..KEPT);
    db.drop_tree("gone").unwrap();
    db
}

fn holds(db: &Db, what: &str) {
    let tree = db.open_tree("kept").unwrap();
    assert_eq!(tree.len().unwrap(), u64::from(KEPT), "{what}");
    for key in 0..KEPT {
        assert_eq!(tree.get(&key.to_be_bytes()).unwrap(), Some(value(key)), "{what}: {key}");
    }
}

/// Entries that a salvage of the device finds.
fn salvaged(device: Arc<dyn Device>) -> usize {
    let store = PageStore::salvage_on(device, None).unwrap();
    let mut out = DumpWriter::new(Vec::new(), Form::Text).unwrap();
    salvage(&store, CATALOG, &mut out).unwrap();
    let bytes = out.finish().unwrap();
    let mut reader = DumpReader::new(&bytes[..]).unwrap();
    let (mut found, mut is_kept) = (0, false);
    let (mut key, mut bytes) = (Vec::new(), Vec::new());
    loop {
        match reader.read(&mut key, &mut bytes).unwrap() {
            Item::Structure(_, name, _) => is_kept = name == "kept",
            Item::Entry => found += usize::from(is_kept),
            Item::End => return found,
        }
    }
}

/// Each page size with the megabytes at which its stores could not be opened.
fn sizes() -> Vec<(PageSize, u32)> {
    let all = [
        (PageSize::KIB_4, 60),
        (PageSize::KIB_64, 110),
        (PageSize::KIB_8, 80),
        (PageSize::KIB_16, 80),
        (PageSize::KIB_32, 90),
    ];
    all[..rounds(2, 5) as usize].to_vec()
}

#[test]
fn a_store_that_was_large_and_was_shrunk_opens_again_and_can_be_salvaged() {
    for (size, megabytes) in sizes() {
        for form in FORMS {
            let what = format!("{size:?} {form:?}");
            let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
            let db = once_large(data.clone(), log.clone(), options(size, form), megabytes);
            db.shrink().unwrap();
            assert!(data.length() < 8 << 20, "{what}: {}", data.length());
            holds(&db, &what);
            db.close().unwrap();
            assert_eq!(salvaged(data.clone()), KEPT as usize, "{what}");
            // Without a map, and without a superblock.
            let mut bytes = AlignedBuffer::new(data.length() as usize);
            data.read(0, &mut bytes).unwrap();
            bytes[..size.bytes()].fill(0xEE);
            let headless = Arc::new(MemoryDevice::from_bytes(&bytes));
            assert_eq!(salvaged(headless), KEPT as usize, "{what}, without a superblock");
            let db = Db::open_on_devices(data, log, options(size, form)).expect(&what);
            holds(&db, &what);
            fill(&db, "again", 0..1000);
            db.close().unwrap();
        }
    }
}

#[test]
fn a_store_that_was_large_and_was_shrunk_is_recovered_after_a_crash() {
    for (size, megabytes) in sizes() {
        for form in FORMS {
            let what = format!("{size:?} {form:?}");
            let supply = PowerSupply::new();
            let data = supply.device("data", MemoryDevice::new());
            let log = supply.device("log", MemoryDevice::new());
            let db = once_large(data, log, options(size, form), megabytes);
            db.shrink().unwrap();
            db.flush().unwrap();
            supply.cut();
            drop(db);
            let (_supply, devices) = supply.images(7);
            let [data, log] = &devices[..] else { panic!("two devices") };
            let db = Db::open_on_devices(data.clone(), log.clone(), options(size, form));
            let db = db.expect(&what);
            holds(&db, &what);
            db.close().unwrap();
        }
    }
}

#[test]
fn a_backup_of_what_was_large_opens_and_can_be_salvaged_without_a_superblock() {
    for (size, megabytes) in sizes() {
        for form in FORMS {
            let what = format!("{size:?} {form:?}");
            let folder = tempfile::tempdir().unwrap();
            let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
            let db = once_large(data, log, options(size, form), 2 * megabytes);
            // Out of place, the pages that are left move to the front of the file, where a backup
            // ends behind them. Their ids stay.
            db.checkpoint().unwrap();
            let tree = db.open_tree("kept").unwrap();
            for shift in [1, 0] {
                for key in 0..KEPT * (1 + 2 * shift) {
                    tree.put(&key.to_be_bytes(), &value(key + shift)).unwrap();
                }
                db.checkpoint().unwrap();
            }
            tree.remove_range(KeyRange::of::<Vec<u8>, &[u8]>(&KEPT.to_be_bytes()[..]..)).unwrap();
            drop(tree);
            for (name, is_shrunk) in [("copy.mp", false), ("shrunk.mp", true)] {
                let what = format!("{what}, shrunk: {is_shrunk}");
                if is_shrunk {
                    db.shrink().unwrap();
                }
                let target = folder.path().join(name);
                db.backup_to(&target).expect(&what);
                holds(&db, &what);
                let mut bytes = std::fs::read(&target).unwrap();
                let copy = Db::open(&target, options(size, form)).expect(&what);
                holds(&copy, &what);
                copy.close().unwrap();
                bytes[..size.bytes()].fill(0xEE);
                let headless = Arc::new(MemoryDevice::from_bytes(&bytes));
                assert_eq!(salvaged(headless), KEPT as usize, "{what}, without a superblock");
            }
            db.close().unwrap();
        }
    }
}

#[test]
fn a_store_of_any_size_can_be_shrunk_copied_opened_and_salvaged() {
    for seed in 0..rounds(8, 80) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (size, form) = (PageSize::ALL[seed as usize % 5], FORMS[random.usize(..3)]);
        let megabytes = |random: &mut fastrand::Rng| match random.u32(..4) {
            0 => 0,
            1 => random.u32(1..10),
            _ => random.u32(10..100),
        };
        let first = megabytes(&mut random);
        let mut what = format!("seed {seed}: {size:?} {form:?}, {first} MB");
        let folder = tempfile::tempdir().unwrap();
        let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
        let open = || Db::open_on_devices(data.clone(), log.clone(), options(size, form));
        let mut db = once_large(data.clone(), log.clone(), options(size, form), first);
        for step in 0..random.u32(2..5) {
            match random.u32(..4) {
                0 => {
                    what += ", shrunk";
                    db.shrink().expect(&what);
                }
                1 => {
                    what += ", copied";
                    let target = folder.path().join(format!("{step}.mp"));
                    db.backup_to(&target).expect(&what);
                    let copy = Db::open(&target, options(size, form)).expect(&what);
                    holds(&copy, &what);
                    copy.close().expect(&what);
                    let bytes = std::fs::read(&target).unwrap();
                    let copy = Arc::new(MemoryDevice::from_bytes(&bytes));
                    assert_eq!(salvaged(copy), KEPT as usize, "{what}");
                }
                2 => {
                    let more = megabytes(&mut random) / 2;
                    what += &format!(", {more} MB more");
                    fill(&db, "more", 0..more * 1000);
                    db.drop_tree("more").expect(&what);
                }
                _ => {
                    what += ", opened again";
                    db.close().expect(&what);
                    db = open().expect(&what);
                }
            }
            holds(&db, &what);
        }
        assert!(db.check().unwrap().is_sound(), "{what}");
        db.close().expect(&what);
        assert_eq!(salvaged(data.clone()), KEPT as usize, "{what}");
        let db = open().expect(&what);
        holds(&db, &what);
        db.close().expect(&what);
    }
}
