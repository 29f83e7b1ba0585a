//! Runs, small: every engine and device, contests, recording, stopping.

use std::time::Duration;

use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_base::Size;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::contest::{affinity, contest, ladder};
use millpond_bench::experiments::table::{Row, contest_row, series_rows, table};
use millpond_bench::instance::setup::{DeviceSpec, Engine, Setup};
use millpond_bench::instance::{Instance, Recorders, prepare, prepare_on};
use millpond_bench::run::client::Workload;
use millpond_bench::run::record::Recording;
use millpond_bench::run::runner::{Length, Observer, RunSpec, Tick, Unwatched};
use millpond_workload::formats::{self, ReadOptions};
use millpond_workload::tpcc::{self, Scale};
use millpond_workload::trace::{BATCH_LEN, Batch};
use millpond_workload::ycsb;

fn lookups(threads: u32) -> Workload {
    Workload::Ycsb(ycsb::Config { verify: true, threads, ..ycsb::Config::watt(3000, 10) })
}

fn orders(warehouses: u32, threads: u32) -> Workload {
    Workload::Tpcc(tpcc::Config::standard(Scale::tiny(warehouses), threads))
}

fn operations(n: u64) -> RunSpec {
    RunSpec { warm_up: Length::Operations(n / 4), ..RunSpec::of(Length::Operations(n)) }
}

fn run(instance: &mut dyn Instance, spec: &RunSpec) -> millpond_bench::run::runner::Outcome {
    instance.run(spec, &mut |_| Ok(()), &mut Unwatched).unwrap()
}

#[test]
fn a_run_does_exactly_its_operations_and_counts_each() {
    for (workload, n) in [(lookups(2), 5001), (orders(1, 2), 301)] {
        for engine in [Engine::Pool, Engine::Twin] {
            let setup = Setup { engine, ..Setup::new() };
            let mut instance = prepare(&setup, &workload, &mut Unwatched).unwrap();
            let outcome = run(instance.as_mut(), &operations(n));
            assert_eq!((outcome.transactions, outcome.threads), (n, 2));
            assert_eq!(outcome.by_class.iter().sum::<u64>(), n);
            assert!(outcome.throughput_per_s > 0.0 && outcome.latency_us(0.99) > 0.0);
            assert_eq!(outcome.counts.is_some(), engine == Engine::Pool);
            assert!(instance.check().unwrap().is_none_or(|report| report.is_consistent()));
            assert!(instance.info().pages > 50, "{:?}", instance.info());
        }
    }
}

#[test]
fn latencies_of_all_transactions_add_up_to_the_time_of_the_run() {
    let mut instance = prepare(&Setup::new(), &orders(1, 1), &mut Unwatched).unwrap();
    let outcome = run(instance.as_mut(), &operations(400));
    assert_eq!(outcome.latency.len(), 400, "every transaction is timed");
    let sum_s = outcome.latency.mean() * 400.0 / 1e9;
    assert!(sum_s < outcome.seconds * 1.05, "{sum_s} of {}", outcome.seconds);
    // Wide enough for a thread that loses its processor between two of them.
    assert!(sum_s > outcome.seconds * 0.05, "{sum_s} of {}", outcome.seconds);
    assert!(outcome.latency_us(0.5) <= outcome.latency_us(0.99));
}

#[test]
fn a_pool_smaller_than_its_data_misses_and_one_that_fits_does_not() {
    let workload = orders(1, 2);
    let fits = prepare(&Setup::new(), &workload, &mut Unwatched).unwrap();
    let mut fits = fits;
    let counts = run(fits.as_mut(), &operations(300)).counts.unwrap();
    assert_eq!((counts.misses, counts.reads, counts.hit_ratio()), (0, 0, 1.0));
    let mut setup = Setup { pool: Some(Size::Share(0.2)), ..Setup::new() };
    setup.options.lab.eviction = "threads(1)".parse().unwrap();
    let mut small = prepare(&setup, &workload, &mut Unwatched).unwrap();
    let counts = run(small.as_mut(), &operations(300)).counts.unwrap();
    assert!(counts.misses > 0 && counts.reads > 0 && counts.hit_ratio() < 1.0, "{counts:?}");
    let (frames, pages) = (small.info().frames.unwrap(), small.info().pages);
    assert_eq!(u64::from(frames), pages / 5);
    assert!(small.check().unwrap().unwrap().is_consistent());
}

