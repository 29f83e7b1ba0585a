//! TPC-C as real transactions: it stays consistent with several threads, with rollbacks that undo
//! what was written, and after crashes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond::internals::stats::counters::Counter;
use millpond::internals::store::combinations::SwizzledAny;
use millpond::{Durability, Options};
use millpond_base::{Seed, Size};
use millpond_bench::error::BenchError;
use millpond_bench::instance::prepare;
use millpond_bench::instance::setup::{Engine, Setup};
use millpond_bench::run::client::Workload;
use millpond_bench::run::record::StorageRecording;
use millpond_bench::run::runner::{self, Length, RunSpec, Unwatched};
use millpond_bench::stores::db_store::DbStoreError;
use millpond_bench::stores::txn_store::TxnStore;
use millpond_device::{Device, MemoryDevice, PowerSupply};
use millpond_lab::registry::Registry;
use millpond_lab::tier2::{Model, Tier2Future, Tier2Options};
use millpond_policies::config::Spec;
use millpond_workload::formats::{self, ReadOptions};
use millpond_workload::inserts;
use millpond_workload::live::{Access, Scan, Session, Store, check_contract};
use millpond_workload::tpcc::{self, Kind, Report, Scale, Tables, Worker};
use millpond_workload::trace::{BATCH_LEN, Batch};

type TestStore = TxnStore<SwizzledAny>;

fn options(frames: u32) -> Options {
    Options::new().page_size(1024).durability(Durability::Async).lab(|lab| {
        lab.tiny_pages = true;
        lab.frames = Some(frames);
        lab.log_segment = Some(256 << 10);
    })
}

fn in_memory(options: &Options) -> TestStore {
    let log = options.lab.log.then(|| Arc::new(MemoryDevice::new()) as Arc<dyn Device>);
    TestStore::open_on(Arc::new(MemoryDevice::new()), log, options).unwrap()
}

#[test]
fn a_store_with_transactions_keeps_the_contract_with_and_without_log_and_locks() {
    for (log, locks) in [(true, true), (true, false), (false, true)] {
        let store = in_memory(&options(64).lab(|lab| lab.log = log).lab(|lab| lab.locks = locks));
        check_contract(&store, Seed(7), 1500).unwrap();
        assert!(store.counts().reads > 0, "it never thrashed");
        assert_eq!(store.counts().log_bytes > 0, log);
    }
}

#[test]
fn what_was_rolled_back_is_gone_and_what_a_scan_sees_is_locked() {
    let store = in_memory(&options(256));
    let table = store.create_table("t").unwrap();
    let mut one = store.session().unwrap();
    one.insert(table, b"a", b"1").unwrap();
    one.begin(Access::Write).unwrap();
    one.insert(table, b"b", b"2").unwrap();
    one.update(table, b"a", |value| value[0] = b'9').unwrap();
    one.remove(table, b"a").unwrap();
    one.rollback().unwrap();
    assert_eq!(one.get(table, b"a", <[u8]>::to_vec).unwrap().unwrap(), b"1");
    assert_eq!(one.get(table, b"b", |_| ()).unwrap(), None);
    // The first row at or behind `a`, in both directions, and nothing behind it.
    for scan in [Scan::up(b"a", 1), Scan::down(b"b", 1)] {
        one.begin(Access::Read).unwrap();
        let mut seen = Vec::new();
        one.scan(table, scan, |key, _| {
            seen.push(key.to_vec());
            false
        })
        .unwrap();
        assert_eq!(seen, [b"a"]);
        let mut other = store.session().unwrap();
        assert!(other.insert(table, b"c", b"3").unwrap(), "a key that was not looked at is free");
        other.remove(table, b"c").unwrap();
        one.commit().unwrap();
    }
}

fn load(store: &TestStore, scale: Scale) -> Tables {
    let loaded = store.load_with(|store| {
        let tables = Tables::create(store)?;
        tpcc::load(store, &tables, &scale, Seed(3), 2)?;
        Ok::<_, BenchError>(tables)
    });
    loaded.unwrap()
}

fn check(store: &TestStore) -> Report {
    let tables = Tables::open(store).unwrap();
    let report = tpcc::check(&mut store.session().unwrap(), &tables).unwrap();
    assert!(report.is_consistent(), "{report}");
    report
}

