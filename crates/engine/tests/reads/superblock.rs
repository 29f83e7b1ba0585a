//! A superblock that the drive lost, or reads as it was before, where pages are written out of
//! place: what it names has been used again. The store that is opened is the newest one or none,
//! and nothing is changed in the latter case.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use millpond::internals::recovery::RecoveryError;
use millpond::{Compression, Db, Error, Options, Placement};
use millpond_base::PageId;
use millpond_device::{Device, MemoryDevice, PowerSupply, ReadFault, ReadFaultDevice};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const PAGE: usize = 512;

fn options(seed: u64) -> Options {
    let compression = [Compression::None, Compression::Lz4][(seed % 2) as usize];
    Options::new().page_size(PAGE as u32).compression(compression).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(64);
        lab.seed = seed;
        lab.placement = Placement::OutOfPlace;
    })
}

/// Changes in random order, checkpoints between them.
fn change(db: &Db, rows: &mut Rows, random: &mut fastrand::Rng) -> Result<(), Error> {
    let tree = db.raw_tree("t")?;
    for _ in 0..random.usize(1..6) {
        for _ in 0..random.usize(0..60) {
            let key = random.u16(0..300).to_be_bytes().to_vec();
            if random.u8(0..4) == 0 {
                tree.delete(&key)?;
                rows.remove(&key);
            } else {
                let value = vec![random.u8(..); random.usize(0..100)];
                tree.put(&key, &value)?;
                rows.insert(key, value);
            }
        }
        match random.u8(0..8) {
            0 => drop(db.shrink()?),
            1..5 => drop(db.checkpoint()?),
            _ => {}
        }
    }
    Ok(())
}

fn rows_of(db: &Db) -> Rows {
    let tree = db.raw_tree("t").unwrap();
    tree.range(..).map(|row| row.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// Outcomes of openings with an older superblock.
#[derive(Debug, Default)]
struct Seen {
    /// Refused because the superblock is older.
    older: u32,
    /// Another error: what it names is there no more.
    other: u32,
    /// Opened with the same rows as with the newest superblock.
    opened: u32,
}

/// A life of a store, in which each opening reads an older superblock at first.
fn live(seed: u64, seen: &mut Seen) -> Result<(), String> {
    let random = &mut fastrand::Rng::with_seed(seed);
    let mut supply = PowerSupply::new();
    let [below, log] = ["store", "log"].map(|name| supply.device(name, MemoryDevice::new()));
    let mut device = Arc::new(ReadFaultDevice::new(below, PAGE));
    let mut log: Arc<dyn Device> = log;
    let mut rows = Rows::new();
    let mut db = Db::open_on_devices(device.clone(), log.clone(), options(seed)).unwrap();
    for life in 0..6 {
        change(&db, &mut rows, random).map_err(|error| format!("life {life}: {error}"))?;
        if random.bool() {
            db.close().map_err(|error| format!("closing, life {life}: {error}"))?;
        } else {
            db.flush().map_err(|error| format!("life {life}: {error}"))?;
            supply.cut();
            drop(db);
            let (next, devices) = supply.images(random.u64(..));
            let [below, left] = &devices[..] else { panic!("two devices") };
            (device, log) = (Arc::new(device.succeeded_by(below.clone())), left.clone());
            supply = next;
        }
        let mut opened = None;
        for _ in 0..4 {
            device.damage(PageId(0), ReadFault::OlderVersion, random.u64(..));
            match Db::open_on_devices(device.clone(), log.clone(), options(seed)) {
                Ok(db) => {
                    seen.opened += 1;
                    opened = Some(db);
                    break;
                }
                Err(Error::Recovery(RecoveryError::OlderSuperblock { found, durable, .. })) => {
                    assert!(found < durable);
                    seen.older += 1;
                }
                Err(_) => seen.other += 1,
            }
        }
        device.heal();
        db = match opened {
            Some(db) => db,
            None => Db::open_on_devices(device.clone(), log.clone(), options(seed))
                .map_err(|error| format!("life {life}, as it is: {error}"))?,
        };
        if rows_of(&db) != rows {
            return Err(format!("life {life}: other rows"));
        }
    }
    Ok(())
}

#[test]
fn a_store_opened_by_an_older_superblock_is_the_newest_or_none_and_nothing_is_changed() {
    let mut seen = Seen::default();
    for seed in 0..60 {
        live(seed, &mut seen).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    assert!(seen.older > 100 && seen.opened > 20, "{seen:?}");
}

/// A closed store of two sessions, with the superblock that the first of them left.
fn closed(path: &Path) -> (Rows, Vec<u8>) {
    let (mut rows, random) = (Rows::new(), &mut fastrand::Rng::with_seed(5));
    let mut old = Vec::new();
    for _ in 0..2 {
        if !rows.is_empty() {
            old = std::fs::read(path).unwrap();
            old.truncate(PAGE);
        }
        let db = Db::open(path, options(0)).unwrap();
        change(&db, &mut rows, random).unwrap();
        db.close().unwrap();
    }
    (rows, old)
}

#[test]
fn a_closed_store_with_the_superblock_of_the_session_before_is_refused_in_any_way_of_opening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pond.mp");
    let (rows, old) = closed(&path);
    let new = std::fs::read(&path).unwrap();
    let mut lost = new.clone();
    lost[..PAGE].copy_from_slice(&old);
    std::fs::write(&path, &lost).unwrap();
    let is_refused = |opened: Result<Db, Error>| {
        let error = opened.map(drop).unwrap_err();
        assert!(matches!(error, Error::Recovery(RecoveryError::OlderSuperblock { .. })), "{error}");
        let text = error.to_string();
        assert!(text.contains("pond.mp") && text.contains("generation"), "{text}");
        assert!(std::fs::read(&path).unwrap() == lost, "nothing is changed");
    };
    is_refused(Db::open(&path, options(0)));
    is_refused(Db::open(&path, options(0).read_only(true)));
    is_refused(Db::open_salvaging(&path, options(0)));
    std::fs::write(&path, &new).unwrap();
    let db = Db::open(&path, options(0).read_only(true)).unwrap();
    assert!(rows_of(&db) == rows);
    db.close().unwrap();
    let db = Db::open(&path, options(0)).unwrap();
    assert!(rows_of(&db) == rows);
}
