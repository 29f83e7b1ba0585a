//! `millpond bench many`: several keys looked up by one call, beside as many calls.

use std::path::PathBuf;

use millpond::Options;
use millpond_base::Seed;
use millpond_bench::experiments::many::{Manies, Many, manies};
use millpond_bench::experiments::table::{Row, table};
use serde_json::json;

use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench many --folder /data
  millpond bench many --rows 1000000 --keys 8,32,128 --memory 64MiB --rounds 15

`get_many` of that many keys over as many calls of `get`, all rows alike: the ratio is a geometric \
mean within rounds, with a 95 % interval. Rows have keys of 24 bytes and values of 150.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Rows of the store
    #[arg(long, default_value_t = 5_000_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,
    /// Keys per call, separated by commas
    #[arg(long, default_value = "32", value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keys: Vec<u32>,
    /// Keys looked up in each way, per round
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    per_round: u32,
    /// Memory of the store; default: a quarter of the memory that the process may use
    #[arg(long, value_name = "SIZE")]
    memory: Option<millpond_base::Size>,
    /// Folder in which the store is created and later removed
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Rounds
    #[arg(long, default_value_t = 9, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Seed of keys and order
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn what(&self) -> Result<Manies, Failure> {
        let mut options = Options::new();
        match self.memory {
            None => {}
            Some(millpond_base::Size::Bytes(bytes)) => options = options.memory(bytes),
            Some(_) => {
                let text = "--memory is a number of bytes, as in 4GiB".to_string();
                return Err(Failure::Usage(text));
            }
        }
        let (rows, keys, per_round) = (self.rows, self.keys.clone(), self.per_round);
        let (folder, rounds, seed) = (self.folder.clone(), self.rounds, Seed(self.seed));
        Ok(Manies { rows, keys, per_round, options, folder, rounds, seed })
    }
}

fn row(many: &Many) -> Row {
    Row::new("many", "pool", 1)
        .with("keys", u64::from(many.keys))
        .with_interval("single_per_s", &many.single)
        .with_interval("many_per_s", &many.many)
        .with_interval("ratio", &many.ratio)
        .with("reads_per_key", many.reads_per_key)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let what = args.what()?;
    let mut live = ProgressLine::new(args.quiet);
    let all = manies(&what, &mut live);
    live.finish();
    let params = json!({
        "rows": args.rows,
        "keys": args.keys,
        "per_round": args.per_round,
        "memory": args.memory.map(|size| size.to_string()),
        "folder": args.folder.display().to_string(),
        "rounds": args.rounds,
        "seed": args.seed,
    });
    args.results.write("bench many", &params, &table(all?.iter().map(row)))
}
