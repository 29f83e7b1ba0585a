//! Files that get shorter, and their state after a power failure.

use std::sync::Arc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check, check_store};
use millpond::internals::io::PageStore;
use millpond::{Db, Durability, Error, Options, error::BackupError};
use millpond_base::rounds::rounds;
use millpond_device::{Device, FaultyDevice, MemoryDevice, PowerSupply};

fn options() -> Options {
    Options::new()
        .page_size(4096)
        .durability(Durability::Async)
        .lab(|lab| lab.background_merge = false)
        .lab(|lab| {
            lab.frames = Some(80);
            lab.log_segment = Some(64 << 10);
        })
}

fn fill(db: &Db, name: &str, rows: u32) {
    let tree = db.raw_tree(name).unwrap();
    for row in 0..rows {
        tree.put(&row.to_be_bytes(), &[row as u8; 300]).unwrap();
    }
}

fn holds(db: &Db, name: &str, rows: u32, what: &str) {
    let tree = db.open_tree(name).unwrap();
    assert_eq!(tree.len().unwrap(), u64::from(rows), "{what}");
    for row in (0..rows).step_by(7) {
        assert_eq!(tree.get(&row.to_be_bytes()).unwrap(), Some(vec![row as u8; 300]), "{what}");
    }
}

fn sound(device: Arc<dyn Device>, what: &str) {
    let store = PageStore::open_on(device, None, true).unwrap();
    let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.problems);
}

#[test]
fn files_give_back_what_is_free_at_their_end_and_grow_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp");
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    for log in [true, false] {
        let options = options().log_gap(256 << 10).lab(|lab| lab.log = log);
        let db = Db::open(&path, options.clone()).unwrap();
        fill(&db, "kept", 1000);
        fill(&db, "gone", 20_000);
        let full = length("a.mp");
        assert!(full > 6 << 20, "{full}");
        db.drop_tree("gone").unwrap();
        let given = db.shrink().unwrap();
        // A store that is used may grow by a MiB at any time, ahead of need.
        assert!(given.data_bytes > 3 << 20, "{given:?} of {full}");
        assert!(length("a.mp") < 4 << 20, "{given:?} of {full}");
        holds(&db, "kept", 1000, "shrunk");
        fill(&db, "again", 5000);
        holds(&db, "again", 5000, "grown");
        db.drop_tree("again").unwrap();
        db.close().unwrap();
        let report = check(&path, CATALOG, CheckOptions::default()).unwrap();
        assert!(report.is_sound(), "{:?}", report.problems);
        let db = Db::open(&path, options).unwrap();
        holds(&db, "kept", 1000, "opened");
        db.shrink().unwrap();
        db.close().unwrap();
        assert!(length("a.mp") < 4 << 20);
    }
    let reader = Db::open(&path, options().read_only(true)).unwrap();
    assert!(matches!(reader.shrink(), Err(Error::ReadOnly)));
}

#[test]
fn a_store_that_was_shrunk_has_nothing_more_to_give_back() {
    for seed in 0..rounds(12, 40) {
        let mut random = fastrand::Rng::with_seed(seed);
        let device = || Arc::new(MemoryDevice::new());
        let (data, log) = (device(), device());
        // Small pages: the map has many nodes.
        let options = options().log_gap(256 << 10).page_size(512);
        // Nobody uses the store between the two: the background merge would.
        let options = options.lab(|lab| (lab.tiny_pages, lab.background_merge) = (true, false));
        let db = Db::open_on_devices(data.clone(), log, options).unwrap();
        let tree = db.raw_tree("t").unwrap();
        for _ in 0..random.u32(6000..12_000) {
            tree.put(&random.u32(..).to_be_bytes(), &[7; 50]).unwrap();
        }
        while !tree.compact(64).unwrap() {}
        let first = db.shrink().unwrap();
        assert!(first.data_bytes > 0 && first.pages_left == 0, "{seed}: {first:?}");
        let length = data.length();
        let second = db.shrink().unwrap();
        // A few nodes of the page map may find other places.
        assert!(second.data_bytes <= 16 << 10, "{seed}: {first:?}, {second:?} of {length}");
    }
}

