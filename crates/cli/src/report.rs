//! `millpond report`: writes result directories as one page.

use std::path::PathBuf;

use millpond_lab::report::{ReportData, ReportOptions, render};

use crate::compare::compared;
use crate::error::Failure;
use crate::output::{complain, write_whole};

const EXAMPLES: &str = "Examples:
  millpond report results/sim-0123456789abcdef --out comparison.html
  millpond report results/* --title 'OLTP, all policies' --relative-to arc
  millpond report results/* --compare=misses+2*writes";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Result directories
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The page to write
    #[arg(long, short, default_value = "report.html", value_name = "FILE")]
    out: PathBuf,
    /// Heading of the page
    #[arg(long, default_value = "Page replacement, measured")]
    title: String,
    /// The policy that the heat map is relative to [default: tide, else watt, else the first one]
    #[arg(long, value_name = "POLICY")]
    relative_to: Option<String>,
    /// Begin with a comparison of the policies by a metric, like `millpond compare`
    #[arg(long, value_name = "METRIC", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    compare: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let data = ReportData::read(&args.dirs)?;
    let relative_to = args.relative_to.as_deref().map(|asked| data.reference(asked)).transpose()?;
    let sections = match args.compare.as_deref() {
        Some(metric) => compared(&args.dirs, metric)?.sections(),
        None => Vec::new(),
    };
    let options = ReportOptions {
        title: args.title.clone(),
        sections,
        relative_to,
        ..ReportOptions::default()
    };
    let page = render(&data, &options);
    write_whole(&args.out, |out| Ok(out.write_all(page.as_bytes())?))?;
    complain(&format!("report: {}", args.out.display()));
    Ok(())
}
