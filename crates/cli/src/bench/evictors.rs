//! `millpond bench evictors`: how fast policies evict while nothing else runs (watt 6.4).

use millpond::internals::store::LatchingMode;
use millpond_bench::experiments::evictors::{Contest, Speed, contest};
use millpond_bench::experiments::table::{Row, table};
use millpond_bench::instance::check;
use millpond_bench::instance::setup::Setup;
use millpond_policies::config::Spec;
use serde_json::json;

use super::engine::{EngineArgs, cores, joined};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use super::workload::YcsbArgs;
use crate::error::Failure;
use crate::output::complain;

const EXAMPLES: &str = "Examples:
  millpond bench evictors --rows 4000000 --shape watt --updates 0 \\
      --load ascending
  millpond bench evictors --policies random,watt,'watt(sample=4)' \\
      --evictor-threads 1,2 --json

The workload fills the pool, which is half as large as the data unless --pool says otherwise, \
then stands still while the evictors work; first all pages are clean, then all are dirty. Ratios \
are to the first policy, geometric means within rounds, with 95 % intervals. A policy that \
cannot run with these strategies is named, and left out.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Policies, separated by commas; ratios are to the first one
    #[arg(long, default_value = "random,lean-evict,watt,hyperbolic", value_name = "POLICIES")]
    policies: String,
    /// Numbers of threads that evict, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    evictor_threads: Vec<u32>,
    /// Share of the pool that is evicted at a time, in per cent
    #[arg(long, default_value_t = 25, value_name = "%")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=90))]
    share: u32,
    /// Rounds
    #[arg(long, default_value_t = 9, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    #[command(flatten)]
    workload: YcsbArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

/// Returns the reason that `policy` cannot run in this engine, if there is one.
fn hindrance(setup: &Setup, policy: &str) -> Option<String> {
    let mut setup = setup.clone();
    setup.options.policy = policy.to_string();
    check(&setup).err().map(|error| error.to_string())
}

fn row(speed: &Speed) -> Row {
    Row::new(speed.what.pages.name(), "pool", speed.what.threads)
        .with("policy", speed.info.policy.as_str())
        .with_interval("evictions_per_s", &speed.per_s)
        .with_interval("ratio_to_first", &speed.to_first)
        .with("candidates_per_eviction", speed.rates.looked)
        .with("ns_per_candidate", speed.rates.candidate_ns)
        .with("writes_per_eviction", speed.rates.written)
        .with("translation", speed.info.translation.as_str())
        .with("page_size", speed.info.page_size)
        .with("pool_frames", speed.info.frames)
        .with("data_pages", speed.info.pages)
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let setup = args.engine.setup()?;
    let specs = Spec::parse_list(&args.policies);
    let specs = specs.map_err(|error| Failure::Usage(error.to_string()))?;
    let mut policies: Vec<String> = specs.iter().map(Spec::to_string).collect();
    policies.retain(|policy| match hindrance(&setup, policy) {
        Some(why) => {
            complain(&format!("left out: {why}"));
            false
        }
        None => true,
    });
    if policies.is_empty() {
        return Err(Failure::Usage("--policies names none that can run here".to_string()));
    }
    let workload = args.workload.workload(if is_alone(&setup) { 1 } else { cores() })?;
    let threads = args.evictor_threads.clone();
    let (share, rounds) = (f64::from(args.share) / 100.0, args.rounds);
    let what = Contest { setup, workload, policies: policies.clone(), threads, share, rounds };
    let mut live = ProgressLine::new(args.quiet);
    let speeds = contest(&what, &mut live);
    live.finish();
    let own = json!({
        "policies": policies,
        "evictor_threads": args.evictor_threads,
        "share": args.share,
        "rounds": args.rounds,
    });
    let params = joined([args.workload.params(), args.engine.params(), own]);
    args.results.write("bench evictors", &params, &table(speeds?.iter().map(row)))
}

/// Returns `true` if only one thread may use the store.
fn is_alone(setup: &Setup) -> bool {
    setup.options.lab.latching == LatchingMode::None
}

#[cfg(test)]
mod tests {
    use millpond::internals::store::LatchingMode;

    use super::*;

    #[test]
    fn what_cannot_run_is_said() {
        let setup = Setup::new();
        assert_eq!(hindrance(&setup, "watt"), None);
        assert!(hindrance(&setup, "nonsense").unwrap().contains("nonsense"));
        let mut unlatched = setup;
        unlatched.options.lab.latching = LatchingMode::None;
        assert!(hindrance(&unlatched, "lru").unwrap().contains("not compiled"));
    }
}
