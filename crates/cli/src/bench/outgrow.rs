//! `millpond bench outgrow`: throughput as data outgrow the pool, which should fall smoothly.
//!
//! The data are loaded once; the store is opened again with one pool after the other, from one for
//! all of them to one for a small part.

use std::time::Duration;

use millpond_base::Size;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, table};
use millpond_bench::instance::{Instance, InstanceInfo, prepare};
use millpond_bench::interval::Interval;
use millpond_bench::run::runner::{Observer, Outcome, RunSpec};
use millpond_lab::report::{Line, LinePlot};
use serde_json::json;

use super::engine::{EngineArgs, RunArguments, joined, seconds, size};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use super::workload::YcsbArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench outgrow --rows 2000000 --device file:/data/bench \\
      --plot outgrow.html
  millpond bench outgrow --pools 20% --rounds 9 --probe 1 \\
      --device file:/data/bench
  millpond bench outgrow --theta 0.99 --updates 10 --pools 100%,90%,50%,10% \\
      --device slow:nvme --json

Each row of the result is one pool; data_over_pool says how many times larger the data are.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    workload: YcsbArgs,
    /// Pool sizes, separated by commas; % are shares of the loaded pages
    #[arg(long, value_delimiter = ',', value_name = "SIZES")]
    #[arg(default_value = "100%,95%,90%,80%,65%,50%,35%,25%,20%,10%")]
    pools: Vec<String>,
    /// Rounds; every pool has a cold turn in each, and more than one round gives intervals
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Before each turn, only read from the device for this many seconds, with as many threads;
    /// share_of_device is the run's read rate over the probe's
    #[arg(long, default_value = "0", value_name = "S")]
    probe: f64,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    arguments: RunArguments,
    #[command(flatten)]
    results: ResultArgs,
}

/// A pool size and the results of its rounds.
struct Course {
    name: String,
    size: Size,
    outcomes: Vec<Outcome>,
    /// Pages per second that the device delivered before each round.
    probes: Vec<f64>,
    info: Option<InstanceInfo>,
}

impl Course {
    fn new(name: &str) -> Result<Course, Failure> {
        let (name, size) = (name.to_string(), size(name)?);
        Ok(Course { name, size, outcomes: Vec::new(), probes: Vec::new(), info: None })
    }

    /// Runs one round: a cold start, the probe if one is wanted, the run. Returns `true` to
    /// continue.
    fn round(
        &mut self,
        instance: &mut dyn Instance,
        spec: &RunSpec,
        threads: u32,
        probe: Duration,
        live: &mut ProgressLine,
    ) -> Result<bool, BenchError> {
        live.begin(&format!("pool of {}", self.name));
        instance.reopen(Some(self.size))?;
        let probed = if probe.is_zero() { None } else { instance.probe(threads, probe)? };
        let outcome = match instance.run(spec, &mut |_| Ok(()), live) {
            Err(BenchError::Stopped) => return Ok(false),
            outcome => outcome?,
        };
        let was_stopped = outcome.was_stopped;
        // A stopped run counts if there is no other.
        if !was_stopped || self.outcomes.is_empty() {
            self.outcomes.push(outcome);
            self.probes.extend(probed);
        }
        self.info = Some(instance.info().clone());
        Ok(!was_stopped)
    }

    fn row(&self) -> Option<(Row, Option<(f64, f64)>)> {
        let (all, info) = (Outcome::of_rounds(&self.outcomes)?, self.info.as_ref()?);
        let rates: Vec<f64> = self.outcomes.iter().map(|o| o.throughput_per_s).collect();
        let over = info.frames.map(|frames| info.pages as f64 / f64::from(frames.max(1)));
        let mut row = Row::new(&self.name, &info.engine.to_string(), all.threads)
            .with_outcome(&all, info.engine)
            .with_facts(info)
            .with("data_over_pool", over)
            .with("rounds", self.outcomes.len() as u64);
        if self.outcomes.len() > 1
            && let Some(interval) = Interval::of_rates(&rates)
        {
            row = row.with("throughput_low", interval.low).with("throughput_high", interval.high);
        }
        let reads = self.outcomes.iter().map(|outcome| {
            outcome.counts.map_or(0.0, |counts| counts.reads as f64 / outcome.seconds.max(1e-9))
        });
        let reads: Vec<f64> = reads.collect();
        row = row.with("reads_per_s", Interval::of_rates(&reads).map(|interval| interval.mean));
        if let Some(probe) = Interval::of_rates(&self.probes) {
            row = row.with("device_reads_per_s", probe.mean);
            if let Some(share) = Interval::of_ratios(&reads, &self.probes) {
                row = row.with_interval("share_of_device", &share);
            }
        }
        Some((row, over.map(|over| (over, all.throughput_per_s))))
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let courses = args.pools.iter().map(|name| Course::new(name));
    let mut courses: Vec<Course> = courses.collect::<Result<_, _>>()?;
    let (spec, probe) = (args.arguments.spec()?, seconds("probe", args.probe)?);
    let workload = args.workload.workload(args.arguments.threads())?;
    let mut live = ProgressLine::new(args.arguments.quiet);
    let mut instance = prepare(&args.engine.setup()?, &workload, &mut live)?;
    let mut goes_on = true;
    'rounds: for _ in 0..args.rounds {
        for course in &mut courses {
            goes_on = course.round(
                instance.as_mut(),
                &spec,
                args.arguments.threads(),
                probe,
                &mut live,
            )?;
            if !goes_on {
                break 'rounds;
            }
        }
    }
    live.finish();
    let (rows, points): (Vec<Row>, Vec<_>) = courses.iter().filter_map(Course::row).unzip();
    let own = json!({ "pools": args.pools, "rounds": args.rounds, "probe": args.probe });
    let parts = [args.workload.params(), args.arguments.params(), args.engine.params(), own];
    args.results.draw(|| {
        LinePlot {
            title: "As data outgrow the pool".to_string(),
            note: format!("Device: {}", args.engine.params()["device"]),
            x: "data over pool".to_string(),
            y: "operations per second".to_string(),
            lines: vec![Line {
                label: "throughput".to_string(),
                points: points.into_iter().flatten().collect(),
                ..Line::default()
            }],
            ..LinePlot::default()
        }
        .render()
    })?;
    args.results.write("bench outgrow", &joined(parts), &table(rows))?;
    if goes_on { Ok(()) } else { Err(Failure::Interrupted) }
}
