//! `millpond bench commits`: commits of one row, beside the device's own synced writes.

use std::path::PathBuf;

use millpond_base::Seed;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::commits::{Commits, Committed, commits};
use millpond_bench::experiments::table::{Row, table};
use serde_json::json;

use super::engine::{DurabilityArg, some_seconds};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench commits --threads 1,2,16 --folder /data
  millpond bench commits --durability group --threads 16 --rounds 15
  millpond bench commits --durability async --mix 90/10 --threads 1,2 --json
  millpond bench commits --threads 1 --log-segment 4MiB,32MiB

Each round of commits is followed by one of the probe: one 4 KiB block overwritten and \
synced, again and again, in a file of zeros in the same folder. Ratios are geometric means \
over the rounds, with 95 % intervals.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Numbers of threads, separated by commas
    #[arg(long, short, value_delimiter = ',', default_value = "1,2,16", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,
    /// Moment at which a commit is durable
    #[arg(long, value_enum, default_value = "sync")]
    durability: DurabilityArg,
    /// Reads and writes in per cent of the transactions, each of one row
    #[arg(long, default_value = "0/100", value_name = "R/W")]
    mix: String,
    /// Folder of the store and the probe
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Rows of the table
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Bytes of a value
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    value: u32,
    /// Rounds
    #[arg(long, default_value_t = 9, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Seconds of the commits, and of the probe, in each round
    #[arg(long, short, default_value = "1", value_name = "S")]
    seconds: f64,
    /// Seed of the random choice of rows
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Record bytes of the log's segments; several sizes take turns, with ratios to the first
    #[arg(long, value_delimiter = ',', value_parser = crate::store::size_of, value_name = "SIZE")]
    log_segment: Vec<u64>,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    /// Returns the share of writes in per cent.
    fn writes(&self) -> Result<u32, Failure> {
        let parts = self.mix.split_once('/').map(|(r, w)| (r.parse::<u32>(), w.parse::<u32>()));
        match parts {
            Some((Ok(reads), Ok(writes))) if reads.checked_add(writes) == Some(100) => Ok(writes),
            _ => Err(Failure::Usage(format!(
                "--mix cannot be '{}': reads and writes add up to 100, as in 90/10",
                self.mix
            ))),
        }
    }
}

fn row(args: &Args, what: &Commits, done: &Committed) -> Row {
    let segment = what.log_segment.map(|bytes| bytes >> 10);
    let durability = format!("{:?}", args.durability.durability()).to_lowercase();
    let row = Row::new("commits", "pool", what.threads)
        .with("durability", durability.as_str())
        .with("mix", args.mix.as_str());
    let row = match segment {
        Some(kib) => row.with("segment_kib", kib).with_interval("ratio_to_first", &done.to_first),
        None => row,
    };
    row.with_interval("commits_per_s", &done.per_s)
        .with_interval("probe_per_s", &done.probe_per_s)
        .with_interval("ratio_to_probe", &done.to_probe)
        .with("commits_per_sync", done.group())
        .with("log_bytes_per_commit", done.log_bytes())
        .with("retries", done.retries)
        .with("transactions", done.transactions)
        .with("rounds", args.rounds)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let writes = args.writes()?;
    let time = some_seconds("seconds", args.seconds)?;
    let mut live = ProgressLine::new(args.quiet);
    let (mut rows, mut was_stopped) = (Vec::new(), false);
    for threads in &args.threads {
        let of = |log_segment| Commits {
            threads: *threads,
            durability: args.durability.durability(),
            rows: args.rows,
            value: args.value as usize,
            writes,
            rounds: args.rounds,
            time,
            seed: Seed(args.seed),
            log_segment,
        };
        let contestants: Vec<Commits> = match &args.log_segment[..] {
            [] => vec![of(None)],
            sizes => sizes.iter().map(|size| of(Some(*size))).collect(),
        };
        match commits(&args.folder, &contestants, &mut live) {
            Ok(done) => {
                rows.extend(contestants.iter().zip(&done).map(|(what, done)| row(args, what, done)))
            }
            Err(BenchError::Stopped) => {
                was_stopped = true;
                break;
            }
            Err(error) => {
                live.finish();
                return Err(error.into());
            }
        }
    }
    live.finish();
    let params = json!({
        "threads": args.threads,
        "durability": format!("{:?}", args.durability.durability()).to_lowercase(),
        "mix": args.mix,
        "folder": args.folder.display().to_string(),
        "rows": args.rows,
        "value": args.value,
        "rounds": args.rounds,
        "seconds": args.seconds,
        "seed": args.seed,
        "log_segment": args.log_segment,
    });
    args.results.write("bench commits", &params, &table(rows))?;
    if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}
