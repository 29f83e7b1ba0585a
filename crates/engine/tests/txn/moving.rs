//! Pages that move so that a file can shrink: whatever happens meanwhile nothing is lost, and the
//! file ends where its pages in use do.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::internals::heap::RecordId;
use millpond::internals::io::{Device, Fault, FaultyDevice, MemoryDevice, PageStore, PowerSupply};
use millpond::{
    BackupError, Db, Durability, Error, Options, RawTree, ShrinkProgress, Shrunk, Structure,
};

const PAGE: u64 = 4096;

fn options(frames: u32) -> Options {
    let options = Options::new().page_size(PAGE as u32).durability(Durability::Async);
    options.lab(|lab| lab.background_merge = false).log_gap(256 << 10).lab(|lab| {
        lab.frames = Some(frames);
        lab.log_segment = Some(64 << 10);
    })
}

fn sound(device: Arc<dyn Device>, what: &str) {
    let store = PageStore::open_on(device, None, true).unwrap();
    let report = check_store(&store, CATALOG, &mut CheckOptions::default()).unwrap();
    assert!(report.is_sound(), "{what}: {:?}", report.problems);
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const TREES: [&str; 2] = ["tree", "other tree"];

/// What a store shall hold.
#[derive(Default, Clone)]
struct Model {
    trees: [Rows; 2],
    index: Rows,
    heap: BTreeMap<RecordId, Vec<u8>>,
}

/// Bytes of a value: some fit into one page of their own, some need several.
fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(0..40) {
        0 => random.usize(4000..60_000),
        1..3 => random.usize(1000..4000),
        _ => random.usize(0..400),
    };
    vec![random.u8(..); len]
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    random.u32(0..4000).to_be_bytes().to_vec()
}

impl Model {
    fn change(&mut self, db: &Db, random: &mut fastrand::Rng) {
        let which = random.usize(0..2);
        match random.u8(0..12) {
            0..4 => {
                let (key, value) = (key(random), value(random));
                db.raw_tree(TREES[which]).unwrap().put(&key, &value).unwrap();
                self.trees[which].insert(key, value);
            }
            4..6 => {
                let key = key(random);
                db.raw_tree(TREES[which]).unwrap().delete(&key).unwrap();
                self.trees[which].remove(&key);
            }
            6..8 => {
                let (key, mut value) = (key(random), value(random));
                value.truncate(600);
                db.raw_hash_index("index").unwrap().put(&key, &value).unwrap();
                self.index.insert(key, value);
            }
            8 => {
                let key = key(random);
                db.raw_hash_index("index").unwrap().delete(&key).unwrap();
                self.index.remove(&key);
            }
            9..11 => {
                let mut value = value(random);
                value.truncate(900);
                let heap = db.raw_heap("heap").unwrap();
                let some = self.heap.keys().nth(random.usize(0..self.heap.len().max(4)));
                let id = match some.copied().filter(|_| random.bool()) {
                    Some(id) => {
                        assert!(heap.update(id, &value).unwrap());
                        id
                    }
                    None => heap.append(&value).unwrap(),
                };
                self.heap.insert(id, value);
            }
            _ => {
                let some = self.heap.keys().nth(random.usize(0..self.heap.len().max(1)));
                if let Some(id) = some.copied() {
                    assert!(db.raw_heap("heap").unwrap().delete(id).unwrap());
                    self.heap.remove(&id);
                }
            }
        }
    }

    /// Most of what there is goes.
    fn thin_out(&mut self, db: &Db, random: &mut fastrand::Rng) {
        for (name, rows) in TREES.iter().zip(&mut self.trees) {
            let tree = db.raw_tree(name).unwrap();
            rows.retain(|key, _| random.u8(0..10) == 0 || !tree.delete(key).unwrap());
        }
        let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
        self.index.retain(|key, _| random.u8(0..10) == 0 || !index.delete(key).unwrap());
        self.heap.retain(|id, _| random.u8(0..10) == 0 || !heap.delete(*id).unwrap());
    }

