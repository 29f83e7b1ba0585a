//! `millpond bench pace`: durable commits while dirty pages are written in the background.

use std::path::PathBuf;
use std::time::Duration;

use millpond_base::Seed;
use millpond_bench::experiments::pace::{Pace, Paced, Side, pace};
use millpond_bench::experiments::table::{Row, table};
use millpond_lab::report::{Line, LinePlot};
use serde_json::json;

use super::engine::some_seconds;
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench pace --folder /data
  millpond bench pace --log-gap 16MiB --background 0 --plot pace.html
  millpond bench pace --rows 5000000 --memory 4GiB --rounds 15 --json

Two stores take turns: the quiet one has no page to write yet, the busy one writes pages and takes \
checkpoints as its log grows. Each changes rows, one in each transaction, and each of those is \
durable by itself; a writer beside it makes both logs grow. Ratios are of the busy store over the quiet one, \
within rounds, with 95 % intervals; slow_slice is the slowest slice in a hundred over the quiet \
store's median. In --json and --csv, rows with a second are the time series.";

/// Columns that come first in the table.
const ANSWERS: [&str; 8] = [
    "step",
    "commits_per_s",
    "rate_ratio",
    "rate_ratio_low",
    "rate_ratio_high",
    "p99_ratio",
    "p99_ratio_low",
    "p99_ratio_high",
];

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Rows of each store
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    rows: u64,
    /// Memory of each store
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = crate::store::size_of)]
    memory: u64,
    /// Log gap of the busy store
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = crate::store::size_of)]
    log_gap: u64,
    /// Rows per second that a background writer changes, beside the writer that commits durably; 0:
    /// no background writer
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    background: u64,
    /// Folder in which both stores are created and later removed
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Rounds
    #[arg(long, default_value_t = 9, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Seconds of each store in each round
    #[arg(long, short, default_value = "4", value_name = "S")]
    seconds: f64,
    /// Milliseconds per slice of the time series
    #[arg(long, default_value_t = 100, value_name = "MS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slice: u64,
    /// Seed of rows and order
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

fn row(name: &str, side: &Side) -> Row {
    Row::new(name, "pool", 1)
        .with_interval("commits_per_s", &side.per_s)
        .with_interval("p50_us", &side.p50_us)
        .with_interval("p99_us", &side.p99_us)
        .with("pages_per_commit", side.written)
        .with("checkpoints", side.checkpoints)
}

fn rows(paced: &Paced) -> Vec<Row> {
    let quiet = row("quiet", &paced.quiet).with_interval("slow_slice", &paced.slow_slice_quiet);
    let busy = row("busy", &paced.busy)
        .with_interval("slow_slice", &paced.slow_slice)
        .with_interval("rate_ratio", &paced.rate)
        .with_interval("p99_ratio", &paced.p99);
    let mut rows = vec![quiet, busy];
    for (name, side) in [("quiet", &paced.quiet), ("busy", &paced.busy)] {
        rows.extend(side.slices.iter().map(|slice| {
            Row::new(name, "pool", 1)
                .with("second", slice.second)
                .with("commits_per_s", slice.per_s)
                .with("p99_us", slice.p99_us)
                .with("pages_written", slice.written)
                .with("checkpoints", slice.checkpoints)
        }));
    }
    rows
}

fn drawn(paced: &Paced) -> String {
    let line = |label: &str, side: &Side| Line {
        label: label.to_string(),
        points: side.slices.iter().map(|slice| (slice.second, slice.per_s)).collect(),
        ..Line::default()
    };
    LinePlot {
        title: "Durable commits while pages are written".to_string(),
        note: "One row each. The quiet store has no page to write yet; the busy one writes pages \
               and takes checkpoints as its log grows. They took turns, which are put together \
               here."
            .to_string(),
        x: "second".to_string(),
        y: "durable commits per second".to_string(),
        lines: vec![line("quiet", &paced.quiet), line("busy", &paced.busy)],
        ..LinePlot::default()
    }
    .render()
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let what = Pace {
        rows: args.rows,
        memory: args.memory,
        log_gap: args.log_gap,
        background: args.background,
        rounds: args.rounds,
        time: some_seconds("seconds", args.seconds)?,
        slice: Duration::from_millis(args.slice),
        folder: args.folder.clone(),
        seed: Seed(args.seed),
    };
    let mut live = ProgressLine::new(args.quiet);
    let paced = pace(&what, &mut live);
    live.finish();
    let paced = paced?;
    let params = json!({
        "rows": args.rows,
        "memory": args.memory,
        "log_gap": args.log_gap,
        "background": args.background,
        "folder": args.folder.display().to_string(),
        "rounds": args.rounds,
        "seconds": args.seconds,
        "slice_ms": args.slice,
        "seed": args.seed,
    });
    args.results.draw(|| drawn(&paced))?;
    let rows = rows(&paced);
    let people: Vec<Row> = rows.iter().take(2).cloned().collect();
    let parts = [("commits".to_string(), table(people).with_first(&ANSWERS))];
    args.results.write_parts("bench pace", &params, &table(rows), &parts)
}
