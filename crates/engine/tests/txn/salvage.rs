//! A store whose log is damaged before its end: what is reported, what is saved, and that nothing
//! from behind the damage comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::internals::io::PageStore;
use millpond::internals::log::{Log, LogOptions};
use millpond::internals::pool::mini_transaction::kind;
use millpond::{
    Db, Error, Options, Placement, RawTree,
    report::{LogDamage, Obstacle},
};
use millpond_base::Lsn;
use millpond_base::rounds::rounds;
use millpond_device::{Device, MemoryDevice, PowerSupply};

use crate::byte_calls::TxnCalls;

const SEGMENT: u64 = 16 << 10;
const SLOT: u64 = SEGMENT + 4096;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Frequency and placement of page writes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Storage {
    /// At checkpoints only.
    Calm,
    /// All the time: there are few frames.
    Busy,
    /// All the time, over the former versions.
    BusyInPlace,
}

/// With `tide` no story of [`Storage::BusyInPlace`] has a page on storage that is in the way.
fn options(storage: Storage) -> Options {
    let options = Options::new().policy("watt").page_size(1024).log_gap(1 << 40);
    let options = options.lab(|lab| lab.background_merge = false);
    options.lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(match storage {
            Storage::Calm => 4000,
            Storage::Busy => 40,
            Storage::BusyInPlace => 24,
        });
        if storage == Storage::BusyInPlace {
            lab.placement = Placement::InPlace;
        }
        lab.batch = Some(2);
        lab.background_writer = false;
        lab.log_segment = Some(SEGMENT);
    })
}

/// A record of the log as it was before it was damaged.
struct Record {
    start: u64,
    end: u64,
    kind: u8,
}

/// A store as its process left it when it died, and what was in it after each commit.
struct Story {
    storage: Storage,
    data: Vec<u8>,
    log: Vec<u8>,
    models: Vec<Model>,
    /// From where recovery begins.
    redo: u64,
    checkpoint: u64,
    records: Vec<Record>,
}

fn write(db: &Db, tree: &RawTree, random: &mut fastrand::Rng, model: &mut Model, number: usize) {
    let tx = db.begin().unwrap();
    let mut after = model.clone();
    for _ in 0..random.usize(1..6) {
        let key = random.u32(0..400).to_be_bytes().to_vec();
        if random.u8(..5) == 0 {
            tx.delete(tree, &key).unwrap();
            after.remove(&key);
        } else {
            let length = if random.u8(..12) == 0 { 2500 } else { random.usize(0..120) };
            let value = vec![number as u8; length];
            tx.put(tree, &key, &value).unwrap();
            after.insert(key, value);
        }
    }
    if random.u8(..8) == 0 {
        return tx.abort().unwrap();
    }
    let count = (number as u64).to_be_bytes().to_vec();
    tx.put(tree, b"count", &count).unwrap();
    after.insert(b"count".to_vec(), count);
    tx.commit().unwrap();
    *model = after;
}

fn contents(tree: &RawTree) -> Model {
    tree.range(..).map(Result::unwrap).collect()
}

impl Story {
    fn new(seed: u64, storage: Storage) -> Story {
        let mut random = fastrand::Rng::with_seed(seed);
        let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
        let db = Db::open_on_devices(data.clone(), log.clone(), options(storage)).unwrap();
        let tree = db.raw_tree("tree").unwrap();
        let (mut model, mut models) = (Model::new(), vec![Model::new()]);
        let mut go = |count: usize, open: bool| {
            let mut left = open.then(|| db.begin().unwrap());
            for _ in 0..count {
                let number = models.len();
                write(&db, &tree, &mut random, &mut model, number);
                if model.get(&b"count"[..]) == Some(&(number as u64).to_be_bytes().to_vec()) {
                    models.push(model.clone());
                }
                if let Some(tx) = &mut left {
                    let key = (1000 + random.u32(0..100)).to_be_bytes();
                    tx.put(&tree, &key, b"never").unwrap();
                }
            }
            left
        };
        go(150, false);
        db.checkpoint().unwrap();
        let open = go(60, true);
        // Some pages of what is dirty, and a transaction under way, before recovery begins.
        if seed.is_multiple_of(2) {
            db.checkpoint().unwrap();
        }
        go(150, false);
        db.flush().unwrap();
        let (data, log) = (data.to_bytes(), log.to_bytes());
        drop((open, tree, db));
        Story::read(storage, data, log, models)
    }

