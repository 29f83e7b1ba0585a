//! `millpond bench two-worlds`: compares a policy's misses live and simulated, and measures the
//! effect of each thing that only a live pool does.

use millpond_base::Size;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, table};
use millpond_bench::experiments::two_worlds::distortions::{Distorted, Distortion, distorted};
use millpond_bench::experiments::two_worlds::worlds::{Plan, spied};
use millpond_bench::run::runner::Observer;
use millpond_lab::registry::Registry;
use millpond_policies::config::Spec;
use serde_json::json;

use super::engine::{cores, joined, size};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use super::workload::YcsbArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench two-worlds
  millpond bench two-worlds --policy lru,arc,watt --updates 10 --pool 5%
  millpond bench two-worlds --policy all --rows 50000 --operations 100000 --csv

The row 'none' is the live pool that is most like a simulator: one thread, a page table, page by \
page, hits delivered at once. Its column 'worlds' says whether the simulator misses the very same \
references: 'same'; 'same when fed', where it has to replay which victims the live pool refused \
(dirty pages are); or 'differ'. The other rows turn one distortion on. 'vs_none' is the miss ratio \
over that of the row 'none'.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    workload: YcsbArgs,
    /// Policies, separated by commas; all: every policy that runs live
    #[arg(long, short, value_name = "POLICIES")]
    #[arg(default_value = "random,fifo,lru,clock,sorting-lru,2q,arc,lirs,lean-evict,watt")]
    policy: String,
    /// Size of the pool: frames, or % of the loaded pages
    #[arg(long, default_value = "10%", value_name = "SIZE")]
    pool: String,
    /// Bytes of a page
    #[arg(long, default_value_t = 4096, value_name = "BYTES")]
    page_size: u32,
    /// Operations that count; half as many run before them as warm-up
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    operations: u64,
    /// Threads of the distortion 'threads'; default: the number of cores, at least 2
    #[arg(long, short, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Seed of data, workload and policy
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn policies(&self, registry: &Registry) -> Result<Vec<String>, Failure> {
        if self.policy == "all" {
            let live = registry.entries().iter().filter(|entry| entry.info.live);
            let live = live.filter(|entry| !entry.needs_future);
            return Ok(live.map(|entry| entry.info.id.to_string()).collect());
        }
        Ok(Spec::parse_list(&self.policy)?.iter().map(Spec::to_string).collect())
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let pool: Size = size(&self.pool)?;
        if let Size::Bytes(_) = pool {
            let text = "--pool takes frames or %: both worlds must have the same number of frames";
            return Err(Failure::Usage(text.to_string()));
        }
        Ok(Plan {
            workload: self.workload.workload(1)?,
            page_size: self.page_size,
            pool,
            operations: (self.operations / 2, self.operations),
            seed: self.seed,
        })
    }
}

/// Compares the references that both worlds miss.
fn compare(
    plan: &Plan,
    policy: &str,
    registry: &Registry,
    live: &mut ProgressLine,
) -> Result<&'static str, Failure> {
    live.begin(&format!("{policy}, both worlds"));
    let spied = spied(plan, plan.exact(policy), live)?;
    let simulated = spied.simulated_misses(policy, registry, plan.seed)?;
    if spied.misses() == simulated {
        return Ok("same");
    }
    match spied.fed(policy, plan.seed)? {
        Ok(_) => Ok("same when fed"),
        Err(_) => Ok("differ"),
    }
}

fn row(policy: &str, distortion: Distortion, run: &Distorted, none: &Distorted) -> Row {
    Row::default()
        .with("policy", policy)
        .with("distortion", distortion.name())
        .with("threads", u64::from(distortion.threads()))
        .with("references", run.references)
        .with("misses", run.misses)
        .with("miss_ratio", run.miss_ratio())
        .with("vs_none", run.miss_ratio() / none.miss_ratio())
        .with("writes", run.writes)
        .with("hits_lost", run.hits_lost)
}

/// Returns the rows of one policy.
fn rows(
    args: &Args,
    policy: &str,
    registry: &Registry,
    live: &mut ProgressLine,
) -> Result<Vec<Row>, Failure> {
    let plan = args.plan()?;
    let worlds = compare(&plan, policy, registry, live)?;
    let threads = args.threads.unwrap_or_else(|| cores().max(2));
    let (mut rows, mut none) = (Vec::new(), None);
    for distortion in Distortion::all(threads) {
        live.begin(&format!("{policy}, {}", distortion.name()));
        let run = distorted(&plan, policy, distortion, live)?;
        let first = *none.get_or_insert(run);
        let worlds = (distortion == Distortion::None).then_some(worlds);
        rows.push(row(policy, distortion, &run, &first).with("worlds", worlds));
    }
    Ok(rows)
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    args.results.check()?;
    args.plan()?;
    let policies = args.policies(registry)?;
    for policy in &policies {
        registry.find(&Spec::parse(policy)?.id)?;
    }
    let mut live = ProgressLine::new(args.quiet);
    let (mut all, mut was_stopped) = (Vec::new(), false);
    for policy in &policies {
        match rows(args, policy, registry, &mut live) {
            Ok(rows) => all.extend(rows),
            Err(Failure::Bench(BenchError::Stopped)) => {
                was_stopped = true;
                break;
            }
            Err(error) => {
                live.finish();
                return Err(error);
            }
        }
    }
    live.finish();
    let own = json!({
        "policies": policies,
        "pool": args.pool,
        "page_size": args.page_size,
        "operations": args.operations,
        "threads": args.threads,
        "seed": args.seed,
    });
    let params = joined([args.workload.params(), own]);
    args.results.write("bench two-worlds", &params, &table(all))?;
    if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}
