//! Backups that are taken while a store is written: each is whole, and has the promised contents.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond::internals::admin::check::{CATALOG, CheckOptions, check, check_store};
use millpond::internals::io::PageStore;
use millpond::internals::page::PageHeader;
use millpond::{
    Db, Durability, Error, Options, OwnPolicies,
    error::BackupError,
    report::{BackupPhase, BackupProgress},
};
use millpond_base::FrameId;
use millpond_device::{Alignment, Device, DeviceError, FaultyDevice, MemoryDevice};
use millpond_policies::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use millpond_policies::info::Info;
use millpond_policies::policy::Fifo;

use crate::byte_calls::TxnCalls;

const PAGE: usize = 4096;
const ACCOUNTS: u32 = 40;
const START: u64 = 1000;
const WRITERS: usize = 3;

fn options(frames: u32) -> Options {
    Options::new().page_size(PAGE as u32).durability(Durability::Async).lab(|lab| {
        lab.frames = Some(frames);
        lab.log_segment = Some(64 << 10);
    })
}

/// A device of sectors: of a long read or write, others see a part.
struct Sectors(MemoryDevice);

impl Device for Sectors {
    fn path(&self) -> &Path {
        self.0.path()
    }
    fn length(&self) -> u64 {
        self.0.length()
    }
    fn alignment(&self) -> Alignment {
        self.0.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        for (at, sector) in (offset..).step_by(512).zip(bytes.chunks_mut(512)) {
            self.0.read(at, sector)?;
            if at % 8192 == 1024 {
                std::thread::yield_now();
            }
        }
        Ok(())
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        for (at, sector) in (offset..).step_by(512).zip(bytes.chunks(512)) {
            self.0.write(at, sector)?;
            if at % 4096 == 2048 {
                std::thread::yield_now();
            }
        }
        Ok(())
    }
    fn sync(&self) -> Result<(), DeviceError> {
        self.0.sync()
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.0.grow(length)
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn number(bytes: Option<Vec<u8>>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// Progress of the writers.
#[derive(Default)]
struct Told {
    /// Rounds that each writer has finished.
    rounds: [AtomicU64; WRITERS],
    is_over: AtomicBool,
}

impl Told {
    fn look(&self) -> [u64; WRITERS] {
        std::array::from_fn(|at| self.rounds[at].load(Ordering::SeqCst))
    }
}

fn found(db: &Db) {
    let (left, right) = (db.raw_tree("left").unwrap(), db.raw_tree("right").unwrap());
    for account in 0..ACCOUNTS {
        left.put(&key(account), &START.to_le_bytes()).unwrap();
        right.put(&key(account), &START.to_le_bytes()).unwrap();
    }
    for name in ["rounds", "large", "filler"] {
        db.raw_tree(name).unwrap();
    }
    let filler = db.raw_tree("filler").unwrap();
    for row in 0..2000u32 {
        filler.put(&key(row.wrapping_mul(0x9e37_79b1)), &[row as u8; 150]).unwrap();
    }
    db.raw_hash_index("hash").unwrap();
    db.raw_heap("heap").unwrap();
}

/// One round of a writer: money moves between two trees, a large value changes, and all the rest.
fn round(db: &Db, writer: usize, round: u64, random: &mut fastrand::Rng) -> Result<(), Error> {
    let (left, right) = (db.raw_tree("left")?, db.raw_tree("right")?);
    let (rounds, large) = (db.raw_tree("rounds")?, db.raw_tree("large")?);
    let (from, to) = (random.u32(0..ACCOUNTS), random.u32(0..ACCOUNTS));
    let amount = random.u64(0..5);
    let value = vec![round as u8; random.usize(10..20_000)];
    let is_removed = random.u8(0..4) == 0;
    db.transact(|tx| {
        let here = number(tx.get_for_update(&left, &key(from))?);
        let there = number(tx.get_for_update(&right, &key(to))?);
        let amount = amount.min(here);
        tx.put(&left, &key(from), &(here - amount).to_le_bytes())?;
        if is_removed {
            tx.delete(&large, &key(writer as u32))?;
        } else {
            tx.put(&large, &key(writer as u32), &value)?;
        }
        tx.put(&right, &key(to), &(there + amount).to_le_bytes())?;
        tx.put(&rounds, &key(writer as u32), &round.to_le_bytes())?;
        Ok::<_, millpond::Error>(())
    })?;
    let filler = db.raw_tree("filler")?;
    for _ in 0..20 {
        let row = key(random.u32(0..4000).wrapping_mul(0x9e37_79b1));
        match random.bool() {
            true => drop(filler.delete(&row)?),
            false => drop(filler.put(&row, &[round as u8; 150])?),
        }
    }
    db.raw_hash_index("hash")?
        .put(&[&key(writer as u32)[..], &round.to_le_bytes()].concat(), b"")?;
    db.raw_heap("heap")?.append(&round.to_le_bytes())?;
    if round.is_multiple_of(5) {
        let name = format!("passing {writer}");
        let passing = db.raw_tree(&name)?;
        for row in 0..60u32 {
            passing.put(&key(row), &[writer as u8; 200])?;
        }
        drop(passing);
        db.drop_tree(&name)?;
    }
    Ok(())
}

/// Looks at a copy: it must have everything up to `before`, nothing behind `after`, and be sound.
fn look(db: &Db, before: &[u64; WRITERS], after: &[u64; WRITERS], what: &str) {
    let trees = ["left", "right"].map(|name| db.open_tree(name).unwrap());
    let money = |account| trees.each_ref().map(|tree| number(tree.get(&key(account)).unwrap()));
    let sum: u64 = (0..ACCOUNTS).flat_map(money).sum();
    assert_eq!(sum, 2 * START * u64::from(ACCOUNTS), "{what}");
    let (rounds, hash) = (db.open_tree("rounds").unwrap(), db.open_hash_index("hash").unwrap());
    for writer in 0..WRITERS {
        let done = number(rounds.get(&key(writer as u32)).unwrap());
        assert!(done >= before[writer] && done <= after[writer] + 1, "{what}: {writer}, {done}");
        for round in 1..=before[writer] {
            let name = [&key(writer as u32)[..], &round.to_le_bytes()].concat();
            assert!(hash.contains(&name).unwrap(), "{what}: writer {writer}, round {round}");
        }
        // A round's last steps come after its transaction.
        let name = [&key(writer as u32)[..], &(done + 1).to_le_bytes()].concat();
        assert!(!hash.contains(&name).unwrap(), "{what}: writer {writer}, round {done}");
    }
    let records = db.open_heap("heap").unwrap().len().unwrap();
    assert!(records >= before.iter().sum() && records <= after.iter().sum::<u64>() + 3, "{what}");
    for name in ["left", "right", "rounds", "large", "filler"] {
        let report = db.open_tree(name).unwrap().check().unwrap();
        assert!(report.violations.is_empty(), "{what}: {name}: {:?}", report.violations);
    }
}

/// Pages of a raw copy that do not prove themselves, those of zeros aside.
fn torn(data: &dyn Device) -> usize {
    let mut bytes = vec![0; data.length() as usize];
    data.read(0, &mut bytes).unwrap();
    let pages = bytes.chunks(PAGE).zip(0u64..).skip(2);
    pages
        .filter(|(page, id)| {
            page.iter().any(|byte| *byte != 0)
                && !PageHeader::is_sound(millpond_base::PageId(*id), page)
        })
        .count()
}

#[test]
fn a_backup_that_is_taken_while_everybody_writes_is_a_moment_of_the_store() {
    let mut torn_pages = 0;
    for (frames, seed) in [(40, 1), (150, 2), (1000, 3)] {
        let data: Arc<dyn Device> = Arc::new(Sectors(MemoryDevice::new()));
        let log: Arc<dyn Device> = Arc::new(Sectors(MemoryDevice::new()));
        let db = Db::open_on_devices(data, log, options(frames)).unwrap();
        found(&db);
        let told = Told::default();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, told) = (&db, &told);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed * 100 + writer as u64);
                    for number in 1..=3000 {
                        if told.is_over.load(Ordering::SeqCst) {
                            break;
                        }
                        round(db, writer, number, &mut random).unwrap();
                        told.rounds[writer].store(number, Ordering::SeqCst);
                        if number.is_multiple_of(40) {
                            db.checkpoint().unwrap();
                        }
                    }
                });
            }
            while told.look().iter().any(|rounds| *rounds < 3) {
                std::thread::yield_now();
            }
            for nth in 0..3 {
                let what = format!("{frames} frames, backup {nth}");
                let copy: Arc<dyn Device> = Arc::new(MemoryDevice::new());
                let copied_log: Arc<dyn Device> = Arc::new(MemoryDevice::new());
                let before = told.look();
                let go_on = &mut |_: BackupProgress| ControlFlow::Continue(());
                db.backup_to_devices(&copy, &copied_log, go_on).unwrap();
                let after = told.look();
                torn_pages += torn(&*copy);
                let backup = Db::open_on_devices(copy.clone(), copied_log, options(frames));
                let backup = backup.unwrap();
                look(&backup, &before, &after, &what);
                backup.close().unwrap();
                let store = PageStore::open_on(copy, None, true).unwrap();
                let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
                assert!(report.is_sound(), "{what}: {:?}", report.problems);
            }
            told.is_over.store(true, Ordering::SeqCst);
        });
        db.close().unwrap();
    }
    println!("{torn_pages} pages were copied torn");
}

