//! `millpond-compare`: the same drivers over Millpond and over what users would pick instead.
//!
//! Flags and printing; what is run is in the library, and `docs/compare.md` explains it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use millpond_compare::larger::{COMMAND, Order};
use millpond_compare::run::Plan;
use millpond_compare::workload::{Data, Workload};
use millpond_compare::{plot, report, roster};
use millpond_lab::results::machine;
use millpond_workload::ycsb::{Shape, UpdateStyle};
use serde_json::json;

/// Runs the same workloads over Millpond and other embedded engines, interleaved, and reports by
/// how much they differ.
#[derive(Parser, Debug)]
#[command(name = "millpond-compare", version, max_term_width = 100)]
struct Args {
    /// Engines, comma-separated; the others are compared with the first [default: all of this
    /// build].
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Workloads, comma-separated [default: all].
    #[arg(long, value_delimiter = ',', value_enum)]
    workloads: Vec<Workload>,
    /// Numbers of threads, comma-separated; loads have one.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<u32>,
    /// The same for `commits`, whose commits are durable.
    #[arg(long, value_delimiter = ',', default_value = "1,2,16")]
    commit_threads: Vec<u32>,
    /// Rows.
    #[arg(long, default_value_t = 5_000_000)]
    rows: u64,
    /// Bytes of a key: 8 (in order) or 10 (scattered).
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=10))]
    key_size: u32,
    /// Bytes of a value, at least 8.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(8..))]
    value_size: u32,
    /// Whether updates replace the whole value unread, or change it in place.
    #[arg(long, default_value = "put", value_parser = ["put", "in-place"])]
    update: String,
    /// Warehouses of TPC-C.
    #[arg(long, default_value_t = 1)]
    warehouses: u32,
    /// Rounds, each of which gives one pair for every ratio.
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Rounds of the loads, which take longest [default: a third of the rounds].
    #[arg(long)]
    load_rounds: Option<u32>,
    /// Seconds of a slice (at least 3 where data is larger than memory).
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Seconds of warming up before a slice.
    #[arg(long, default_value_t = 0.2)]
    warm: f64,
    /// The same where data is larger than memory, and the cache begins empty.
    #[arg(long, default_value_t = 5.0)]
    warm_larger: f64,
    /// MiB of every engine's cache [default: three times the rows' bytes, at least 512 MiB].
    #[arg(long)]
    cache: Option<u64>,
    /// MiB of it where data is larger than memory [default: a fifth of the rows' bytes].
    #[arg(long)]
    cache_larger: Option<u64>,
    /// A memory cgroup (version 1) to make groups in where data is larger than memory. Without
    /// one, engines that lean on the kernel's page cache have all of the machine's memory.
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// MiB that an engine may use in that cgroup [default: 1.5 times its cache].
    #[arg(long, requires = "cgroup")]
    cgroup_limit: Option<u64>,
    /// Where to put the stores: a folder on the disk to be measured, not in memory.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Seed of the keys and their order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints one object of JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Draws the result into this file.
    #[arg(long)]
    plot: Option<PathBuf>,
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    let field_len = args.value_size;
    let shape = Shape { scattered_keys: args.key_size > 8, fields: 1, field_len };
    let update = match args.update.as_str() {
        "put" => UpdateStyle::Put,
        _ => UpdateStyle::InPlace,
    };
    let data = Data { rows: args.rows, shape, update };
    let raw = data.raw_bytes();
    let engines = match args.engines.is_empty() {
        true => roster::names().iter().map(|name| name.to_string()).collect(),
        false => args.engines.clone(),
    };
    let workloads = if args.workloads.is_empty() { &Workload::ALL[..] } else { &args.workloads };
    anyhow::ensure!(args.rows > 0 && args.rounds > 0, "at least one row and one round");
    let mut threads = args.threads.iter().chain(&args.commit_threads);
    anyhow::ensure!(threads.all(|n| (1..=1024).contains(n)), "1 to 1024 threads");
    let cache = args.cache.map_or((raw * 3).max(512 << 20), |mib| mib << 20);
    let cache_larger = args.cache_larger.map_or(raw / 5, |mib| mib << 20);
    let limit = args.cgroup_limit.map_or(cache_larger * 3 / 2, |mib| mib << 20);
    Ok(Plan {
        engines,
        workloads: workloads.to_vec(),
        threads: args.threads.clone(),
        commit_threads: args.commit_threads.clone(),
        data,
        warehouses: args.warehouses,
        rounds: args.rounds,
        load_rounds: args.load_rounds.unwrap_or(args.rounds.div_ceil(3)),
        seconds: args.seconds,
        warm_s: args.warm,
        warm_larger_s: args.warm_larger,
        cache,
        cache_larger,
        cgroup: args.cgroup.clone().map(|path| (path, limit)),
        seed: args.seed,
    })
}

/// One line about the machine, as busy as it is: a figure without it says little.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn compare(args: &Args) -> anyhow::Result<()> {
    let plan = plan(args)?;
    let folder = tempfile::Builder::new().prefix("millpond-compare-").tempdir_in(&args.dir);
    let folder = folder.with_context(|| format!("{}", args.dir.display()))?;
    let (before, start) = (load_average(), std::time::Instant::now());
    let samples = plan.run(folder.path(), &mut |line| {
        eprintln!("{:>6.0} s  {line}", start.elapsed().as_secs_f64());
    })?;
    let rows = report::rows(&plan, &samples);
    let table = report::table(&plan, &rows);
    let after = load_average();
    let note = format!(
        "{} rows of {} + {} bytes; {} rounds of {} s; caches of {} MiB, larger than memory {} \
         MiB; ratios are {} over the engine with 95 % intervals; load of the machine {before} \
         before and {after} after",
        plan.data.rows,
        plan.data.shape.key_len(),
        plan.data.shape.value_len(),
        plan.rounds,
        plan.seconds,
        plan.cache >> 20,
        plan.cache_larger >> 20,
        plan.engines.first().map_or("", String::as_str),
    );
    if let Some(path) = &args.plot {
        std::fs::write(path, plot::page("Millpond and others", &note, &rows))
            .with_context(|| format!("{}", path.display()))?;
    }
    if args.json {
        let params = json!({
            "engines": plan.engines, "threads": plan.threads,
            "commit_threads": plan.commit_threads, "rows": plan.data.rows,
            "key_bytes": plan.data.shape.key_len(), "value_bytes": plan.data.shape.value_len(),
            "update": args.update, "warehouses": plan.warehouses, "rounds": plan.rounds,
            "load_rounds": plan.load_rounds, "seconds": plan.seconds, "warm_s": plan.warm_s,
            "warm_larger_s": plan.warm_larger_s, "cache_bytes": plan.cache,
            "cache_larger_bytes": plan.cache_larger,
            "cgroup_limit_bytes": plan.cgroup.as_ref().map(|(_, limit)| limit),
            "seed": plan.seed, "load_before": before, "load_after": after,
        });
        table.write_json("compare", &params, &machine(), &mut std::io::stdout().lock())?;
    } else {
        print!("{}", table.to_text());
        println!("{note}");
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(COMMAND) {
        let order: Order = serde_json::from_str(&words.next().context("no order")?)?;
        println!("{}", serde_json::to_string(&order.run_here()?)?);
        return Ok(());
    }
    compare(&Args::parse())
}