/// Work of a run's threads before they ended or the store failed.
#[derive(Default, Debug)]
struct Did {
    orders: AtomicU64,
    rolled_back: AtomicU64,
    retries: AtomicU64,
    failed: AtomicU64,
}

fn drive(store: &TestStore, config: &tpcc::Config, seed: Seed, steps: u32) -> Did {
    let (tables, did) = (Tables::open(store).unwrap(), Did::default());
    std::thread::scope(|scope| {
        for thread in 0..config.threads {
            let did = &did;
            scope.spawn(move || {
                let mut worker = Worker::new(config, tables, seed, thread).unwrap();
                let mut session = store.session().unwrap();
                for _ in 0..steps {
                    let Ok(step) = worker.step(&mut session) else {
                        did.failed.fetch_add(1, Ordering::Relaxed);
                        return;
                    };
                    let new_order = step.kind == Kind::NewOrder;
                    let count = |to: &AtomicU64, is| to.fetch_add(u64::from(is), Ordering::Relaxed);
                    count(&did.orders, new_order && !step.rolled_back);
                    count(&did.rolled_back, step.rolled_back);
                    did.retries.fetch_add(u64::from(step.retries), Ordering::Relaxed);
                }
            });
        }
    });
    did
}

#[test]
fn tpcc_stays_consistent_with_any_number_of_threads_and_rolls_back_what_it_wrote() {
    for threads in [1, 2, 3] {
        let store = in_memory(&options(400));
        let scale = Scale::tiny(1);
        load(&store, scale);
        let before = check(&store);
        let config = tpcc::Config::standard(scale, threads);
        let did = drive(&store, &config, Seed(5), 1200 / threads);
        let after = check(&store);
        assert_eq!(did.failed.load(Ordering::Relaxed), 0);
        assert!(did.rolled_back.load(Ordering::Relaxed) > 0, "{did:?}");
        let orders = did.orders.load(Ordering::Relaxed);
        assert_eq!(after.orders - before.orders, orders, "{did:?}");
        store.close().unwrap();
    }
}

#[test]
fn what_a_run_inserted_is_committed_when_it_ends_in_the_middle_of_a_transaction_too() {
    for rows_per_transaction in [300, 1700, u64::MAX] {
        let config = inserts::Config { rows: 2500, rows_per_transaction, threads: 1 };
        let (store, workload) = (in_memory(&options(400)), Workload::Inserts(config));
        assert_eq!(workload.load(&store, Seed(3), 2).unwrap(), 2500);
        let mut clients = workload.clients(&store, Seed(3)).unwrap();
        let spec = RunSpec::of(Length::Operations(5));
        let spec = RunSpec { warm_up: Length::Operations(1), ..spec };
        let (counts, mut start) = (|| None, || Ok(()));
        let run = runner::run(
            &store,
            &workload,
            &mut clients,
            &spec,
            &counts,
            &mut start,
            &mut Unwatched,
        );
        let outcome = run.unwrap();
        let (table, mut found) = (store.table(inserts::TABLE).unwrap().unwrap(), 0);
        let mut session = store.session().unwrap();
        let visit = |key: &[u8], value: &[u8]| {
            assert!(inserts::is_value_of(key, value));
            found += 1;
            true
        };
        session.scan(table, Scan::whole(), visit).unwrap();
        let of_warm_up = config.rows_per_step();
        assert!(outcome.transactions > 4 * 300, "{outcome:?}");
        assert_eq!(found, 2500 + of_warm_up + outcome.transactions);
    }
}

#[test]
fn without_locks_one_thread_and_without_a_log_many_stay_consistent() {
    for (log, locks, threads) in [(true, false, 1), (false, true, 3)] {
        let store = in_memory(&options(400).lab(|lab| lab.log = log).lab(|lab| lab.locks = locks));
        let scale = Scale::tiny(1);
        load(&store, scale);
        let did = drive(&store, &tpcc::Config::standard(scale, threads), Seed(6), 300);
        check(&store);
        assert_eq!(did.failed.load(Ordering::Relaxed), 0);
    }
}

/// Devices that lose their power, and the store on them.
fn on_devices(devices: &[Arc<millpond_device::FaultyDevice>], durability: Durability) -> TestStore {
    let options = options(200).durability(durability);
    TestStore::open_on(devices[0].clone(), Some(devices[1].clone()), &options).unwrap()
}

