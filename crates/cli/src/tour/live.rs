//! The engine's part of the tour: TPC-C in a store as users open it. The first run has far less
//! memory than data; the second, after a reopen, has enough. Each run ends with a check of the
//! data's consistency, and the tour with a check of every page of the file.

use std::path::Path;
use std::time::{Duration, Instant};

use millpond::Options;
use millpond_base::Seed;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, series_rows, table};
use millpond_bench::instance::setup::Engine;
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{self, Length, Observer, Outcome, RunSpec};
use millpond_bench::stores::db_store::DbStore;
use millpond_lab::report::{Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::live::{DriveError, Store};
use millpond_workload::tpcc::{self, Scale, Tables};

use super::watch::Watch;
use crate::bench::cores;
use crate::error::Failure;
use crate::interrupt;
use crate::output::print;
use crate::store::{Look, failed, look};

const MIB: u64 = 1 << 20;

/// Amount of data, memory and time.
pub(super) struct Course {
    scale: Scale,
    /// Bytes of memory while the data is larger, and afterwards.
    memory: [u64; 2],
    warm_up: Length,
    measure: Length,
    interval: Duration,
}

impl Course {
    /// Returns the full course: a warehouse of the specification, 90 MiB of pages, in a quarter
    /// of the memory.
    pub(super) fn full() -> Course {
        Course {
            scale: Scale::full(1),
            memory: [24 * MIB, 256 * MIB],
            warm_up: Length::Time(Duration::from_secs(1)),
            measure: Length::Time(Duration::from_secs(3)),
            interval: Duration::from_millis(200),
        }
    }

    /// Returns the quick course, a twenty-fifth of the full one. It counts transactions instead
    /// of seconds, so that the cached pages do not depend on the machine.
    pub(super) fn quick() -> Course {
        Course {
            scale: Scale::tiny(4),
            memory: [2 * MIB, 32 * MIB],
            warm_up: Length::Operations(1000),
            measure: Length::Operations(2000),
            interval: Duration::from_millis(25),
        }
    }

    fn workload(&self) -> Workload {
        Workload::Tpcc(tpcc::Config::standard(self.scale, cores().min(4)))
    }

    fn spec(&self) -> RunSpec {
        RunSpec { warm_up: self.warm_up, measure: self.measure, interval: self.interval }
    }
}

/// Result of the engine's part.
pub(super) struct Report {
    /// One row per run.
    pub(super) runs: Table,
    /// The time series of both.
    pub(super) series: Table,
    /// Section of the report page.
    pub(super) section: Section,
}

/// One of the two runs.
struct Run {
    name: &'static str,
    memory: u64,
    frames: u64,
    outcome: Outcome,
    watch: Watch,
}

/// Loads, runs, checks, closes, opens, runs, checks, closes, and checks the file.
pub(super) fn run(path: &Path, course: &Course, quiet: bool) -> Result<Report, Failure> {
    let loaded = load(path, course, quiet)?;
    print(&loaded.text)?;
    let mut runs = Vec::new();
    let mut store = Some(loaded.store);
    for (name, memory) in ["larger than memory", "in memory"].into_iter().zip(course.memory) {
        let store = match store.take() {
            Some(store) => store,
            None => open(path, memory)?,
        };
        let run = measure(&store, course, name, memory, quiet)?;
        if runs.is_empty() {
            print(&run.header())?;
        }
        print(&run.line())?;
        check_consistency(&store, &course.workload())?;
        store.close().map_err(failed)?;
        runs.push(run);
    }
    let how = Look { page_size: None, problems_max: 20, quiet, unrecovered: false };
    let checked = look(path, &how)?;
    if !checked.is_sound() {
        let first = checked.problems.first().map(ToString::to_string).unwrap_or_default();
        let text = format!("{} problems, first {first}", checked.problem_count());
        return Err(Failure::Store(text));
    }
    let sound = format!(
        "  After each run TPC-C's consistency conditions hold, and all {} pages of the file, read\n  \
         back after closing, are sound.\n\n",
        checked.pages
    );
    print(&sound)?;
    Ok(report(&runs, &format!("{} {}", loaded.text.trim(), sound.trim())))
}

fn open(path: &Path, memory: u64) -> Result<DbStore, Failure> {
    // No log, as in all earlier figures of the page. `bench acid` measures the cost of a log.
    let options =
        Options::new().memory(memory).lab(|lab| lab.log = false).lab(|lab| lab.locks = false);
    DbStore::open(path, options).map_err(failed)
}

struct Loaded {
    store: DbStore,
    text: String,
}

fn load(path: &Path, course: &Course, quiet: bool) -> Result<Loaded, Failure> {
    let mut watch = Watch::new(quiet);
    watch.begin("loading TPC-C");
    let start = Instant::now();
    let memory = course.memory[0];
    let store = open(path, memory)?;
    let rows = course.workload().load(&store, Seed(1), cores());
    watch.finish();
    let (rows, stats) = (rows?, store.db().stats());
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    let data = (stats.store_pages - stats.free_pages) * stats.page_size;
    let warehouses = match course.scale.warehouses {
        1 => "one warehouse".to_string(),
        n => format!("{n} warehouses"),
    };
    let text = format!(
        "\nTPC-C, {warehouses}, {} threads: {rows} rows, {} MiB of pages, were loaded in {:.1} s \
         with {} MiB\nof memory.\n\n",
        cores().min(4),
        data.div_ceil(MIB),
        start.elapsed().as_secs_f64(),
        memory / MIB
    );
    Ok(Loaded { store, text })
}

fn measure(
    store: &DbStore,
    course: &Course,
    name: &'static str,
    memory: u64,
    quiet: bool,
) -> Result<Run, Failure> {
    let workload = course.workload();
    let mut watch = Watch::new(quiet);
    watch.begin(&format!("TPC-C, {name}"));
    // Each run has its own seed, or the second would ask for the pages that the first left in
    // the cache.
    let mut clients = workload.clients(store, Seed(memory))?;
    let counts = || Some(store.counts());
    let spec = course.spec();
    let ran =
        runner::run(store, &workload, &mut clients, &spec, &counts, &mut || Ok(()), &mut watch);
    watch.finish();
    let outcome = ran?;
    if outcome.was_stopped {
        return Err(Failure::Interrupted);
    }
    Ok(Run { name, memory, frames: store.db().stats().frames, outcome, watch })
}

fn check_consistency(store: &DbStore, workload: &Workload) -> Result<(), Failure> {
    let Workload::Tpcc(_) = workload else { return Ok(()) };
    let tables = Tables::open(store).map_err(BenchError::from)?;
    let mut session = store.session().map_err(DriveError::Store).map_err(BenchError::from)?;
    let report = tpcc::check(&mut session, &tables).map_err(BenchError::from)?;
    match report.violations.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Partly(format!("the data is inconsistent: {first}"))),
    }
}

