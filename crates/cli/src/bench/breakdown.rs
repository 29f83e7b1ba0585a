//! `millpond breakdown`: a workload's CPU time, component by component.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use millpond_bench::experiments::breakdown::{Sampled, sample};
use millpond_bench::experiments::table::{Row, table};
use millpond_bench::run::client::Workload;
use millpond_lab::breakdowns::COMMAND;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot};
use millpond_lab::results::build_id;
use millpond_lab::table::Table;
use millpond_profile::{Breakdown, Components, HotFunction, Options};
use millpond_workload::inserts;
use millpond_workload::tpcc;
use millpond_workload::tpcc::{Mix, Scale};
use millpond_workload::ycsb;
use serde_json::{Value as Json, json};

use super::breakdown_compare as compare;
use super::engine::{EngineArgs, growth, joined, run_spec};
use super::progress_line::ProgressLine;
use crate::error::Failure;
use crate::output::{Form, Output, print, write_whole};

const EXAMPLES: &str = "Examples:
  millpond breakdown tpcc                        logging, locking, B-tree, …
  millpond breakdown ycsb-read --threads 1,2     with one thread, and with two
  millpond breakdown tpcc --log off --locks off  what is left without them
  millpond breakdown bulk-insert                 rows in one transaction
  millpond breakdown batch-insert --durability sync
        batches of rows, each durable by itself
  millpond breakdown tpcc --html bars.html --speedscope tpcc.json
  millpond breakdown tpcc --folded tpcc.folded   for flame-graph programs
  millpond breakdown tpcc --json --out before.json
        to be compared with another build's:
  millpond breakdown compare before.json after.json

A component's latching has a row of its own. Time in the kernel and in the allocator is its \
caller's. `useful work` is what a transaction does with its rows, `workload driver` what draws \
keys and times it, `program` what belongs to neither. The process samples itself: \
kernel.perf_event_paranoid must be 2 at most, 1 for the kernel's time.";

/// Workload of a breakdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum What {
    /// TPC-C
    Tpcc,
    /// Lookups, in gilbert's shape: 10-byte keys, ten fields of 100 bytes, Zipf 0.99
    YcsbRead,
    /// Updates of the same rows
    YcsbUpdate,
    /// Inserts in random order, all inserts of a thread in one transaction: 24-byte keys, 150-byte
    /// values
    BulkInsert,
    /// Inserts as in bulk-insert, in transactions of --batch-rows rows
    BatchInsert,
}

/// Transactions of TPC-C that run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum MixArg {
    /// The mix of the specification
    Standard,
    /// Payment instead of Delivery, as Gilbert ran it
    Gilbert,
}

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The workload
    #[arg(value_enum, required = true)]
    what: Option<What>,
    /// Number of threads that run the workload; several numbers give a run each
    #[arg(long, short, value_delimiter = ',', default_value = "1", value_name = "N,…")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Seconds of sampling
    #[arg(long, short, default_value = "10", value_name = "S")]
    seconds: f64,
    /// Seconds of warm-up before the sampling
    #[arg(long, default_value = "1", value_name = "S")]
    warm_up: f64,
    /// Samples per second of a thread's CPU time
    #[arg(long, default_value_t = Options::default().per_second, value_name = "HZ")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20_000))]
    frequency: u32,
    /// Warehouses of TPC-C
    #[arg(long, short, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: u32,
    /// Transaction mix of TPC-C
    #[arg(long, value_enum, default_value = "standard")]
    mix: MixArg,
    /// Rows of YCSB, and rows that are loaded before others are inserted
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Rows per transaction of batch-insert
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    batch_rows: u64,
    /// Use a hundredth of the rows, for trying things out
    #[arg(long)]
    tiny: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    output: Output,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Draw the components as bars into this HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// List the N functions of each component that took the most time
    #[arg(long, default_value_t = 0, value_name = "N")]
    functions: usize,
    /// Write call stacks for flame-graph programs. With several numbers of threads, this file and
    /// those of the next two options are of the last run
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Write the profile for speedscope.app
    #[arg(long, value_name = "FILE")]
    speedscope: Option<PathBuf>,
    /// Write the profile for pprof
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// No progress line
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Compare two results: CPU time per transaction before and after a change
    Compare(compare::Args),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match (&args.command, args.what) {
        (Some(Command::Compare(args)), _) => compare::run(args),
        (None, Some(what)) => measure(&Job { what, args }),
        (None, None) => Err(Failure::Usage("say what runs: breakdown tpcc".to_string())),
    }
}

/// One workload with its options, ready to run.
struct Job<'a> {
    what: What,
    args: &'a Args,
}

