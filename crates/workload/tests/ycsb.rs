//! Key-value runs over the reference store do what their configuration says.

use std::collections::HashMap;

use millpond_base::Seed;
use millpond_workload::keys::{Distribution, Scramble};
use millpond_workload::live::{MemorySession, MemoryStore, Scan, Session, Store, TableId};
use millpond_workload::ycsb::{
    Config, LoadOrder, Mix, Operation, ReadStyle, Shape, Step, UpdateStyle, Worker, create, load,
};

const SEED: Seed = Seed(2026);

fn loaded(config: &Config) -> (MemoryStore, TableId) {
    let store = MemoryStore::new();
    let table = create(&store).unwrap();
    let mut session = store.session().unwrap();
    let rows: u64 =
        (0..3).map(|part| load(&mut session, table, config, SEED, part, 3).unwrap()).sum();
    assert_eq!(rows, config.rows);
    (store, table)
}

fn steps(worker: &mut Worker, session: &mut MemorySession, count: usize) -> Vec<Step> {
    (0..count).map(|_| worker.step(session).unwrap()).collect()
}

fn everything(session: &mut MemorySession, table: TableId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    session
        .scan(table, Scan::whole(), |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    rows
}

/// Checks every row of the table and returns the sum of all versions.
fn versions(session: &mut MemorySession, table: TableId, shape: Shape, rows: u64) -> u64 {
    let mut sum = 0u64;
    for row in 0..rows {
        let found = session.get(table, &shape.key_of(row), |value| {
            assert!(shape.check(row, value), "row {row}");
            (0..shape.fields).map(|field| shape.version(value, field)).sum::<u64>()
        });
        sum += found.unwrap().unwrap_or_else(|| panic!("row {row} is missing"));
    }
    sum
}

#[test]
fn both_load_orders_load_the_same_rows() {
    for shape in [Shape::LEANSTORE, Shape::GILBERT] {
        let random = Config { shape, ..Config::leanstore(1001) };
        let ascending = Config { load_order: LoadOrder::Ascending, ..random };
        let take = |config: &Config| {
            let (store, table) = loaded(config);
            everything(&mut store.session().unwrap(), table)
        };
        let rows = take(&random);
        assert_eq!(rows.len(), 1001);
        assert_eq!(rows, take(&ascending));
    }
}

#[test]
fn every_update_counts_exactly_once_with_two_threads_and_every_read_verifies() {
    for shape in [Shape::LEANSTORE, Shape::GILBERT] {
        let mix = Mix { read: 30, update: 40, scan: 5, read_modify_write: 25, insert: 0 };
        let base = Config::watt(500, 0);
        let config = Config { shape, mix, verify: true, threads: 2, scan_rows: (1, 9), ..base };
        let (store, table) = loaded(&config);
        let updates: u64 = std::thread::scope(|scope| {
            let run = |thread| {
                let mut worker = Worker::new(&config, table, SEED, thread).unwrap();
                let all = steps(&mut worker, &mut store.session().unwrap(), 4000);
                let is_write = |step: &&Step| {
                    matches!(step.operation, Operation::Update | Operation::ReadModifyWrite)
                };
                all.iter().filter(is_write).map(|step| u64::from(step.rows)).sum::<u64>()
            };
            let other = scope.spawn(move || run(1));
            run(0) + other.join().unwrap()
        });
        assert!(updates > 4000);
        let sum = versions(&mut store.session().unwrap(), table, shape, config.rows);
        assert_eq!(sum, updates);
    }
}

#[test]
fn a_damaged_value_is_reported_with_its_row() {
    let config = Config { verify: true, ..Config::leanstore(10) };
    let (store, table) = loaded(&config);
    let mut session = store.session().unwrap();
    session.update(table, &config.shape.key_of(4), |value| value[77] ^= 1).unwrap();
    let mut worker = Worker::new(&config, table, SEED, 0).unwrap();
    let error = (0..1000).find_map(|_| worker.step(&mut session).err()).unwrap();
    assert!(error.to_string().contains("row 4"), "{error}");
}

#[test]
fn operations_come_in_the_shares_of_the_mix() {
    let mix = Mix { read: 50, update: 20, insert: 5, scan: 10, read_modify_write: 15 };
    let config = Config { mix, scan_rows: (2, 4), ..Config::watt(2000, 0) };
    let (store, table) = loaded(&config);
    let mut worker = Worker::new(&config, table, SEED, 0).unwrap();
    let all = steps(&mut worker, &mut store.session().unwrap(), 20_000);
    let mut counts: HashMap<Operation, f64> = HashMap::new();
    for step in &all {
        *counts.entry(step.operation).or_default() += 1.0;
        assert!(step.rows > 0 && step.retries == 0);
    }
    for (operation, percent) in Operation::ALL.into_iter().zip([50.0, 20.0, 5.0, 10.0, 15.0]) {
        let share = counts[&operation] / 200.0;
        assert!((share - percent).abs() < 1.5, "{}: {share} %", operation.name());
    }
    let scanned: Vec<u32> =
        all.iter().filter(|s| s.operation == Operation::Scan).map(|s| s.rows).collect();
    assert!([2, 3, 4].iter().all(|rows| scanned.contains(rows)));
    assert!(scanned.iter().all(|rows| *rows <= 4));
}

#[test]
fn inserts_of_several_workers_never_collide_and_latest_finds_them() {
    let mix = Mix { read: 50, insert: 50, ..Mix::default() };
    let latest = Distribution::Latest { theta: 0.99 };
    let config =
        Config { mix, distribution: latest, verify: true, threads: 3, ..Config::leanstore(50) };
    let (store, table) = loaded(&config);
    let mut session = store.session().unwrap();
    let mut workers: Vec<Worker> =
        (0..3).map(|t| Worker::new(&config, table, SEED, t).unwrap()).collect();
    // One worker runs far ahead of the others.
    for (worker, count) in workers.iter_mut().zip([2000, 100, 10]) {
        assert!(steps(worker, &mut session, count).iter().all(|step| step.rows == 1));
    }
    let inserted: u64 = workers.iter().map(Worker::inserted).sum();
    assert_eq!(everything(&mut session, table).len() as u64, 50 + inserted);
}

#[test]
fn replacing_puts_leave_checkable_values() {
    let config = Config { update: UpdateStyle::Put, verify: true, ..Config::gilbert(200, 50) };
    let (store, table) = loaded(&config);
    let mut session = store.session().unwrap();
    let mut worker = Worker::new(&config, table, SEED, 0).unwrap();
    let all = steps(&mut worker, &mut session, 3000);
    assert!(all.iter().any(|step| step.operation == Operation::Update));
    let shape = config.shape;
    for row in 0..200 {
        let checked = session.get(table, &shape.key_of(row), |value| shape.check(row, value));
        assert_eq!(checked.unwrap(), Some(true));
    }
}

#[test]
fn a_seed_repeats_a_run_and_what_was_read_shows_in_the_digest() {
    let mix = Mix { read: 60, update: 30, scan: 10, ..Mix::default() };
    let config = Config { mix, ..Config::watt(300, 0) };
    let run = |config: &Config, seed: u64, thread: u32| {
        let (store, table) = loaded(config);
        let mut worker = Worker::new(config, table, Seed(seed), thread).unwrap();
        let all = steps(&mut worker, &mut store.session().unwrap(), 2000);
        (all, worker.digest())
    };
    let first = run(&config, 1, 0);
    assert_eq!(first, run(&config, 1, 0));
    assert_ne!(first.1, run(&config, 2, 0).1);
    assert_ne!(first.1, run(&config, 1, 1).1);
    // How a value is looked at changes nothing that is read.
    let touch = Config { read: ReadStyle::FirstWord, scramble: Scramble::Permute, ..config };
    assert_eq!(first, run(&touch, 1, 0));
}

#[test]
fn runs_that_cannot_be_are_refused_with_a_reason() {
    let good = Config::leanstore(10);
    let refuse = |config: Config, word: &str| {
        let error = Worker::new(&config, TableId(0), SEED, 0).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    };
    refuse(Config { rows: 0, ..good }, "rows");
    refuse(Config { mix: Mix::default(), ..good }, "mix");
    refuse(Config { scan_rows: (5, 4), ..good }, "scans");
    refuse(Config { threads: 0, ..good }, "thread");
    refuse(Config { distribution: Distribution::Zipf { theta: -1.0 }, ..good }, "exponent");
    let shape = Shape { scattered_keys: false, fields: 0, field_len: 0 };
    refuse(Config { shape, ..good }, "fields");
    // Loading with such a shape harms nothing.
    loaded(&Config { shape, ..good });
}
