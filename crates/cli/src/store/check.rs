//! `millpond check`: damage in a store, and where it is.

use std::path::Path;

use millpond::internals::admin::check::{CATALOG, CheckError, CheckOptions, Report, check};
use millpond::internals::page::PageSize;
use millpond_lab::table::{Table, Value};
use serde_json::json;

use super::open::{StoreArgs, size_of};
use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output, complain, print};
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond check shop.db
  millpond check shop.db --format json

Every page is read; nothing is written. Exit code 1 if anything is wrong.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// List this many problems at most
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    max_problems: usize,
    /// Bytes of a page, where the file is too damaged to tell
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<PageSize>,
    #[command(flatten)]
    output: Output,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn page_size(text: &str) -> Result<PageSize, String> {
    PageSize::new(size_of(text)?).map_err(|error| error.to_string())
}

/// Checks a file, showing progress.
pub(crate) fn look(
    file: &Path,
    page_size: Option<PageSize>,
    problems_max: usize,
    quiet: bool,
) -> Result<Report, Failure> {
    let bar = Progress::new(quiet);
    let mut progress = |at: millpond::internals::admin::check::Progress| {
        let share = at.done as f64 / at.pages.max(1) as f64;
        bar.show("checking", Some(share), at.done, "pages");
        !interrupt::asked()
    };
    let mut options = CheckOptions { problems_max, page_size, ..CheckOptions::default() };
    options.progress = Some(&mut progress);
    let report = check(file, CATALOG, options);
    bar.finish();
    report.map_err(|error| match error {
        CheckError::Interrupted => Failure::Interrupted,
        other => Failure::Store(other.to_string()),
    })
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check([&args.store.file])?;
    let report = look(&args.store.file, args.page_size, args.max_problems, args.quiet)?;
    let plain = args.output.format == Form::Table && args.output.out.is_none();
    if plain {
        let lines = report.problems.iter().map(|problem| format!("{problem}\n"));
        print(&lines.collect::<String>())?;
    } else {
        args.output.write("check", &params(&args.store.file, &report), &rows(&report))?;
    }
    if report.is_sound() {
        complain(&summary(&report));
        return Ok(());
    }
    let count = report.problem_count();
    let problems = if count == 1 { "problem" } else { "problems" };
    Err(Failure::Store(format!("{count} {problems} found; {}", summary(&report))))
}

fn summary(report: &Report) -> String {
    let counts = report.counts;
    let free = match counts.lost {
        0 => format!("{} are free", counts.free),
        lost => format!("{} are free, {lost} cannot be reached", counts.free),
    };
    format!(
        "{}: {} pages of {} were read, {} are in use by {} structures, {free}",
        report.path.display(),
        report.pages,
        report.page_size,
        counts.used,
        report.structures.len(),
    )
}

fn params(file: &Path, report: &Report) -> serde_json::Value {
    let counts = report.counts;
    json!({
        "file": file.display().to_string(),
        "page_size": report.page_size.bytes(),
        "pages": report.pages,
        "pages_used": counts.used,
        "pages_free": counts.free,
        "pages_lost": counts.lost,
        "pages_unreadable": counts.unreadable,
        "sound": report.is_sound(),
        "problems_left_out": report.problems_left_out,
    })
}

fn rows(report: &Report) -> Table {
    let mut table = Table::new(["page", "offset", "structure", "problem"]);
    for problem in &report.problems {
        let structure = problem.structure.clone().map_or(Value::Empty, Value::from);
        let what = problem.fault.to_string();
        table.rows.push(vec![problem.page.0.into(), problem.offset.into(), structure, what.into()]);
    }
    table
}
