//! Each failure has an error of its own type.

use std::sync::Arc;

use millpond::error::OptionsError;
use millpond::internals::btree::{BulkError, BulkOptions, WriteError};
use millpond::internals::io::OpenError;
use millpond::internals::store::{Combination, LabError, LatchingMode, TranslationMode};
use millpond::{Db, Error, Options};
use millpond_device::{Device, MemoryDevice, OpenFileError};

use super::{place, tiny};

#[test]
fn a_store_with_other_pages_than_asked_for_is_not_opened_and_stays_whole() {
    let (_dir, path) = place();
    Db::open(&path, Options::new().memory(8 << 20).page_size(8192)).unwrap().close().unwrap();
    let error = Db::open(&path, Options::new().memory(8 << 20).page_size(4096)).unwrap_err();
    assert!(matches!(error, Error::Open(OpenError::PageSizeDiffers { .. })), "{error}");
    // Any page size: that of the store.
    let db = Db::open(&path, Options::new().memory(8 << 20)).unwrap();
    assert_eq!(db.page_size(), 8192);
}

#[test]
fn a_store_that_is_open_is_not_opened_again() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(64)).unwrap();
    let error = Db::open(&path, tiny(64)).unwrap_err();
    let pid = std::process::id();
    assert!(
        matches!(&error, Error::Open(OpenError::File(OpenFileError::Locked { pid: p, .. }))
            if *p == Some(pid)),
        "{error}"
    );
    drop(db);
    Db::open(&path, tiny(64)).unwrap();
}

/// Lines of the error of a combination that is not compiled: what was asked for, each combination
/// there is, and the feature that has more.
const LINES_OF_REFUSAL: usize = 1 + Combination::ALL.len() + !cfg!(feature = "lab") as usize;

#[test]
fn options_that_cannot_be_leave_no_file_behind() {
    let (_dir, path) = place();
    let error = |options: Options| {
        let error = Db::open(&path, options).unwrap_err();
        assert!(!path.exists(), "{error}");
        error
    };
    assert!(matches!(error(tiny(64).policy("lur")), Error::Options(OptionsError::Policy(_))));
    assert!(matches!(error(Options::new().memory(5)), Error::Options(OptionsError::Budget(_))));
    assert!(matches!(error(tiny(64).create_if_missing(false)), Error::NoStore { .. }));
    assert!(matches!(error(tiny(64).read_only(true)), Error::NoStore { .. }));
    let hashed = tiny(64).lab(|lab| {
        lab.translation = TranslationMode::Hashed;
        lab.records = true;
    });
    let wrong = error(hashed);
    assert!(matches!(wrong, Error::Lab(LabError::Combination(_))));
    assert_eq!(wrong.to_string().lines().count(), LINES_OF_REFUSAL);
}

/// Strategies of the laboratory, which users cannot choose.
fn of_the_laboratory() -> [Options; 4] {
    [
        tiny(64).lab(|lab| lab.translation = TranslationMode::Hashed),
        tiny(64).policy("lru").lab(|lab| lab.latching = LatchingMode::Latched),
        tiny(64).policy("watt").lab(|lab| lab.latching = LatchingMode::None),
        tiny(64).lab(|lab| lab.records = true),
    ]
}

/// Returns `true` if a `Db` is refused for strategies of the laboratory, with advice.
fn is_refused(error: &Error) -> bool {
    let text = error.to_string();
    if cfg!(feature = "lab") {
        let what_to_do = ["Store<M>", "Combination::visit", "as they are by default"];
        matches!(error, Error::Lab(LabError::NotForUsers { .. }))
            && what_to_do.iter().all(|part| text.contains(part))
    } else {
        matches!(error, Error::Lab(LabError::Combination(_)))
            && text.lines().count() == LINES_OF_REFUSAL
    }
}

