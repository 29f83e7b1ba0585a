//! `millpond advise`: which policy for a trace.

use std::path::PathBuf;

use millpond::internals::store::options::POLICY_DEFAULT;
use millpond_base::Size;
use millpond_lab::advise::{Advice, AdviseError, AdviseOptions, advise};
use millpond_lab::compare::Verdict;
use millpond_lab::registry::Registry;
use millpond_workload::formats;
use serde_json::json;

use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output, complain, print};
use crate::progress::Progress;
use crate::reading::Reading;

const EXAMPLES: &str = "Examples:
  millpond advise trace.parquet                   a shortlist at five sizes
  millpond advise trace.csv --size 256MiB         what the pool really has
  millpond advise trace.parquet --write-weight 4  a write costs four reads
  millpond advise trace.parquet --policy 'lirs(hirs=2%)' --json

Scans that the trace marks are hints, as with millpond sim --scan-hints, for all policies but opt.

A trace of your own workload is best: millpond bench tpcc --record trace.parquet";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Pool sizes, separated by commas: frames, bytes (64MiB) or % of the distinct pages
    /// [default: 2%,5%,10%,20%,40%]
    #[arg(long, short, value_delimiter = ',', value_name = "SIZES")]
    size: Vec<Size>,
    /// Cost of a page write, in page reads
    #[arg(long, default_value_t = 1.0, value_name = "W", value_parser = weight)]
    write_weight: f64,
    /// Policies to run beside the shortlist
    #[arg(long, short, value_name = "POLICIES")]
    policy: Vec<String>,
    /// The policy that all others are compared with
    #[arg(long, default_value = POLICY_DEFAULT, value_name = "POLICY")]
    default: String,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    output: Output,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(weight) if (0.0..=1e6).contains(&weight) => Ok(weight),
        _ => Err("a write costs 0 to 1000000 reads".to_string()),
    }
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let mut output = args.output.clone();
    if args.json {
        output.format = Form::Json;
    }
    output.check([&args.trace])?;
    let options = AdviseOptions {
        more: args.policy.clone(),
        sizes: args.size.clone(),
        page_size: args.reading.page_bytes()?,
        write_weight: args.write_weight,
        ..AdviseOptions::new(&args.default)
    };
    let mut source = formats::open(&args.trace, &args.reading.options()?)?;
    let progress = Progress::new(args.quiet);
    let mut watch = |what: &str, share: f64| {
        progress.show(what, Some(share), 0, "");
        !interrupt::asked()
    };
    let name = args.trace.display().to_string();
    let advice = advise(&name, source.as_mut(), registry, &options, &mut watch);
    progress.finish();
    source.notes().iter().for_each(|note| complain(&format!("{name}: {note}")));
    let advice = advice.map_err(failure)?;
    let lines = advice.lines();
    if output.format == Form::Table {
        print(&format!("{}\n\n", lines.join("\n")))?;
        return output.write("advise", &json!({}), &advice.summary());
    }
    output.write("advise", &params(&advice, &lines), &advice.table())
}

fn params(advice: &Advice, lines: &[String]) -> serde_json::Value {
    json!({
        "trace": advice.trace,
        "references": advice.references,
        "pages": advice.pages,
        "write_share": advice.write_share,
        "once_share": advice.once_share,
        "scan_hints": advice.has_scans,
        "sizes": advice.sizes,
        "write_weight": advice.write_weight,
        "default": advice.default,
        "choice": advice.choice,
        "ties": advice.ties(),
        "alike": advice.with(Verdict::Alike),
        "open": advice.with(Verdict::Open),
        "advice": lines,
    })
}

fn failure(error: AdviseError) -> Failure {
    match error {
        AdviseError::Trace(error) => Failure::Trace(error),
        AdviseError::Policy(error) => error.into(),
        AdviseError::Param(error) => Failure::Param(error),
        AdviseError::Size(text) => Failure::Usage(text),
        AdviseError::Stopped => Failure::Interrupted,
        other => Failure::Partly(other.to_string()),
    }
}