#[test]
fn shrinking_goes_on_beside_readers_and_writers() {
    let device = Arc::new(MemoryDevice::new());
    let db = Db::open_on_devices(device.clone(), Arc::new(MemoryDevice::new()), options()).unwrap();
    fill(&db, "kept", 2000);
    std::thread::scope(|scope| {
        let writer = |name: &'static str| {
            let db = &db;
            move || {
                for round in 0..12 {
                    fill(db, name, 500 + round * 100);
                    db.drop_tree(name).unwrap();
                }
            }
        };
        let writers = [scope.spawn(writer("one")), scope.spawn(writer("two"))];
        while !writers.iter().all(|writer| writer.is_finished()) {
            db.shrink().unwrap();
            holds(&db, "kept", 2000, "meanwhile");
        }
    });
    db.shrink().unwrap();
    assert!(device.length() < 4 << 20, "{}", device.length());
    holds(&db, "kept", 2000, "at the end");
    db.close().unwrap();
    sound(device, "closed");
}

#[test]
fn a_store_does_not_shrink_while_it_is_copied() {
    let device = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let db = Db::open_on_devices(device(), device(), options()).unwrap();
    fill(&db, "gone", 3000);
    let (data, log) = (device(), device());
    let mut refused = 0;
    db.backup_to_devices(&data, &log, &mut |_| {
        if refused == 0 {
            db.drop_tree("gone").unwrap();
        }
        let error = db.shrink().unwrap_err();
        assert!(matches!(error, Error::Backup(BackupError::UnderWay)), "{error}");
        refused += 1;
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert!(refused > 2 && db.shrink().unwrap().data_bytes > 0);
}

/// Loads, drops and shrinks until the power fails at operation `nth` from the shrinking on; returns
/// whether it did.
fn cut_at(nth: u64) -> bool {
    let what = format!("cut at {nth}");
    let supply = PowerSupply::new();
    let device = |name| -> Arc<FaultyDevice> { supply.device(name, MemoryDevice::new()) };
    let (data, log) = (device("data"), device("log"));
    let db = Db::open_on_devices(data, log, options()).unwrap();
    fill(&db, "kept", 600);
    fill(&db, "gone", 3000);
    db.flush().unwrap();
    db.drop_tree("gone").unwrap();
    supply.cut_at(nth);
    let shrunk = db.shrink();
    let later = shrunk.is_ok().then(|| db.raw_tree("later"));
    if let Some(Ok(later)) = later {
        for row in 0..300u32 {
            if later.put(&row.to_be_bytes(), &[7; 300]).is_err() {
                break;
            }
        }
        let _ = db.flush();
    }
    let was_cut = supply.is_off();
    for seed in 0..3 {
        let (_supply, devices) = supply.images(nth * 10 + seed);
        let [data, log] = [devices[0].clone(), devices[1].clone()];
        let db = Db::open_on_devices(data.clone(), log, options()).unwrap();
        holds(&db, "kept", 600, &what);
        if let Ok(gone) = db.open_tree("gone") {
            assert_eq!(gone.len().unwrap(), 3000, "{what}");
        }
        fill(&db, "next", 500);
        holds(&db, "next", 500, &what);
        db.shrink().unwrap();
        db.close().unwrap();
        sound(data, &what);
    }
    drop(db);
    was_cut
}

#[test]
fn a_power_failure_amid_shrinking_loses_nothing() {
    let cuts = (1..32).step_by(rounds(3, 1)).filter(|nth| cut_at(*nth)).count();
    assert!(cuts > rounds(3, 10), "{cuts}");
}

/// A log that has grown to its gap lies anywhere in its file.
#[test]
fn a_log_that_goes_on_far_behind_its_beginning_goes_on_there() {
    let supply = PowerSupply::new();
    let device = |name| -> Arc<FaultyDevice> { supply.device(name, MemoryDevice::new()) };
    let (data, log) = (device("data"), device("log"));
    let db = Db::open_on_devices(data, log.clone(), options().log_gap(8 << 20)).unwrap();
    fill(&db, "kept", 20_000);
    let full = log.length();
    assert!(full > 2 << 20, "{full}");
    let shrunk = db.shrink().unwrap();
    // Segments of 64 KiB: one that is being filled, one to go on in, and what a checkpoint needs.
    assert!(log.length() < 6 * (68 << 10), "{} of {full}: {shrunk:?}", log.length());
    holds(&db, "kept", 20_000, "shrunk");
    fill(&db, "later", 3000);
    db.flush().unwrap();
    for seed in 0..3 {
        let (_supply, devices) = supply.images(seed);
        let [data, log] = [devices[0].clone(), devices[1].clone()];
        let db = Db::open_on_devices(data.clone(), log, options()).unwrap();
        holds(&db, "kept", 20_000, "after a crash");
        holds(&db, "later", 3000, "after a crash");
        db.close().unwrap();
        sound(data, "after a crash");
    }
}
