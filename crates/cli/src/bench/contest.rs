//! `millpond bench ladder` and `millpond bench affinity`: several engines in interleaved rounds.

use std::time::Duration;

use clap::ValueEnum;
use millpond_bench::experiments::contest::{self as bench, Step, StepResult, contest};
use millpond_bench::experiments::table::{Row, contest_row, table};
use millpond_bench::instance::setup::Setup;
use millpond_bench::run::runner::{Length, RunSpec};
use millpond_lab::report::{Line, LinePlot};
use serde_json::{Value as Json, json};

use super::engine::{EngineArgs, cores, growth, joined, seconds, some_seconds};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use super::workload::{TpccArgs, YcsbArgs};
use crate::error::Failure;
use crate::interrupt;

/// How often and how long.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
struct Rounds {
    /// Rounds; every step runs once in each
    #[arg(long, default_value_t = 9, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Seconds of each step in each round
    #[arg(long, short, default_value = "2", value_name = "S")]
    seconds: f64,
    /// Number of operations, instead of seconds
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// Seconds of warm-up of each step in each round
    #[arg(long, default_value = "0.2", value_name = "S")]
    warm_up: f64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
}

impl Rounds {
    fn spec(&self) -> Result<RunSpec, Failure> {
        let warm_up = seconds("warm-up", self.warm_up)?;
        let warm_up = if warm_up.is_zero() { Length::NONE } else { Length::Time(warm_up) };
        let measure = match self.operations {
            Some(operations) => Length::Operations(operations),
            None => Length::Time(some_seconds("seconds", self.seconds)?),
        };
        Ok(RunSpec { warm_up, measure, interval: Duration::from_secs(1) })
    }

