//! The command: its arguments and its runs.

use std::time::Duration;

use crate::cost::{Meters, References};
use crate::experiment::Scale;
use crate::gilbert::factors::rows::{correction_rows, policy_row};
use crate::gilbert::factors::{Factors, Live, factors, table_policies};
use millpond_bench::experiments::table::table;
use millpond_bench::run::runner::Observer;
use millpond_lab::registry::Registry;
use millpond_policies::config::Spec;
use millpond_policies::info::Tier;
use serde_json::json;

use super::super::callgrind::hindrance;
use super::super::count_instructions::count;
use super::view::{parts, plot};
use millpond_cli::program::Failure;
use millpond_cli::program::ProgressLine;
use millpond_cli::program::ResultArgs;
use millpond_cli::program::complain;

const EXAMPLES: &str = "Examples:
  millpond-papers factors                   every live policy: tens of minutes
  millpond-papers factors --no-corrections --plot victims.html
  millpond-papers factors --policies lru,sorting-lru,zclock \\
      --frames 1000,4000000 --no-live
  millpond-papers factors --instructions --json

Hit rates are live, with TPC-C in a pool of --pool. Hits and victims are those of the policy \
alone, full of pages, with Zipf references to four times as many; a victim is a page that finds \
one and is admitted in its place. Means over rounds, in which policies take turns, with 95 % \
intervals.";

/// Frames of the pool for which instructions are counted, or of the largest smaller one.
const COUNTED: u32 = 10_000;

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Policies, separated by commas. Default: all live policies, and Gilbert's variants of them
    #[arg(long, value_name = "POLICIES")]
    policies: Option<String>,
    /// Pools in which hits and victims are timed, in frames, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1000,100000,1000000", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(References::FRAMES_MAX)))]
    frames: Vec<u32>,
    /// Rounds of everything; fewer than 5 are too few for an interval
    #[arg(long, default_value_t = 5, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
    /// Seconds after which a round of one policy's hits and victims ends, even if it is incomplete
    #[arg(long, default_value_t = 5, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=3600))]
    seconds_max: u64,
    /// The pool in which hit rates are measured, in per cent of the data
    #[arg(long, default_value_t = 20, value_name = "%")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pool: u32,
    /// Scale of TPC-C: quick, standard or paper
    #[arg(long, default_value_t = Scale::Standard, value_name = "SCALE")]
    scale: Scale,
    /// Measure no hit rates
    #[arg(long)]
    no_live: bool,
    /// Do not judge Gilbert's claims on LOOP, lean eviction and quasi-FIFO
    #[arg(long)]
    no_corrections: bool,
    /// Also count instructions, if valgrind is installed
    #[arg(long)]
    instructions: bool,
    /// Seed of references, policies and order
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn what(&self, registry: &Registry) -> Result<Factors, Failure> {
        let policies = match &self.policies {
            None => table_policies(registry)?,
            Some(text) => Spec::parse_list(text)?,
        };
        if policies.is_empty() {
            return Err(Failure::Usage("--policies names none".to_string()));
        }
        for spec in &policies {
            let entry = registry.find(&spec.id)?;
            entry.values(spec)?;
            let is_live = entry.info.live && entry.info.tier == Tier::First && !entry.needs_future;
            if !is_live {
                let text = format!("--policies: '{}' does not run live in a pool", spec.id);
                return Err(Failure::Usage(text));
            }
        }
        let mut frames = self.frames.clone();
        frames.sort_unstable();
        frames.dedup();
        Ok(Factors {
            policies,
            frames,
            rounds: self.rounds,
            limit: Duration::from_secs(self.seconds_max),
            live: (!self.no_live)
                .then(|| Live { scale: self.scale, percent: f64::from(self.pool) }),
            corrections: (!self.no_corrections).then_some(self.scale),
            seed: self.seed,
            own: millpond_cli::program::live(),
        })
    }
}