#[test]
fn strategies_of_the_laboratory_open_no_db_and_leave_no_file_behind() {
    let (dir, path) = place();
    for options in of_the_laboratory() {
        let device = Arc::new(MemoryDevice::new());
        let refused = [
            Db::open(&path, options.clone()).unwrap_err(),
            Db::open(&path, options.clone().lab(|lab| lab.log = true)).unwrap_err(),
            Db::in_memory(options.clone()).unwrap_err(),
            Db::open_on(device.clone(), options.clone()).unwrap_err(),
            Db::open_on_devices(device.clone(), device.clone(), options).unwrap_err(),
        ];
        assert!(refused.iter().all(is_refused), "{refused:?}");
        assert_eq!((device.length(), std::fs::read_dir(dir.path()).unwrap().count()), (0, 0));
    }
    // A store that is there stays as it is.
    let db = Db::open(&path, tiny(64)).unwrap();
    db.raw_tree("t").unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    for options in of_the_laboratory() {
        assert!(is_refused(&Db::open(&path, options).unwrap_err()));
    }
    assert!(std::fs::read(&path).unwrap() == before, "not a byte was written");
    let db = Db::open(&path, tiny(64)).unwrap();
    assert_eq!(db.raw_tree("t").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn a_store_that_cannot_be_opened_for_its_options_stays_clean() {
    let (_dir, path) = place();
    Db::open(&path, Options::new().memory(32 << 20).page_size(65536)).unwrap().close().unwrap();
    // Enough for pages of 4096 bytes, which is all that is known before the store is read.
    let error = Db::open(&path, Options::new().memory(3 << 20)).unwrap_err();
    assert!(matches!(error, Error::Options(OptionsError::Budget(_))), "{error}");
    Db::open(&path, Options::new().memory(32 << 20)).unwrap();
}

#[test]
fn a_store_that_is_open_for_reading_refuses_to_be_written_to() {
    let (_dir, path) = place();
    let db = Db::open(&path, tiny(64)).unwrap();
    db.raw_tree("t").unwrap().put(b"k", b"v").unwrap();
    db.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    let db = Db::open(&path, tiny(64).read_only(true)).unwrap();
    let beside = Db::open(&path, tiny(64).read_only(true)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    assert_eq!(tree.get(b"k").unwrap(), Some(b"v".to_vec()));
    assert_eq!(beside.raw_tree("t").unwrap().len().unwrap(), 1);
    let refused = [
        tree.put(b"k", b"w").unwrap_err(),
        tree.delete(b"k").unwrap_err(),
        tree.clear().unwrap_err(),
        tree.compact(10).unwrap_err(),
        db.create_tree("u").unwrap_err(),
        db.drop_tree("t").unwrap_err(),
    ];
    assert!(refused.iter().all(|error| matches!(error, Error::ReadOnly)), "{refused:?}");
    assert!(matches!(db.raw_tree("u").unwrap_err(), Error::NoTree { .. }));
    db.flush().unwrap();
    drop((tree, db, beside));
    assert!(std::fs::read(&path).unwrap() == before, "not a byte was written");
}

#[test]
fn names_and_keys_have_limits() {
    let db = Db::in_memory(tiny(64)).unwrap();
    let long = "n".repeat(300);
    for name in ["", &long] {
        assert!(matches!(db.raw_tree(name).unwrap_err(), Error::Name { .. }));
    }
    let tree = db.raw_tree("t").unwrap();
    let max = tree.limits().key_max;
    assert!(!tree.put(&vec![7; max], b"").unwrap());
    let error = tree.put(&vec![7; max + 1], b"").unwrap_err();
    assert!(matches!(error, Error::Write(WriteError::KeyTooLong { .. })), "{error}");
    let rows = [(b"b".to_vec(), Vec::new()), (b"a".to_vec(), Vec::new())];
    let error = db.raw_tree("u").unwrap().bulk_load(rows, BulkOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Bulk(BulkError::Order { row: 1, .. })), "{error}");
}

/// The `BTree` of a tree checks no thread: only calls of the store do.
#[test]
#[cfg(feature = "lab")]
fn a_store_without_latches_is_for_one_thread() {
    use std::ops::ControlFlow;

    use millpond::Structure;
    use millpond::internals::store::Builder;
    use millpond::internals::store::combinations::SwizzledUnlatchedWatt;

    let (device, options) = (Arc::new(MemoryDevice::new()), tiny(64).policy("watt"));
    let store = Builder::device(device, &options).open::<SwizzledUnlatchedWatt>().unwrap();
    let tree = store.tree("t").unwrap();
    tree.btree().upsert(b"k", b"v").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let refused = [
                store.catalog().unwrap_err(),
                store.entry("t").unwrap_err(),
                store.types("t").unwrap_err(),
                store.tree("t").err().unwrap(),
                store.tree("new").err().unwrap(),
                store.open_tree("t").err().unwrap(),
                store.create_tree("new").err().unwrap(),
                store.drop_structure("t", Structure::Tree).unwrap_err(),
                store.flush().unwrap_err(),
                store.checkpoint().unwrap_err(),
                store.shrink(&mut |_| ControlFlow::Continue(())).unwrap_err(),
            ];
            let is_wrong = |error: &Error| matches!(error, Error::Lab(LabError::WrongThread));
            assert!(refused.iter().all(is_wrong), "{refused:?}");
        });
    });
    assert_eq!(store.catalog().unwrap().len(), 1);
    assert_eq!(tree.btree().get_owned(b"k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_the_tree_and_the_key() {
    let db = Db::in_memory(tiny(64)).unwrap();
    db.tree::<u32, String>("numbers").unwrap().put(&1, "three").unwrap();
    let wrong = db.raw_tree("numbers").unwrap().typed::<u32, u64>();
    let error = wrong.get(&1).unwrap_err();
    let names_both = |error: &Error| {
        let text = error.to_string();
        text.contains("'numbers'") && text.contains(r"\x00\x00\x00\x01")
    };
    assert!(names_both(&error), "{error}");
    let mut cursor = wrong.cursor();
    let seen = [
        wrong.iter().next().unwrap().map(drop),
        wrong.update(&1, |old| old).map(drop),
        cursor.first().map(drop),
        wrong.retain(|_, _| true).map(drop),
        db.transact(|tx| tx.tree(&wrong).get(&1).map(drop)),
    ];
    assert!(seen.iter().all(|done| done.as_ref().is_err_and(names_both)), "{seen:?}");
    let mut all = wrong.iter();
    assert!(matches!(all.next(), Some(Err(Error::Decode { .. }))) && all.next().is_none());
}