#[test]
fn every_run_on_an_image_begins_with_the_same_data_and_what_it_leaves_can_be_checked() {
    let workload = orders(1, 1);
    let image = prepare(&Setup::new(), &workload, &mut Unwatched).unwrap().image().unwrap();
    let small = |policy: &str, translation| {
        let options = Setup::new().options.policy(policy);
        let options = options.lab(|lab| lab.translation = translation);
        Setup { options, pool: Some(Size::Share(0.3)), ..Setup::new() }
    };
    let twice = [TranslationMode::Swizzled; 2];
    let done = twice.map(|translation| {
        let mut instance = prepare_on(&image, &small("lru", translation), &workload).unwrap();
        assert_eq!(instance.info().pages, image.pages());
        assert_eq!(instance.info().frames, Some((image.pages() as f64 * 0.3) as u32));
        let outcome = run(instance.as_mut(), &operations(300));
        assert!(instance.check_at_rest().unwrap().unwrap().is_consistent());
        let report = instance.check_at_rest().unwrap().unwrap();
        assert!(report.is_consistent(), "checked again, from the device");
        (outcome.by_class, format!("{report:?}"))
    });
    assert_eq!(done[0], done[1], "one thread does the same in every run");
    let mut other = prepare_on(&image, &small("mru", TranslationMode::Hashed), &workload).unwrap();
    run(other.as_mut(), &operations(300));
    assert!(other.check_at_rest().unwrap().unwrap().is_consistent());
    let twin = Setup { engine: Engine::Twin, ..Setup::new() };
    assert!(prepare_on(&image, &twin, &workload).is_err_and(|error| error.is_usage()));
    let mut large = Setup::new();
    large.options = large.options.page_size(8192);
    assert!(prepare_on(&image, &large, &workload).is_err_and(|error| error.is_usage()));
    assert!(prepare(&twin, &workload, &mut Unwatched).unwrap().image().is_err());
}

#[test]
fn a_file_is_used_reopened_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let setup = Setup {
        device: DeviceSpec::File(path.clone()),
        pool: Some(Size::Share(0.5)),
        ..Setup::new()
    };
    let mut instance = prepare(&setup, &lookups(1), &mut Unwatched).unwrap();
    assert!(path.exists());
    let counts = run(instance.as_mut(), &operations(2000)).counts.unwrap();
    assert!(counts.reads > 0, "{counts:?}");
    instance.reopen(Some(Size::Frames(30))).unwrap();
    let counts = run(instance.as_mut(), &operations(2000)).counts.unwrap();
    assert!(counts.hit_ratio() < 0.9, "{counts:?}");
    drop(instance);
    assert!(!path.exists());
}

#[test]
fn a_slow_device_is_slow_when_it_runs_and_not_when_it_loads() {
    let setup = Setup { device: "slow:nvme".parse().unwrap(), ..Setup::new() };
    let mut instance = prepare(&setup, &lookups(1), &mut Unwatched).unwrap();
    // The pool holds everything, but starts cold.
    let spec = RunSpec { warm_up: Length::NONE, ..operations(3000) };
    let counts = run(instance.as_mut(), &spec).counts.unwrap();
    assert!(counts.reads >= instance.info().pages / 2, "{counts:?}");
    let counts = run(instance.as_mut(), &operations(1000)).counts.unwrap();
    assert!(counts.reads < 50, "{counts:?}");
}

#[test]
fn a_fast_warm_up_is_not_slowed_down_and_what_is_measured_is() {
    let setup = Setup {
        device: "slow:disk".parse().unwrap(),
        pool: Some(Size::Frames(30)),
        warms_up_fast: true,
        ..Setup::new()
    };
    let mut instance = prepare(&setup, &lookups(1), &mut Unwatched).unwrap();
    // A disk that is slow from the beginning takes minutes for this warm-up.
    let warm_up = Length::Operations(20_000);
    for _ in 0..2 {
        let spec = RunSpec { warm_up, ..RunSpec::of(Length::Operations(20)) };
        let outcome = run(instance.as_mut(), &spec);
        let reads = outcome.counts.unwrap().reads;
        assert!(reads > 0 && outcome.seconds > reads as f64 * 100e-6, "{reads} reads: {outcome:?}");
    }
    for wrong in [
        Setup { device: DeviceSpec::Memory, ..setup.clone() },
        Setup { engine: Engine::Twin, ..setup.clone() },
        Setup { options: setup.options.clone().lab(|lab| lab.log = true), ..setup },
    ] {
        let refused = prepare(&wrong, &lookups(1), &mut Unwatched).err();
        assert!(matches!(refused, Some(BenchError::Usage(_))), "{refused:?}");
    }
}

#[test]
fn scans_run_side_by_side_and_know_their_rows() {
    let workload = Workload::Scan(tpcc::Config::standard(Scale::tiny(2), 2));
    let mut instance = prepare(&Setup::new(), &workload, &mut Unwatched).unwrap();
    let outcome = run(instance.as_mut(), &operations(6));
    assert_eq!(outcome.by_class[0], 3 * 2 * 10 * 30, "three scans of all orders");
    assert!(outcome.by_class[1] > outcome.by_class[0]);
    assert!(instance.row_bytes().iter().all(|bytes| (10.0..200.0).contains(bytes)));
}