    fn params(&self) -> Json {
        json!({
            "rounds": self.rounds,
            "seconds": if self.operations.is_some() { None } else { Some(self.seconds) },
            "operations": self.operations,
            "warm_up": self.warm_up,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Which {
    /// TPC-C
    Tpcc,
    /// Key-value operations, by default lookups
    Ycsb,
    /// Both, one after the other
    Both,
}

const LADDER_EXAMPLES: &str = "Examples:
  millpond bench ladder --warehouses 1 --rows 1000000
  millpond bench ladder --workload tpcc --warehouses 5 --threads 2 --rounds 15
  millpond bench ladder --workload ycsb --rows 5000000 --theta 0.99 --json

Steps: a classic pool (page table, LRU, latches); + swizzling; + lean eviction; + optimistic \
latches, which is the default engine; and the in-memory twin. Ratios are geometric means over the \
rounds, with 95 % intervals.";

#[derive(clap::Args, Debug)]
#[command(after_help = LADDER_EXAMPLES)]
pub(crate) struct LadderArgs {
    /// The workload
    #[arg(long, value_enum, default_value = "both")]
    workload: Which,
    /// Threads that run the workload
    #[arg(long, short, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    #[command(flatten)]
    tpcc: TpccArgs,
    #[command(flatten)]
    ycsb: YcsbArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    rounds: Rounds,
    #[command(flatten)]
    results: ResultArgs,
}

/// Results of several contests.
#[derive(Default)]
struct Standings {
    rows: Vec<Row>,
    lines: Vec<Line>,
    was_stopped: bool,
}

impl Standings {
    fn take(&mut self, workload: &str, rounds: u32, results: &[StepResult]) {
        for result in results {
            self.rows.extend(contest_row(workload, result));
            let speeds = result.rounds.iter().map(|outcome| outcome.throughput_per_s);
            let points = (1..).map(f64::from).zip(speeds).collect();
            let label = format!("{workload}: {}", result.name);
            self.lines.push(Line { label, points, ..Line::default() });
            self.was_stopped |= result.rounds.len() < rounds as usize;
        }
    }

    fn finish(
        self,
        command: &str,
        params: &Json,
        results: &ResultArgs,
        title: &str,
    ) -> Result<(), Failure> {
        let Standings { rows, lines, was_stopped } = self;
        results.draw(|| {
            LinePlot {
                title: title.to_string(),
                note: "Each point is one round; rounds of all steps are interleaved.".to_string(),
                x: "round".to_string(),
                y: "transactions per second".to_string(),
                lines,
                ..LinePlot::default()
            }
            .render()
        })?;
        results.write(command, params, &table(rows))?;
        if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// Runs the steps, with a pool that has room for the rows they add.
fn play(
    mut steps: Vec<Step>,
    rounds: &Rounds,
    live: &mut ProgressLine,
) -> Result<Vec<StepResult>, Failure> {
    let spec = rounds.spec()?;
    for Step { setup, workload, .. } in &mut steps {
        setup.growth = growth(workload, &spec, workload.threads(), rounds.rounds);
    }
    let played = contest(&steps, rounds.rounds, &spec, live);
    Ok(played?)
}

pub(crate) fn ladder(args: &LadderArgs) -> Result<(), Failure> {
    args.results.check()?;
    let setup: Setup = args.engine.setup()?;
    let mut live = ProgressLine::new(args.rounds.quiet);
    let mut standings = Standings::default();
    let mut workloads = Vec::new();
    if args.workload != Which::Ycsb {
        workloads.push(args.tpcc.workload(1, args.threads));
    }
    if args.workload != Which::Tpcc {
        workloads.push(args.ycsb.workload(args.threads)?);
    }
    for workload in &workloads {
        let played = play(bench::ladder(&setup, workload), &args.rounds, &mut live);
        match played {
            Ok(results) => standings.take(workload.name(), args.rounds.rounds, &results),
            Err(_) if interrupt::asked() && !standings.rows.is_empty() => {
                standings.was_stopped = true;
            }
            Err(error) => {
                live.finish();
                return Err(error);
            }
        }
    }
    live.finish();
    let of_workload =
        json!({ "workload": format!("{:?}", args.workload), "threads": args.threads });
    let (tpcc, ycsb) = (args.tpcc.params(1), args.ycsb.params());
    let params = joined([of_workload, tpcc, ycsb, args.rounds.params(), args.engine.params()]);
    standings.finish("bench ladder", &params, &args.results, "From a classic pool to no pool")
}

const AFFINITY_EXAMPLES: &str = "Examples:
  millpond bench affinity
  millpond bench affinity --threads 8 --memory-nodes 2 --rounds 15 --json

Steps: one thread; all threads; + a home warehouse for each; + memory touched beforehand; + the \
pool divided among NUMA nodes (--memory-nodes simulates them where the machine has one).";

#[derive(clap::Args, Debug)]
#[command(after_help = AFFINITY_EXAMPLES)]
pub(crate) struct AffinityArgs {
    /// Threads of all steps but the first; by default, one per core
    #[arg(long, short, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// NUMA nodes of the last step
    #[arg(long, default_value_t = 2, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    memory_nodes: u32,
    #[command(flatten)]
    tpcc: TpccArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    rounds: Rounds,
    #[command(flatten)]
    results: ResultArgs,
}

pub(crate) fn affinity(args: &AffinityArgs) -> Result<(), Failure> {
    args.results.check()?;
    let threads = args.threads.unwrap_or_else(cores);
    let setup: Setup = args.engine.setup()?;
    // One warehouse per thread, unless the user gives another number.
    let workload = args.tpcc.workload(threads, threads);
    let mut live = ProgressLine::new(args.rounds.quiet);
    let steps = bench::affinity(&setup, &workload, threads, args.memory_nodes);
    let played = play(steps, &args.rounds, &mut live);
    live.finish();
    let mut standings = Standings::default();
    standings.take("tpcc", args.rounds.rounds, &played?);
    let own = json!({ "threads": threads, "memory_nodes": args.memory_nodes });
    let tpcc = args.tpcc.params(threads);
    let params = joined([tpcc, args.rounds.params(), args.engine.params(), own]);
    standings.finish("bench affinity", &params, &args.results, "Affinity, touched memory, nodes")
}

const ACID_EXAMPLES: &str = "Examples:
  millpond bench acid --device file:/data/bench --rounds 15
  millpond bench acid --warehouses 2 --threads 2 --durability sync --json

Steps: neither locks nor log, which are the trees and their pool alone; locks; a log; both. The \
flags --log and --locks are set by the steps; --durability is that of the logged ones.";

#[derive(clap::Args, Debug)]
#[command(after_help = ACID_EXAMPLES)]
pub(crate) struct AcidArgs {
    /// Threads that run the workload
    #[arg(long, short, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    #[command(flatten)]
    tpcc: TpccArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    rounds: Rounds,
    #[command(flatten)]
    results: ResultArgs,
}

pub(crate) fn acid(args: &AcidArgs) -> Result<(), Failure> {
    args.results.check()?;
    let setup: Setup = args.engine.setup_of_steps()?;
    let workload = args.tpcc.workload(1, args.threads);
    let mut live = ProgressLine::new(args.rounds.quiet);
    let played = play(bench::acid(&setup, &workload), &args.rounds, &mut live);
    live.finish();
    let mut standings = Standings::default();
    standings.take("tpcc", args.rounds.rounds, &played?);
    let own = json!({ "threads": args.threads });
    let params = joined([args.tpcc.params(1), args.rounds.params(), args.engine.params(), own]);
    standings.finish("bench acid", &params, &args.results, "What locks and log cost")
}