    fn is_in(&self, db: &Db, what: &str) {
        for (name, rows) in TREES.iter().zip(&self.trees) {
            let tree = db.raw_tree(name).unwrap();
            assert_eq!(all_of(&tree), *rows, "{what}: {name}");
            assert!(tree.check().unwrap().violations.is_empty(), "{what}: {name}");
        }
        let index = db.raw_hash_index("index").unwrap();
        assert_eq!(index.len().unwrap(), self.index.len() as u64, "{what}");
        for (key, value) in &self.index {
            assert_eq!(index.get(key).unwrap().as_ref(), Some(value), "{what}");
        }
        let heap = db.raw_heap("heap").unwrap();
        assert_eq!(heap.len().unwrap(), self.heap.len() as u64, "{what}");
        for (id, value) in &self.heap {
            assert_eq!(heap.get(*id).unwrap().as_ref(), Some(value), "{what}");
        }
    }
}

fn all_of(tree: &RawTree) -> Rows {
    let (mut rows, mut range) = (Rows::new(), tree.iter());
    while let Some((key, value)) = range.next_entry().unwrap() {
        rows.insert(key.to_vec(), value.to_vec());
    }
    rows
}

/// `rows` rows of which every 40th is large.
fn fill(db: &Db, name: &str, rows: u32) {
    let tree = db.raw_tree(name).unwrap();
    for row in 0..rows {
        let len = if row % 40 == 0 { 1500 + row as usize % 9000 } else { 300 };
        tree.put(&row.to_be_bytes(), &vec![row as u8; len]).unwrap();
    }
}

fn holds(db: &Db, name: &str, rows: u32, what: &str) {
    let tree = db.open_tree(name).unwrap();
    assert_eq!(tree.len().unwrap(), u64::from(rows), "{what}");
    for row in 0..rows {
        let len = if row % 40 == 0 { 1500 + row as usize % 9000 } else { 300 };
        assert_eq!(tree.get(&row.to_be_bytes()).unwrap(), Some(vec![row as u8; len]), "{what}");
    }
}

/// A structure of each kind whose pages, the roots among them, lie behind what a tree leaves free
/// that was made before and is dropped.
fn build(db: &Db, gone: u32, rows: u32) -> BTreeMap<RecordId, Vec<u8>> {
    fill(db, "gone", gone);
    fill(db, "kept", rows);
    let (index, heap) = (db.raw_hash_index("index").unwrap(), db.raw_heap("heap").unwrap());
    let mut records = BTreeMap::new();
    for row in 0..rows {
        index.put(&row.to_be_bytes(), &[row as u8; 100]).unwrap();
        let record = vec![row as u8; 150];
        records.insert(heap.append(&record).unwrap(), record);
    }
    db.drop_tree("gone").unwrap();
    records
}

fn is_built(db: &Db, rows: u32, records: &BTreeMap<RecordId, Vec<u8>>, what: &str) {
    holds(db, "kept", rows, what);
    let index = db.open_hash_index("index").unwrap();
    assert_eq!(index.len().unwrap(), u64::from(rows), "{what}");
    for row in 0..rows {
        assert_eq!(index.get(&row.to_be_bytes()).unwrap(), Some(vec![row as u8; 100]), "{what}");
    }
    let heap = db.open_heap("heap").unwrap();
    assert_eq!(heap.len().unwrap(), records.len() as u64, "{what}");
    for (id, record) in records {
        assert_eq!(heap.get(*id).unwrap().as_ref(), Some(record), "{what}");
    }
}

/// The file is as long as its pages in use need, but for what a store that is used grows by ahead
/// of need, at any time.
fn is_tight(device: &dyn Device, db: &Db, shrunk: &Shrunk) {
    assert_eq!(shrunk.pages_left, 0, "{shrunk:?}");
    let used = (db.stats().store_pages - db.stats().free_pages).max(256);
    let pages = device.length() / PAGE;
    assert!(pages <= used + used / 8 + 300, "{pages} pages, {used} in use: {shrunk:?}");
}

