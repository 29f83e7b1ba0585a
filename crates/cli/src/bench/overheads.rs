//! `millpond bench overheads`: costs of log, locks, pool and a second thread, judged against
//! bars.

use millpond_bench::error::BenchError;
use millpond_bench::experiments::overheads::{
    ARMS, Cost, Judged, Overheads, Repetition, bars, judge, overheads,
};
use millpond_bench::experiments::table::{Row, table};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar as Drawn, BarPlot};
use millpond_lab::table::{Table, Value};
use millpond_profile::Components;
use millpond_workload::tpcc::Mix;
use serde_json::json;

use super::breakdown::{tiny_rows, tpcc_of, ycsb_of};
use super::engine::{EngineArgs, growth, joined, run_spec};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench overheads
  millpond bench overheads --repetitions 15 --seconds 10 --json \\
      --out overheads.json
  millpond bench overheads --tiny --seconds 0.5 --html bars.html

Bars are ratios of CPU time per transaction, over that of the same workload with one thread and \
neither log nor locks, or over that of one thread. A component's time is its share of the \
samples, latching included, of what a transaction takes while nothing is sampled. A bar is met \
if the whole 95 % interval over the repetitions is below it, missed if it is above, and open \
otherwise. Each repetition loads and runs every arm once. The flags --engine, --log and --locks \
are set by the arms. The process samples itself: kernel.perf_event_paranoid must be 2 at most, 1 \
for the kernel's time.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Repetitions; every arm runs once in each
    #[arg(long, default_value_t = 5, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Seconds of each run; an arm with log or locks has one sampled run between two unsampled runs
    /// of half the time
    #[arg(long, short, default_value = "5", value_name = "S")]
    seconds: f64,
    /// Seconds of warm-up before anything is counted
    #[arg(long, default_value = "1", value_name = "S")]
    warm_up: f64,
    /// Warehouses of TPC-C, with one thread and with two
    #[arg(long, short, default_value_t = 2, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: u32,
    /// Rows of YCSB, one kilobyte each
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Use a hundredth of the rows, for trying things out
    #[arg(long)]
    tiny: bool,
    /// No live progress line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    fn what(&self) -> Result<Overheads, Failure> {
        let tpcc = tpcc_of(self.warehouses, self.tiny, Mix::STANDARD, 1);
        let ycsb = ycsb_of(tiny_rows(self.rows, self.tiny), 0, 1);
        let spec = run_spec(self.warm_up, self.seconds)?;
        let mut base = self.engine.setup_of_steps()?;
        // One sampled run, and two of half the time.
        let threads = ARMS.iter().map(|arm| arm.threads).max().unwrap_or(1);
        base.growth = growth(&tpcc, &spec, threads, 2);
        Ok(Overheads { base, tpcc, ycsb, spec, repetitions: self.repetitions })
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let what = args.what()?;
    let components = Components::shipped().map_err(BenchError::from)?;
    let mut live = ProgressLine::new(args.quiet);
    let measured = overheads(&what, &components, &mut live);
    live.finish();
    let measured = measured?;
    let judged = judge(bars(&components), &measured);
    let own = json!({
        "repetitions": args.repetitions,
        "seconds": args.seconds,
        "warm_up": args.warm_up,
        "warehouses": args.warehouses,
        "rows": args.rows,
        "tiny": args.tiny,
    });
    let params = joined([own, args.engine.params()]);
    let costs = (1u64..)
        .zip(&measured)
        .flat_map(|(turn, repetition)| repetition.0.iter().map(move |cost| cost_row(turn, cost)));
    let rows = table(judged.iter().map(bar_row).chain(costs));
    args.results.write_parts("bench overheads", &params, &rows, &parts(&judged, &measured))?;
    args.results.draw(|| plot(&judged).render())?;
    let was_stopped = measured.len() < args.repetitions as usize;
    if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}

