//! A device and the cache with its last writes belong together.

use std::sync::Arc;

use millpond::internals::admin::check::CATALOG;
use millpond::internals::admin::dump::{DumpReader, DumpWriter, Form, Item};
use millpond::internals::admin::salvage::salvage;
use millpond::internals::io::PageStore;
use millpond::{Compression, Db, Error, Options, error::TierError};
use millpond_base::Reason;
use millpond_device::{Device, MemoryDevice};
use millpond_tier::BackMark;
use millpond_tier::BackTier;

use super::{PAGE, back_options, content, open_as, open_back, options, read, write};

const PAGES: u64 = 100;

struct Pair {
    below: Arc<MemoryDevice>,
    fast: Arc<MemoryDevice>,
}

impl Pair {
    fn new() -> Pair {
        let below = Arc::new(MemoryDevice::from_bytes(&vec![0; (PAGES * PAGE) as usize]));
        Pair { below, fast: Arc::new(MemoryDevice::new()) }
    }

    fn open(&self, slots: u64) -> Result<BackTier, TierError> {
        open_back(self.below.clone(), self.fast.clone(), &back_options(slots), "tq-io")
    }

    /// Writes a version of each page.
    fn write(&self, slots: u64, version: u64) -> BackTier {
        let tier = self.open(slots).unwrap();
        tier.write(0, &content(0, version)).unwrap();
        for page in 1..PAGES {
            write(&tier, page, Reason::Replace, &content(page, version)).unwrap();
        }
        tier
    }

    fn assert_holds(&self, tier: &dyn Device, version: u64) {
        let mut bytes = vec![0; PAGE as usize];
        for page in 0..PAGES {
            read(tier, page, &mut bytes).unwrap();
            assert_eq!(bytes, content(page, version), "page {page}");
        }
    }

    fn copy(&self) -> Pair {
        let copy = |device: &MemoryDevice| Arc::new(MemoryDevice::from_bytes(&device.to_bytes()));
        Pair { below: copy(&self.below), fast: copy(&self.fast) }
    }
}

#[test]
fn what_was_written_is_in_the_cache_until_it_is_given_up() {
    for slots in [12, 40, 400] {
        let pair = Pair::new();
        let tier = pair.write(slots, 1);
        let counts = tier.counts();
        let held = counts.dirty;
        assert!(if slots == 400 { held == PAGES } else { held <= slots }, "{counts:?}");
        assert_eq!(counts.destaged > 0, slots < 400, "{counts:?}");
        pair.assert_holds(&tier, 1);
        tier.release();
        // Closed, and opened again: warm.
        let tier = pair.open(slots).unwrap();
        pair.assert_holds(&tier, 1);
        assert!(slots < 400 || tier.counts().served == PAGES, "{:?}", tier.counts());
        tier.check().unwrap();
        tier.release();
        assert!(BackMark::of(&*pair.below).unwrap().is_some());
        let tier = pair.open(slots).unwrap();
        tier.give_up().unwrap();
        assert_eq!(BackMark::of(&*pair.below).unwrap(), None);
        pair.assert_holds(&*pair.below, 1);
        // The cache is of no use, and can be anything else's, of any size.
        assert!(!BackTier::is_pair(&*pair.below, &*pair.fast).unwrap());
        let tier =
            open_as(pair.below.clone(), pair.fast.clone(), &options(50), "tq", None).unwrap();
        pair.assert_holds(&tier, 1);
        drop(tier);
        pair.assert_holds(&pair.open(slots + 1).unwrap(), 1);
    }
}

#[test]
fn a_page_that_is_written_again_and_again_is_written_to_storage_once() {
    let pair = Pair::new();
    let tier = pair.open(400).unwrap();
    for version in 0..50 {
        for page in 1..PAGES {
            write(&tier, page, Reason::Recov, &content(page, version)).unwrap();
        }
        tier.sync().unwrap();
    }
    let counts = tier.counts();
    assert_eq!((counts.destaged, counts.spared), (0, 49 * (PAGES - 1)), "{counts:?}");
    tier.give_up().unwrap();
    assert_eq!(tier.counts().destaged, PAGES - 1);
}

#[test]
fn what_nobody_needs_any_more_is_not_written_to_storage() {
    let pair = Pair::new();
    let tier = pair.write(400, 1);
    tier.sync().unwrap();
    tier.discard(&[10 * PAGE..20 * PAGE, 30 * PAGE..30 * PAGE + 100]);
    tier.sync().unwrap();
    assert_eq!(tier.counts().spared, 11);
    tier.give_up().unwrap();
    assert_eq!(tier.counts().destaged, PAGES - 11);
    let mut bytes = vec![0; PAGE as usize];
    read(&*pair.below, 30, &mut bytes).unwrap();
    assert_eq!(bytes, content(30, 1));
}

