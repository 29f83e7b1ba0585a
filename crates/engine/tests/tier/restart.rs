//! Use of a tier's file at the next opening, and files that are none.

use std::sync::Arc;

use millpond::{Compression, Db, Error, Options, error::TierError};
use millpond_base::Reason;
use millpond_device::{Device, MemoryDevice};

use super::{PAGE, content, open_as, options, read, write};

const PAGES: u64 = 100;

/// A tier that was closed, with everything in its cache; and what is below.
fn closed() -> (Arc<MemoryDevice>, Arc<MemoryDevice>) {
    let below = Arc::new(MemoryDevice::from_bytes(&vec![0; (PAGES * PAGE) as usize]));
    let fast = Arc::new(MemoryDevice::new());
    let tier = open_as(below.clone(), fast.clone(), &options(400), "tq", Some([1; 32])).unwrap();
    for page in 0..PAGES {
        write(&tier, page, Reason::Replace, &content(page, 1)).unwrap();
    }
    tier.release();
    (below, fast)
}

fn served(below: &Arc<MemoryDevice>, fast: &Arc<MemoryDevice>, identity: [u8; 32]) -> u64 {
    let (below, fast) = (below.clone(), fast.clone());
    let tier = open_as(below, fast, &options(400), "tq", Some(identity)).unwrap();
    let mut bytes = vec![0; PAGE as usize];
    for page in 0..PAGES {
        read(&tier, page, &mut bytes).unwrap();
        assert_eq!(bytes, content(page, 1));
    }
    tier.check().unwrap();
    tier.counts().served
}

#[test]
fn a_cache_that_was_closed_is_warm_above_the_same_storage_only() {
    let (below, fast) = closed();
    let file = fast.to_bytes();
    assert_eq!(served(&below, &fast, [1; 32]), PAGES);
    // That one was not closed.
    assert_eq!(served(&below, &fast, [1; 32]), 0);
    let again = Arc::new(MemoryDevice::from_bytes(&file));
    assert_eq!(served(&below, &again, [2; 32]), 0, "storage has changed");
    assert_eq!(served(&below, &Arc::new(MemoryDevice::new()), [1; 32]), 0, "the cache is lost");
}

#[test]
fn copies_that_are_damaged_while_the_cache_is_closed_are_read_from_storage() {
    let (below, fast) = closed();
    let file = fast.to_bytes();
    let mut random = fastrand::Rng::with_seed(3);
    let mut all = 0;
    for _ in 0..200 {
        let mut damaged = file.clone();
        // Of 100 copies, behind the header and a directory for 400.
        let copies = 24_576..24_576 + (PAGES * PAGE) as usize;
        for _ in 0..random.usize(1..20) {
            let at = random.usize(copies.clone());
            damaged[at] = random.u8(..);
        }
        all += served(&below, &Arc::new(MemoryDevice::from_bytes(&damaged)), [1; 32]);
    }
    assert!((150 * PAGES..200 * PAGES).contains(&all), "{all} of {}", 200 * PAGES);
}

fn stored(options: Options, folder: &std::path::Path, keys: std::ops::Range<u64>) -> (u64, u64) {
    let db = Db::open(folder.join("pond.mp"), options).unwrap();
    let tree = db.tree::<u64, String>("rows").unwrap();
    for key in keys.clone() {
        if key % 3 == 0 {
            tree.put(&key, &format!("{key:0300}")).unwrap();
        }
    }
    let there = keys.filter(|key| tree.get(key).unwrap() == Some(format!("{key:0300}"))).count();
    drop(tree);
    let stats = db.stats();
    db.close().unwrap();
    assert!(stats.tier_frames > 100 && stats.tier_mismatches == 0, "{stats}");
    (there as u64, stats.tier_served)
}