impl Job<'_> {
    fn rows(&self) -> u64 {
        tiny_rows(self.args.rows, self.args.tiny)
    }

    fn workload(&self, threads: u32) -> Workload {
        let rows = self.rows();
        match self.what {
            What::Tpcc => {
                let mix = match self.args.mix {
                    MixArg::Standard => Mix::STANDARD,
                    MixArg::Gilbert => Mix::GILBERT,
                };
                tpcc_of(self.args.warehouses, self.args.tiny, mix, threads)
            }
            What::YcsbRead => ycsb_of(rows, 0, threads),
            What::YcsbUpdate => ycsb_of(rows, 100, threads),
            What::BulkInsert => inserts_of(rows, u64::MAX, threads),
            What::BatchInsert => inserts_of(rows, self.args.batch_rows, threads),
        }
    }

    fn name(&self) -> &'static str {
        match self.what {
            What::Tpcc => "tpcc",
            What::YcsbRead => "ycsb-read",
            What::YcsbUpdate => "ycsb-update",
            What::BulkInsert => "bulk-insert",
            What::BatchInsert => "batch-insert",
        }
    }

    /// Describes the data size and the transaction mix. Only results that agree in both are
    /// compared.
    fn data(&self) -> String {
        let rows = self.rows();
        match self.what {
            What::Tpcc => {
                let scale = if self.args.tiny { "tiny " } else { "" };
                format!("{scale}warehouses: {}, {} mix", self.args.warehouses, self.mix())
            }
            What::YcsbRead | What::YcsbUpdate => format!("{rows} rows"),
            What::BulkInsert => format!("beside {rows} rows"),
            What::BatchInsert => format!("batches of {} beside {rows} rows", self.args.batch_rows),
        }
    }

    fn mix(&self) -> String {
        format!("{:?}", self.args.mix).to_lowercase()
    }

    /// Returns the unit of the counts.
    fn unit(&self) -> &'static str {
        match self.what {
            What::BulkInsert | What::BatchInsert => "rows",
            _ => "transactions",
        }
    }

    fn params(&self, engine: &EngineArgs) -> Json {
        let own = json!({
            "build": build_id(),
            "workload": self.name(),
            "data": self.data(),
            "seconds": self.args.seconds,
            "warm_up": self.args.warm_up,
            "frequency": self.args.frequency,
            "warehouses": self.args.warehouses,
            "mix": self.mix(),
            "rows": self.args.rows,
            "batch_rows": self.args.batch_rows,
            "tiny": self.args.tiny,
        });
        joined([own, engine.params()])
    }
}

/// Returns `rows`, or a hundredth of them if `tiny` is set.
pub(super) fn tiny_rows(rows: u64, tiny: bool) -> u64 {
    if tiny { (rows / 100).max(1) } else { rows }
}

/// Builds the TPC-C workload.
pub(super) fn tpcc_of(warehouses: u32, tiny: bool, mix: Mix, threads: u32) -> Workload {
    let scale = if tiny { Scale::tiny(warehouses) } else { Scale::full(warehouses) };
    Workload::Tpcc(tpcc::Config { mix, ..tpcc::Config::standard(scale, threads) })
}

/// Builds a key-value workload in Gilbert's shape: lookups, and `updates` per cent of updates.
pub(super) fn ycsb_of(rows: u64, updates: u32, threads: u32) -> Workload {
    Workload::Ycsb(ycsb::Config { threads, ..ycsb::Config::gilbert(rows, updates) })
}

fn inserts_of(rows: u64, rows_per_transaction: u64, threads: u32) -> Workload {
    Workload::Inserts(inserts::Config { rows, rows_per_transaction, threads })
}

/// One run and its breakdown.
struct Part {
    threads: u32,
    sampled: Sampled,
    breakdown: Breakdown,
    /// Hottest functions of each component; empty unless the user asked for them.
    functions: Vec<HotFunction>,
}