/// The way out where the cache is lost: what the store's file has is saved, page by page, and each
/// entry is what its key had at some time.
#[test]
fn a_store_whose_cache_is_lost_is_salvaged_as_far_as_its_file_has_it() {
    let pair = Pair { below: Arc::new(MemoryDevice::new()), fast: Arc::new(MemoryDevice::new()) };
    let log = Arc::new(MemoryDevice::new());
    let (value, keys) = (|key: u32, round: u32| [key, round, key].map(u32::to_be_bytes), 20_000);
    let options = |writes_back| {
        let tiered = Options::new().memory(16 << 20).second_tier("fast", 400 << 10, "tq-io");
        tiered.write_back(writes_back).lab(|lab| lab.frames = Some(64))
    };
    let open = |below: &Arc<MemoryDevice>, options| {
        Db::open_on_tiered_devices(below.clone(), log.clone(), pair.fast.clone(), options)
    };
    let db = open(&pair.below, options(true)).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for round in 0..3 {
        for key in 0..keys as u32 {
            tree.put(&key.to_be_bytes(), &value(key, round).concat()).unwrap();
        }
        db.checkpoint().unwrap();
    }
    drop(tree);
    db.close().unwrap();
    let salvaged = |below: &Arc<MemoryDevice>| {
        let store = PageStore::salvage_on(below.clone(), None).unwrap();
        let mut dump = DumpWriter::new(Vec::new(), Form::Text).unwrap();
        let report = salvage(&store, CATALOG, &mut dump).unwrap();
        let bytes = dump.finish().unwrap();
        let mut reader = DumpReader::new(&bytes[..]).unwrap();
        let (mut key, mut found, mut rows, mut newest) = (Vec::new(), Vec::new(), 0, 0);
        loop {
            match reader.read(&mut key, &mut found).unwrap() {
                Item::End => break,
                Item::Structure(..) => {}
                Item::Entry => {
                    let key = u32::from_be_bytes(key[..].try_into().unwrap());
                    let round = (0..3).find(|round| value(key, *round).concat() == found).unwrap();
                    (rows, newest) = (rows + 1, newest + usize::from(round == 2));
                }
            }
        }
        (report, rows, newest)
    };
    let (report, rows, newest) = salvaged(&pair.below);
    assert_eq!(report.lost_cache.as_deref(), Some(pair.fast.path()));
    assert!(!report.is_complete());
    assert!(rows > keys as usize / 2 && newest < keys as usize, "{rows} rows, {newest} as last");
    // With its cache the store is whole, and so is what is salvaged then.
    open(&pair.below, options(false)).unwrap().close().unwrap();
    let (report, rows, newest) = salvaged(&pair.below);
    assert!(report.is_complete() && report.lost_cache.is_none(), "{report:?}");
    assert_eq!((rows, newest), (keys as usize, keys as usize));
}

fn is_refused(opened: Result<BackTier, TierError>) -> bool {
    matches!(opened, Err(TierError::NotItsStore { .. }))
}

#[test]
fn the_two_are_refused_without_each_other_and_beside_others() {
    let pair = Pair::new();
    pair.write(400, 1).release();
    let before = pair.copy();
    pair.write(400, 2).release();
    // The device alone, or with an empty cache.
    let alone = Pair { below: pair.below.clone(), fast: Arc::new(MemoryDevice::new()) };
    assert!(matches!(alone.open(400), Err(TierError::CacheMissing { .. })));
    let through = |pair: &Pair| {
        open_as(pair.below.clone(), pair.fast.clone(), &options(50), "tq", None).map(drop)
    };
    assert!(matches!(through(&alone), Err(TierError::CacheMissing { .. })));
    assert!(matches!(through(&pair), Err(TierError::NotItsStore { .. })));
    // The cache above another device.
    let other = Pair { below: Pair::new().below, fast: pair.fast.clone() };
    assert!(is_refused(other.open(400)));
    assert!(matches!(through(&other), Err(TierError::NotItsStore { .. })));
    let stranger = Pair::new();
    stranger.write(400, 7).release();
    assert!(is_refused(Pair { below: stranger.below, fast: pair.fast.clone() }.open(400)));
    // One of them of another time.
    assert!(is_refused(Pair { below: before.below.clone(), fast: pair.fast.clone() }.open(400)));
    assert!(is_refused(Pair { below: pair.below.clone(), fast: before.fast.clone() }.open(400)));
    // Another size.
    let other = pair.open(300).unwrap_err();
    let size = format!("and was made with {} bytes", back_options(400).bytes);
    assert!(other.to_string().contains(&size), "{other}");
    // Nothing of this has changed anything; both of that time belong together, too.
    before.assert_holds(&before.open(400).unwrap(), 1);
    pair.assert_holds(&pair.open(400).unwrap(), 2);
}

