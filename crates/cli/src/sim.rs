//! `millpond sim`: policies on traces.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use millpond_base::Size;
use millpond_lab::registry::Registry;
use millpond_lab::results::{ResultDir, RunInfo, shell_line};
use millpond_lab::sim::Stalled;
use millpond_lab::sweep::{
    CONTENT, Model, OPTIONS, Observer, Plan, Row, Shard, Sweep, SweepError, Tables, Warmup,
    over_seeds, relative_misses, rows_to_table,
};
use millpond_lab::table::{Table, Value, short_names};
use millpond_policies::config::Spec;
use serde_json::{Value as Json, json};

use crate::curve;
use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output, complain};
use crate::progress::Progress;
use crate::reading::{Reading, check_traces, trace_input};
use crate::units;

const EXAMPLES: &str = "Examples:
  millpond sim trace.txt.gz --policy lru,arc,watt --size 1%,5%,10%
  millpond sim a.parquet b.lis \\
      --policy 'clock(variant=fix)','watt(write_weight=2)' --size 1000
  millpond sim trace.csv --columns page=3,op=5 --policy lru --size 256MiB \\
      --format csv
  millpond sim trace.txt --policy random,watt --size 10% --seed 1,2,3 \\
      --relative-to watt
  millpond sim trace.txt --policy lru,arc,s3-fifo --curve --check
  zcat trace.gz | millpond sim - --policy lru --size 1000
  millpond sim traces/*.parquet -p lru,arc,watt -s 1%,5% --out-dir sweep \\
      --shard 3/8

Progress goes to standard error. Every run leaves a result directory (--results), which \
`millpond report` turns into a page; a rerun with --resume skips the rows that are there.";

#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Trace files; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Policies, separated by commas: lru,'watt(sample=16)'
    #[arg(long, short, required = true, value_name = "POLICIES")]
    policy: Vec<String>,
    /// Cache sizes, separated by commas: frames, bytes (64MiB) or % of the distinct pages
    #[arg(long, short, required_unless_present = "curve", value_delimiter = ',')]
    #[arg(value_name = "SIZES")]
    size: Vec<String>,
    /// Draw the miss-ratio curve in one pass: exact for lru, opt and mru, sampled for others
    #[arg(long, conflicts_with_all = [
        "warmup", "batch", "model", "shard", "tables", "charge_ghosts", "scan_hints",
        "resume", "relative_to", "threads",
    ])]
    curve: bool,
    /// With --curve: also run every point exactly and print the mean absolute error
    #[arg(long, requires = "curve")]
    check: bool,
    /// Seeds of random choices, separated by commas; policies that draw nothing run once. A table
    /// has means over the seeds, and 95 % intervals of the misses
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "SEEDS")]
    seed: Vec<u64>,
    #[command(flatten)]
    output: Output,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    reading: Reading,
    /// References that are not counted: a number, or % of the trace
    #[arg(long, default_value = "0", value_name = "N|%")]
    warmup: String,
    /// Cut the counted part of each trace into N blocks with a row each, which `millpond compare`
    /// can use as repetitions
    #[arg(long, default_value_t = 0, value_name = "N", conflicts_with = "curve")]
    blocks: u32,
    /// The cache: a buffer pool, or a second tier that counts read hits or reads and writes
    #[arg(long, value_enum, default_value = "pool")]
    model: ModelArg,
    /// Shrink the cache by this many bytes for each ghost of an out queue
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    charge_ghosts: u64,
    /// Frames to evict at a time: 1 is on demand
    #[arg(long, default_value_t = 1, value_name = "FRAMES")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// First evict frames that only marked scans have referenced, as live pools do
    #[arg(long)]
    scan_hints: bool,
    /// Add the misses relative to those of this policy (watt fig. 1)
    #[arg(long, value_name = "POLICY")]
    relative_to: Option<String>,
    /// Representation of page tables and ghosts: arrays over renumbered pages, or hash tables
    #[arg(long, value_enum, default_value = "auto")]
    tables: TablesArg,
    /// Run only part I of N
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Write a Parquet file for each trace and policy into this folder, and run only units without
    /// a file: with --shard, as a job array does. `report` and `compare` read the folder
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "curve", "resume", "relative_to", "tables", "results", "no_results", "format", "json",
        "out",
    ])]
    out_dir: Option<PathBuf>,
    /// Threads; 0 is one per core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Folder for result directories
    #[arg(long, default_value = "results", value_name = "DIR")]
    results: PathBuf,
    /// Write no result directory
    #[arg(long)]
    no_results: bool,
    /// Take rows of an earlier run with the same parameters, and run only the missing ones
    #[arg(long)]
    resume: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModelArg {
    /// A buffer pool
    Pool,
    /// A second tier: read hits, bypass allowed (li 3)
    Read,
    /// A second tier: reads and writes, every page placed (li 5)
    Rw,
}

impl ModelArg {
    /// Returns the plan's name for the model.
    pub(crate) fn model(self) -> Model {
        match self {
            ModelArg::Pool => Model::Pool,
            ModelArg::Read => Model::Read,
            ModelArg::Rw => Model::Rw,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TablesArg {
    /// Dense, except for a single run over standard input
    Auto,
    /// Arrays
    Dense,
    /// Hash tables
    Hashed,
}

fn plan_of(args: &Args) -> Result<Plan, Failure> {
    let usage = Failure::Usage;
    let mut policies = Vec::new();
    for list in &args.policy {
        policies.extend(Spec::parse_list(list)?);
    }
    if let Some(reference) = &args.relative_to {
        let reference = Spec::parse(reference)?;
        if !policies.contains(&reference) {
            policies.push(reference);
        }
    }
    let mut sizes = Vec::new();
    for size in &args.size {
        sizes.push(size.parse::<Size>().map_err(|e| usage(e.to_string()))?);
    }
    let mut plan = Plan::new(policies, sizes);
    let options = args.reading.options()?;
    plan.traces = args.traces.iter().map(|t| trace_input(t, &options)).collect();
    if let Some(once) = plan.traces.iter().find(|t| !t.repeatable) {
        let name = if once.name == "-" { "standard input" } else { &once.name };
        if args.resume {
            return Err(usage(format!(
                "--resume cannot tell whether {name} is the same trace again: store it in a file"
            )));
        }
        if args.curve && args.seed.len() > 1 {
            return Err(usage(format!(
                "{name} can be read only once, and the curves of {} seeds need a pass for each: \
                 store it in a file",
                args.seed.len()
            )));
        }
    }
    plan.seeds = args.seed.clone();
    plan.page_size = args.reading.page_bytes()?;
    plan.warmup = args.warmup.parse::<Warmup>().map_err(usage)?;
    plan.blocks = args.blocks;
    plan.batch = args.batch;
    plan.tables = match args.tables {
        TablesArg::Auto => Tables::Auto,
        TablesArg::Dense => Tables::Dense,
        TablesArg::Hashed => Tables::Hashed,
    };
    plan.model = args.model.model();
    plan.charge_ghosts = args.charge_ghosts;
    plan.scan_hints = args.scan_hints;
    plan.shard = args.shard.as_deref().map(str::parse::<Shard>).transpose().map_err(usage)?;
    plan.threads = args.threads;
    Ok(plan)
}

fn params_of(args: &Args, plan: &Plan) -> Json {
    let texts = |items: Vec<String>| Json::from(items);
    json!({
        "traces": texts(plan.traces.iter().map(|t| t.name.clone()).collect()),
        "policies": texts(plan.policies.iter().map(Spec::to_string).collect()),
        "sizes": texts(plan.sizes.iter().map(Size::to_string).collect()),
        "seeds": plan.seeds,
        "page_size": plan.page_size,
        "warmup": args.warmup,
        "blocks": plan.blocks,
        "batch": plan.batch,
        "model": plan.model.to_string(),
        "charge_ghosts": plan.charge_ghosts,
        "scan_hints": plan.scan_hints,
        "shard": args.shard,
        "relative_to": args.relative_to,
    })
}

/// Sends each row on as it arrives: to the progress bar, standard output and the directory.
struct Collector<'a> {
    progress: Progress,
    rows: Vec<Row>,
    stalled: Vec<String>,
    /// Set if rows go to standard output at once, as CSV.
    streaming: bool,
    earlier: Option<Table>,
    dir: Option<&'a ResultDir>,
    info: &'a RunInfo,
    written: Instant,
}

impl Collector<'_> {
    fn table(&self) -> Table {
        let mut table = rows_to_table(&self.rows);
        if let Some(earlier) = &self.earlier {
            let mut all = earlier.clone();
            all.append(table);
            table = all;
        }
        table
    }

    fn store(&mut self, complete: bool) -> Result<(), Failure> {
        if let Some(dir) = self.dir {
            dir.write(self.info, &self.table(), complete)?;
        }
        self.written = Instant::now();
        Ok(())
    }
}

impl Observer for Collector<'_> {
    fn stop(&self) -> bool {
        interrupt::asked()
    }

    fn progress(&mut self, what: &str, share: Option<f64>, simulated: u64) {
        self.progress.show(what, share, simulated, "references");
    }

    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        if self.streaming {
            let table = rows_to_table(std::slice::from_ref(&row));
            let mut out = std::io::stdout().lock();
            let written = match self.rows.is_empty() {
                true => table.write_csv(&mut out),
                false => Table::write_csv_row(&table.rows[0], &mut out),
            };
            written.map_err(SweepError::Output)?;
        }
        self.rows.push(row);
        Ok(())
    }

    fn pause(&mut self) -> Result<(), SweepError> {
        if self.written.elapsed().as_secs() >= 2 {
            self.store(false).map_err(|e| SweepError::Plan(e.to_string()))?;
        }
        Ok(())
    }

    fn stalled(&mut self, stalled: &Stalled) {
        self.progress.say(&format!("millpond: {stalled}"));
        self.stalled.push(stalled.to_string());
    }

    fn note(&mut self, trace: &str, note: &str) {
        self.progress.say(&format!("{trace}: {note}"));
    }

    fn done(&mut self, trace: &str, policy: &str, params: &str, size: u32, seed: u64) -> bool {
        let Some(earlier) = &self.earlier else { return false };
        let size = Value::from(size);
        let wanted = [
            ("trace", trace.into()),
            ("policy", policy.into()),
            ("params", params.into()),
            ("size", size),
            ("seed", seed.into()),
        ];
        (0..earlier.rows.len()).any(|r| {
            wanted.iter().all(|(name, value): &(_, Value)| earlier.get(r, name) == Some(value))
        })
    }
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let mut args = args.clone();
    if args.json {
        args.output.format = Form::Json;
    }
    simulate(&args, registry)
}

fn simulate(args: &Args, registry: &Registry) -> Result<(), Failure> {
    args.output.check(&args.traces)?;
    let plan = plan_of(args)?;
    if !args.curve {
        Sweep::new(&plan, registry)?;
    }
    check_traces(&args.traces, &args.reading.options()?)?;
    if let Some(folder) = &args.out_dir {
        let traces = args.reading.files(&args.traces)?;
        let quiet = args.quiet;
        return units::run(&units::Request {
            registry,
            plan: &plan,
            traces: &traces,
            folder,
            quiet,
        });
    }
    let info = RunInfo {
        command: "sim".to_string(),
        command_line: shell_line(
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()),
        ),
        params: params_of(args, &plan),
    };
    let dir = result_dir(args, &plan)?;
    if args.curve {
        return curve::run(&curve::Request {
            registry,
            plan: &plan,
            check: args.check,
            quiet: args.quiet,
            output: &args.output,
            dir: dir.as_ref(),
            info: &info,
        });
    }
    let sweep = Sweep::new(&plan, registry)?;
    let earlier = match &dir {
        Some(dir) if args.resume => dir.rows().ok().filter(|t| !t.rows.is_empty()),
        _ => None,
    };
    let mut collector = Collector {
        progress: Progress::new(args.quiet),
        rows: Vec::new(),
        stalled: Vec::new(),
        streaming: args.output.format == Form::Csv
            && args.output.out.is_none()
            && args.relative_to.is_none()
            && earlier.is_none(),
        earlier,
        dir: dir.as_ref(),
        info: &info,
        written: Instant::now(),
    };
    let outcome = sweep.run(&mut collector);
    collector.progress.finish();
    let complete = outcome.is_ok() && !interrupt::asked();
    let stored = collector.store(complete);
    finish(args, &collector, outcome.map_err(Failure::from))?;
    stored?;
    match collector.stalled.len() {
        0 if interrupt::asked() => Err(Failure::Interrupted),
        0 => Ok(()),
        n => Err(Failure::Partly(format!("{n} of {} runs found no victim", plan.cells(registry)))),
    }
}

fn result_dir(args: &Args, plan: &Plan) -> Result<Option<ResultDir>, Failure> {
    if args.no_results {
        return Ok(None);
    }
    let name = if args.curve { "curve" } else { "sim" };
    match ResultDir::create(&args.results, name, &plan.hash()) {
        Ok(dir) => Ok(Some(dir)),
        // The default folder may be read-only, and the user did not ask for it.
        Err(error) if args.results == Path::new("results") && !args.resume => {
            complain(&format!("millpond: no result directory: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the rows that were not streamed, even after a failure: finished rows are good.
fn finish(
    args: &Args,
    collector: &Collector<'_>,
    outcome: Result<(), Failure>,
) -> Result<(), Failure> {
    if !collector.streaming && (outcome.is_ok() || !collector.rows.is_empty()) {
        let mut table = collector.table();
        if let Some(reference) = &args.relative_to {
            let reference = Spec::parse(reference)?;
            relative_misses(&mut table, &reference.to_string());
        }
        if args.output.format == Form::Table {
            table = for_people(&over_seeds(&table));
        }
        let params = &collector.info.params;
        match &outcome {
            Ok(()) => args.output.write("sim", params, &table)?,
            Err(_) => args.output.write_part("sim", params, &table)?,
        }
    }
    outcome
}

/// Keeps the columns up to `misses` and later ones with content. Shortens trace names as far as
/// they stay distinct.
fn for_people(table: &Table) -> Table {
    let said = table.clone().without(CONTENT).without(OPTIONS);
    let mut shown = said.without_idle_columns(8);
    name_traces(&mut shown);
    shown
}

/// Replaces the paths in the first column by the shortest names that stay distinct.
pub(crate) fn name_traces(table: &mut Table) {
    let paths: Vec<String> = table.rows.iter().map(|row| row[0].to_string()).collect();
    let names = short_names(&paths);
    for (row, name) in table.rows.iter_mut().zip(names) {
        row[0] = Value::Text(name);
    }
}