impl Run {
    /// Returns names and values for people.
    fn figures(&self) -> [(&'static str, String); 8] {
        let outcome = &self.outcome;
        let counts = outcome.counts.unwrap_or_default();
        let per_tx = |n: u64| format!("{:.2}", n as f64 / outcome.transactions.max(1) as f64);
        let percent = |ratio: f64| format!("{:.2}", ratio * 100.0);
        [
            ("MiB", (self.memory / MIB).to_string()),
            ("tx/s", format!("{:.0}", outcome.throughput_per_s)),
            ("hits %", percent(counts.hit_ratio())),
            ("of leaves", percent(counts.leaf_hit_ratio())),
            ("reads/tx", per_tx(counts.reads)),
            ("writes/tx", per_tx(counts.writes)),
            ("p50 µs", format!("{:.0}", outcome.latency_us(0.5))),
            ("p99 µs", format!("{:.0}", outcome.latency_us(0.99))),
        ]
    }

    fn header(&self) -> String {
        let names = self.figures().map(|(name, _)| format!("{name:>10}"));
        format!("  {:18}{}\n", "", names.concat())
    }

    fn line(&self) -> String {
        let values = self.figures().map(|(_, value)| format!("{value:>10}"));
        format!("  {:18}{}\n", self.name, values.concat())
    }

    fn head(&self) -> Row {
        Row::new(self.name, &Engine::Pool.to_string(), self.outcome.threads)
    }

    fn row(&self) -> Row {
        self.head()
            .with_outcome(&self.outcome, Engine::Pool)
            .with("memory_mib", self.memory / MIB)
            .with("pool_frames", self.frames)
    }

    fn points(&self, of: impl Fn(&runner::Tick) -> Option<f64>) -> Line {
        let ticks = self.watch.ticks.iter();
        let points = ticks.filter_map(|(at, tick)| Some((*at, of(tick)?))).collect();
        let label = format!("{}: {} MiB", self.name, self.memory / MIB);
        Line { label, points, ..Line::default() }
    }
}

fn report(runs: &[Run], note: &str) -> Report {
    let plot = |title: &str, y: &str, of: &dyn Fn(&runner::Tick) -> Option<f64>| LinePlot {
        title: title.to_string(),
        note: "From the first transaction after opening.".to_string(),
        x: "second".to_string(),
        y: y.to_string(),
        lines: runs.iter().map(|run| run.points(of)).collect(),
        ..LinePlot::default()
    };
    let mut shown = Table::new(["run"]);
    for run in runs {
        let figures = run.figures();
        if shown.rows.is_empty() {
            shown.columns.extend(figures.iter().map(|(name, _)| (*name).to_string()));
        }
        let number = |text: &String| text.parse().map_or(Value::Empty, Value::Float);
        let values = figures.iter().map(|(_, value)| number(value));
        shown.rows.push(std::iter::once(run.name.into()).chain(values).collect());
    }
    let section = Section {
        title: "The engine: TPC-C, larger than memory and in memory".to_string(),
        note: format!("{note} The store was closed and opened again between the runs."),
        table: shown,
        plots: vec![
            plot("Throughput", "transactions per second", &|tick| {
                Some(tick.transactions as f64 / tick.seconds.max(1e-9))
            })
            .into(),
            plot("Hit rate, inner pages included", "hits in %", &|tick| {
                Some(tick.counts?.hit_ratio() * 100.0)
            })
            .into(),
        ],
        ..Section::default()
    };
    let series = runs.iter().flat_map(|run| series_rows(&run.head(), &run.outcome.series));
    Report { runs: table(runs.iter().map(Run::row)), series: table(series), section }
}
