//! `millpond bench opening`: how long an empty store takes to open, policy by policy.

use std::path::PathBuf;

use millpond::Options;
use millpond_base::Seed;
use millpond_bench::experiments::opening::{Opening, Openings, live_policies, openings};
use millpond_bench::experiments::table::{Row, table};
use millpond_policies::config::Spec;
use serde_json::json;

use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench opening
  millpond bench opening --policies lean-evict,watt,lru --memory 4GiB \\
      --rounds 31 --json

Each policy has an empty store of its own, closed before the first round. A round opens and \
closes each once, in an order dealt by the seed; opening is timed. Ratios are to the first \
policy, geometric means within rounds, with 95 % intervals.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Policies, separated by commas; ratios are to the first one. Default: all live policies,
    /// lean-evict first
    #[arg(long, value_name = "POLICIES")]
    policies: Option<String>,
    /// Memory of each store; default: a quarter of the memory that the process may use
    #[arg(long, value_name = "SIZE")]
    memory: Option<millpond_base::Size>,
    /// Folder in which the stores are created and later removed
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Rounds
    #[arg(long, default_value_t = 15, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Seed of the order within each round
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn what(&self) -> Result<Openings, Failure> {
        let policies = match &self.policies {
            None => live_policies(),
            Some(text) => {
                let specs = Spec::parse_list(text);
                let specs = specs.map_err(|error| Failure::Usage(error.to_string()))?;
                specs.iter().map(Spec::to_string).collect()
            }
        };
        if policies.is_empty() {
            return Err(Failure::Usage("--policies names none".to_string()));
        }
        let mut options = Options::new();
        options.own_policies = crate::own::live();
        match self.memory {
            None => {}
            Some(millpond_base::Size::Bytes(bytes)) => options = options.memory(bytes),
            Some(_) => {
                let text = "--memory is a number of bytes, as in 4GiB".to_string();
                return Err(Failure::Usage(text));
            }
        }
        let (folder, rounds, seed) = (self.folder.clone(), self.rounds, Seed(self.seed));
        Ok(Openings { policies, options, folder, rounds, seed })
    }
}

fn row(opening: &Opening) -> Row {
    Row::new("opening", "pool", 1)
        .with("policy", opening.policy.as_str())
        .with_interval("ms", &opening.ms)
        .with_interval("ratio_to_first", &opening.to_first)
        .with("pool_frames", opening.frames)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let what = args.what()?;
    let mut live = ProgressLine::new(args.quiet);
    let all = openings(&what, &mut live);
    live.finish();
    let params = json!({
        "policies": what.policies,
        "memory": args.memory.map(|size| size.to_string()),
        "folder": args.folder.display().to_string(),
        "rounds": args.rounds,
        "seed": args.seed,
    });
    args.results.write("bench opening", &params, &table(all?.iter().map(row)))
}