fn bar_row(judged: &Judged) -> Row {
    let row = Row::default()
        .with("part", "bar")
        .with("bar", judged.bar.id)
        .with("what", judged.bar.what.as_str())
        .with("at_most", judged.bar.most)
        .with("verdict", judged.verdict())
        .with("repetitions", judged.repetitions as u64);
    match &judged.ratio {
        Some(ratio) => row.with_interval("ratio", ratio),
        None => row,
    }
}

fn cost_row(turn: u64, cost: &Cost) -> Row {
    Row::default()
        .with("part", "arm")
        .with("workload", cost.arm.load.to_string())
        .with("engine", cost.arm.part.to_string())
        .with("threads", cost.arm.threads)
        .with("repetition", turn)
        .with("cpu_us_per_tx", cost.us)
        .with("logging_us_per_tx", cost.logging_us)
        .with("locking_us_per_tx", cost.locking_us)
        .with("throughput_per_s", cost.throughput_per_s)
        .with("samples", cost.samples)
        .with("unassigned", cost.unassigned)
}

/// Returns the printed parts: the bars, and the times that they are computed from.
fn parts(judged: &[Judged], measured: &[Repetition]) -> Vec<(String, Table)> {
    let decimals = |number: f64| -> Value { format!("{number:.3}").into() };
    let none = || Value::from("–");
    let mut table =
        Table::new(["ratio of CPU time per transaction", "is", "95 %", "bar", "verdict"]);
    table.rows.extend(judged.iter().map(|one| {
        let ratio = one.ratio;
        let ends = ratio.map(|ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high));
        vec![
            one.bar.what.as_str().into(),
            ratio.map_or_else(none, |ratio| decimals(ratio.mean)),
            ends.map_or_else(none, Value::from),
            format!("{:.2}", one.bar.most).into(),
            one.verdict().into(),
        ]
    }));
    let repetitions = measured.len();
    let plural = if repetitions == 1 { "" } else { "s" };
    let mut head =
        format!("What log, locks, pool and a second thread cost: {repetitions} repetition{plural}");
    if repetitions == 1 {
        head += ", which has no interval and decides nothing";
    }
    let costs = || measured.iter().flat_map(|repetition| &repetition.0);
    if let Some(cost) = costs().find(|cost| !cost.caveats.is_empty()) {
        head += &format!("\n{}", cost.caveats.join("\n"));
    }
    let mut arms = Table::new(["workload", "engine", "threads", "µs", "logging", "locking"]);
    for arm in ARMS {
        let mean = |of: fn(&Cost) -> Option<f64>| {
            let values: Option<Vec<f64>> = costs().filter(|cost| cost.arm == arm).map(of).collect();
            Interval::of_rates(&values?)
        };
        let cell = |value: Option<Interval>| value.map_or_else(none, |v| format!("{v:.2}").into());
        arms.rows.push(vec![
            arm.load.to_string().into(),
            arm.part.to_string().into(),
            arm.threads.into(),
            cell(mean(|cost| Some(cost.us))),
            cell(mean(|cost| cost.logging_us)),
            cell(mean(|cost| cost.locking_us)),
        ]);
    }
    let text = "µs of CPU time per transaction, with 95 % intervals";
    vec![(head, table), (text.to_string(), arms)]
}

/// Plots each ratio as a share of its limit.
fn plot(judged: &[Judged]) -> BarPlot {
    let bars = judged.iter().filter_map(|one| {
        let value = one.ratio?.times(1.0 / one.bar.most);
        let series = "of what it may be".to_string();
        Some(Drawn { group: one.bar.id.to_string(), series, value })
    });
    let each = judged.iter().map(|one| {
        let (bar, verdict) = (&one.bar, one.verdict());
        let ratio = one.ratio.map_or_else(|| "not known".to_string(), |ratio| ratio.to_string());
        format!("{}: {} is {ratio}, at most {:.2}: {verdict}.", bar.id, bar.what, bar.most)
    });
    BarPlot {
        title: "What log, locks, pool and a second thread cost, over what they may".to_string(),
        note: each.collect::<Vec<_>>().join(" "),
        y: "ratio over its bar: met below 1".to_string(),
        bars: bars.collect(),
    }
}
