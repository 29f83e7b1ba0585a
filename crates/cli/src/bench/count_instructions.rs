//! Instructions of hits and of victims, counted by callgrind over a process of its own.
//!
//! Counts are those of one build, and no chance is in them: so there are no rounds. What is counted
//! are two functions, by their names, in a short run that does nothing else twice.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use millpond_bench::error::BenchError;
use millpond_bench::experiments::papers::gilbert_factors::costs::victims_of;
use millpond_lab::cost::References;
use millpond_lab::registry::Registry;
use millpond_policies::config::Spec;
use serde_json::{Value as Json, json};

use crate::error::Failure;
use crate::interrupt;
use crate::output::print;

/// Functions of [`millpond_lab::cost`], and the events that each is divided by.
const PARTS: [(&str, &str); 2] = [("deliver_all_hits", "hits"), ("replace_all_misses", "victims")];

/// A hidden command: hits and victims of one policy, as many as a round has, twice.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The policy
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// Frames of the pool
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(References::FRAMES_MAX)))]
    frames: u32,
    /// Seed of references and policy
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let spec = Spec::parse(&args.policy)?;
    let references = References::new(args.frames, args.seed);
    let mut meter = registry.find(&spec.id)?.meter(&spec, args.frames, &references, args.seed)?;
    for _ in 0..2 {
        let ran = meter.run(victims_of(args.frames), Duration::MAX);
        ran.map_err(|stalled| Failure::Partly(stalled.to_string()))?;
    }
    let all = meter.all();
    print(&format!("{}\n", json!({ "hits": all.hits, "victims": all.victims })))
}

/// Why nothing can be counted here, if that is so.
pub(crate) fn hindrance() -> Option<String> {
    let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("valgrind cannot run here: {status}")),
        Err(error) => Some(format!("valgrind cannot be started: {error}")),
    }
}

/// Instructions of a hit and of a victim.
///
/// # Errors
/// Why they could not be counted, or that the user stopped it.
pub(crate) fn count(policy: &str, frames: u32, seed: u64) -> Result<(f64, f64), Failure> {
    let folder = tempfile::tempdir().map_err(|error| uncounted(policy, &error.to_string()))?;
    let mut counts = PARTS.iter().map(|part| one(*part, policy, (frames, seed), folder.path()));
    let mut next = || counts.next().unwrap_or(Err(Failure::Interrupted));
    Ok((next()?, next()?))
}

fn uncounted(policy: &str, why: &str) -> Failure {
    Failure::Partly(format!("instructions of {policy} could not be counted: {why}"))
}

fn one(
    (function, events): (&str, &str),
    policy: &str,
    (frames, seed): (u32, u64),
    folder: &Path,
) -> Result<f64, Failure> {
    let failed = |why: &str| uncounted(policy, why);
    let io = |error: std::io::Error| failed(&error.to_string());
    let counts = folder.join(events);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(std::env::current_exe().map_err(io)?)
        .args(["bench", "factors-probe", "--policy", policy])
        .args(["--frames", &frames.to_string(), "--seed", &seed.to_string()])
        .output()
        .map_err(io)?;
    if interrupt::asked() {
        return Err(BenchError::Stopped.into());
    }
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let printed: Option<Json> = serde_json::from_slice(&output.stdout).ok();
    let divisor = printed.as_ref().and_then(|all| all[events].as_f64());
    let divisor = divisor.filter(|n| *n > 0.0).ok_or_else(|| failed("it did not run"))?;
    let file = std::fs::read_to_string(&counts).map_err(io)?;
    let total = total(&file).ok_or_else(|| failed("callgrind's file has no totals"))?;
    Ok(total as f64 / divisor)
}

/// The instructions of a file that callgrind wrote.
fn total(file: &str) -> Option<u64> {
    let mut totals = file.lines().filter_map(|line| line.strip_prefix("totals:"));
    let first = totals.next()?.trim().parse().ok()?;
    totals.try_fold(first, |sum: u64, more| Some(sum + more.trim().parse::<u64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_callgrind_s_file() {
        assert_eq!(total("version: 1\nevents: Ir\nfn=(1) a\n0 5\ntotals: 12345\n"), Some(12_345));
        assert_eq!(total("totals: 5\ntotals: 7\n"), Some(12), "of several parts");
        for wrong in ["", "summary: 5\n", "totals: \n", "totals: many\n"] {
            assert_eq!(total(wrong), None, "{wrong:?}");
        }
    }
}
