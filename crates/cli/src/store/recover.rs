//! `millpond recover`: recovers a store after its process or machine stopped.

use std::path::Path;
use std::sync::Arc;

use millpond::internals::admin::check::{CATALOG, CheckOptions, check_store};
use millpond::internals::io::PageStore;
use millpond::{Db, Error, Options, report::Recovery};
use millpond_device::Device;
use millpond_lab::table::Table;
use serde_json::json;

use super::check;
use super::open::{self, StoreArgs, failed, size_of};
use super::trial::{self, MEMORY};
use crate::error::Failure;
use crate::output::{Output, complain};

const EXAMPLES: &str = "Examples:
  millpond recover shop.db            recover, close, and say what was done
  millpond recover shop.db --dry-run  the same in memory: no file is changed
  millpond recover shop.db --salvage
        if the log is damaged: as the store was at the damage

Every command that opens a store for writing recovers it, too. A store that was closed has \
nothing to recover. A damaged log is an error, unless --salvage says that what was committed \
behind the damage may be lost: copy both files first, and see with --dry-run what that would be. \
Exit code 0: the store is whole; 1: it is not, and no file was changed by --salvage.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Change nothing: recover in memory, which must hold all changed pages
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Cut a damaged log off at the damage: later commits are lost
    #[arg(long)]
    salvage: bool,
    /// Memory for the recovery
    #[arg(long, value_name = "SIZE", value_parser = size_of)]
    memory: Option<u64>,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check([&args.store.file])?;
    let file = &args.store.file;
    let options = Options::new().create_if_missing(false).lab(|lab| lab.salvage_log = args.salvage);
    let options = options.memory(args.memory.unwrap_or(MEMORY));
    let bar = Arc::new(crate::progress::Progress::new(args.quiet));
    let recovered = if args.dry_run {
        trial::in_memory(file, options, &bar).map(|((data, _), done)| (Some(data), done))
    } else {
        in_place(file, options, &bar).map(|done| (None, done))
    };
    bar.finish();
    let (trial, done) = recovered.map_err(|error| refused(file, error))?;
    let Some(done) = done else {
        complain(&format!("{} was closed cleanly: there is nothing to recover", file.display()));
        return Ok(());
    };
    let params = json!({
        "file": file.display().to_string(),
        "dry_run": args.dry_run,
        "salvage": args.salvage,
        "salvaged": done.salvaged.is_some(),
    });
    args.output.write("recover", &params, &table(&done))?;
    if args.salvage {
        print_done(&done);
        if done.salvaged.is_some() {
            look(file, trial)?;
        }
    }
    if args.dry_run {
        complain("nothing was changed");
    }
    Ok(())
}

fn in_place(
    file: &Path,
    options: Options,
    bar: &Arc<crate::progress::Progress>,
) -> Result<Option<Recovery>, Error> {
    let db = Db::open(file, trial::watched(options, bar))?;
    let done = db.recovery();
    db.close()?;
    Ok(done)
}

fn table(done: &Recovery) -> Table {
    let mut table = Table::new(["what", "count"]);
    let mut rows = vec![
        ("records of the log read", done.records),
        ("bytes of the log read", done.log_bytes),
        ("bytes cut off at its end, never acknowledged", done.cut_bytes),
        ("pages redone", done.pages),
        ("transactions that had not ended", done.losers),
        ("changes of theirs undone", done.undone),
        ("large values and structures freed", done.freed),
        ("milliseconds", u64::try_from(done.elapsed.as_millis()).unwrap_or(u64::MAX)),
    ];
    if let Some(salvaged) = done.salvaged.filter(|salvaged| !salvaged.is_new_log) {
        rows.extend([
            ("position of the damage, where the log was cut off", salvaged.at.0),
            ("records behind the damage that could be read, lost", salvaged.lost.records),
            ("commits among them", salvaged.lost.commits),
            ("position of the first of them", salvaged.lost.first.0),
            ("position behind the last of them", salvaged.lost.until.0),
            ("pages read, none of them newer than the damage", salvaged.pages_read),
        ]);
    }
    for (what, count) in rows {
        table.rows.push(vec![what.into(), count.into()]);
    }
    table
}

/// Prints the extent of the damage.
fn print_done(done: &Recovery) {
    match done.salvaged {
        None => complain("the log is sound: this was a recovery like any other"),
        Some(salvaged) if salvaged.is_new_log => complain(
            "the store had been closed and was whole without its log, which was damaged and is a \
             new one now: nothing is lost",
        ),
        Some(salvaged) => complain(&format!(
            "the log was damaged at position {}: the store is as it was there, and all later \
             commits are lost, {} of which could be read",
            salvaged.at.0, salvaged.lost.commits
        )),
    }
}

/// Checks the salvaged store, page by page.
fn look(file: &Path, trial: Option<Arc<dyn Device>>) -> Result<(), Failure> {
    let report = match trial {
        None => {
            let how =
                check::Look { page_size: None, problems_max: 10, quiet: true, unrecovered: true };
            check::look(file, &how)?
        }
        Some(data) => {
            let store = PageStore::salvage_on(data, None).map_err(|error| failed(error.into()))?;
            check_store(&store, CATALOG, &mut CheckOptions::default())
                .map_err(|error| Failure::Store(error.to_string()))?
        }
    };
    if report.is_sound() {
        complain(&format!("all {} pages were checked: the store is sound", report.pages));
        return Ok(());
    }
    let count = report.problem_count();
    let file = file.display();
    Err(Failure::Store(format!(
        "{count} problems were found in what was salvaged: see `millpond check {file}`, and write \
         out what is intact with `millpond dump {file} --salvage`"
    )))
}

/// Converts a recovery's error to a failure that names the next command.
fn refused(file: &Path, error: Error) -> Failure {
    let Error::LogDamaged(damage) = &error else { return open::unopened(error) };
    let file = file.display();
    let next = match damage.obstacle {
        None => format!("millpond recover {file} --salvage --dry-run"),
        Some(_) => format!(
            "millpond dump {file} --salvage --out {file}.dump; millpond load {file}.new {file}.dump"
        ),
    };
    Failure::Store(format!("{error}\nnext: {next}"))
}