#[test]
fn a_backup_in_a_file_is_a_closed_store_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let db = Db::open(path("a.mp"), options(100)).unwrap();
    found(&db);
    let told = Told::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(9);
            for number in 1..=2000 {
                if told.is_over.load(Ordering::SeqCst) {
                    break;
                }
                round(&db, 0, number, &mut random).unwrap();
                told.rounds[0].store(number, Ordering::SeqCst);
            }
        });
        while told.look()[0] < 3 {
            std::thread::yield_now();
        }
        for name in ["b.mp", "c.mp"] {
            let before = told.look();
            let mut phases = Vec::new();
            let backup = db
                .backup_with(path(name), &mut |progress| {
                    assert!(progress.done <= progress.total);
                    phases.push(progress.phase);
                    ControlFlow::Continue(())
                })
                .unwrap();
            let after = told.look();
            phases.dedup();
            assert_eq!(phases, [BackupPhase::Pages, BackupPhase::Log, BackupPhase::Recovery]);
            assert!(backup.page_bytes >= 512 << 10 && backup.log_bytes > 0, "{backup:?}");
            assert!(check(&path(name), CATALOG, CheckOptions::default()).unwrap().is_sound());
            let copy = Db::open(path(name), options(100)).unwrap();
            assert!(copy.recovery().is_none(), "it was closed");
            look(&copy, &before, &after, name);
            // It goes its own way, with a new log.
            let mut random = fastrand::Rng::with_seed(10);
            for number in 1..=30 {
                round(&copy, 1, number, &mut random).unwrap();
            }
            copy.checkpoint().unwrap();
            copy.close().unwrap();
            assert!(check(&path(name), CATALOG, CheckOptions::default()).unwrap().is_sound());
        }
        told.is_over.store(true, Ordering::SeqCst);
    });
    db.close().unwrap();
    let id = |name: &str| {
        let file = millpond_device::FileOptions { read_only: true, ..Default::default() };
        PageStore::open_for_salvage(&path(name), None, &file).unwrap().uuid()
    };
    assert!(id("a.mp") != id("b.mp") && id("b.mp") != id("c.mp"));
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with("stats"))
        .collect();
    names.sort();
    assert!(!names.iter().any(|name| name.contains("partial")), "{names:?}");
    // The log of the one is not taken for that of the other.
    std::fs::copy(path("b.mp-log"), path("a.mp-log")).unwrap();
    let error = Db::open(path("a.mp"), options(100)).unwrap_err();
    assert!(error.to_string().contains("belongs to another store"), "{error}");
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| name(entry).into_string().unwrap())
        .filter(|name| name.starts_with("copy"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_backup_that_cannot_be_leaves_nothing_behind_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let db = Db::open(path("a.mp"), options(100)).unwrap();
    found(&db);
    let refused = |db: &Db, name: &str| match db.backup_to(path(name)).unwrap_err() {
        Error::Backup(error) => error,
        other => panic!("{other}"),
    };
    for (name, other) in [("copy1", "copy1"), ("copy2", "copy2-log")] {
        std::fs::write(path(other), b"mine").unwrap();
        let error = refused(&db, name);
        assert!(matches!(&error, BackupError::Exists { path: p } if *p == path(other)), "{error}");
        assert_eq!(std::fs::read(path(other)).unwrap(), b"mine");
    }
    for (name, other) in [("copy3", "copy3-partial"), ("copy4", "copy4-partial-log")] {
        std::fs::write(path(other), b"mine").unwrap();
        let error = refused(&db, name);
        assert!(matches!(&error, BackupError::Unfinished { .. }), "{error}");
        assert_eq!(std::fs::read(path(other)).unwrap(), b"mine");
        assert_eq!(names(folder.path()).iter().filter(|n| n.starts_with(name)).count(), 1);
        std::fs::remove_file(path(other)).unwrap();
    }
    let error = refused(&db, "no folder/copy5");
    assert!(matches!(&error, BackupError::Place { .. }), "{error}");
    for phase in [BackupPhase::Pages, BackupPhase::Log, BackupPhase::Recovery] {
        let mut calls = 0;
        let given_up = db.backup_with(path("copy6"), &mut |progress| {
            calls += u32::from(progress.phase == phase);
            if calls > 1 || calls == 1 && phase == BackupPhase::Recovery {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(given_up, Err(Error::Backup(BackupError::GivenUp))), "{phase:?}");
    }
    assert_eq!(names(folder.path()), ["copy1", "copy2-log"]);
    db.backup_to(path("copy6")).unwrap();
    db.close().unwrap();

    let without = Db::open(path("a.mp"), options(100).lab(|lab| lab.log = false)).unwrap();
    assert!(matches!(refused(&without, "copy7"), BackupError::NoLog { .. }));
    without.close().unwrap();
    let reader = Db::open(path("a.mp"), options(100).read_only(true)).unwrap();
    assert!(matches!(reader.backup_to(path("copy7")), Err(Error::ReadOnly)));
    assert_eq!(names(folder.path()), ["copy1", "copy2-log", "copy6"]);
}

#[test]
fn a_target_that_fails_or_is_full_is_told_and_the_store_goes_on() {
    let memory = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let db = Db::open_on_devices(memory(), memory(), options(60)).unwrap();
    found(&db);
    let mut random = fastrand::Rng::with_seed(4);
    let fault: [fn(&FaultyDevice); 4] = [
        |device| device.limit_room(6 << 10),
        |device| device.fill(),
        |device| device.fail_writes_at(5000),
        |device| device.fail_next_sync(),
    ];
    let mut done = 0;
    for (at, fault) in fault.iter().enumerate() {
        for fails_log in [false, true] {
            let faulty = || Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), 1));
            let (data, log) = (faulty(), faulty());
            fault(if fails_log { &log } else { &data });
            let (data, log): (Arc<dyn Device>, Arc<dyn Device>) = (data, log);
            let go_on = &mut |_: BackupProgress| ControlFlow::Continue(());
            let error = db.backup_to_devices(&data, &log, go_on).unwrap_err();
            let Error::Backup(BackupError::Target(error)) = error else { panic!("{error}") };
            assert_eq!(error.is_disk_full(), at < 2, "{error}");
            done += 1;
            round(&db, 0, done, &mut random).unwrap();
        }
    }
    let (data, log) = (memory(), memory());
    db.backup_to_devices(&data, &log, &mut |_| ControlFlow::Continue(())).unwrap();
    let again = db.backup_to_devices(&data, &log, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(again, Err(Error::Backup(BackupError::Exists { .. }))));
    let copy = Db::open_on_devices(data, log, options(60)).unwrap();
    look(&copy, &[done, 0, 0], &[done, 0, 0], "behind all faults");
    copy.close().unwrap();
    db.close().unwrap();
}