    fn read(storage: Storage, data: Vec<u8>, log: Vec<u8>, models: Vec<Model>) -> Story {
        let store = PageStore::salvage_on(Arc::new(MemoryDevice::from_bytes(&data)), None).unwrap();
        let at = store.log_position();
        let device = Arc::new(MemoryDevice::from_bytes(&log));
        let (opened, _) = Log::open(device, store.uuid(), at, &LogOptions::default()).unwrap();
        let checkpoint = millpond::internals::recovery::Checkpoint::read(&opened, at).unwrap();
        let mut reader = opened.reader(checkpoint.redo);
        let mut records = Vec::new();
        while let Some((start, header, _)) = reader.next_record().unwrap() {
            records.push(Record { start: start.0, end: header.end.0, kind: header.kind });
        }
        let (redo, checkpoint) = (checkpoint.redo.0, at.0);
        Story { storage, data, log, models, redo, checkpoint, records }
    }

    /// Returns the offset of the byte at `lsn` in the log's file.
    fn offset(&self, lsn: u64) -> usize {
        let slots = self.log[4096..].chunks(SLOT as usize);
        let holds = |slot: &[u8]| {
            slot.starts_with(b"MPONDSEG")
                && u64::from_le_bytes(slot[32..40].try_into().unwrap()) == lsn / SEGMENT
        };
        let slot = slots.into_iter().position(holds).unwrap() as u64;
        (4096 + slot * SLOT + 4096 + lsn % SEGMENT) as usize
    }

    /// The first record that `lsns` touch.
    fn victim(&self, lsns: std::ops::Range<u64>) -> &Record {
        self.records.iter().find(|r| r.start < lsns.end && r.end > lsns.start).unwrap()
    }

    /// Returns the state committed when the log ended at `end`, and the number of later commits.
    fn model_at(&self, end: u64) -> (&Model, usize) {
        let behind = self.records.iter().filter(|r| r.kind == kind::COMMIT && r.end > end).count();
        (&self.models[self.models.len() - 1 - behind], behind)
    }

    fn devices(&self, log: &[u8]) -> Devices {
        Devices {
            data: Arc::new(MemoryDevice::from_bytes(&self.data)),
            log: Arc::new(MemoryDevice::from_bytes(log)),
        }
    }

    fn open(&self, devices: &Devices, salvage: bool) -> Result<Db, Error> {
        let options = options(self.storage).lab(|lab| lab.salvage_log = salvage);
        Db::open_on_devices(devices.data.clone(), devices.log.clone(), options)
    }

    /// The store is what it was when the log ended at `end`, and goes on being a store.
    fn check(&self, db: Db, devices: &Devices, end: u64, seed: u64, rounds: u32) {
        let (model, _) = self.model_at(end);
        let tree = db.open_tree("tree").unwrap();
        assert_eq!(&contents(&tree), model, "after the salvage");
        drop(tree);
        db.close().unwrap();
        is_sound(devices);
        let mut random = fastrand::Rng::with_seed(seed);
        let db = self.open(devices, false).unwrap();
        let tree = db.open_tree("tree").unwrap();
        let mut model = model.clone();
        for round in 0..rounds {
            for number in 0..50 {
                write(&db, &tree, &mut random, &mut model, 200 + number);
            }
            db.flush().unwrap();
            let after = Devices {
                data: Arc::new(MemoryDevice::from_bytes(&devices.data.to_bytes())),
                log: Arc::new(MemoryDevice::from_bytes(&devices.log.to_bytes())),
            };
            let again = self.open(&after, false).unwrap();
            assert_eq!(contents(&again.open_tree("tree").unwrap()), model, "round {round}");
        }
        drop(tree);
        db.close().unwrap();
        is_sound(devices);
    }
}

struct Devices {
    data: Arc<MemoryDevice>,
    log: Arc<MemoryDevice>,
}

fn is_sound(devices: &Devices) {
    let store = PageStore::salvage_on(devices.data.clone(), None).unwrap();
    let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
    assert!(report.is_sound() && report.counts.lost == 0, "{:?}", report.problems);
}

