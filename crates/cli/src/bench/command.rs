//! The subcommands of `millpond bench`, and the two that run one workload once.

use std::path::PathBuf;

use clap::Subcommand;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, series_rows, table};
use millpond_bench::instance::setup::Setup;
use millpond_bench::instance::{Instance, Recorders, prepare};
use millpond_bench::run::client::Workload;
use millpond_bench::run::record::{Recording, StorageRecording};
use millpond_bench::run::runner::{Observer, Outcome, RunSpec};
use millpond_lab::registry::Registry;
use millpond_lab::report::LinePlot;
use serde_json::{Value as Json, json};

use super::engine::{EngineArgs, RunArguments, growth, joined};
use super::progress_line::ProgressLine;
use super::results::{ResultArgs, line, write_file};
use super::workload::{TpccArgs, YcsbArgs};
use super::{
    commits, contest, evictors, many, opening, outgrow, overheads, pace, phases, ramp_up, scan,
    two_worlds,
};
use crate::error::Failure;
use crate::output::complain;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Key-value operations: lookups, updates, inserts, scans
    Ycsb(Box<YcsbCommand>),
    /// TPC-C in full, with a consistency check after the run
    Tpcc(Box<TpccCommand>),
    /// Two tables scanned repeatedly, over pool sizes (leanstore VI-C)
    Scan(Box<scan::Args>),
    /// Throughput over pool sizes, from all data in memory to a tenth of the data
    Outgrow(Box<outgrow::Args>),
    /// A cold start on slow devices: throughput over time (leanstore VI-A)
    RampUp(Box<ramp_up::Args>),
    /// From a classic pool to no pool, step by step (leanstore fig. 7)
    Ladder(Box<contest::LadderArgs>),
    /// Effect of a home warehouse, touched memory and NUMA nodes (leanstore table I)
    Affinity(Box<contest::AffinityArgs>),
    /// Cost of locks and log: TPC-C without transactions, with locks, with a log, with both
    Acid(Box<contest::AcidArgs>),
    /// Durable commits of one row, beside the device's own synced writes
    Commits(Box<commits::Args>),
    /// A store through its life: one large transaction, small ones, reads, removals, shrinking
    Phases(Box<phases::Args>),
    /// Cost of log, locks, pool and a second thread, judged against bars (gilbert 2.1)
    Overheads(Box<overheads::Args>),
    /// Eviction speed of policies while nothing else runs (watt 6.4)
    Evictors(Box<evictors::Args>),
    /// Several keys looked up by one call, compared with single lookups
    Many(Box<many::Args>),
    /// Durable commits while pages are written in the background
    Pace(Box<pace::Args>),
    /// Time to open an empty store, policy by policy
    Opening(Box<opening::Args>),
    /// Comparison of live and simulated policies, and the effects of a live pool
    TwoWorlds(Box<two_worlds::Args>),
}

const YCSB_EXAMPLES: &str = "Examples:
  millpond bench ycsb --rows 5000000 --threads 2
  millpond bench ycsb --rows 5000000 --theta 0.99 --engine twin
  millpond bench ycsb --shape watt --pool 20% --device file:/data/bench \\
      --policy watt
  millpond bench ycsb --scans 100 --load ascending --json
  millpond bench ycsb --updates 50 --pool 256MiB --series series.csv \\
      --plot series.html";

#[derive(clap::Args, Debug)]
#[command(after_help = YCSB_EXAMPLES)]
struct YcsbCommand {
    #[command(flatten)]
    workload: YcsbArgs,
    #[command(flatten)]
    common: Common,
}

const TPCC_EXAMPLES: &str = "Examples:
  millpond bench tpcc --warehouses 5 --seconds 30
  millpond bench tpcc --warehouses 5 --engine twin --json
  millpond bench tpcc --log on --locks on --durability async \\
      --device file:/data/bench
  millpond bench tpcc --warehouses 5 --pool 30% --device slow:nvme --threads 4
  millpond bench tpcc --warehouses 1 --operations 20000 --record tpcc.parquet
  millpond bench tpcc --pool 10% --log on --log-gap 8MiB \\
      --record-storage storage.parquet
  valgrind --tool=callgrind millpond bench tpcc --scale tiny --operations 1000";

#[derive(clap::Args, Debug)]
#[command(after_help = TPCC_EXAMPLES)]
struct TpccCommand {
    #[command(flatten)]
    workload: TpccArgs,
    /// Do not check the data's consistency after the run
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    common: Common,
}

/// Options that every single run takes.
#[derive(clap::Args, Debug)]
struct Common {
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    arguments: RunArguments,
    #[command(flatten)]
    results: ResultArgs,
    /// Write the time series to this file: .csv, .json or .parquet
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    series: Option<PathBuf>,
    /// Record the page references of the measurement as a trace
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    record: Option<PathBuf>,
    /// Record the storage requests of the measurement, as a trace for a second tier
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    record_storage: Option<PathBuf>,
    /// Also record the references of operations that had to restart
    #[arg(long, requires = "record", help_heading = "Results")]
    record_restarts: bool,
    /// Record this many references at most
    #[arg(long, requires = "record", value_name = "N", help_heading = "Results")]
    record_max: Option<u64>,
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    match &args.command {
        Command::Ycsb(args) => {
            let workload = args.workload.workload(args.common.arguments.threads())?;
            single("ycsb", workload, args.workload.params(), &args.common, true)
        }
        Command::Tpcc(args) => {
            let workload = args.workload.workload(1, args.common.arguments.threads());
            single("tpcc", workload, args.workload.params(1), &args.common, !args.no_check)
        }
        Command::Scan(args) => scan::run(args),
        Command::Outgrow(args) => outgrow::run(args),
        Command::RampUp(args) => ramp_up::run(args),
        Command::Ladder(args) => contest::ladder(args),
        Command::Affinity(args) => contest::affinity(args),
        Command::Acid(args) => contest::acid(args),
        Command::Commits(args) => commits::run(args),
        Command::Phases(args) => phases::run(args),
        Command::Overheads(args) => overheads::run(args),
        Command::Evictors(args) => evictors::run(args),
        Command::Many(args) => many::run(args),
        Command::Pace(args) => pace::run(args),
        Command::Opening(args) => opening::run(args),
        Command::TwoWorlds(args) => two_worlds::run(args, registry),
    }
}

