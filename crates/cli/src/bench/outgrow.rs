//! `millpond bench outgrow`: throughput as data outgrow the pool, which should fall smoothly.
//!
//! The data are loaded once; the store is opened again with one pool after the other, from one for
//! all of them to one for a small part.

use millpond_base::Size;
use millpond_bench::bed::prepare;
use millpond_bench::error::BenchError;
use millpond_bench::runner::Observer;
use millpond_bench::table::{Row, table};
use millpond_lab::report::{Line, LinePlot};
use serde_json::json;

use super::engine::{Duty, EngineArgs, joined, size};
use super::live::Live;
use super::results::ResultArgs;
use super::workload::YcsbArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond bench outgrow --rows 2000000 --device file:/data/bench --plot outgrow.html
  millpond bench outgrow --theta 0.99 --updates 10 --pools 100%,90%,50%,10% --device slow:nvme --json

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
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    duty: Duty,
    #[command(flatten)]
    results: ResultArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check()?;
    let sizes: Vec<Size> = args.pools.iter().map(|text| size(text)).collect::<Result<_, _>>()?;
    let spec = args.duty.spec()?;
    let workload = args.workload.workload(args.duty.threads())?;
    let mut live = Live::new(args.duty.quiet);
    let mut bed = prepare(&args.engine.setup()?, &workload, &mut live)?;
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    let mut was_stopped = false;
    for (name, size) in args.pools.iter().zip(sizes) {
        bed.reopen(Some(size))?;
        live.begin(&format!("pool of {name}"));
        let outcome = match bed.run(&spec, &mut |_| Ok(()), &mut live) {
            Err(BenchError::Stopped) => {
                was_stopped = true;
                break;
            }
            outcome => outcome?,
        };
        was_stopped = outcome.was_stopped;
        let facts = bed.facts();
        let row = Row::new(name, &facts.engine.to_string(), outcome.threads)
            .with_outcome(&outcome, facts.engine)
            .with_facts(facts);
        let shown = table([row.clone()]);
        let number = |column| shown.get(0, column).and_then(|value| value.number());
        let ratio = number("data_pages").zip(number("pool_frames")).map(|(d, p)| d / p.max(1.0));
        points.extend(ratio.zip(number("throughput_per_s")));
        rows.push(row.with("data_over_pool", ratio));
        if was_stopped {
            break;
        }
    }
    live.finish();
    let own = json!({ "pools": args.pools });
    let parts = [args.workload.params(), args.duty.params(), args.engine.params(), own];
    args.results.draw(|| LinePlot {
        title: "As data outgrow the pool".to_string(),
        note: format!("Device: {}", args.engine.params()["device"]),
        x: "data over pool".to_string(),
        y: "operations per second".to_string(),
        lines: vec![Line { label: "throughput".to_string(), points }],
    })?;
    args.results.write("bench outgrow", &joined(parts), &table(rows))?;
    if was_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}