#[test]
fn damage_of_the_cache_is_an_error_and_never_an_answer() {
    let pair = Pair::new();
    pair.write(60, 1).release();
    pair.write(60, 2).release();
    let (file, below) = (pair.fast.to_bytes(), pair.below.to_bytes());
    let mut random = fastrand::Rng::with_seed(8);
    let (mut refused, mut errors, mut right) = (0, 0, 0);
    for _ in 0..400 {
        let mut damaged = file.clone();
        for _ in 0..random.usize(1..10) {
            // Half of it in headers and directory.
            let end = if random.bool() { 24_576 } else { damaged.len() };
            damaged[random.usize(..end)] ^= 1 << random.u32(..8);
        }
        let fast = Arc::new(MemoryDevice::from_bytes(&damaged));
        let pair = Pair { below: Arc::new(MemoryDevice::from_bytes(&below)), fast };
        let Ok(tier) = pair.open(60) else {
            refused += 1;
            continue;
        };
        let mut bytes = vec![0; PAGE as usize];
        for page in 0..PAGES {
            match read(&tier, page, &mut bytes) {
                Ok(()) => right += u64::from(bytes == content(page, 2)),
                Err(_) => errors += 1,
            }
            let version = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            assert!(
                read(&tier, page, &mut bytes).is_err() || bytes == content(page, 2),
                "{version}"
            );
        }
    }
    assert!(refused > 50 && errors > 100 && right > 10_000, "{refused} {errors} {right}");
}

/// A store in files: operations of users, and their mistakes.
#[test]
fn a_store_with_a_cache_that_has_its_writes_is_opened_with_it_or_not_at_all() {
    for compression in [Compression::None, Compression::Lz4] {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("pond.mp"), folder.path().join("tier"));
        let plain = Options::new().compression(compression).lab(|lab| lab.frames = Some(64));
        let through = plain.clone().second_tier(&cache, 2 << 20, "tq-io");
        let back = through.clone().write_back(true);
        let put = |options: &Options, keys: std::ops::Range<u64>| {
            let db = Db::open(&file, options.clone()).unwrap();
            let tree = db.tree::<u64, String>("rows").unwrap();
            for key in keys {
                tree.put(&key, &format!("{key:0300}")).unwrap();
            }
            drop(tree);
            let stats = db.stats();
            db.close().unwrap();
            stats
        };
        let assert_has = |options: &Options, keys: u64| {
            let db = Db::open(&file, options.clone()).unwrap();
            let rows = db.tree::<u64, String>("rows").unwrap();
            let sound = rows.iter().map(Result::unwrap).filter(|(k, v)| *v == format!("{k:0300}"));
            assert_eq!(sound.count() as u64, keys);
            drop(rows);
            db.close().unwrap();
        };
        // A store that is there becomes one of the two, and more than the cache has room for.
        put(&plain, 0..1000);
        let stats = put(&back, 1000..12_000);
        assert!(stats.tier_destaged > 100 && stats.tier_dirty > 100, "{stats}");
        assert_has(&back, 12_000);
        let alone = [plain.clone(), plain.clone().read_only(true), back.clone().read_only(true)];
        for options in alone {
            let error = Db::open(&file, options).unwrap_err().to_string();
            let named = error.contains("is not whole") && error.contains(cache.to_str().unwrap());
            assert!(named, "{error}");
        }
        // Another cache, or another size.
        let other = plain.clone().second_tier(folder.path().join("other"), 2 << 20, "tq");
        for options in [other.clone(), other.write_back(true)] {
            let error = Db::open(&file, options).unwrap_err();
            assert!(matches!(error, Error::Tier(TierError::CacheMissing { .. })), "{error}");
        }
        let larger = plain.clone().second_tier(&cache, 3 << 20, "tq");
        for options in [larger.clone(), larger.clone().write_back(true)] {
            let error = Db::open(&file, options).unwrap_err();
            assert!(matches!(error, Error::Tier(TierError::OtherSize { .. })), "{error}");
        }
        // The cache above another store.
        let elsewhere = folder.path().join("other.mp");
        Db::open(&elsewhere, plain.clone()).unwrap().close().unwrap();
        for options in [through.clone(), back.clone()] {
            let error = Db::open(&elsewhere, options).unwrap_err();
            assert!(matches!(error, Error::Tier(TierError::NotItsStore { .. })), "{error}");
        }
        assert_has(&back, 12_000);
        // Without write-back the store gets everything, and may have any cache, or none.
        assert_has(&through, 12_000);
        assert_has(&larger, 12_000);
        assert_has(&plain, 12_000);
        put(&back, 12_000..12_500);
        assert_has(&back, 12_500);
    }
}

/// Only a crash while the device is made shorter leaves such copies: anything else that cut it off
/// has cut off what nobody else has, and nobody was told.
#[test]
fn copies_behind_the_end_of_storage_are_counted_when_they_are_dropped() {
    let pair = Pair::new();
    let tier = pair.write(400, 1);
    tier.sync().unwrap();
    drop(tier);
    let tier = pair.open(400).unwrap();
    assert_eq!(tier.counts().cut_off, 0);
    drop(tier);
    let bytes = pair.below.to_bytes();
    let kept = bytes[..(PAGES / 2 * PAGE) as usize].to_vec();
    let cut = Pair { below: Arc::new(MemoryDevice::from_bytes(&kept)), fast: pair.fast.clone() };
    let tier = cut.open(400).unwrap();
    assert_eq!(tier.counts().cut_off, PAGES / 2);
    let mut page = vec![0; PAGE as usize];
    read(&tier, PAGES / 2 - 1, &mut page).unwrap();
    assert_eq!(page, content(PAGES / 2 - 1, 1), "what is within storage is there");
}