#[test]
fn tpcc_is_consistent_after_each_crash_and_has_every_acknowledged_order() {
    let scale = Scale::tiny(1);
    for (seed, durability) in [(1, Durability::Sync), (2, Durability::Async)] {
        let mut power = PowerSupply::new();
        let names = ["data", "log"];
        let mut devices = names.map(|name| power.device(name, MemoryDevice::new())).to_vec();
        let store = on_devices(&devices, durability);
        load(&store, scale);
        let mut known = check(&store).orders;
        drop(store);
        for round in 0..4u64 {
            let store = on_devices(&devices, durability);
            let threads = 1 + (round % 3) as u32;
            let config = tpcc::Config::standard(scale, threads);
            let orders = check(&store).orders;
            assert!(orders >= known, "round {round} of {seed}: {orders} of {known} orders");
            power.cut_at(150 + 40 * round);
            let did = drive(&store, &config, Seed(seed * 100 + round), 400);
            known = match durability {
                Durability::Sync => orders + did.orders.load(Ordering::Relaxed),
                _ => orders,
            };
            power.cut();
            drop(store);
            (power, devices) = power.images(seed * 1000 + round);
        }
        let store = on_devices(&devices, durability);
        assert!(check(&store).orders >= known);
        store.close().unwrap();
    }
}

fn operations(n: u64) -> RunSpec {
    RunSpec { warm_up: Length::NONE, ..RunSpec::of(Length::Operations(n)) }
}

#[test]
fn a_logged_bed_is_reopened_and_strategies_without_transactions_say_so() {
    let mut setup = Setup { pool: Some(Size::Share(0.5)), ..Setup::new() };
    setup.options = setup
        .options
        .lab(|lab| lab.log = true)
        .lab(|lab| lab.locks = true)
        .durability(Durability::Group);
    let workload = Workload::Tpcc(tpcc::Config::standard(Scale::tiny(1), 1));
    let mut instance = prepare(&setup, &workload, &mut Unwatched).unwrap();
    let outcome = instance.run(&operations(50), &mut |_| Ok(()), &mut Unwatched).unwrap();
    let counts = outcome.counts.unwrap();
    assert!(counts.log_syncs > 0 && counts.reads > 0, "{counts:?}");
    instance.reopen(None).unwrap();
    assert!(instance.check().unwrap().unwrap().is_consistent());
    let twin = Setup { engine: Engine::Twin, ..setup.clone() };
    let recording = Setup { records: true, ..setup };
    for wrong in [twin, recording] {
        let refused = prepare(&wrong, &workload, &mut Unwatched).err().unwrap();
        assert!(refused.is_usage(), "{refused}");
    }
}

/// Requests in a trace, by reason: none (reads), synch, replace, recov, dsync.
fn by_reason(trace: &Batch) -> [u64; 5] {
    let mut counts = [0; 5];
    trace.marks.iter().for_each(|mark| counts[mark.reason() as usize] += 1);
    counts
}

fn read_trace(path: &Path) -> Batch {
    let mut source = formats::open(path, &ReadOptions::default()).unwrap();
    let mut trace = Batch::default();
    while source.fill(&mut trace, BATCH_LEN).unwrap() > 0 {}
    trace
}

