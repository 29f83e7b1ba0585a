//! `millpond bench phases`: one store through its life, from a load in one transaction to a file
//! that shrinks, in the pattern of redb's benchmark.

use std::path::PathBuf;

use millpond_base::Seed;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::phases::{Measured, Phase, Plan, phases};
use millpond_bench::experiments::table::{Row, table};
use serde_json::json;

use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use crate::error::Failure;
use crate::store::compression::CompressionArg;

const EXAMPLES: &str = "Examples:
  millpond bench phases --folder /data
  millpond bench phases --rows 200000 --threads 1,2
  millpond bench phases --memory 256MiB --phases load,read,remove,shrink,scan
  millpond bench phases --phases load --log-gap 8GiB
  millpond bench phases --phases sorted,pop,extract-if,retain --memory 2GiB
  millpond bench phases --phases batch,async-batch --batch-rows 100 \\
      --batches 1000 --json

Phases, in their order, whichever are chosen:
  load          all rows in one transaction, durable when it is committed
  single        rows by themselves, each durable before the next one
  batch         batches of rows, each durable before the next one
  async-single  rows by themselves, durable a moment after their commit
  async-batch   batches of rows, the same
  len           the number of rows
  read          rows at random, with each number of threads
  range         ranges that begin at random, the same
  remove        the older half of the rows, in one transaction
  shrink        leaves packed, and room in the file given back
  scan          the store closed and opened, and all its rows read in order
  sorted        as many rows again in another tree, in order, in one transaction
  pop           a tenth of those, from both ends in turns, a call each
  extract-if    about half of the rest, by `extract_if` of a transaction
  retain        about half of the rest, by `retain` of a transaction

Keys have 24 bytes and come in random order, values have 150 and follow from their keys: each \
one that is read is checked, and so is the number of rows. p50 and p99 are of a commit in phases \
that write, of one read in 32 in phases that read. The store is removed at the end.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Rows to load
    #[arg(long, default_value_t = Plan::published().rows, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    rows: u64,
    /// Phases, separated by commas; default: all. Without `load` the rows are inserted in
    /// transactions of 1000, which is not measured
    #[arg(long, value_delimiter = ',', value_name = "PHASES")]
    phases: Vec<Phase>,
    /// Numbers of reading threads, separated by commas
    #[arg(long, short, value_delimiter = ',', default_value = "1,4,8,16,32", value_name = "N,…")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Rounds of the repeatable phases, which commit small transactions or read
    #[arg(long, default_value_t = Plan::published().rounds, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Transactions of `single` in each round
    #[arg(long, default_value_t = Plan::published().singles, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    singles: u64,
    /// Transactions of `batch` and of `async-batch` in each round
    #[arg(long, default_value_t = Plan::published().batches, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    batches: u64,
    /// Rows per transaction of `batch` and of `async-batch`
    #[arg(long, default_value_t = Plan::published().batch_rows, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    batch_rows: u64,
    /// Transactions of `async-single` in each round
    #[arg(long, default_value_t = Plan::published().async_singles, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    async_singles: u64,
    /// Rows that `read` looks up in each round, over all threads
    #[arg(long, default_value_t = Plan::published().reads, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    reads: u64,
    /// Ranges that `range` reads in each round, over all threads
    #[arg(long, default_value_t = Plan::published().ranges, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    ranges: u64,
    /// Rows per range
    #[arg(long, default_value_t = Plan::published().range_rows, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    range_rows: u64,
    /// Memory of the store; default: a quarter of the memory that the process may use
    #[arg(long, value_name = "SIZE", value_parser = crate::store::size_of)]
    memory: Option<u64>,
    /// Compression of pages
    #[arg(long, value_enum, default_value = "none", value_name = "HOW")]
    compression: CompressionArg,
    /// Approximate amount of log that a recovery may have to read; checkpoints write pages to keep
    /// to it
    #[arg(long, value_name = "SIZE", value_parser = crate::store::size_of)]
    log_gap: Option<u64>,
    /// Folder in which the store is created and later removed
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Seed of all rows and of the rows to read
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn plan(&self) -> Plan {
        let all = self.phases.is_empty();
        Plan {
            phases: if all { Phase::ALL.to_vec() } else { self.phases.clone() },
            rows: self.rows,
            singles: self.singles,
            batches: self.batches,
            batch_rows: self.batch_rows,
            async_singles: self.async_singles,
            reads: self.reads,
            ranges: self.ranges,
            range_rows: self.range_rows,
            threads: self.threads.clone(),
            rounds: self.rounds,
            memory: self.memory,
            compression: self.compression.into(),
            log_gap: self.log_gap,
            seed: Seed(self.seed),
        }
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn row(of: &Measured) -> Row {
    let per_row = |amount: u64| of.per_row(amount as f64);
    // A phase that times no single operation has no latency.
    let latency = |quantile| (!of.latency.is_empty()).then(|| of.latency_us(quantile));
    Row::new(of.phase.name(), "pool", of.threads)
        .with_interval("rows_per_s", &of.rows_per_s)
        .with("tx_per_s", of.per_s())
        .with("p50_us", latency(0.50))
        .with("p99_us", latency(0.99))
        .with("cpu_us_per_row", of.per_row(of.cpu_s * 1e6))
        .with("disk_mib", mib(of.disk))
        .with("peak_mib", of.peak.map(mib))
        .with("disk_before_mib", mib(of.disk_before))
        .with("log_bytes_per_row", per_row(of.stats.log_bytes))
        .with("log_image_bytes_per_row", per_row(of.stats.log_image_bytes))
        .with("checkpoints", of.stats.checkpoints)
        .with("log_syncs", of.stats.log_syncs)
        .with("written_bytes_per_row", per_row(of.stats.bytes_written + of.stats.log_bytes_written))
        .with("reads_per_row", per_row(of.stats.reads))
        .with("rows", of.rows)
        .with("transactions", of.transactions)
        .with("rounds", of.rounds)
        .with("seconds", of.seconds)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let plan = args.plan();
    let mut live = ProgressLine::new(args.quiet);
    let mut measured = Vec::new();
    let ended = phases(&args.folder, &plan, &mut live, &mut measured);
    live.finish();
    let params = json!({
        "rows": plan.rows,
        "phases": plan.phases.iter().map(|phase| phase.name()).collect::<Vec<_>>(),
        "threads": plan.threads,
        "rounds": plan.rounds,
        "singles": plan.singles,
        "batches": plan.batches,
        "batch_rows": plan.batch_rows,
        "async_singles": plan.async_singles,
        "reads": plan.reads,
        "ranges": plan.ranges,
        "range_rows": plan.range_rows,
        "memory": plan.memory,
        "compression": args.compression.name(),
        "log_gap": plan.log_gap,
        "folder": args.folder.display().to_string(),
        "seed": args.seed,
    });
    // Finished measurements are worth printing even if a later phase failed.
    if ended.is_ok() || !measured.is_empty() {
        let rows = measured.iter().map(row);
        args.results.write("bench phases", &params, &table(rows))?;
    }
    match ended {
        Err(BenchError::Stopped) => Err(Failure::Interrupted),
        other => Ok(other?),
    }
}