#[test]
fn every_step_of_the_ladder_runs_and_is_compared_with_both_ends() {
    for workload in [lookups(1), orders(1, 1)] {
        let steps = ladder(&Setup::new(), &workload);
        let results = contest(&steps, 3, &operations(200), &mut Unwatched).unwrap();
        let names: Vec<&str> = results.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["baseline", "+swizzling", "+lean-evict", "+optimistic", "twin"]);
        assert!(results.iter().all(|r| r.rounds.len() == 3));
        assert_eq!((results[0].to_first.mean, results[4].to_last.mean), (1.0, 1.0));
        let rows = results.iter().map(|r| contest_row(workload.name(), r).unwrap());
        let rows = table(rows);
        for column in ["step", "engine", "threads", "throughput_per_s", "ratio_to_last_low"] {
            assert!(rows.column(column).is_some(), "{column}");
        }
        assert_eq!(rows.rows.len(), 5);
    }
}

#[test]
fn every_step_of_the_affinity_table_runs() {
    let steps = affinity(&Setup::new(), &orders(2, 2), 2, 2);
    let results = contest(&steps, 1, &operations(60), &mut Unwatched).unwrap();
    let threads: Vec<u32> = results.iter().map(|r| r.rounds[0].threads).collect();
    assert_eq!(threads, [1, 2, 2, 2, 2]);
}

#[test]
fn what_is_not_compiled_or_cannot_be_is_refused_before_anything_is_loaded() {
    let refused = |setup: &Setup, threads| {
        let error = prepare(setup, &lookups(threads), &mut Unwatched).err().unwrap();
        assert!(error.is_usage(), "{error}");
    };
    let mut setup = Setup::new();
    // Swips without latches are for WATT.
    setup.options.lab.latching = LatchingMode::None;
    setup.options.policy = "lru".to_string();
    refused(&setup, 1);
    let mut setup = Setup::new();
    setup.options.lab.translation = TranslationMode::Hashed;
    setup.options.lab.log = true;
    refused(&setup, 1);
    let mut setup = Setup::new();
    setup.options.policy = "no-such-policy".to_string();
    refused(&setup, 1);
    for engine in [Engine::Pool, Engine::Twin] {
        let mut setup = Setup { engine, ..Setup::new() };
        setup.options.lab.latching = LatchingMode::None;
        setup.options.policy = "watt".to_string();
        refused(&setup, 2);
        assert!(prepare(&setup, &lookups(1), &mut Unwatched).is_ok());
    }
}

/// Stops a run at its second point, or the first one after it by which something was done.
#[derive(Default)]
struct Impatient(Vec<Tick>);

impl Observer for Impatient {
    fn tick(&mut self, tick: &Tick) {
        if !tick.is_warm_up {
            self.0.push(*tick);
        }
    }
    fn stop(&self) -> bool {
        self.0.len() >= 2 && self.0.iter().any(|tick| tick.transactions > 0)
    }
}

#[test]
fn a_run_that_is_stopped_keeps_its_results_and_its_time_series() {
    let mut instance = prepare(&Setup::new(), &lookups(2), &mut Unwatched).unwrap();
    let interval = Duration::from_millis(20);
    let measure = Length::Time(Duration::from_secs(3600));
    let spec = RunSpec { warm_up: Length::NONE, measure, interval };
    let mut observer = Impatient::default();
    let outcome = instance.run(&spec, &mut |_| Ok(()), &mut observer).unwrap();
    assert!(outcome.was_stopped && outcome.transactions > 0);
    assert!(outcome.series.len() >= 2);
    let counted: u64 = outcome.series.iter().map(|tick| tick.transactions).sum();
    assert!(counted > 0 && counted <= outcome.transactions);
    let rows = table(series_rows(&Row::new("ycsb", "pool", 2), &outcome.series));
    assert_eq!(rows.rows.len(), outcome.series.len());
    assert!(rows.get(1, "second").unwrap().number() > rows.get(0, "second").unwrap().number());
}

#[test]
fn a_recorded_run_is_a_trace_of_its_references() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.parquet");
    let setup = Setup { records: true, ..Setup::new() };
    let mut instance = prepare(&setup, &orders(1, 1), &mut Unwatched).unwrap();
    let recording = Recording::create(&path, 5000, false).unwrap();
    let mut start = |recorders: Recorders<'_>| {
        recording.start(recorders.pages.ok_or(BenchError::Closed)?);
        Ok(())
    };
    let outcome = instance.run(&operations(200), &mut start, &mut Unwatched).unwrap();
    let written = recording.finish(instance.recorders().pages.unwrap(), &mut Unwatched).unwrap();
    assert_eq!(written, 5000.min(outcome.counts.unwrap().references));
    let mut source = formats::open(&path, &ReadOptions::default()).unwrap();
    let mut batch = Batch::with_capacity(BATCH_LEN);
    let mut read = 0;
    while source.fill(&mut batch, BATCH_LEN).unwrap() > 0 {
        read += batch.len() as u64;
        assert!(batch.marks.iter().all(|mark| mark.kind().is_btree()));
        assert!(batch.marks.iter().any(|mark| mark.is_write()));
        batch.clear();
    }
    assert_eq!(read, written);
}
