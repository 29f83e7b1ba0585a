//! `millpond stat`: a store's statistics.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use millpond::internals::admin::check::Report;
use millpond::{Freshness, Published};
use millpond_lab::table::{Table, Value};
use serde_json::{Value as Json, json};

use super::check::{Look, look};
use super::open::StoreArgs;
use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output, complain, print};

const EXAMPLES: &str = "Examples:
  millpond stat shop.db               what runs, or what is in a closed one
  millpond stat shop.db --watch       again every second
  millpond stat shop.db --prometheus  for a metrics collector
  millpond stat shop.db --json        for programs

A closed store is read in full, to count its pages and rows.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Print again every second, until Ctrl-C or the close of the store
    #[arg(long, short)]
    watch: bool,
    /// Print Prometheus' text format, of a running store or its last numbers
    #[arg(long, conflicts_with_all = ["json", "format", "out"])]
    prometheus: bool,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    output: Output,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check([&args.store.file])?;
    let file = &args.store.file;
    let failed = |error: millpond::internals::store::stats::stat_file::StatFileError| {
        Failure::Store(error.to_string())
    };
    if args.prometheus {
        let published = Published::read(file).map_err(failed)?;
        let name = file.display().to_string();
        return print(&published.stats.to_prometheus(&[("store", &name)]));
    }
    let live = Published::read(file).ok().filter(is_live);
    match live {
        None if args.watch => Err(Failure::Store(format!("{} is not in use", file.display()))),
        None => closed(args, file),
        Some(published) => {
            running(args, &published)?;
            while args.watch && wait() {
                let published = Published::read(file).map_err(failed)?;
                if !is_live(&published) {
                    complain("the store was closed");
                    break;
                }
                running(args, &published)?;
            }
            Ok(())
        }
    }
}

/// Returns `true` if a process may have the store open. An unknown state counts as open.
fn is_live(published: &Published) -> bool {
    matches!(published.freshness(), Freshness::Live { .. } | Freshness::Unknown { .. })
}

/// Waits for a second; returns `false` on Ctrl-C.
fn wait() -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(1) {
        if interrupt::asked() {
            return false;
        }
        sleep(Duration::from_millis(50));
    }
    true
}

fn output(args: &Args) -> Output {
    let format = if args.json { Form::Json } else { args.output.format };
    Output { format, out: args.output.out.clone(), wide: args.output.wide }
}

fn running(args: &Args, published: &Published) -> Result<(), Failure> {
    let output = output(args);
    let pid = published.process.pid;
    if output.format == Form::Table && output.out.is_none() {
        let age = match published.freshness() {
            Freshness::Live { age } | Freshness::Unknown { age } => age.as_secs_f64(),
            Freshness::Closed | Freshness::Gone => 0.0,
        };
        let head = format!("open in process {pid}; as of {age:.1} s ago\n");
        return print(&format!("{head}{}", published.stats));
    }
    let stats: Json = serde_json::from_str(&published.stats.to_json()).unwrap_or_default();
    let mut names = Vec::new();
    let mut row = Vec::new();
    for (name, value) in stats.as_object().into_iter().flatten() {
        flatten(name, value, &mut names, &mut row);
    }
    let mut table = Table::new(names.iter().map(String::as_str));
    table.rows.push(row);
    let params = json!({
        "file": args.store.file.display().to_string(),
        "pid": pid,
        "started_ms": published.started_ms,
        "written_ms": published.written_ms,
        "running": true,
    });
    output.write("stat", &params, &table)
}

/// Turns numbers into columns. Columns of a latency are named `LATENCY_NUMBER`.
fn flatten(name: &str, value: &Json, names: &mut Vec<String>, row: &mut Vec<Value>) {
    match value {
        Json::Number(number) => {
            names.push(name.to_string());
            let float = || number.as_f64().map_or(Value::Empty, Value::Float);
            row.push(number.as_u64().map_or_else(float, Value::Int));
        }
        Json::Object(inner) => {
            for (part, value) in inner {
                flatten(&format!("{name}_{part}"), value, names, row);
            }
        }
        _ => {}
    }
}

fn closed(args: &Args, file: &Path) -> Result<(), Failure> {
    let quiet = args.quiet;
    let how = Look { page_size: None, problems_max: 1000, quiet, unrecovered: false };
    let report = look(file, &how)?;
    let output = output(args);
    if output.format == Form::Table && output.out.is_none() {
        print(&about(&report))?;
        print(&trees(&report).to_text())?;
    } else {
        output.write("stat", &params(file, &report), &trees(&report))?;
    }
    if !report.is_sound() {
        let count = report.problem_count();
        return Err(Failure::Store(format!(
            "{count} problems found, so the figures may be too low: see `millpond check {}`",
            file.display()
        )));
    }
    Ok(())
}

fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn about(report: &Report) -> String {
    let counts = report.counts;
    let mut text = String::new();
    if let Some(block) = &report.superblock {
        let state = if block.clean { "closed cleanly" } else { "not closed cleanly" };
        text.push_str(&format!("store {}, {state}\n", uuid(&block.uuid)));
    }
    text.push_str(&format!(
        "{} pages of {}: {} in use, {} free, {} of the store itself\n\n",
        report.pages, report.page_size, counts.used, counts.free, counts.own
    ));
    text
}

fn params(file: &Path, report: &Report) -> Json {
    let counts = report.counts;
    json!({
        "file": file.display().to_string(),
        "running": false,
        "uuid": report.superblock.map(|block| uuid(&block.uuid)),
        "clean": report.superblock.map(|block| block.clean),
        "page_size": report.page_size.bytes(),
        "pages": report.pages,
        "pages_used": counts.used,
        "pages_free": counts.free,
        "pages_lost": counts.lost,
        "sound": report.is_sound(),
    })
}

fn trees(report: &Report) -> Table {
    let mut table = Table::new([
        "name",
        "kind",
        "root",
        "height",
        "rows",
        "pages",
        "inner_pages",
        "leaf_pages",
        "overflow_pages",
        "other_pages",
        "leaf_fill",
    ]);
    for found in &report.structures {
        table.rows.push(vec![
            found.name.clone().into(),
            found.kind.to_string().into(),
            found.root.0.into(),
            u64::from(found.height).into(),
            found.entries.into(),
            found.pages().into(),
            found.inner_pages.into(),
            found.leaf_pages.into(),
            found.overflow_pages.into(),
            found.other_pages.into(),
            found.fill().into(),
        ]);
    }
    table
}
