//! Instructions of hits and of victims, counted by callgrind.
//!
//! callgrind counts two functions, by name, in a short run that does nothing else twice.

use std::time::Duration;

use crate::cost::{Meters, References};
use crate::gilbert::factors::costs::victims_of;
use millpond_policies::config::Spec;
use serde_json::json;

use super::callgrind::per_event;
use millpond_cli::program::Failure;
use millpond_cli::program::print;

/// Functions of [`crate::cost`], and the events that each is divided by.
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

pub(crate) fn run(args: &Args, meters: &Meters) -> Result<(), Failure> {
    let spec = Spec::parse(&args.policy)?;
    let references = References::new(args.frames, args.seed);
    let mut meter = meters.meter(&spec, args.frames, &references, args.seed)?;
    for _ in 0..2 {
        let ran = meter.run(victims_of(args.frames), Duration::MAX);
        ran.map_err(|stalled| Failure::Partly(stalled.to_string()))?;
    }
    let all = meter.all();
    print(&format!("{}\n", json!({ "hits": all.hits, "victims": all.victims })))
}

/// Counts the instructions of a hit and of a victim.
///
/// # Errors
/// The reason that they could not be counted, or an interruption by the user.
pub(crate) fn count(policy: &str, frames: u32, seed: u64) -> Result<(f64, f64), Failure> {
    let words = ["factors-probe", "--policy", policy].map(String::from);
    let numbers = [("--frames", u64::from(frames)), ("--seed", seed)];
    let numbers = numbers.into_iter().flat_map(|(flag, n)| [flag.to_string(), n.to_string()]);
    let arguments: Vec<String> = words.into_iter().chain(numbers).collect();
    let [hits, victims] = PARTS
        .map(|(function, events)| move |with: &[String]| per_event(policy, function, events, with));
    Ok((hits(&arguments)?, victims(&arguments)?))
}
