//! Ablations of `tide-io`, and the distance of all policies from the lower bound.
//!
//! ```sh
//! cargo run --release -p millpond-lab --example second_tier -- policies TRACE…
//! cargo run --release -p millpond-lab --example second_tier -- ablations TRACE…
//! cargo run --release -p millpond-lab --example second_tier -- bound TRACE…
//! cargo run --release -p millpond-lab --example second_tier -- read-hits TRACE…
//! ```
//!
//! Rows as CSV, for caches of 5, 10, 20, 40 and 60 % of a trace's pages: total I/O in the model
//! `rw` (`policies`, `ablations`, `bound`), or the read hit ratio in the model `read`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement tells what it found")]

use std::process::ExitCode;

use millpond_lab::registry::Registry;
use millpond_lab::sim::Renumber;
use millpond_lab::tier2::{
    BoundOptions, Model, Tier2Counts, Tier2Future, Tier2Options, lower_bound,
};
use millpond_policies::config::Spec;
use millpond_policies::tier2::{TideIo, WithoutAges, WithoutHints};
use millpond_workload::formats::{self, ReadOptions};
use millpond_workload::trace::{BATCH_LEN, Batch};

const SHARES: [u64; 5] = [5, 10, 20, 40, 60];
/// Rounds of the search for the bound, with blocks of one length.
const ROUNDS: u32 = 40;

type Failed = Box<dyn std::error::Error>;

/// A trace, its pages numbered without gaps.
struct Trace {
    name: String,
    batch: Batch,
    distinct: u64,
    future: Tier2Future,
}

impl Trace {
    fn open(path: &str) -> Result<Trace, Failed> {
        let mut source = formats::open(path, &ReadOptions::default())?;
        let mut batch = Batch::default();
        while source.fill(&mut batch, BATCH_LEN)? > 0 {}
        batch.lsns = Vec::new();
        let mut renumber = Renumber::new();
        renumber.apply(&mut batch);
        let distinct = renumber.distinct();
        let future = Tier2Future::of(&batch, distinct);
        let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".parquet").to_string();
        Ok(Trace { name, batch, distinct, future })
    }

    fn frames(&self, share: u64) -> u32 {
        (self.distinct * share / 100).clamp(1, 1 << 31) as u32
    }

    fn run(
        &self,
        registry: &Registry,
        policy: &str,
        frames: u32,
        model: Model,
    ) -> Result<Tier2Counts, Failed> {
        let spec = Spec::parse(policy)?;
        let entry = registry.find(&spec.id)?;
        let options = Tier2Options::new(frames, Some(self.distinct), model);
        let mut cell = entry.tier2(&spec, &options)?;
        cell.run(&self.batch, entry.needs_future.then_some(&self.future))?;
        Ok(cell.counts())
    }

    fn bound(&self, frames: u32, aim: u64) -> u64 {
        let options = BoundOptions { frames, price: 1.0, aim: aim as f64, rounds: ROUNDS };
        lower_bound(&self.batch, &self.future, self.distinct, &options).total() as u64
    }
}

fn table(what: &str, traces: &[String]) -> Result<(), Failed> {
    let registry =
        Registry::builtin().with::<TideIo<WithoutHints>>()?.with::<TideIo<WithoutAges>>()?;
    let policies: &[&str] = match what {
        "policies" => &["tide-io", "tq-io", "lru-io", "arc-io", "tq", "t2-lru", "t2-arc"],
        "ablations" => &["tide-io", "tide-io-no-hints", "tide-io(price=0)", "tide-io-no-ages"],

        "bound" => &["pro-io", "min-rw", "tide-io", "tq-io", "lru-io", "arc-io"],
        "read-hits" => &["tide-io", "tq", "t2-mq", "mq-hints", "t2-opt"],
        _ => {
            return Err(format!("'{what}' is none of policies, ablations, bound, read-hits").into());
        }
    };
    let bound = if what == "bound" { ",unavoidable,bound" } else { "" };
    println!("trace,share,{}{bound}", policies.join(","));
    for path in traces {
        let trace = Trace::open(path)?;
        for share in SHARES {
            let frames = trace.frames(share);
            let mut row = format!("{},{share}", trace.name);
            let mut first = None;
            for policy in policies {
                let model = if what == "read-hits" { Model::Read } else { Model::Rw };
                let counts = trace.run(&registry, policy, frames, model)?;
                row += &match model {
                    Model::Read => format!(",{:.4}", counts.read_hit_ratio()),
                    Model::Rw => format!(",{}", counts.total()),
                };
                first = first.or(Some(counts));
            }
            if let (true, Some(pro)) = (what == "bound", first) {
                row += &format!(",{},{}", pro.unavoidable(), trace.bound(frames, pro.avoidable()));
            }
            println!("{row}");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, traces @ ..] = &args[..] else {
        eprintln!("second_tier policies|ablations|bound|read-hits TRACE…");
        return ExitCode::from(2);
    };
    match table(what, traces) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("second_tier: {error}");
            ExitCode::FAILURE
        }
    }
}
