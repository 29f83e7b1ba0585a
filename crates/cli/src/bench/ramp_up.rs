//! `millpond bench ramp-up`: a cold start on slow devices, throughput over time (leanstore VI-A).

use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::{Row, series_rows, table};
use millpond_bench::instance::prepare;
use millpond_bench::instance::setup::DeviceSpec;
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, Observer, RunSpec};
use millpond_lab::report::LinePlot;
use millpond_workload::tpcc;
use serde_json::json;

use super::engine::{EngineArgs, RunArguments, growth, joined};
use super::progress_line::ProgressLine;
use super::results::{ResultArgs, line};
use super::workload::TpccScale;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench ramp-up --warehouses 5 --seconds 60 --plot ramp-up.html
  millpond bench ramp-up --devices slow:sata,slow:disk,file:/data/bench \\
      --seconds 120 --json

The data is loaded, the store closed and opened again with an empty pool behind the device. Rows \
with a second are the time series; the others are the whole run.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scale: TpccScale,
    /// Devices, separated by commas, instead of --device
    #[arg(long, value_delimiter = ',', value_name = "DEVICES")]
    #[arg(default_value = "slow:nvme,slow:sata,slow:disk,slow:array")]
    devices: Vec<DeviceSpec>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    arguments: RunArguments,
    #[command(flatten)]
    results: ResultArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let spec = RunSpec { warm_up: Length::NONE, ..args.arguments.spec()? };
    let threads = args.arguments.threads();
    let workload = Workload::Tpcc(tpcc::Config::standard(args.scale.scale(1), threads));
    let mut live = ProgressLine::new(args.arguments.quiet);
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let mut was_stopped = false;
    for device in &args.devices {
        let mut setup = args.engine.setup()?;
        (setup.device, setup.cold) = (device.clone(), true);
        setup.growth = growth(&workload, &spec, threads, 1);
        let name = device.to_string();
        live.begin(&name);
        let mut instance = prepare(&setup, &workload, &mut live)?;
        live.begin(&name);
        let outcome = match instance.run(&spec, &mut |_| Ok(()), &mut live) {
            Err(BenchError::Stopped) => {
                was_stopped = true;
                break;
            }
            outcome => outcome?,
        };
        was_stopped = outcome.was_stopped;
        let info = instance.info();
        let head = Row::new(&name, &info.engine.to_string(), threads);
        let series = series_rows(&head, &outcome.series);
        lines.push(line(&name, &table(series.clone()), "second", "throughput_per_s"));
        rows.push(head.with_outcome(&outcome, info.engine).with_facts(info));
        rows.extend(series);
        if was_stopped {
            break;
        }
    }
    live.finish();
    let devices: Vec<String> = args.devices.iter().map(DeviceSpec::to_string).collect();
    let own = json!({ "devices": devices });
    let parts = [args.scale.params(1), args.arguments.params(), args.engine.params(), own];
    args.results.draw(|| {
        LinePlot {
            title: "From a cold start".to_string(),
            note: "TPC-C right after opening, with nothing in memory.".to_string(),
            x: "second".to_string(),
            y: "transactions per second".to_string(),
            lines,
            ..LinePlot::default()
        }
        .render()
    })?;
    args.results.write("bench ramp-up", &joined(parts), &table(rows))?;
    if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}