#[test]
fn the_log_is_kept_while_it_is_copied_and_no_longer() {
    let device = || Arc::new(MemoryDevice::new());
    let (data, log) = (device(), device());
    let db = Db::open_on_devices(data, log.clone(), options(200)).unwrap();
    found(&db);
    let tree = db.raw_tree("left").unwrap();
    let write_much = || {
        for round in 0..40u32 {
            for i in 0..100u32 {
                tree.put(&key(i), &[round as u8; 8]).unwrap();
            }
            db.checkpoint().unwrap();
        }
    };
    write_much();
    let usual = log.length();
    let mut is_first = true;
    let mut watch = |_: BackupProgress| {
        if std::mem::take(&mut is_first) {
            (0..20).for_each(|_| write_much());
        }
        ControlFlow::Continue(())
    };
    let copies: [Arc<dyn Device>; 2] = [device(), device()];
    db.backup_to_devices(&copies[0], &copies[1], &mut watch).unwrap();
    let grown = log.length();
    assert!(grown > usual + (1 << 20), "{usual}, {grown}");
    let [data, log_copy] = copies;
    let copy = Db::open_on_devices(data, log_copy, options(200)).unwrap();
    let left = copy.open_tree("left").unwrap();
    assert_eq!(left.get(&key(7)).unwrap(), Some(vec![39; 8]));
    (0..60).for_each(|_| write_much());
    // A segment or two are made ahead of need.
    assert!(log.length() < grown + (1 << 20), "{grown}, {}", log.length());
}

