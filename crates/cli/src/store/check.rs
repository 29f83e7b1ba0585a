//! `millpond check`: damage in a store, and where it is.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use millpond::Options;
use millpond::internals::admin::check::{
    CATALOG, CheckError, CheckOptions, Report, check, check_store, rows_in_log,
};
use millpond::internals::admin::log_view::DevicePair;
use millpond::internals::io::PageStore;
use millpond::internals::page::PageSize;
use millpond_device::FileOptions;
use millpond_lab::table::{Table, Value};
use serde_json::json;

use super::open::{StoreArgs, size_of};
use super::trial;
use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output, complain, print};
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  millpond check shop.db
  millpond check shop.db --format json
  millpond check shop.db --unrecovered   the file as it is, without its log

Every page is read; nothing is written. A store whose process or machine stopped \
is checked as the next program will find it: recovered, in memory that must hold all pages that \
change. Exit code 1 if anything is wrong.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// List this many problems at most
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    max_problems: usize,
    /// Bytes of a page, if the file is too damaged to tell
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<PageSize>,
    /// Check only the file of a store that was not closed, without recovering it
    #[arg(long)]
    unrecovered: bool,
    #[command(flatten)]
    output: Output,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn page_size(text: &str) -> Result<PageSize, String> {
    PageSize::new(size_of(text)?).map_err(|error| error.to_string())
}

/// Bytes of the smallest page there is.
const SMALLEST_PAGE: usize = 4096;

/// Options of a check.
pub(crate) struct Look {
    /// Bytes of a page, where the file is too damaged to tell.
    pub page_size: Option<PageSize>,
    pub problems_max: usize,
    pub quiet: bool,
    /// Set to check the file without its log, even if the store was not closed.
    pub unrecovered: bool,
}

/// Checks a store and shows progress. A store that was not closed is first recovered in
/// memory.
pub(crate) fn look(file: &Path, how: &Look) -> Result<Report, Failure> {
    let trial = if how.unrecovered { None } else { recovered(file, how)? };
    let bar = Progress::new(how.quiet);
    let mut progress = |at: millpond::internals::admin::check::Progress| {
        let share = at.done as f64 / at.pages.max(1) as f64;
        bar.show("checking", Some(share), at.done, "pages");
        !interrupt::asked()
    };
    let mut options = CheckOptions {
        problems_max: how.problems_max,
        page_size: how.page_size,
        ..CheckOptions::default()
    };
    options.progress = Some(&mut progress);
    let report = match trial {
        None => check(file, CATALOG, options),
        Some((data, log)) => {
            PageStore::salvage_on(data, how.page_size).map_err(CheckError::from).and_then(|store| {
                options.rows = rows_in_log(&store, log);
                check_store(&store, CATALOG, &mut options)
            })
        }
    };
    bar.finish();
    report.map_err(|error| match error {
        CheckError::Interrupted => Failure::Interrupted,
        other => Failure::Store(other.to_string()),
    })
}

/// Recovers the store in memory, if it was not closed and recovery succeeds.
fn recovered(file: &Path, how: &Look) -> Result<Option<DevicePair>, Failure> {
    if !was_left_open(file, how.page_size) {
        return Ok(None);
    }
    let bar = Arc::new(Progress::new(how.quiet));
    let tried = trial::in_memory(file, Options::new().memory(trial::MEMORY), &bar);
    bar.finish();
    let name = file.display();
    match tried {
        Ok((devices, Some(_))) => {
            complain(&format!(
                "{name} was not closed: it is checked as a recovery, which was tried out in memory, \
                 leaves it; no file was changed"
            ));
            Ok(Some(devices))
        }
        Ok((_, None)) => Ok(None),
        Err(error) if interrupt::asked() => {
            drop(error);
            Err(Failure::Interrupted)
        }
        Err(error) => {
            complain(&format!(
                "{name} was not closed, and cannot be recovered, so that the file is checked without \
                 its log: {error}"
            ));
            Ok(None)
        }
    }
}

/// Returns `true` if the store's process stopped without closing it: its superblock is not
/// marked closed, or was never written.
fn was_left_open(file: &Path, page_size: Option<PageSize>) -> bool {
    let begins_with_nothing = || {
        let mut first = [1; SMALLEST_PAGE];
        let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut first));
        read.is_ok() && first.iter().all(|byte| *byte == 0)
    };
    match PageStore::open_for_salvage(file, page_size, &FileOptions::default()) {
        Ok(store) => store.superblock().map_or_else(begins_with_nothing, |block| !block.clean),
        Err(_) => false,
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check([&args.store.file])?;
    let how = Look {
        page_size: args.page_size,
        problems_max: args.max_problems,
        quiet: args.quiet,
        unrecovered: args.unrecovered,
    };
    let report = look(&args.store.file, &how)?;
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
