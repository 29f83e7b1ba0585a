//! `millpond-papers leanstore-hits`: the table of hit rates of leanstore VI-B.

use crate::leanstore::hit_table::{Experiment, HitTable, LIVE, PAPER, hit_table};
use crate::simulated::KindHits;
use clap::ValueEnum;
use millpond_bench::experiments::table::{Row, table};
use millpond_lab::registry::Registry;
use millpond_workload::keys::Scramble;
use serde_json::json;

use millpond_cli::program::Failure;
use millpond_cli::program::{ProgressLine, ResultArgs};

const EXAMPLES: &str = "Examples:
  millpond-papers leanstore-hits                  an eighth of the data: 0.7 GB
  millpond-papers leanstore-hits --keys adjacent  popular keys are neighbours
  millpond-papers leanstore-hits --divisor 80 --page-size 4096 --json";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum KeysArg {
    /// Popular keys are spread over the whole tree
    Scattered,
    /// Popular keys are neighbours
    Adjacent,
}

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Divisor of the paper's 41 M rows
    #[arg(long, default_value_t = 8, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    divisor: u64,
    /// Placement of popular keys, which the paper leaves open
    #[arg(long, value_enum, default_value = "scattered")]
    keys: KeysArg,
    /// The exponent of the Zipf distribution
    #[arg(long, default_value_t = 1.0, value_name = "THETA")]
    theta: f64,
    /// Bytes of a page
    #[arg(long, default_value_t = 16384, value_name = "BYTES")]
    page_size: u32,
    /// Lookups that count, after as many of warm-up; default: half as many as rows
    #[arg(long, value_name = "N")]
    lookups: Option<u64>,
    /// Seed of keys and policies
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn experiment(&self) -> Experiment {
        let paper = Experiment::paper(self.divisor);
        let lookups = self.lookups.unwrap_or(paper.lookups);
        let scramble = match self.keys {
            KeysArg::Scattered => Scramble::Permute,
            KeysArg::Adjacent => Scramble::Off,
        };
        Experiment {
            page_size: self.page_size,
            theta: self.theta,
            scramble,
            warm_up: lookups,
            lookups,
            seed: self.seed,
            ..paper
        }
    }
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    args.results.check()?;
    let experiment = args.experiment();
    let mut live = ProgressLine::new(args.quiet);
    let result = hit_table(&experiment, registry, &mut live);
    live.finish();
    let result = result?;
    let params = json!({
        "divisor": args.divisor,
        "rows": experiment.rows,
        "page_size": experiment.page_size,
        "theta": experiment.theta,
        "keys": format!("{:?}", args.keys).to_lowercase(),
        "lookups": experiment.lookups,
        "seed": experiment.seed,
        "data_pages": result.pages,
        "pool_frames": result.frames,
        "references_per_lookup": result.references_per_lookup,
    });
    args.results.write("paper leanstore-hits", &params, &table(rows(&result)))
}

fn rows(result: &HitTable) -> Vec<Row> {
    let live = &result.live;
    let paper = PAPER.iter().find(|(policy, _)| *policy == LIVE).map(|(_, percent)| *percent);
    let others = live.references - live.leaf_references;
    let others_missed = live.misses.saturating_sub(live.leaf_misses);
    let of_others = 1.0 - others_missed as f64 / others.max(1) as f64;
    let first = row(LIVE, "live pool", paper, [live.hit_ratio(), live.leaf_hit_ratio(), of_others]);
    let simulated = PAPER.iter().zip(&result.simulated).map(|((policy, paper), hits)| {
        let KindHits { leaves, others } = hits;
        row(policy, "simulated", Some(*paper), [hits.all().ratio(), leaves.ratio(), others.ratio()])
    });
    std::iter::once(first).chain(simulated).collect()
}

fn row(policy: &str, how: &str, paper: Option<f64>, [all, leaves, others]: [f64; 3]) -> Row {
    Row::default()
        .with("policy", policy)
        .with("how", how)
        .with("paper_percent", paper)
        .with("hits_percent", all * 100.0)
        .with("difference", paper.map(|paper| all * 100.0 - paper))
        .with("leaf_hits_percent", leaves * 100.0)
        .with("other_hits_percent", others * 100.0)
}