/// Instructions of a hit and of a victim for each policy, or the reason that there are none.
type Instructions = Result<Vec<Option<(f64, f64)>>, String>;

fn instructions(
    args: &Args,
    what: &Factors,
    live: &mut ProgressLine,
) -> Result<Instructions, Failure> {
    if !args.instructions {
        return Ok(Err("not counted: --instructions does".to_string()));
    }
    if let Some(why) = hindrance() {
        return Ok(Err(why));
    }
    let mut all = Vec::new();
    for spec in &what.policies {
        live.begin(&format!("counting instructions: {spec}"));
        all.push(found(count(&spec.to_string(), counted(&what.frames), args.seed))?);
    }
    Ok(Ok(all))
}

/// Returns one policy's instructions, or `None` if they could not be counted; other measurements
/// still count. That happens if a hit does nothing, since the compiler may remove it.
fn found(counted: Result<(f64, f64), Failure>) -> Result<Option<(f64, f64)>, Failure> {
    match counted {
        Ok(counts) => Ok(Some(counts)),
        Err(stopped) if stopped.exit_code() == 130 => Err(stopped),
        Err(failure) => {
            complain(&failure.to_string());
            Ok(None)
        }
    }
}

/// Returns the frames of the pool for which instructions are counted.
fn counted(frames: &[u32]) -> u32 {
    let least = frames.iter().copied().min().unwrap_or(COUNTED);
    frames.iter().copied().filter(|n| *n <= COUNTED).max().unwrap_or(least).min(COUNTED)
}

pub(crate) fn run(args: &Args, meters: &Meters) -> Result<(), Failure> {
    args.results.check()?;
    let what = args.what(meters.registry())?;
    let mut live = ProgressLine::new(args.quiet);
    let result = factors(&what, meters, &mut live);
    let counts = match &result {
        Ok(_) => instructions(args, &what, &mut live),
        Err(_) => Ok(Err(String::new())),
    };
    live.finish();
    let (result, counts) = (result?, counts?);
    let (counts, why) = match counts {
        Ok(counts) => (counts, None),
        Err(why) => (vec![None; what.policies.len()], Some(why)),
    };
    let params = json!({
        "policies": what.policies.iter().map(Spec::to_string).collect::<Vec<_>>(),
        "frames": what.frames,
        "rounds": what.rounds,
        "seconds_max": args.seconds_max,
        "pool_percent": what.live.map(|live| live.percent),
        "scale": args.scale.to_string(),
        "corrections": what.corrections.is_some(),
        "instructions": why.as_deref().unwrap_or("callgrind"),
        "instructions_frames": why.is_none().then(|| counted(&what.frames)),
        "seed": what.seed,
    });
    let all = result.policies.iter().zip(&counts).map(|(row, counts)| policy_row(row, *counts));
    let rows = table(all.chain(result.corrections.iter().flat_map(correction_rows)));
    let parts = parts(&what, &result, &counts, why.as_deref());
    args.results.write_parts("paper factors", &params, &rows, &parts)?;
    args.results.draw(|| plot(&result).render())
}

#[cfg(test)]
mod tests {
    use millpond_bench::error::BenchError;

    use super::*;

    #[test]
    fn one_policy_that_cannot_be_counted_loses_nothing_else() {
        let failed = Failure::Partly("callgrind found no function".to_string());
        assert!(matches!(found(Err(failed)), Ok(None)));
        assert!(matches!(found(Ok((14.0, 90.0))), Ok(Some((14.0, 90.0)))));
        let stopped = found(Err(BenchError::Stopped.into()));
        assert_eq!(stopped.unwrap_err().exit_code(), 130);
    }

    #[test]
    fn instructions_are_counted_in_a_pool_that_callgrind_can_manage() {
        assert_eq!(counted(&[1000, 100_000]), 1000);
        assert_eq!(counted(&[500, 10_000, 1_000_000]), 10_000);
        assert_eq!(counted(&[1_000_000]), COUNTED);
        assert_eq!(counted(&[]), COUNTED);
    }
}