#[test]
fn a_damaged_page_is_no_part_of_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp");
    let db = Db::open(&path, options(60)).unwrap();
    found(&db);
    let root = db.trees().unwrap().iter().find(|(name, _)| name == "filler").unwrap().1.root;
    db.close().unwrap();
    let (page, offset) = used_pages(&path).into_iter().rfind(|(page, _)| *page != root.0).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_at(&file, b"damage", offset + 2000).unwrap();
    file.sync_all().unwrap();
    let db = Db::open(&path, options(60)).unwrap();
    let error = db.backup_to(folder.path().join("copy")).unwrap_err();
    assert!(matches!(&error, Error::Backup(BackupError::Damaged(_))), "{error}");
    assert!(error.to_string().contains(&format!("page {page}")), "{error}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// Pages that are in use in the closed store at `path`, and where they begin.
fn used_pages(path: &Path) -> Vec<(u64, u64)> {
    let file = millpond_device::FileOptions { read_only: true, ..Default::default() };
    let store = PageStore::open(path, None, &file).unwrap();
    let is_used = |page: &u64| {
        let page = millpond_base::PageId(*page);
        store.is_allocated(page) && !store.is_reserved(page)
    };
    let offset = |page: u64| store.offset_of_page(millpond_base::PageId(page)).unwrap();
    (0..store.pages()).filter(is_used).map(|page| (page, offset(page))).collect()
}

/// First in, first out, under a name that no policy of Millpond has.
struct Mine(Fifo);

impl PolicySpec for Mine {
    const INFO: Info = Info { id: "mine", ..Fifo::INFO };
    type Hook = <Fifo as PolicySpec>::Hook;
    type Config = <Fifo as PolicySpec>::Config;

    fn new(config: &Self::Config, shape: &Shape) -> Mine {
        Mine(Fifo::new(config, shape))
    }

    fn state_bytes(&self) -> usize {
        self.0.state_bytes()
    }

    fn check(&self, frames: Frames<'_, Self::Hook>, resident: &[FrameId]) -> Result<(), String> {
        self.0.check(frames, resident)
    }
}

impl Policy for Mine {
    fn admit(&mut self, on: Frames<'_, Self::Hook>, frame: FrameId, by: &Access, back: GhostHit) {
        self.0.admit(on, frame, by, back);
    }

    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, Self::Hook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.0.evict(frames, request, host)
    }

    fn forget(&mut self, frames: Frames<'_, Self::Hook>, frame: FrameId) {
        self.0.forget(frames, frame);
    }
}

#[test]
fn a_store_with_a_policy_of_the_users_own_is_backed_up_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let own = OwnPolicies::default().with::<Mine>();
    let options = Options::new().memory(16 << 20).own_policies(own).policy("mine");
    let db = Db::open(folder.path().join("store"), options).unwrap();
    let tree = db.raw_tree("tree").unwrap();
    (0..2000u32).for_each(|key| assert!(!tree.put(&key.to_be_bytes(), &[7; 200]).unwrap()));
    db.backup_to(folder.path().join("copy")).unwrap();
    // It can be opened without the policy.
    let copy = Db::open(folder.path().join("copy"), Options::new().memory(16 << 20)).unwrap();
    assert_eq!(copy.open_tree("tree").unwrap().len().unwrap(), 2000);
}