/// Result of a single run.
struct Measured {
    outcome: Outcome,
    /// Number of recorded references.
    recorded: Option<u64>,
    /// Number of recorded storage requests.
    storage_recorded: Option<u64>,
    instance: Box<dyn Instance>,
}

/// Runs the workload, and records its references if the user asked for that.
fn measure(
    common: &Common,
    setup: &Setup,
    workload: &Workload,
    spec: &RunSpec,
    live: &mut ProgressLine,
) -> Result<Measured, Failure> {
    let mut instance = prepare(setup, workload, live)?;
    live.begin(workload.name());
    let most = common.record_max.unwrap_or(u64::MAX);
    let recording = match &common.record {
        Some(path) => Some(Recording::create(path, most, common.record_restarts)?),
        None => None,
    };
    let storage = match &common.record_storage {
        Some(path) => Some(StorageRecording::create(path)?),
        None => None,
    };
    let mut start = |recorders: Recorders<'_>| {
        let no_pool = || BenchError::Usage("the twin cannot record: it has no pool".into());
        if let Some(recording) = &recording {
            recording.start(recorders.pages.ok_or_else(no_pool)?);
        }
        if let Some(recording) = &storage {
            recording.start(recorders.storage.ok_or_else(no_pool)?);
        }
        Ok(())
    };
    let outcome = instance.run(spec, &mut start, live)?;
    let storage_recorded = match (storage, instance.recorders().storage) {
        (Some(recording), Some(recorder)) => Some(recording.finish(recorder)?),
        _ => None,
    };
    let recorded = match (recording, instance.recorders().pages) {
        (Some(recording), Some(recorder)) => Some(recording.finish(recorder, live)?),
        _ => None,
    };
    Ok(Measured { outcome, recorded, storage_recorded, instance })
}

fn single(
    name: &str,
    workload: Workload,
    params: Json,
    common: &Common,
    check: bool,
) -> Result<(), Failure> {
    common.results.check()?;
    let spec = common.arguments.spec()?;
    let mut setup = common.engine.setup()?;
    setup.records = common.record.is_some();
    setup.growth = growth(&workload, &spec, common.arguments.threads(), 1);
    let mut live = ProgressLine::new(common.arguments.quiet);
    let measured = measure(common, &setup, &workload, &spec, &mut live);
    live.finish();
    let Measured { outcome, recorded, storage_recorded, instance } = measured?;
    let report = if check { instance.check()? } else { None };
    let info = instance.info();
    let head = Row::new(name, &info.engine.to_string(), outcome.threads);
    let row = head.clone().with_outcome(&outcome, info.engine);
    let mut row = row.with_transactions(&outcome, info);
    for (class, count) in workload.classes().into_iter().zip(outcome.by_class) {
        row = row.with(&format!("{}_per_s", class.replace('-', "_")), rate(count, &outcome));
    }
    if let Some(recorded) = recorded {
        row = row.with("recorded", recorded);
    }
    if let Some(recorded) = storage_recorded {
        row = row.with("storage_recorded", recorded);
    }
    if let Some(report) = &report {
        row = row.with("violations", report.violations.len() as u64);
    }
    let row = row.with_facts(info);
    let command = format!("bench {name}");
    let params = joined([params, common.arguments.params(), common.engine.params(), extra(common)]);
    let series = series_rows(&head, &outcome.series);
    common.results.draw(|| {
        LinePlot {
            title: format!("{name}: throughput over time"),
            note: format!("{} threads, {}, {}", outcome.threads, info.engine, info.policy),
            x: "second".to_string(),
            y: "transactions per second".to_string(),
            lines: vec![line(name, &table(series.clone()), "second", "throughput_per_s")],
            ..LinePlot::default()
        }
        .render()
    })?;
    if let Some(path) = &common.series {
        write_file(path, &command, &params, series)?;
    }
    common.results.write(&command, &params, &table([row]))?;
    if let Some(report) = report.filter(|report| !report.is_consistent()) {
        report.violations.iter().take(20).for_each(|violation| complain(&violation.to_string()));
        let count = report.violations.len();
        return Err(Failure::Partly(format!("the data is inconsistent: {count} violations")));
    }
    if outcome.was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}

fn rate(count: u64, outcome: &Outcome) -> f64 {
    count as f64 / outcome.seconds.max(1e-9)
}

fn extra(common: &Common) -> Json {
    json!({
        "record": common.record.as_ref().map(|path| path.display().to_string()),
        "record_restarts": common.record_restarts,
        "record_storage": common.record_storage.as_ref().map(|path| path.display().to_string()),
    })
}