#[test]
fn what_was_made_last_moves_to_where_the_first_was_dropped() {
    for log in [true, false] {
        let (data, log_device) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
        let open = || {
            let options = options(80).lab(|lab| lab.log = log);
            match log {
                true => Db::open_on_devices(data.clone(), log_device.clone(), options).unwrap(),
                false => Db::open_on(data.clone(), options).unwrap(),
            }
        };
        let db = open();
        let records = build(&db, 6000, 2000);
        let (full, root) = (data.length(), db.trees().unwrap());
        let mut told = Vec::new();
        let shrunk = db
            .shrink_with(&mut |progress| {
                told.push(progress);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(shrunk.pages_moved > 200 && shrunk.data_bytes > full / 3, "{shrunk:?} of {full}");
        assert!(db.trees().unwrap() != root, "a root was at the end, and moved");
        is_tight(&*data, &db, &shrunk);
        assert!(told.len() > if log { 3 } else { 0 } && told[0].moved == 0, "{told:?}");
        assert!(told.windows(2).all(|pair| pair[0].moved <= pair[1].moved), "{told:?}");
        is_built(&db, 2000, &records, "shrunk");
        fill(&db, "again", 1000);
        holds(&db, "again", 1000, "shrunk and grown");
        let again = db.shrink().unwrap();
        assert_eq!(again.pages_left, 0);
        db.close().unwrap();
        sound(data.clone(), "closed");
        let db = open();
        is_built(&db, 2000, &records, "opened");
        db.drop_tree("again").unwrap();
        for (name, kind) in [("index", Structure::Hash), ("heap", Structure::Heap)] {
            db.drop_structure(name, kind).unwrap();
        }
        db.drop_tree("kept").unwrap();
        assert_eq!(db.shrink().unwrap().pages_left, 0);
        db.close().unwrap();
        sound(data.clone(), "empty");
        assert!(data.length() <= 3 << 20, "{}", data.length());
    }
}

#[test]
fn shrinking_stops_when_it_is_told_to_and_goes_on_another_time() {
    let device = Arc::new(MemoryDevice::new());
    let db =
        Db::open_on_devices(device.clone(), Arc::new(MemoryDevice::new()), options(80)).unwrap();
    let records = build(&db, 6000, 2000);
    let (mut calls, mut moved) = (0, 0);
    loop {
        let mut steps = 0;
        let shrunk = db
            .shrink_with(&mut |ShrinkProgress { moved, .. }| {
                steps += 1;
                if moved == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
        is_built(&db, 2000, &records, "between");
        (calls, moved) = (calls + 1, moved + shrunk.pages_moved);
        if shrunk.pages_left == 0 {
            is_tight(&*device, &db, &shrunk);
            break;
        }
        assert!(shrunk.pages_moved > 0 && shrunk.pages_moved < 100, "{shrunk:?}");
    }
    assert!(calls > 5 && moved > 200, "{calls}, {moved}");
    db.close().unwrap();
    sound(device, "closed");
}

#[test]
fn whatever_a_store_holds_it_holds_after_its_pages_moved() {
    let mut moved = 0;
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let log = seed % 3 != 2;
        let (data, log_device) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
        let frames = [80, 120, 600][seed as usize % 3];
        let open = || {
            let options = options(frames).lab(|lab| lab.log = log);
            match log {
                true => Db::open_on_devices(data.clone(), log_device.clone(), options).unwrap(),
                false => Db::open_on(data.clone(), options).unwrap(),
            }
        };
        let (mut db, mut model) = (open(), Model::default());
        for round in 0..8 {
            let what = format!("seed {seed}, round {round}");
            // What is made beside it lies behind it.
            fill(&db, "gone", random.u32(0..3000));
            for _ in 0..random.usize(200..1500) {
                model.change(&db, &mut random);
            }
            db.drop_tree("gone").unwrap();
            if random.bool() {
                model.thin_out(&db, &mut random);
            }
            let shrunk = db.shrink().unwrap();
            moved += shrunk.pages_moved;
            is_tight(&*data, &db, &shrunk);
            model.is_in(&db, &what);
            if random.u8(0..3) == 0 {
                db.close().unwrap();
                sound(data.clone(), &what);
                db = open();
                model.is_in(&db, &what);
            }
        }
        db.close().unwrap();
        sound(data.clone(), "at the end");
    }
    assert!(moved > 500, "{moved}");
}

#[test]
fn a_transaction_commits_or_aborts_whatever_moved_meanwhile() {
    for (seed, commits) in [(1, true), (2, false), (3, false)] {
        let supply = PowerSupply::new();
        let device = |name| supply.device(name, MemoryDevice::new());
        let (data, log) = (device("data"), device("log"));
        // What the transaction keeps of the log shall not end it.
        let options = |frames| options(frames).log_gap(4 << 20);
        let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
        let records = build(&db, 4000, 1200);
        let kept = db.open_tree("kept").unwrap();
        let before = all_of(&kept);
        let mut after = before.clone();
        let mut tx = db.begin().unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let savepoint = tx.savepoint();
        for _ in 0..30 {
            tx.put(&kept, &key(&mut random), &[1; 5000]).unwrap();
            tx.delete(&kept, &(40 * random.u32(0..30)).to_be_bytes()).unwrap();
        }
        tx.rollback_to(&savepoint).unwrap();
        for row in (0..1200u32).step_by(20) {
            // Each second one was large.
            let value = if row % 3 == 0 { vec![7; 7000] } else { vec![7; 70] };
            tx.put(&kept, &row.to_be_bytes(), &value).unwrap();
            after.insert(row.to_be_bytes().to_vec(), value);
            tx.delete(&kept, &(row + 7).to_be_bytes()).unwrap();
            after.remove(&(row + 7).to_be_bytes()[..]);
        }
        let shrunk = db.shrink().unwrap();
        assert!(shrunk.pages_moved > 100, "{shrunk:?}");
        db.flush().unwrap();
        if seed == 3 {
            // The power fails: recovery undoes it.
            let (_supply, devices) = supply.images(seed);
            let (data, log) = (devices[0].clone(), devices[1].clone());
            let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
            assert_eq!(all_of(&db.open_tree("kept").unwrap()), before);
            is_built(&db, 1200, &records, "recovered");
            assert_eq!(db.shrink().unwrap().pages_left, 0);
            db.close().unwrap();
            sound(data, "recovered");
            continue;
        }
        if commits {
            tx.commit().unwrap();
            assert_eq!(all_of(&kept), after);
        } else {
            tx.abort().unwrap();
            assert_eq!(all_of(&kept), before);
        }
        drop(kept);
        let shrunk = db.shrink().unwrap();
        is_tight(&*data, &db, &shrunk);
        db.close().unwrap();
        sound(data, "closed");
    }
}

#[test]
fn a_page_that_a_closure_looks_at_stays_and_the_others_move() {
    let device = Arc::new(MemoryDevice::new());
    let db =
        Db::open_on_devices(device.clone(), Arc::new(MemoryDevice::new()), options(80)).unwrap();
    let records = build(&db, 4000, 1200);
    let kept = db.open_tree("kept").unwrap();
    let shrunk = kept.read(&601u32.to_be_bytes(), |value| {
        let seen = value.to_vec();
        let shrunk = db.shrink();
        assert_eq!(seen, value);
        shrunk
    });
    let shrunk = shrunk.unwrap().unwrap().unwrap();
    // The leaf, and a large value below it.
    assert!(shrunk.pages_moved > 100 && (1..5).contains(&shrunk.pages_left), "{shrunk:?}");
    drop(kept);
    let shrunk = db.shrink().unwrap();
    is_tight(&*device, &db, &shrunk);
    is_built(&db, 1200, &records, "at the end");
    db.close().unwrap();
    sound(device, "closed");
}

const ACCOUNTS: u32 = 300;

/// Moves money between accounts, whose rows are large now and then, and tears holes into the file.
fn work(db: &Db, seed: u64, rounds: u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    let accounts = db.open_tree("accounts").unwrap();
    let junk = format!("junk {seed}");
    for round in 0..rounds {
        let heap = db.raw_heap("heap").unwrap();
        let index = db.raw_hash_index("index").unwrap();
        let tree = db.raw_tree(&junk).unwrap();
        let mut ids = Vec::new();
        for i in 0..300u32 {
            tree.put(&i.to_be_bytes(), &[1; 700]).unwrap();
            let key = (seed as u32 * 1000 + i).to_be_bytes();
            index.put(&key, &[round as u8; 60]).unwrap();
            ids.push(heap.append(&[seed as u8; 80]).unwrap());
            if i % 3 == 0 {
                transfer(db, &accounts, &mut random);
            }
        }
        drop(tree);
        db.drop_tree(&junk).unwrap();
        for (i, id) in (0..300u32).zip(ids) {
            let key = (seed as u32 * 1000 + i).to_be_bytes();
            assert_eq!(index.get(&key).unwrap(), Some(vec![round as u8; 60]));
            assert_eq!(heap.get(id).unwrap(), Some(vec![seed as u8; 80]));
            if i % 10 != 0 {
                assert!(index.delete(&key).unwrap() && heap.delete(id).unwrap());
            }
        }
    }
}

fn money(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().unwrap())
}

fn row(money: u64, random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(0..10) == 0 { random.usize(2000..9000) } else { 200 };
    let mut row = vec![money as u8; len];
    row[..8].copy_from_slice(&money.to_le_bytes());
    row
}

fn transfer(db: &Db, accounts: &RawTree, random: &mut fastrand::Rng) {
    let (from, to) = (random.u32(0..ACCOUNTS), random.u32(0..ACCOUNTS));
    if from == to {
        return;
    }
    let (old, new) = (from.to_be_bytes(), to.to_be_bytes());
    db.transact(|tx| {
        let a = money(&tx.get_for_update(accounts, &old)?.unwrap());
        let b = money(&tx.get_for_update(accounts, &new)?.unwrap());
        let amount = random.u64(0..=a);
        tx.put(accounts, &old, &row(a - amount, random))?;
        tx.put(accounts, &new, &row(b + amount, random))?;
        Ok::<_, millpond::Error>(())
    })
    .unwrap();
}

fn open_bank(data: Arc<dyn Device>, log: Arc<dyn Device>) -> Db {
    let db = Db::open_on_devices(data, log, options(90)).unwrap();
    fill(&db, "gone", 4000);
    let accounts = db.raw_tree("accounts").unwrap();
    for account in 0..ACCOUNTS {
        accounts.put(&account.to_be_bytes(), &row(100, &mut fastrand::Rng::with_seed(1))).unwrap();
    }
    drop(accounts);
    db.drop_tree("gone").unwrap();
    db
}

fn total(rows: &Rows) -> u64 {
    assert_eq!(rows.len() as u32, ACCOUNTS);
    rows.values().map(|row| money(row)).sum()
}

#[test]
fn pages_move_beside_readers_writers_and_snapshots() {
    let (data, log) = (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let db = open_bank(data.clone(), log);
    let over = AtomicBool::new(false);
    let mut moved = 0;
    std::thread::scope(|scope| {
        let writers = [1, 2].map(|seed| {
            scope.spawn({
                let db = &db;
                move || work(db, seed, 8)
            })
        });
        let readers = [
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let snapshot = db.snapshot().unwrap();
                    let accounts = db.open_tree("accounts").unwrap();
                    let (mut rows, mut range) = (Rows::new(), snapshot.iter(&accounts).unwrap());
                    while let Some((key, value)) = range.next_entry().unwrap() {
                        rows.insert(key.to_vec(), value.to_vec());
                    }
                    assert_eq!(total(&rows), 100 * u64::from(ACCOUNTS));
                }
            }),
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(9);
                let accounts = db.open_tree("accounts").unwrap();
                while !over.load(Ordering::Relaxed) {
                    let key = random.u32(0..ACCOUNTS).to_be_bytes();
                    let row = accounts.get(&key).unwrap().unwrap();
                    assert!(row[8..].iter().all(|byte| *byte == money(&row) as u8));
                }
            }),
        ];
        while !writers.iter().all(|writer| writer.is_finished()) {
            moved += db.shrink().unwrap().pages_moved;
        }
        over.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let shrunk = db.shrink().unwrap();
    moved += shrunk.pages_moved;
    is_tight(&*data, &db, &shrunk);
    assert!(moved > 10, "{moved}");
    assert_eq!(total(&all_of(&db.open_tree("accounts").unwrap())), 100 * u64::from(ACCOUNTS));
    db.close().unwrap();
    sound(data, "closed");
}