#[test]
fn what_a_run_asks_of_storage_is_a_trace_for_a_second_tier() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("storage.parquet");
    let options = options(150).log_gap(1 << 20).lab(|lab| lab.background_merge = false);
    let devices: [Arc<dyn Device>; 2] = [0, 1].map(|_| Arc::new(MemoryDevice::new()) as _);
    let open = || {
        let [data, log] = devices.clone();
        TestStore::open_on(data, Some(log), &options).unwrap()
    };
    let (store, scale) = (open(), Scale::tiny(1));
    load(&store, scale);
    // What loading left to background threads is over when they are.
    store.close().unwrap();
    let store = open();
    let pool = store.store().pool().clone();
    let counted = || {
        use Counter::{Reads, WritesRecov, WritesReplace, WritesSynch};
        [Reads, WritesSynch, WritesReplace, WritesRecov].map(|c| pool.counters().get(c))
    };
    let recording = StorageRecording::create(&path).unwrap();
    let before = counted();
    recording.start(pool.storage_recorder());
    drive(&store, &tpcc::Config::standard(scale, 2), Seed(5), 500);
    // When its threads are gone, the counters stand still.
    store.close().unwrap();
    let written = recording.finish(pool.storage_recorder()).unwrap();
    let after = counted();
    let trace = read_trace(&path);
    let [reads, synch, replace, recov, dsync] = by_reason(&trace);
    let expected: Vec<u64> =
        after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(vec![reads, synch, replace, recov], expected);
    assert_eq!(written, trace.len() as u64);
    assert!(reads > 1000 && synch + replace > 1000 && recov > 0 && dsync > 0, "{expected:?}");
    assert!(dsync <= synch + replace + recov);
    assert!(trace.lsns.iter().all(|lsn| lsn.0 > 0));
    for model in [Model::Read, Model::Rw] {
        let mut totals = Vec::new();
        for policy in ["t2-lru", "tq", "min-rw"] {
            let (spec, registry) = (Spec::parse(policy).unwrap(), Registry::builtin());
            let pages = trace.pages.iter().max().unwrap() + 1;
            let options = Tier2Options::new(300, Some(pages), model);
            let mut cell = registry.find(&spec.id).unwrap().tier2(&spec, &options).unwrap();
            cell.run(&trace, Some(&Tier2Future::of(&trace, pages))).unwrap();
            let counts = cell.counts();
            assert_eq!(counts.references, reads + synch + replace + recov);
            totals.push(counts.total());
        }
        assert!(totals.iter().all(|total| *total > 0), "{totals:?}");
    }
}

#[test]
fn a_deadlock_is_an_error_that_may_be_retried() {
    let store = in_memory(&options(256));
    let table = store.create_table("t").unwrap();
    let mut one = store.session().unwrap();
    for key in [b"a", b"b"] {
        one.insert(table, key, b"0").unwrap();
    }
    let barrier = std::sync::Barrier::new(2);
    let cross = |first: &[u8], second: &[u8]| -> Result<(), DbStoreError> {
        let mut session = store.session()?;
        session.begin(Access::Write)?;
        session.update(table, first, |value| value[0] += 1)?;
        barrier.wait();
        session.update(table, second, |value| value[0] += 1)?;
        session.commit()
    };
    let ends = std::thread::scope(|scope| {
        let other = scope.spawn(|| cross(b"b", b"a"));
        [cross(b"a", b"b"), other.join().unwrap()]
    });
    let failed: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
    assert_eq!(failed.len(), 1);
    let session = |error| <TxnStore<SwizzledAny> as Store>::Session::<'_>::is_retriable(error);
    assert!(failed.iter().all(session), "{failed:?}");
    assert_eq!(one.get(table, b"a", |value| value[0]).unwrap(), Some(b'1'));
}

/// Pages that loading left in a second tier are there when the store is opened with a smaller pool.
/// The cache's file is of more than 64 MiB, from where on it grows by more at once.
#[test]
fn a_second_tier_serves_what_a_pool_that_was_reopened_misses() {
    let folder = tempfile::tempdir().unwrap();
    let tier = folder.path().join("tier");
    let mut setup = Setup { pool: Some(Size::Share(0.2)), ..Setup::new() };
    let options = setup.options.clone().lab(|lab| lab.log = true).lab(|lab| lab.locks = true);
    setup.options = options.second_tier(&tier, 1 << 30, "tq");
    let workload = Workload::Tpcc(tpcc::Config::standard(Scale::full(1), 1));
    let mut instance = prepare(&setup, &workload, &mut Unwatched).unwrap();
    let outcome = instance.run(&operations(100), &mut |_| Ok(()), &mut Unwatched).unwrap();
    let counts = outcome.counts.unwrap();
    assert!(counts.tier_reads > 20 && counts.tier_share().unwrap() > 0.8, "{counts:?}");
    drop(instance);
    assert!(!tier.exists(), "the cache was the run's own");
    setup.options.lab.log = false;
    setup.options.lab.locks = false;
    let refused = prepare(&setup, &workload, &mut Unwatched).err().unwrap();
    assert!(matches!(refused, BenchError::Usage(_)), "{refused}");
}