#[track_caller]
fn damage_of(result: Result<Db, Error>) -> LogDamage {
    match result {
        Err(Error::LogDamaged(damage)) => *damage,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
}

/// Damages `log` somewhere from `from` to `to`, in one of the ways in which storage fails. Returns
/// which positions are gone.
fn damaged(
    story: &Story,
    log: &mut [u8],
    random: &mut fastrand::Rng,
    from: u64,
    to: u64,
) -> std::ops::Range<u64> {
    let lsn = random.u64(from..to);
    let at = story.offset(lsn);
    match random.u8(..6) {
        0 | 1 => {
            log[at] ^= 1 << random.u8(..8);
            lsn..lsn + 1
        }
        2 => {
            let begin = lsn - lsn % 512;
            log[story.offset(begin)..][..512].fill(0);
            changed(story, log, begin..begin + 512)
        }
        3 => {
            let begin = lsn - lsn % 4096;
            let noise: Vec<u8> = (0..4096).map(|_| random.u8(..)).collect();
            log[story.offset(begin)..][..4096].copy_from_slice(&noise);
            changed(story, log, begin..begin + 4096)
        }
        4 => {
            let begin = lsn - lsn % SEGMENT;
            log[story.offset(begin)..][..SEGMENT as usize].fill(0);
            changed(story, log, begin..begin + SEGMENT)
        }
        // The slot's header: damaged, or as if it had never been used.
        _ => {
            let begin = lsn - lsn % SEGMENT;
            let header = story.offset(begin) - 4096;
            if random.bool() {
                log[header + 33] ^= 4;
            } else {
                log[header..header + 4096].fill(0);
            }
            begin..begin + SEGMENT
        }
    }
}

/// The positions of `range` from the first on whose byte is another one: a record may end with
/// zeros, and zeros written over these are no damage to it.
fn changed(story: &Story, log: &[u8], range: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let is_other = |lsn: &u64| log[story.offset(*lsn)] != story.log[story.offset(*lsn)];
    range.clone().find(is_other).unwrap_or(range.end)..range.end
}

/// Damages the log at random behind the checkpoint and salvages; returns how often it succeeded,
/// and how often pages of storage were in the way.
fn salvage_at_random(storage: Storage, seeds: std::ops::Range<u64>) -> (u32, u32) {
    let (mut saved, mut refused) = (0, 0);
    for seed in seeds {
        let story = Story::new(seed, storage);
        let mut random = fastrand::Rng::with_seed(seed + 1000);
        let first = story.records.iter().find(|r| r.start > story.checkpoint).unwrap().start;
        let last = story.records.last().unwrap().start;
        for case in 0..12 {
            let mut log = story.log.clone();
            let gone =
                damaged(&story, &mut log, &mut random, first, first + (last - first) / 10 * 9);
            let victim = story.victim(gone.clone());
            if victim.start < first {
                continue;
            }
            let devices = story.devices(&log);
            let damage = damage_of(story.open(&devices, false));
            let (_, behind) = story.model_at(victim.start);
            assert_eq!((damage.at.0, damage.obstacle.clone()), (victim.start, None), "{damage}");
            assert!(damage.lost.commits <= behind as u64, "{damage}");
            assert!(damage.to_string().contains("millpond recover FILE --salvage"), "{damage}");
            assert_eq!(devices.log.to_bytes(), log, "nothing is changed");
            match story.open(&devices, true) {
                Ok(db) => {
                    let salvaged = db.recovery().unwrap().salvaged.unwrap();
                    assert_eq!((salvaged.at, salvaged.lost), (damage.at, damage.lost));
                    story.check(db, &devices, victim.start, seed * 100 + case, 2);
                    saved += 1;
                }
                Err(Error::LogDamaged(damage)) => {
                    let Some(Obstacle::Pages(pages)) = &damage.obstacle else {
                        panic!("{damage}");
                    };
                    assert!(pages.newer > 0 && !pages.first.is_empty(), "{damage}");
                    let text = damage.to_string();
                    assert!(text.contains("of 'tree'") || text.contains("'catalog'"), "{text}");
                    assert_eq!(devices.log.to_bytes(), log, "nothing is changed");
                    assert_eq!(devices.data.to_bytes(), story.data, "nothing is changed");
                    refused += 1;
                }
                Err(other) => panic!("seed {seed}, case {case}: {other}"),
            }
        }
    }
    (saved, refused)
}

#[test]
fn a_store_is_what_it_was_at_the_damage_of_its_log() {
    let (saved, refused) = salvage_at_random(Storage::Calm, 0..rounds(3, 8));
    assert!(saved > rounds(20, 60) && refused == 0, "{saved} {refused}");
}

/// Pages with an image before the damage are made anew though storage has newer ones; one without
/// an image is in the way.
#[test]
fn newer_pages_on_storage_are_made_anew_or_refused() {
    let (saved, refused) = salvage_at_random(Storage::BusyInPlace, 100..112);
    println!("{saved} saved, {refused} refused");
    assert!(saved > 10 && refused > 10, "{saved} {refused}");
}

/// The page map is that of the last checkpoint: newer pages are nowhere.
#[test]
fn newer_pages_out_of_place_are_never_in_the_way() {
    let (saved, refused) = salvage_at_random(Storage::Busy, 100..rounds(105, 112));
    assert!(saved > 20 && refused == 0, "{saved} {refused}");
}

/// The store refuses to open, with and without salvage, for damage in the byte at `lsn`.
fn is_refused(story: &Story, lsn: u64, at: u64, obstacle: &Obstacle) {
    let mut log = story.log.clone();
    log[story.offset(lsn)] ^= 4;
    let devices = story.devices(&log);
    for salvage in [false, true] {
        let damage = damage_of(story.open(&devices, salvage));
        assert_eq!(damage.at.0, at, "{damage}");
        assert_eq!(
            (damage.checkpoint.0, damage.obstacle.as_ref()),
            (story.checkpoint, Some(obstacle))
        );
        assert!(damage.to_string().contains("dump FILE --salvage"), "{damage}");
    }
    // Redo may have made pages anew, when it was a transaction that could not be rolled back.
    if *obstacle != Obstacle::Undo {
        assert_eq!(devices.data.to_bytes(), story.data, "nothing is changed");
    }
}

#[test]
fn a_damaged_checkpoint_is_told() {
    for seed in 200..206 {
        let story = Story::new(seed, Storage::Calm);
        let record = story.records.iter().find(|r| r.start == story.checkpoint).unwrap();
        for lsn in [record.start, record.start + 40, record.end - 1] {
            is_refused(&story, lsn, record.start, &Obstacle::Checkpoint);
        }
    }
}

#[test]
fn damage_before_the_checkpoint_is_told() {
    let story = Story::new(210, Storage::Calm);
    // A checkpoint may have been begun long before its record.
    let devices = story.devices(&story.log);
    let store = PageStore::open_to_recover(devices.data.clone(), None).unwrap();
    let (at, options) = (Lsn(story.checkpoint), LogOptions::default());
    let (log, _) = Log::open(devices.log.clone(), store.uuid(), at, &options).unwrap();
    let checkpoint = millpond::internals::recovery::Checkpoint::read(&log, at).unwrap();
    let position = checkpoint.write(&log).unwrap();
    store.set_log_position(position, store.catalog_root(), None).unwrap();
    log.close().unwrap();
    drop((log, store));
    let (data, log) = (devices.data.to_bytes(), devices.log.to_bytes());
    let story = Story::read(Storage::Calm, data, log, story.models);
    assert_eq!(story.checkpoint, position.0);
    let devices = story.devices(&story.log);
    let db = story.open(&devices, false).unwrap();
    assert_eq!(contents(&db.open_tree("tree").unwrap()), *story.models.last().unwrap());
    drop(db);
    for record in story.records.iter().filter(|r| r.start < story.checkpoint).step_by(9) {
        is_refused(&story, record.end - 1, record.start, &Obstacle::BeforeCheckpoint);
    }
}

#[test]
fn damage_in_what_a_transaction_is_undone_with_is_told() {
    let story = Story::new(220, Storage::Calm);
    let devices = story.devices(&story.log);
    let store = PageStore::salvage_on(devices.data, None).unwrap();
    let (at, options) = (Lsn(story.checkpoint), LogOptions::default());
    let (log, _) = Log::open(devices.log, store.uuid(), at, &options).unwrap();
    let checkpoint = millpond::internals::recovery::Checkpoint::read(&log, at).unwrap();
    let (mut next, mut body) = (checkpoint.active[0].last, Vec::new());
    let mut chain = Vec::new();
    while next != Lsn(0) {
        let header = log.read_at(next, &mut body).unwrap();
        chain.push((header.start.0, header.end.0));
        next = header.prev;
    }
    assert!(chain.len() > 10 && chain[0].0 < story.redo);
    for (start, end) in chain.into_iter().step_by(7) {
        is_refused(&story, end - 1, start, &Obstacle::Undo);
    }
}

#[test]
fn a_sound_log_and_a_closed_store_lose_nothing() {
    let story = Story::new(300, Storage::Busy);
    let devices = story.devices(&story.log);
    let db = story.open(&devices, true).unwrap();
    assert_eq!(db.recovery().unwrap().salvaged, None);
    assert_eq!(contents(&db.open_tree("tree").unwrap()), *story.models.last().unwrap());
    db.close().unwrap();
    let db = story.open(&devices, true).unwrap();
    assert_eq!(db.recovery(), None);
    db.close().unwrap();
    // The log of a closed store is not needed, whatever it is.
    let sound = (devices.data.to_bytes(), devices.log.to_bytes());
    for what in 0..3 {
        let mut log = sound.1.clone();
        match what {
            0 => log[8] ^= 4,
            1 => log[4096..].fill(7),
            _ => log.truncate(4096 * 2),
        }
        let devices = Devices {
            data: Arc::new(MemoryDevice::from_bytes(&sound.0)),
            log: Arc::new(MemoryDevice::from_bytes(&log)),
        };
        let refused = story.open(&devices, false);
        if what > 0 {
            let damage = damage_of(refused);
            assert!(damage.was_closed && damage.to_string().contains("nothing is lost"));
        }
        if what == 0 {
            // Another version's, perhaps.
            assert!(story.open(&devices, true).is_err());
            continue;
        }
        let db = story.open(&devices, true).unwrap();
        assert!(db.recovery().unwrap().salvaged.unwrap().is_new_log);
        assert_eq!(contents(&db.open_tree("tree").unwrap()), *story.models.last().unwrap());
        db.close().unwrap();
        is_sound(&devices);
    }
}

/// The power fails at each operation of a salvage; then it is restarted, or the store is opened as
/// after any crash.
#[test]
fn a_salvage_may_be_cut_short_anywhere() {
    let (mut cuts, mut opened) = (0, 0);
    for seed in 400..402 {
        let story = Story::new(seed, Storage::Calm);
        let mut random = fastrand::Rng::with_seed(seed);
        let first = story.records.iter().find(|r| r.start > story.checkpoint).unwrap().start;
        let last = story.records.last().unwrap().start;
        let mut log = story.log.clone();
        let gone = damaged(&story, &mut log, &mut random, first, first + (last - first) / 2);
        let end = story.victim(gone).start;
        for nth in 1.. {
            let supply = PowerSupply::new();
            let data = supply.device("data", MemoryDevice::from_bytes(&story.data));
            let device = supply.device("log", MemoryDevice::from_bytes(&log));
            supply.cut_at(nth);
            let salvage = options(Storage::Calm).lab(|lab| lab.salvage_log = true);
            let done = Db::open_on_devices(data, device, salvage);
            let is_over = done.is_ok() && !supply.is_off();
            drop(done);
            if is_over {
                assert!(nth > 20, "there is something to cut short");
                break;
            }
            cuts += 1;
            for salvage in [false, true] {
                let (_supply, devices) = supply.images(seed * 1000 + nth);
                let bytes = |device: &dyn Device| {
                    let mut bytes = vec![0; device.length() as usize];
                    device.read(0, &mut bytes).unwrap();
                    Arc::new(MemoryDevice::from_bytes(&bytes))
                };
                let devices = Devices { data: bytes(&*devices[0]), log: bytes(&*devices[1]) };
                match story.open(&devices, salvage) {
                    Ok(db) => {
                        opened += u32::from(!salvage);
                        story.check(db, &devices, end, nth, u32::from(nth.is_multiple_of(4)));
                    }
                    Err(error) => assert_eq!((damage_of(Err(error)).at.0, salvage), (end, false)),
                }
            }
        }
    }
    assert!(cuts > 40 && opened > 10 && opened < cuts, "{cuts} {opened}");
}

/// Whatever is done to a log, opening it tells an error or gives a store.
#[test]
fn no_damage_makes_a_salvage_panic() {
    let story = Story::new(500, Storage::Busy);
    let mut random = fastrand::Rng::with_seed(501);
    for _ in 0..60 {
        let mut log = story.log.clone();
        for _ in 0..random.usize(1..30) {
            let at = random.usize(..log.len());
            let count = [1, 8, 512, 5000][random.usize(..4)].min(log.len() - at);
            let byte = random.u8(..);
            log[at..at + count].fill(byte);
        }
        if random.u8(..4) == 0 {
            log.truncate(random.usize(..log.len()) / 4096 * 4096);
        }
        let devices = story.devices(&log);
        match story.open(&devices, true) {
            // In the last records damage looks as a crash does, and pages may be ahead of it.
            Ok(db) => drop(db.close()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