#[test]
fn a_store_finds_its_cache_warm_unless_it_was_written_without_it() {
    for compression in [Compression::None, Compression::Lz4] {
        let folder = tempfile::tempdir().unwrap();
        let plain = Options::new().compression(compression).lab(|lab| lab.frames = Some(64));
        let tiered = plain.clone().second_tier(folder.path().join("tier"), 8 << 20, "t2-lru");
        let of = |keys| stored(tiered.clone(), folder.path(), keys);
        let (_, first) = of(0..20_000);
        assert!(first > 0);
        // 64 frames hold little of it: reading it all again is reading the cache.
        let reads = |tiered: &Options| {
            let db = Db::open(folder.path().join("pond.mp"), tiered.clone()).unwrap();
            let tree = db.tree::<u64, String>("rows").unwrap();
            assert_eq!(tree.iter().map(Result::unwrap).count(), 20_000_usize.div_ceil(3));
            let stats = db.stats();
            drop(tree);
            db.close().unwrap();
            (stats.tier_served, stats.tier_reads)
        };
        let (served, asked) = reads(&tiered);
        assert!(served * 10 > asked * 9, "{served} of {asked} reads were served");
        // The store is whole without the tier, and the tier is of no use after that.
        let db = Db::open(folder.path().join("pond.mp"), plain).unwrap();
        db.tree::<u64, String>("rows").unwrap().put(&0, &"new".to_string()).unwrap();
        db.close().unwrap();
        let (served, asked) = reads(&tiered);
        assert!(served * 2 < asked, "{served} of {asked} reads were served");
        std::fs::remove_file(folder.path().join("tier")).unwrap();
        let (_, asked) = reads(&tiered);
        assert!(asked > 0);
    }
}

#[test]
fn what_cannot_be_a_tier_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (store, path) = (folder.path().join("pond.mp"), folder.path().join("tier"));
    let base = Options::new().memory(32 << 20);
    let open = |options: &Options| Db::open(&store, options.clone());
    let options = base.clone().second_tier(&path, 1 << 20, "tq");
    std::fs::write(&path, "a letter").unwrap();
    let error = open(&options).unwrap_err();
    assert!(matches!(error, Error::Tier(TierError::NotATier { .. })), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    std::fs::remove_file(&path).unwrap();
    let text = |options: Options| open(&options).unwrap_err().to_string();
    let small = text(base.clone().second_tier(&path, 10_000, "tq"));
    assert!(small.contains("has no room: give it at least"), "{small}");
    let policy = text(base.clone().second_tier(&path, 1 << 20, "qt"));
    assert!(policy.contains("did you mean 'tq'"), "{policy}");
    for offline in ["t2-opt", "min-rw", "pro-io"] {
        let error = text(base.clone().second_tier(&path, 1 << 20, offline));
        assert!(error.contains("must know the future"), "{error}");
    }
    let large = text(base.clone().second_tier(&path, 1 << 40, "tq"));
    assert!(large.contains("make it smaller, or give more memory"), "{large}");
    let nowhere = text(base.clone().second_tier(folder.path().join("no/tier"), 1 << 20, "tq"));
    assert!(nowhere.contains("the second tier cannot be opened"), "{nowhere}");
    let itself = text(base.clone().second_tier(&store, 1 << 20, "tq"));
    assert!(itself.contains("the second tier cannot be opened"), "{itself}");
    let db = open(&options).unwrap();
    let other = Db::open(folder.path().join("other.mp"), options.clone()).unwrap_err();
    assert!(matches!(other, Error::Tier(TierError::File(_))), "{other}");
    db.close().unwrap();
    // Read only, a store does without.
    let db = open(&options.clone().read_only(true)).unwrap();
    assert_eq!(db.stats().tier_frames, 0);
    db.close().unwrap();
    let larger = options.second_tier(&path, 3 << 20, "t2-arc");
    assert!(open(&larger).unwrap().stats().tier_frames > 600);
}

/// Pages written while a store is loaded are in its cache when it is opened again.
#[test]
fn a_store_that_was_loaded_and_closed_reads_from_its_cache() {
    let folder = tempfile::tempdir().unwrap();
    let [data, log] = [0, 1].map(|_| Arc::new(MemoryDevice::new()));
    let options = Options::new().lab(|lab| lab.frames = Some(4000));
    let options = options.second_tier(folder.path().join("tier"), 1 << 30, "tq");
    let open = |options: &Options| {
        Db::open_on_devices(data.clone(), log.clone(), options.clone()).unwrap()
    };
    let db = open(&options);
    let tree = db.tree::<u64, String>("rows").unwrap();
    for key in 0..20_000 {
        tree.put(&key, &format!("{key:0300}")).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    let db = open(&options.lab(|lab| lab.frames = Some(100)));
    assert!(db.stats().tier_resident > 1000, "{}", db.stats().tier_resident);
    let tree = db.tree::<u64, String>("rows").unwrap();
    assert_eq!(tree.iter().count(), 20_000);
    let stats = db.stats();
    assert!(stats.tier_served * 10 > stats.tier_reads * 9, "{stats}");
}
