//! `millpond bench scan`: two tables scanned without end, over pool sizes (leanstore VI-C).

use millpond_base::Size;
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, table};
use millpond_bench::instance::setup::Setup;
use millpond_bench::instance::{Instance, prepare};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Observer, Outcome};
use millpond_lab::report::{Line, LinePlot};
use millpond_workload::tpcc;
use serde_json::json;

use super::engine::{EngineArgs, RunArguments, joined, size};
use super::progress_line::ProgressLine;
use super::results::ResultArgs;
use super::workload::TpccScale;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench scan --warehouses 5 --device slow:nvme
  millpond bench scan --warehouses 20 --pools 10%,25%,50%,100% \\
      --device file:/data/bench --json

One thread scans the orders, the other one the order lines, over and over; each row of the \
result is one of them with one pool.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scale: TpccScale,
    /// Pool sizes, separated by commas; % are shares of the loaded pages
    #[arg(long, default_value = "5%,10%,20%,40%", value_delimiter = ',', value_name = "SIZES")]
    pools: Vec<String>,
    /// Mark the scans as scans: their pages leave the pool first
    #[arg(long)]
    scan_hints: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    arguments: RunArguments,
    #[command(flatten)]
    results: ResultArgs,
}

/// Returns the result rows of both tables for one pool.
fn rows_of(name: &str, outcome: &Outcome, instance: &dyn Instance, classes: &[&str]) -> Vec<Row> {
    let info = instance.info();
    let bytes = instance.row_bytes();
    let seconds = outcome.seconds.max(1e-9);
    let row = |(index, class): (usize, &&str)| {
        let per_s = outcome.by_class[index] as f64 / seconds;
        let row_bytes = bytes.get(index).copied().unwrap_or(0.0);
        let reads = outcome.counts.map(|counts| counts.reads as f64 / seconds);
        let step = format!("{name} {class}");
        Row::new(&step, &info.engine.to_string(), outcome.threads)
            .with("table", *class)
            .with("pool", name)
            .with("rows_per_s", per_s)
            .with("mib_per_s", per_s * row_bytes / 1048576.0)
            .with("reads_per_s", reads)
            .with_outcome(outcome, info.engine)
            .with_facts(info)
    };
    classes.iter().enumerate().map(row).collect()
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let sizes: Vec<Size> = args.pools.iter().map(|text| size(text)).collect::<Result<_, _>>()?;
    let spec = args.arguments.spec()?;
    let config = tpcc::Config::standard(args.scale.scale(1), args.arguments.threads().max(2));
    let workload = Workload::Scan(config);
    let mut live = ProgressLine::new(args.arguments.quiet);
    let setup = Setup { scan_hints: args.scan_hints, ..args.engine.setup()? };
    let mut instance = prepare(&setup, &workload, &mut live)?;
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    lines.extend(
        workload.classes().iter().map(|class| Line { label: class.to_string(), ..Line::default() }),
    );
    let mut was_stopped = false;
    for (name, size) in args.pools.iter().zip(sizes) {
        instance.reopen(Some(size))?;
        live.begin(&format!("pool of {name}"));
        let outcome = match instance.run(&spec, &mut |_| Ok(()), &mut live) {
            Err(BenchError::Stopped) => {
                was_stopped = true;
                break;
            }
            outcome => outcome?,
        };
        was_stopped = outcome.was_stopped;
        let of_size = rows_of(name, &outcome, instance.as_ref(), &workload.classes());
        let shown = table(of_size.clone());
        for (index, line) in lines.iter_mut().enumerate() {
            let number = |column| shown.get(index, column).and_then(|value| value.number());
            line.points.extend(number("pool_frames").zip(number("mib_per_s")));
        }
        rows.extend(of_size);
        if was_stopped {
            break;
        }
    }
    live.finish();
    let own = json!({ "pools": args.pools, "scan_hints": args.scan_hints });
    let parts = [args.scale.params(1), args.arguments.params(), args.engine.params(), own];
    args.results.draw(|| {
        LinePlot {
            title: "Two scans at once, over the pool's size".to_string(),
            note: format!("Device: {}", args.engine.params()["device"]),
            x: "frames".to_string(),
            y: "MiB of rows per second".to_string(),
            lines,
            ..LinePlot::default()
        }
        .render()
    })?;
    args.results.write("bench scan", &joined(parts), &table(rows))?;
    if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}
