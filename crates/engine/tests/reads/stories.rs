//! Failures that the campaign found, each told once more; and the promises of the device.

use std::io::IoSliceMut;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::internals::io::{OpenError, PageStore};
use millpond::internals::page::{PageHeader, PageType};
use millpond::{
    Db, Error, Options, Placement,
    error::{BackupError, TierError, TxnError},
};
use millpond_base::PageId;
use millpond_device::{
    Alignment, Device, DeviceError, MemoryDevice, PowerSupply, ReadFault, ReadFaultDevice,
    ReadFaults, ReadRequest,
};

const PAGE: usize = 4096;

/// In place, where a page's id is its place, and no map knows its newest version.
fn options() -> Options {
    Options::new().memory(16 << 20).lab(|lab| lab.placement = Placement::InPlace)
}

/// A device of pages, page `i` filled with `i + 1` and before that with `i + 101`.
fn pages(count: u8) -> ReadFaultDevice {
    let memory = MemoryDevice::new();
    memory.grow(u64::from(count) * PAGE as u64).unwrap();
    let device = ReadFaultDevice::new(Arc::new(memory), PAGE);
    for base in [101, 1] {
        for page in 0..count {
            device.write(u64::from(page) * PAGE as u64, &[base + page; PAGE]).unwrap();
        }
    }
    device
}

fn read(device: &ReadFaultDevice, page: u64) -> Result<Vec<u8>, DeviceError> {
    let mut bytes = vec![0; PAGE];
    device.read(page * PAGE as u64, &mut bytes).map(|()| bytes)
}

#[test]
fn a_damaged_page_stays_damaged_until_it_is_written_or_healed_and_the_ledger_says_how() {
    let device = pages(8);
    for (page, fault) in (0..).zip(ReadFault::ALL) {
        device.damage(PageId(page), fault, 7 + page);
    }
    let is_whole = |bytes: &[u8], byte: u8| bytes.iter().all(|b| *b == byte);
    assert!(matches!(read(&device, 0), Err(DeviceError::Io { .. })));
    assert!(matches!(read(&device, 1), Err(DeviceError::PastEnd { .. })));
    for page in 2..6 {
        let bytes = read(&device, page).unwrap();
        assert!(!is_whole(&bytes, page as u8 + 1), "page {page}");
        assert_eq!(read(&device, page).unwrap(), bytes, "the same again");
    }
    assert!(is_whole(&read(&device, 5).unwrap(), 106), "what it was before");
    assert!(is_whole(&read(&device, 6).unwrap(), 7), "no other page is touched");
    let ledger = device.ledger();
    assert_eq!(ledger.len(), 11);
    assert!(ledger.iter().all(|m| m.changed == (m.page.0 >= 2)), "{ledger:?}");
    assert_eq!(ledger.iter().filter(|m| m.versions.is_some()).count(), 3);
    device.write(2 * PAGE as u64, &[9; PAGE]).unwrap();
    assert!(is_whole(&read(&device, 2).unwrap(), 9), "a page that is written is sound");
    assert!(read(&device, 0).is_err());
    device.heal();
    assert!(is_whole(&read(&device, 0).unwrap(), 1) && is_whole(&read(&device, 5).unwrap(), 6));
}

#[test]
fn a_request_of_several_pages_is_spoilt_page_by_page_and_the_same_seed_spoils_the_same_reads() {
    let misread = |batched: bool| {
        let device = pages(16);
        let kinds = vec![ReadFault::BitFlips, ReadFault::ZeroedSectors];
        device.set_faults(ReadFaults { share: 0.3, kinds, ..ReadFaults::default() }, 5);
        let mut bytes = vec![0; 16 * PAGE];
        if batched {
            let mut parts: Vec<_> = bytes.chunks_mut(PAGE).map(IoSliceMut::new).collect();
            let mut request = [ReadRequest::new(0, &mut parts)];
            device.read_batch(&mut request);
            request[0].result.clone().unwrap();
        } else {
            // In another order: what is read of a page does not depend on others.
            for page in (0..16).rev() {
                let at = page * PAGE;
                device.read(at as u64, &mut bytes[at..at + PAGE]).unwrap();
            }
        }
        let mut pages: Vec<u64> = device.ledger().iter().map(|m| m.page.0).collect();
        pages.sort_unstable();
        (pages, bytes)
    };
    let (pages, bytes) = misread(true);
    assert!(pages.len() > 1 && pages.len() < 10, "{pages:?}");
    assert_eq!(misread(false), (pages, bytes));
}