fn measure(job: &Job<'_>) -> Result<(), Failure> {
    let args = job.args;
    let form = if args.json { Form::Json } else { args.output.format };
    let output = Output { format: form, out: args.output.out.clone(), wide: args.output.wide };
    output.check([])?;
    let engine = args.engine.clone().with_transactions();
    let spec = run_spec(args.warm_up, args.seconds)?;
    let options = Options { per_second: args.frequency, ..Options::default() };
    let components = Components::shipped().map_err(millpond_bench::error::BenchError::from)?;
    let mut live = ProgressLine::new(args.quiet);
    let mut parts = Vec::new();
    for threads in &args.threads {
        let workload = job.workload(*threads);
        let mut setup = engine.setup()?;
        setup.growth = growth(&workload, &spec, *threads, 2);
        let sampled = sample(&setup, &workload, &spec, &options, &mut live);
        if sampled.is_err() {
            live.finish();
        }
        let sampled = sampled?;
        let breakdown = sampled.profile.breakdown(&components);
        let was_stopped = sampled.was_stopped();
        let functions = match args.functions {
            0 => Vec::new(),
            _ => sampled.profile.functions(&components),
        };
        parts.push(Part { threads: *threads, sampled, breakdown, functions });
        if was_stopped {
            break;
        }
    }
    live.finish();
    if output.format == Form::Table && output.out.is_none() {
        parts.iter().try_for_each(|part| print(&text(job, part)))?;
    } else {
        let rows = parts.iter().flat_map(|part| rows(job, part));
        output.write(COMMAND, &job.params(&engine), &table(rows))?;
    }
    write_files(job, &parts)?;
    if parts.iter().any(|part| part.sampled.was_stopped()) {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

fn text(job: &Job<'_>, part: &Part) -> String {
    let Part { threads, sampled, breakdown, .. } = part;
    let plural = if *threads == 1 { "" } else { "s" };
    let (outcome, info) = (&sampled.outcome, &sampled.info);
    let switch = |on| if on { "on" } else { "off" };
    format!(
        "{} with {threads} thread{plural}: {} {} {}, log {}, locks {}\n\
         {:.0} {}/s, {:.2} µs of CPU time each; {:.1} % fewer with the profiler\n\n\
         {breakdown}{}\n",
        job.name(),
        info.policy,
        info.translation,
        info.latching,
        switch(info.log),
        switch(info.locks),
        outcome.throughput_per_s,
        job.unit(),
        sampled.per_transaction_us(breakdown.cpu_s),
        sampled.overhead() * 100.0,
        functions(job.args, part),
    )
}

/// Lists the functions of each component that took most, up to the requested number.
fn functions(args: &Args, part: &Part) -> String {
    if args.functions == 0 {
        return String::new();
    }
    let mut table = Table::new(["component", "%", "function", "file"]);
    for share in &part.breakdown.shares {
        let own = part.functions.iter().filter(|it| it.component == share.component);
        for it in own.take(args.functions) {
            let percent = it.samples as f64 * 100.0 / part.breakdown.samples.max(1) as f64;
            let names = [&it.component, &it.function, &it.file];
            let [component, function, file] = names.map(|name| name.as_str().into());
            table.rows.push(vec![component, percent.into(), function, file]);
        }
    }
    format!("\n{}", table.to_text())
}

fn rows(job: &Job<'_>, part: &Part) -> Vec<Row> {
    let Part { threads, sampled, breakdown, .. } = part;
    let row = |share: &millpond_profile::Share| {
        Row::default()
            .with("workload", job.name())
            .with("threads", *threads)
            .with("component", share.component.as_str())
            .with("share", share.share)
            .with("share_low", share.share_low)
            .with("share_high", share.share_high)
            .with("cpu_us_per_tx", sampled.per_transaction_us(share.cpu_s))
            .with("cpu_s", share.cpu_s)
            .with("samples", share.samples)
            .with("kernel_samples", share.kernel_samples)
            .with("throughput_per_s", sampled.outcome.throughput_per_s)
            .with("unassigned", breakdown.unassigned)
            .with("lost", breakdown.lost)
            .with("overhead", sampled.overhead())
            .with("profiler_s", breakdown.profiler_s)
            .with("has_kernel", u64::from(breakdown.has_kernel))
    };
    breakdown.shares.iter().map(row).collect()
}

fn bars(job: &Job<'_>, parts: &[Part]) -> BarPlot {
    let bars = parts.iter().flat_map(|part| {
        let us = |share| part.sampled.per_transaction_us(share * part.breakdown.cpu_s);
        part.breakdown.shares.iter().map(move |share| Bar {
            group: share.component.clone(),
            series: format!("{} threads", part.threads),
            value: Interval {
                mean: us(share.share),
                low: us(share.share_low),
                high: us(share.share_high),
                runs: 0,
            },
        })
    });
    BarPlot {
        title: format!("{}: CPU time by component", job.name()),
        note: "With 95 % intervals from the number of samples.".to_string(),
        y: format!("µs of CPU time per {}", job.unit().trim_end_matches('s')),
        bars: bars.collect(),
    }
}

fn write_files(job: &Job<'_>, parts: &[Part]) -> Result<(), Failure> {
    let write = |path: &Path, bytes: &[u8]| write_whole(path, |out| Ok(out.write_all(bytes)?));
    if let Some(path) = &job.args.html {
        write(path, bars(job, parts).render().as_bytes())?;
    }
    let Some(Part { sampled, .. }) = parts.last() else { return Ok(()) };
    if let Some(path) = &job.args.folded {
        write(path, sampled.profile.folded().as_bytes())?;
    }
    if let Some(path) = &job.args.speedscope {
        write(path, sampled.profile.speedscope(job.name()).as_bytes())?;
    }
    if let Some(path) = &job.args.pprof {
        write(path, &sampled.profile.pprof())?;
    }
    Ok(())
}