/// Opens a backup and looks whether the money is all there.
fn is_backup(data: Arc<dyn Device>, log: Arc<dyn Device>) {
    let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
    assert_eq!(total(&all_of(&db.open_tree("accounts").unwrap())), 100 * u64::from(ACCOUNTS));
    db.shrink().unwrap();
    db.close().unwrap();
    sound(data, "a backup");
}

#[test]
fn backups_are_whole_that_are_taken_while_pages_move() {
    let device = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let data = device();
    let db = open_bank(data.clone(), device());
    let (mut backups, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| work(&db, 1, 10));
        let copier = scope.spawn({
            let (db, device) = (&db, &device);
            move || {
                let mut made = 0;
                loop {
                    let (data, log) = (device(), device());
                    db.backup_to_devices(&data, &log, &mut |_| ControlFlow::Continue(())).unwrap();
                    is_backup(data, log);
                    made += 1;
                    if writer.is_finished() {
                        return made;
                    }
                }
            }
        });
        while !copier.is_finished() {
            match db.shrink() {
                Ok(_) => {}
                Err(Error::Backup(BackupError::UnderWay)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        backups += copier.join().unwrap();
    });
    println!("{backups} backups, {refused} times refused");
    assert!(backups > 0);
    assert_eq!(db.shrink().unwrap().pages_left, 0);
    db.close().unwrap();
    sound(data, "closed");
}

#[test]
fn a_backup_that_begins_amid_shrinking_has_what_moves_from_then_on() {
    let device = || -> Arc<dyn Device> { Arc::new(MemoryDevice::new()) };
    let (data, copy, copy_log) = (device(), device(), device());
    let db = Db::open_on_devices(data.clone(), device(), options(80)).unwrap();
    let records = build(&db, 4000, 1200);
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let mut copier = None;
        let mut may_go_on = Some(may_go_on);
        let result = db.shrink_with(&mut |_| {
            if let Some(may_go_on) = may_go_on.take() {
                // Between its checkpoint and its first page, pages move.
                let (db, begun, copy, copy_log) = (&db, begun.clone(), &copy, &copy_log);
                copier = Some(scope.spawn(move || {
                    db.backup_to_devices(copy, copy_log, &mut |progress| {
                        if progress.done == 0 {
                            let _ = begun.send(());
                            let _ = may_go_on.recv();
                        }
                        ControlFlow::Continue(())
                    })
                }));
                has_begun.recv().unwrap();
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(result, Err(Error::Backup(BackupError::UnderWay))), "{result:?}");
        drop(go_on);
        copier.unwrap().join().unwrap().unwrap();
    });
    for (data, log) in [(copy, Some(copy_log)), (data, None)] {
        let db = match log {
            Some(log) => &Db::open_on_devices(data.clone(), log, options(80)).unwrap(),
            None => &db,
        };
        is_built(db, 1200, &records, "copied");
        let shrunk = db.shrink().unwrap();
        is_tight(&*data, db, &shrunk);
        is_built(db, 1200, &records, "shrunk");
    }
}

struct Powered {
    supply: PowerSupply,
    data: Arc<FaultyDevice>,
    log: Arc<FaultyDevice>,
    db: Db,
    records: BTreeMap<RecordId, Vec<u8>>,
}

const ROWS: u32 = 500;

fn powered() -> Powered {
    let supply = PowerSupply::new();
    let device = |name| -> Arc<FaultyDevice> { supply.device(name, MemoryDevice::new()) };
    let (data, log) = (device("data"), device("log"));
    // Writes in the background would be tried again, and tell nobody that they failed.
    let options = options(80).lab(|lab| lab.background_writer = false);
    let db = Db::open_on_devices(data.clone(), log.clone(), options).unwrap();
    let records = build(&db, 2500, ROWS);
    db.flush().unwrap();
    Powered { supply, data, log, db, records }
}

/// Opens what a power failure leaves, in several ways.
fn survives(world: &Powered, nth: u64, what: &str) {
    for seed in 0..3 {
        let (_supply, devices) = world.supply.images(nth * 10 + seed);
        let [data, log] = [devices[0].clone(), devices[1].clone()];
        let db = Db::open_on_devices(data.clone(), log, options(80)).unwrap();
        is_built(&db, ROWS, &world.records, what);
        fill(&db, "next", 200);
        let shrunk = db.shrink().unwrap();
        is_tight(&*data, &db, &shrunk);
        is_built(&db, ROWS, &world.records, what);
        holds(&db, "next", 200, what);
        db.close().unwrap();
        sound(data, what);
    }
}

#[test]
fn a_power_failure_while_pages_move_loses_nothing() {
    let (mut cuts, mut nth) = (0, 1);
    loop {
        let what = format!("cut at {nth}");
        let world = powered();
        world.supply.cut_at(nth);
        let shrunk = world.db.shrink();
        if !world.supply.is_off() {
            let shrunk = shrunk.unwrap();
            assert!(shrunk.pages_moved > 50, "{what}: {shrunk:?}");
            break;
        }
        survives(&world, nth, &what);
        (cuts, nth) = (cuts + 1, nth + 5);
    }
    assert!(cuts > 10, "{cuts}");
}

#[test]
fn an_operation_that_fails_while_pages_move_loses_nothing() {
    let faults = [Fault::Error, Fault::DiskFull];
    let (mut failed, mut nth) = (0, 1);
    loop {
        let fault = faults[nth as usize % faults.len()];
        let what = format!("{fault:?} at {nth}");
        let world = powered();
        world.supply.fail_at(nth, fault);
        let shrunk = world.db.shrink();
        if world.supply.is_fault_due() {
            let shrunk = shrunk.unwrap();
            assert!(shrunk.pages_moved > 50, "{what}: {shrunk:?}");
            break;
        }
        failed += u32::from(shrunk.is_err());
        // What is in memory is right, as is what a crash leaves.
        is_built(&world.db, ROWS, &world.records, &what);
        survives(&world, nth, &what);
        nth += 11;
    }
    assert!(failed > 0, "none of {nth}");
}

#[test]
fn pages_move_though_no_file_can_grow() {
    let world = powered();
    for device in [&world.data, &world.log] {
        device.limit_room(0);
    }
    let lengths = (world.data.length(), world.log.length());
    let shrunk = world.db.shrink().unwrap();
    assert!(shrunk.pages_moved > 50, "{shrunk:?}");
    is_tight(&*world.data, &world.db, &shrunk);
    assert!(world.data.length() < lengths.0 && world.log.length() <= lengths.1);
    is_built(&world.db, ROWS, &world.records, "no room");
    world.db.close().unwrap();
    sound(world.data, "no room");
}
