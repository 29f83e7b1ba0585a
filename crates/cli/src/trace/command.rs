//! The subcommands of `millpond trace`.

use std::path::PathBuf;

use clap::Subcommand;
use millpond_lab::registry::Registry;
use millpond_lab::table::{Table, Value};
use millpond_workload::formats;
use millpond_workload::trace::Batch;
use serde_json::json;

use super::write_out::write_trace;
use super::{generate, stat};
use crate::error::Failure;
use crate::output::{Output, apart, complain};
use crate::reading::Reading;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Describe a trace: references, pages, writes, skew, reuse distances, footprint
    Stat(stat::Args),
    /// Write a trace in another format
    Convert(ConvertArgs),
    /// Generate a synthetic trace, or a storage-level trace from a page trace
    Gen(Box<generate::Args>),
    /// Print the first references
    Head(HeadArgs),
}

const CONVERT_EXAMPLES: &str = "Examples:
  millpond trace convert OLTP.lis.zst oltp.parquet
  millpond trace convert trace.csv --columns page=3,op=5 trace.oracleGeneral.zst";

#[derive(clap::Args, Debug)]
#[command(after_help = CONVERT_EXAMPLES)]
struct ConvertArgs {
    /// The trace to read; - is standard input
    from: PathBuf,
    /// The file to write: .parquet, .csv, .txt or oracleGeneral, all but Parquet with .gz or .zst
    to: PathBuf,
    /// Format to write, if the name does not tell it
    #[arg(long, value_name = "FORMAT")]
    to_format: Option<String>,
    #[command(flatten)]
    reading: Reading,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(clap::Args, Debug)]
struct HeadArgs {
    /// The trace; - is standard input
    trace: PathBuf,
    /// Number of references
    #[arg(long, short = 'n', default_value_t = 10)]
    lines: usize,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    match &args.command {
        Command::Stat(args) => stat::run(args),
        Command::Convert(args) => convert(args),
        Command::Gen(args) => generate::run(args, registry),
        Command::Head(args) => head(args),
    }
}

fn convert(args: &ConvertArgs) -> Result<(), Failure> {
    apart(Some(&args.to), [&args.from])?;
    let mut source = formats::open(&args.from, &args.reading.options()?)?;
    let format = args.to_format.as_deref();
    let references = write_trace(source.as_mut(), &args.to, format, args.quiet)?;
    complain(&format!("{}: {references} references", args.to.display()));
    Ok(())
}

fn head(args: &HeadArgs) -> Result<(), Failure> {
    args.output.check([&args.trace])?;
    let mut source = formats::open(&args.trace, &args.reading.options()?)?;
    let mut batch = Batch::default();
    while batch.len() < args.lines {
        let missing = args.lines - batch.len();
        if source.fill(&mut batch, missing)? == 0 {
            break;
        }
    }
    source.notes().iter().for_each(|note| complain(&format!("{}: {note}", args.trace.display())));
    let mut table = Table::new(["page", "op", "reason", "kind", "depth", "scan", "lsn"]);
    for (at, (page, mark)) in batch.pages.iter().zip(&batch.marks).enumerate() {
        table.rows.push(vec![
            (*page).into(),
            if mark.is_write() { "W" } else { "R" }.into(),
            mark.reason().name().into(),
            u32::from(mark.kind().0).into(),
            u32::from(mark.depth()).into(),
            u32::from(mark.is_scan()).into(),
            batch.lsns.get(at).map_or(Value::Empty, |lsn| lsn.0.into()),
        ]);
    }
    args.output.write("trace head", &json!({"trace": args.trace.display().to_string()}), &table)
}