/// A closed store on a device that reads wrongly, with 2,000 rows in random order.
fn store() -> (Arc<ReadFaultDevice>, Arc<MemoryDevice>) {
    let log = Arc::new(MemoryDevice::new());
    let device = Arc::new(ReadFaultDevice::new(Arc::new(MemoryDevice::new()), PAGE));
    let db = Db::open_on_devices(
        device.clone(),
        log.clone(),
        options().lab(|lab| lab.background_merge = false),
    )
    .unwrap();
    let tree = db.raw_tree("t").unwrap();
    let mut keys: Vec<u32> = (0..2000).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut keys);
    for key in keys {
        tree.put(&key.to_be_bytes(), &[7; 100]).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    (device, log)
}

/// The superblock of a store was read as zeros, which is what a store looks like whose creation was
/// interrupted. So opening made a new one in its place, without a word, over everything that the
/// old one held.
#[test]
fn a_store_whose_superblock_is_lost_is_an_error_and_not_made_anew() {
    let (device, log) = store();
    let before = device.length();
    let rows = |db: &Db| db.raw_tree("t").unwrap().len().unwrap();
    let sound = read(&device, 0).unwrap();
    let mut zeros = 0;
    for seed in 0..200 {
        device.damage(PageId(0), ReadFault::ZeroedSectors, seed);
        let head = read(&device, 0).unwrap();
        if head == sound {
            continue;
        }
        zeros += usize::from(head.iter().all(|byte| *byte == 0));
        match Db::open_on_devices(device.clone(), log.clone(), options()) {
            Ok(_) => panic!("seed {seed}: opened without a superblock"),
            Err(Error::Open(OpenError::Superblock { .. })) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(zeros > 0, "no seed gave a page of zeros");
    device.heal();
    assert_eq!(device.length(), before);
    let db = Db::open_on_devices(device, log, options()).unwrap();
    assert_eq!(rows(&db), 2000);
}

/// All that a small store has may be in its log. With its superblock lost it looked like a store
/// that was never made, and was made anew.
#[test]
fn a_store_that_is_nothing_but_its_log_is_not_made_anew_when_its_superblock_is_lost() {
    let supply = PowerSupply::new();
    let [below, log] = ["store", "log"].map(|name| supply.device(name, MemoryDevice::new()));
    let db = Db::open_on_devices(below.clone(), log.clone(), options()).unwrap();
    let fresh = below.length();
    db.raw_tree("t").unwrap().put(b"key", b"value").unwrap();
    db.flush().unwrap();
    supply.cut();
    drop(db);
    let (_, devices) = supply.images(1);
    let [below, log] = &devices[..] else { panic!("two devices") };
    assert_eq!(below.length(), fresh, "no page was written but those of its creation");
    let device = Arc::new(ReadFaultDevice::new(below.clone(), PAGE));
    let (sound, mut zeros) = (read(&device, 0).unwrap(), 0);
    for seed in 0..200 {
        device.damage(PageId(0), ReadFault::ZeroedSectors, seed);
        let head = read(&device, 0).unwrap();
        if head == sound {
            continue;
        }
        zeros += usize::from(head.iter().all(|byte| *byte == 0));
        match Db::open_on_devices(device.clone(), log.clone(), options()) {
            Err(Error::Open(OpenError::Superblock { .. })) => {}
            Err(error) => panic!("seed {seed}: {error}"),
            Ok(_) => panic!("seed {seed}: made anew"),
        }
    }
    assert!(zeros > 0, "no seed gave a page of zeros");
    device.heal();
    let db = Db::open_on_devices(device, log.clone(), options()).unwrap();
    assert_eq!(db.raw_tree("t").unwrap().get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Below a tier that writes back there may be nothing but a mark. With that read as zeros, and a
/// log that could not be read, the device looked like one on which no store was ever made, and the
/// mark was overwritten.
#[test]
fn a_store_whose_pages_are_in_a_cache_is_not_made_anew_when_its_mark_is_misread() {
    let options = || Options::new().memory(16 << 20).second_tier("fast", 2 << 20, "tq-io");
    let options = || options().write_back(true);
    let [memory, log, fast] = [(); 3].map(|()| Arc::new(MemoryDevice::new()));
    let device = Arc::new(ReadFaultDevice::new(memory, PAGE));
    let log = Arc::new(ReadFaultDevice::new(log, PAGE));
    let open = || Db::open_on_tiered_devices(device.clone(), log.clone(), fast.clone(), options());
    let db = open().unwrap();
    db.raw_tree("t").unwrap().put(b"key", b"value").unwrap();
    db.close().unwrap();
    let (mark, mut zeros) = (read(&device, 0).unwrap(), 0);
    for seed in 0..100 {
        device.damage(PageId(0), ReadFault::ZeroedSectors, seed);
        if seed % 2 == 0 {
            let fault = [ReadFault::Error, ReadFault::ZeroedSectors][(seed / 2 % 2) as usize];
            (0..64).for_each(|page| log.damage(PageId(page), fault, seed));
        }
        let head = read(&device, 0).unwrap();
        zeros += usize::from(head.iter().all(|byte| *byte == 0));
        if head[..512] != mark[..512] {
            assert!(open().is_err(), "seed {seed}");
        }
        device.heal();
        log.heal();
        assert_eq!(read(&device, 0).unwrap(), mark, "seed {seed}");
    }
    assert!(zeros > 0, "no seed gave a page of zeros");
    assert_eq!(open().unwrap().raw_tree("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
}

/// A device whose beginning is misread, each time in another way: as something else at first, and
/// then as zeros. What is written is right.
struct Fickle {
    inner: Arc<MemoryDevice>,
    /// Bytes that are misread.
    misread: u64,
    /// Reads until they are read as zeros.
    until_zeros: AtomicUsize,
    /// From now on it is read as it is.
    is_healed: AtomicBool,
}

impl Device for Fickle {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(offset, bytes)?;
        if offset < self.misread && !self.is_healed.load(Ordering::Relaxed) {
            let one_less = |left: usize| left.checked_sub(1);
            let left = &self.until_zeros;
            let is_other =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
            let first = bytes.len().min((self.misread - offset) as usize);
            bytes[..first].fill(if is_other { 0x5a } else { 0 });
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner.write(offset, bytes)
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.inner.sync()
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.inner.grow(length)
    }
}

/// The mark is misread in two ways: as other bytes until the store was found to have no tier, and
/// as zeros when it is looked at alone. The cache knows better: it is asked before.
#[test]
fn a_store_whose_mark_is_misread_in_two_ways_is_not_opened_without_its_cache() {
    let options = || Options::new().memory(16 << 20).second_tier("fast", 2 << 20, "tq-io");
    let options = || options().write_back(true);
    let [inner, log, fast] = [(); 3].map(|()| Arc::new(MemoryDevice::new()));
    let fickle = |inner, misread| {
        let (until_zeros, is_healed) = (AtomicUsize::new(0), AtomicBool::new(true));
        Arc::new(Fickle { inner, misread, until_zeros, is_healed })
    };
    let (device, log) = (fickle(inner.clone(), PAGE as u64), fickle(log, u64::MAX));
    let heal = |healed| [&device, &log].map(|it| it.is_healed.store(healed, Ordering::Relaxed));
    let open = || Db::open_on_tiered_devices(device.clone(), log.clone(), fast.clone(), options());
    let db = open().unwrap();
    db.raw_tree("t").unwrap().put(b"key", b"value").unwrap();
    db.close().unwrap();
    let first_page = || {
        let mut bytes = vec![0; PAGE];
        inner.read(0, &mut bytes).unwrap();
        bytes
    };
    let mark = first_page();
    // However often it is looked at: which look is the last one before is not the test's to know.
    let mut errors = Vec::new();
    for until_zeros in 0..12 {
        device.until_zeros.store(until_zeros, Ordering::Relaxed);
        heal(false);
        let error = open().err().unwrap_or_else(|| panic!("{until_zeros}: it was made anew"));
        errors.push(error);
        heal(true);
        assert_eq!(first_page(), mark, "{until_zeros}: the mark is gone");
    }
    let is_told = |error: &Error| matches!(error, Error::Tier(TierError::NotItsStore { .. }));
    assert!(errors.iter().all(is_told), "{errors:?}");
    assert_eq!(open().unwrap().raw_tree("t").unwrap().get(b"key").unwrap().unwrap(), b"value");
}

/// A backup copies steps of many pages. One page that could not be read failed the whole step, and
/// the error told where the step began.
#[test]
fn a_backup_names_the_page_that_it_cannot_read_and_gets_over_a_page_that_fails_once() {
    let (device, log) = store();
    // Else leaves are merged meanwhile, and a page that a backup has to read is one no more.
    let db =
        Db::open_on_devices(device.clone(), log, options().lab(|lab| lab.background_merge = false))
            .unwrap();
    let backup = || {
        let targets: [Arc<dyn Device>; 2] =
            [Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new())];
        let mut watch = |_| ControlFlow::Continue(());
        let done = db.backup_to_devices(&targets[0], &targets[1], &mut watch);
        done.map(|_| targets)
    };
    for fault in [ReadFault::Error, ReadFault::Short] {
        device.damage(PageId(17), fault, 3);
        match backup() {
            Err(Error::Backup(BackupError::Source(error))) => {
                assert!(error.to_string().starts_with("page 17 "), "{error}");
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("a backup without page 17"),
        }
        device.heal();
    }
    let share = 0.02;
    for seed in 0..20 {
        let kinds = vec![ReadFault::BitFlips];
        device.set_faults(ReadFaults { share, kinds, ..ReadFaults::default() }, seed);
        let [data, log] = backup().unwrap();
        let copy = Db::open_on_devices(data, log, options()).unwrap();
        let count = copy.raw_tree("t").unwrap().iter().filter(Result::is_ok).count();
        assert!(device.struck() > 0 && count == 2000, "seed {seed}: {count} rows");
    }
}

/// A closed store with large values, each page of which was another value's before.
fn store_of_large_values() -> (Arc<ReadFaultDevice>, Arc<MemoryDevice>) {
    let log = Arc::new(MemoryDevice::new());
    let device = Arc::new(ReadFaultDevice::new(Arc::new(MemoryDevice::new()), PAGE));
    for (life, count, length) in [(0_u8, 30, 9_000), (1, 12, 20_000)] {
        let options = options().page_size(PAGE as u32).lab(|lab| lab.background_merge = false);
        let db = Db::open_on_devices(device.clone(), log.clone(), options).unwrap();
        let tree = db.raw_tree("t").unwrap();
        for key in 0..30_u8 {
            tree.delete(&[key]).unwrap();
        }
        for key in 0..count {
            tree.put(&[key], &vec![key ^ (life << 7); length]).unwrap();
        }
        drop(tree);
        db.close().unwrap();
    }
    (device, log)
}

/// The root of a value that no entry refers to any more has no parent that knows its stamp. An
/// older page in its place was taken for it, and the pages below the right one were lost.
#[test]
fn an_older_page_in_place_of_a_large_values_root_loses_no_pages_and_gives_no_other_value() {
    let (mut errors, mut pages) = (0, 0);
    for page in 2.. {
        let (device, log) = store_of_large_values();
        if page * PAGE as u64 >= device.length() {
            break;
        }
        if PageHeader::read(&read(&device, page).unwrap()).kind != PageType::OVERFLOW {
            continue;
        }
        pages += 1;
        device.damage(PageId(page), ReadFault::OlderVersion, 1);
        let db = Db::open_on_devices(device.clone(), log.clone(), options()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        for key in 0..12_u8 {
            // A snapshot, or a transaction, asks for the old value.
            let snapshot = (key % 3 == 0).then(|| db.snapshot().unwrap());
            let done = match key % 2 {
                0 => tree.delete(&[key]).map(|_| ()),
                _ => tree.put(&[key], &[1]).map(|_| ()),
            };
            errors += usize::from(done.is_err());
            let seen = snapshot.map(|snapshot| snapshot.tree(&tree).get(&[key]));
            match seen {
                Some(Ok(value)) => assert_eq!(value, Some(vec![key ^ 128; 20_000]), "page {page}"),
                Some(Err(_)) => errors += 1,
                None => {}
            }
        }
        drop(tree);
        device.heal();
        db.close().unwrap();
        let db = Db::open_on_devices(device.clone(), log, options()).unwrap();
        db.close().unwrap();
        let store = PageStore::salvage_on(device, None).unwrap();
        let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
        assert_eq!((report.counts.lost, report.problems.len()), (0, 0), "page {page}");
    }
    assert!(pages > 50 && errors > 10, "{errors} errors, {pages} pages");
}

/// A value that could not be freed is freed when the store is opened. Nothing but the checkpoint
/// knows of it by then: it told the root's page only, and an older page in its place, with older
/// pages below it, had the pages of other values freed.
#[test]
fn an_older_page_in_place_of_a_root_that_hangs_frees_no_other_values_pages() {
    let mut hung = 0;
    for key in 0..12_u8 {
        let (device, log) = store_of_large_values();
        let overflow: Vec<u64> = (2..device.length() / PAGE as u64)
            .filter(|page| {
                let kind = PageHeader::read(&read(&device, *page).unwrap()).kind;
                kind == PageType::OVERFLOW
            })
            .collect();
        let damage = |fault| {
            for page in &overflow {
                device.damage(PageId(*page), fault, 1);
            }
        };
        let db = Db::open_on_devices(device.clone(), log.clone(), options()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        damage(ReadFault::Error);
        hung += usize::from(tree.delete(&[key]).is_err());
        device.heal();
        assert_eq!(tree.get(&[key]).unwrap(), None);
        drop(tree);
        db.close().unwrap();
        // Its root, and what is below it, are read as what they were in another value's life.
        damage(ReadFault::OlderVersion);
        let db = Db::open_on_devices(device.clone(), log.clone(), options()).unwrap();
        device.heal();
        db.close().unwrap();
        let db = Db::open_on_devices(device.clone(), log, options()).unwrap();
        let tree = db.raw_tree("t").unwrap();
        for other in (0..12).filter(|other| *other != key) {
            let value = tree.get(&[other]).unwrap();
            assert_eq!(value, Some(vec![other ^ 128; 20_000]), "{other}, {key} was deleted");
        }
        drop(tree);
        db.close().unwrap();
        let store = PageStore::salvage_on(device, None).unwrap();
        let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
        assert_eq!((report.counts.lost, report.problems.len()), (0, 0), "{key} was deleted");
    }
    assert!(hung > 5, "{hung} values could not be freed at once");
}

/// The roots that an older leaf names were freed, and hold their values still: a second deletion
/// freed them a second time, and each became two pages.
#[test]
fn an_older_leaf_whose_values_were_freed_frees_nothing_a_second_time() {
    let (device, log) = store_of_large_values();
    let db = Db::open_on_devices(device.clone(), log.clone(), options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    for key in 0..6_u8 {
        tree.delete(&[key]).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    for page in 2..device.length() / PAGE as u64 {
        if PageHeader::read(&read(&device, page).unwrap()).kind == PageType::BTREE_LEAF {
            device.damage(PageId(page), ReadFault::OlderVersion, 1);
        }
    }
    let db = Db::open_on_devices(device.clone(), log.clone(), options()).unwrap();
    let tree = db.raw_tree("t").unwrap();
    let gone: Vec<u8> = (0..12).filter(|key| tree.contains(&[*key]).unwrap()).collect();
    assert_eq!(gone.len(), 12, "the leaf is as it was");
    for key in 0..6 {
        let error = tree.delete(&[key]).unwrap_err().to_string();
        assert!(error.contains("is free, or the root of a value that was replaced"), "{error}");
        assert!(tree.put(&[key], b"small").is_err());
    }
    for key in 20..26 {
        tree.put(&[key], &vec![key; 20_000]).unwrap();
    }
    for key in (6..12).chain(20..26) {
        let filled = if key < 20 { key ^ 128 } else { key };
        assert_eq!(tree.get(&[key]).unwrap(), Some(vec![filled; 20_000]), "{key}");
    }
}

/// A snapshot keeps what transactions under way have replaced. One value that cannot be read let no
/// snapshot begin, and so no range of any tree, until that transaction was over.
#[test]
fn a_replaced_value_that_cannot_be_read_is_nobody_elses_error() {
    let (device, log) = store_of_large_values();
    let overflow: Vec<u64> = (2..device.length() / PAGE as u64)
        .filter(|page| PageHeader::read(&read(&device, *page).unwrap()).kind == PageType::OVERFLOW)
        .collect();
    let db = Db::open_on_devices(device.clone(), log, options()).unwrap();
    let (tree, other) = (db.raw_tree("t").unwrap(), db.raw_tree("other").unwrap());
    other.put(b"key", b"value").unwrap();
    let tx = db.begin().unwrap();
    tx.tree(&tree).put(&[3], b"small").unwrap();
    overflow.iter().for_each(|page| device.damage(PageId(*page), ReadFault::Error, 1));
    let snapshot = db.snapshot().unwrap();
    assert_eq!(snapshot.tree(&other).get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(other.iter().filter(Result::is_ok).count(), 1);
    let error = snapshot.tree(&tree).get(&[3]).unwrap_err();
    assert!(matches!(error, Error::Txn(TxnError::VersionUnreadable(_))), "{error}");
    assert!(error.to_string().contains("page "), "{error}");
    tx.commit().unwrap();
    assert!(snapshot.tree(&tree).get(&[3]).is_err(), "still");
    assert_eq!(tree.get(&[3]).unwrap().as_deref(), Some(&b"small"[..]));
    drop(snapshot);
    device.heal();
    // A snapshot that begins when it can be read has it.
    let tx = db.begin().unwrap();
    tx.tree(&tree).put(&[4], b"small").unwrap();
    assert_eq!(db.snapshot().unwrap().tree(&tree).get(&[4]).unwrap(), Some(vec![4 ^ 128; 20_000]));
    tx.abort().unwrap();
    drop((tree, other));
    db.close().unwrap();
}

/// Bytes of a value, and what is done before the first of them that lies behind `at`.
struct Interrupted<'a> {
    bytes: &'a [u8],
    left: usize,
    between: Option<Box<dyn FnOnce() + 'a>>,
}

impl std::io::Read for Interrupted<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0
            && let Some(between) = self.between.take()
        {
            between();
        }
        let most = if self.between.is_some() { self.left } else { usize::MAX };
        let n = out.len().min(most).min(self.bytes.len());
        out[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes = &self.bytes[n..];
        self.left = self.left.saturating_sub(n);
        Ok(n)
    }
}

/// A value's root that was evicted while the value was written came back as a page of an older
/// value. It was written to, and so the older page got to storage, below the new value's entry.
#[test]
fn an_older_page_in_place_of_a_root_that_is_being_written_is_not_written_to() {
    let (mut refused, mut misread) = (0, 0);
    // Which pages are evicted meanwhile is up to chance: eight stories at least, and more of them
    // until enough pages were misread.
    for (story, pages_before) in (1..9).cycle().take(64).enumerate() {
        if story >= 8 && refused > 1 && misread > 3 {
            break;
        }
        let (device, log) = store_of_large_values();
        let few = options().lab(|lab| lab.frames = Some(16));
        let db = Db::open_on_devices(device.clone(), log.clone(), few).unwrap();
        let (tree, other) = (db.raw_tree("t").unwrap(), db.raw_tree("other").unwrap());
        for row in 0..2000_u32 {
            other.put(&row.to_be_bytes(), &[1; 100]).unwrap();
        }
        for key in 0..12_u8 {
            tree.delete(&[key]).unwrap();
        }
        db.checkpoint().unwrap();
        let bytes: Vec<u8> = (0..40_000_u32).map(|at| (at / 7) as u8).collect();
        let between = || {
            db.checkpoint().unwrap();
            for row in 0..2000_u32 {
                assert!(other.get(&row.to_be_bytes()).unwrap().is_some(), "all else is evicted");
            }
            let kind = |page| PageHeader::read(&read(&device, page).unwrap()).kind;
            let pages = 2..device.length() / PAGE as u64;
            let overflow = pages.filter(|page| kind(*page) == PageType::OVERFLOW).map(PageId);
            device.set_faults(
                ReadFaults {
                    share: 1.0,
                    kinds: vec![ReadFault::OlderVersion],
                    pages: Some(overflow.collect()),
                    persists: false,
                },
                pages_before,
            );
        };
        let source = Interrupted {
            bytes: &bytes,
            left: pages_before as usize * (PAGE - 48),
            between: Some(Box::new(between)),
        };
        let done = tree.put_from(&[1], bytes.len() as u64, source);
        misread += device.struck();
        device.heal();
        if let Err(error) = &done {
            assert!(error.to_string().contains("page "), "{error}");
            refused += 1;
        }
        let expected = done.is_ok().then_some(bytes);
        assert_eq!(tree.get(&[1]).unwrap(), expected, "{pages_before}");
        drop((tree, other));
        db.close().unwrap();
        let db = Db::open_on_devices(device.clone(), log, options()).unwrap();
        assert_eq!(db.raw_tree("t").unwrap().get(&[1]).unwrap(), expected, "{pages_before}");
        db.close().unwrap();
        let store = PageStore::salvage_on(device, None).unwrap();
        let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
        assert_eq!(report.problems.len(), 0, "{pages_before}: {:?}", report.problems);
    }
    assert!(refused > 1 && misread > 3, "{refused} refused, {misread} misread");
}
