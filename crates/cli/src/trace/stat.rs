//! `millpond trace stat`.

use std::path::PathBuf;

use millpond_lab::table::{Table, Value};
use millpond_workload::formats;
use millpond_workload::stat::{Describer, StorageStat, TraceStat};
use millpond_workload::trace::{BATCH_LEN, Batch};
use serde_json::{Value as Json, json};

use super::bars::bars;
use crate::error::Failure;
use crate::interrupt;
use crate::output::{Form, Output, complain, print};
use crate::progress::Progress;
use crate::reading::Reading;

const EXAMPLES: &str = "Examples:
  millpond trace stat traces/arc_OLTP.txt.gz
  millpond trace stat a.parquet b.parquet --format csv
  millpond trace stat storage.parquet --format json";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The traces; - is standard input
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    output: Output,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.output.check(&args.traces)?;
    let mut stats = Vec::new();
    for path in &args.traces {
        stats.push((path.display().to_string(), describe(args, path)?));
    }
    let names: Vec<&String> = stats.iter().map(|(name, _)| name).collect();
    let params = json!({ "traces": names });
    if args.output.format == Form::Table && args.output.out.is_none() {
        return print(&stats.iter().map(|(name, s)| described(name, s)).collect::<String>());
    }
    if args.output.format == Form::Json {
        // Histograms do not fit into flat rows, so they are written beside them.
        let full: Vec<Json> = stats.iter().map(|(_, s)| json!(s)).collect();
        let params = json!({"traces": names, "details": full});
        return args.output.write("trace stat", &params, &table(&stats));
    }
    // Flat rows have no place for notes.
    for (name, stat) in &stats {
        stat.notes.iter().for_each(|note| complain(&format!("{name}: {note}")));
    }
    args.output.write("trace stat", &params, &table(&stats))
}

fn describe(args: &Args, path: &PathBuf) -> Result<TraceStat, Failure> {
    let mut source = formats::open(path, &args.reading.options()?)?;
    let (mut describer, mut batch) = (Describer::new(), Batch::with_capacity(BATCH_LEN));
    let (progress, mut references) = (Progress::new(args.quiet), 0);
    loop {
        batch.clear();
        let read = source.fill(&mut batch, BATCH_LEN)?;
        if read == 0 {
            break;
        }
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        describer.add(&batch)?;
        references += read as u64;
        progress.show(&path.display().to_string(), source.progress(), references, "references");
    }
    progress.finish();
    Ok(describer.finish(source.notes()))
}

fn table(stats: &[(String, TraceStat)]) -> Table {
    let mut table = Table::new([
        "trace",
        "references",
        "pages",
        "writes",
        "write_share",
        "hot_pages",
        "warm_pages",
        "top_ten_share",
        "scan_references",
        "requests",
        "dsyncs",
        "read_share",
        "synch_share",
        "replace_share",
        "recov_share",
    ]);
    for (name, s) in stats {
        let storage = s.storage.as_ref();
        let mut row: Vec<Value> = vec![
            name.as_str().into(),
            s.references.into(),
            s.pages.into(),
            s.writes.into(),
            s.write_share.into(),
            s.hot_pages.into(),
            s.warm_pages.into(),
            s.top_ten_share.into(),
            s.scan_references.into(),
            storage.map(|t| t.requests).into(),
            storage.map(|t| t.dsyncs).into(),
        ];
        for kind in ["read", "synch", "replace", "recov"] {
            let share = |t: &StorageStat| {
                let row = t.types.iter().find(|r| request_name(r.request) == kind);
                row.map_or(0.0, |r| r.share)
            };
            row.push(storage.map(share).into());
        }
        table.rows.push(row);
    }
    table
}

fn request_name(request: millpond_workload::stat::RequestType) -> String {
    format!("{request:?}").to_lowercase()
}

fn described(name: &str, s: &TraceStat) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = format!("{name}\n");
    let mut line = |what: &str, value: String| text.push_str(&format!("  {what:<22}{value}\n"));
    line("references", s.references.to_string());
    line("pages", s.pages.to_string());
    line("writes", format!("{} ({})", s.writes, percent(s.write_share)));
    line("hot pages (> 2 %)", s.hot_pages.to_string());
    line("warm pages (> 1 %)", s.warm_pages.to_string());
    line("top ten pages", percent(s.top_ten_share));
    if s.scan_references > 0 {
        let share = s.scan_references as f64 / s.references.max(1) as f64;
        line("in marked scans", format!("{} ({})", s.scan_references, percent(share)));
    }
    s.notes.iter().for_each(|note| line("note", note.clone()));
    text.push_str("\n  reuse distance (other pages between two references to a page)\n");
    text.push_str(&reuse_bars(s));
    text.push_str("\n  footprint (distinct pages after N references)\n");
    text.push_str(&footprint_bars(s));
    for kind in &s.kinds {
        text.push_str(&format!(
            "\n  kind {} depth {}: {} references, {} writes",
            kind.kind, kind.depth, kind.references, kind.writes
        ));
    }
    if let Some(storage) = &s.storage {
        text.push_str(&storage_tables(storage));
    }
    text.push('\n');
    text
}

fn reuse_bars(s: &TraceStat) -> String {
    let total = s.references.max(1) as f64;
    let row =
        |label: String, n: u64| (label, n as f64, format!("{:.1} %", n as f64 / total * 100.0));
    let mut rows = vec![row("first".to_string(), s.reuse.first)];
    for bucket in &s.reuse.buckets {
        let label = match bucket.from == bucket.to {
            true => bucket.from.to_string(),
            false => format!("{}–{}", bucket.from, bucket.to),
        };
        rows.push(row(label, bucket.references));
    }
    bars(&rows)
}

fn footprint_bars(s: &TraceStat) -> String {
    let step = (s.footprint.len() / 12).max(1);
    let mut points: Vec<_> = s.footprint.iter().step_by(step).collect();
    if points.last() != s.footprint.last().as_ref() {
        points.extend(s.footprint.last());
    }
    let rows: Vec<_> = points
        .iter()
        .map(|p| (p.references.to_string(), p.pages as f64, p.pages.to_string()))
        .collect();
    bars(&rows)
}

/// Writes li's tables 3.2 (mix of requests) and 5.3 (kind of the next request to the same
/// page).
fn storage_tables(storage: &StorageStat) -> String {
    let mut table =
        Table::new(["request", "number", "share", "then_read", "then_write", "then_none"]);
    for row in &storage.types {
        let of = |n: u64| Value::Float(n as f64 / row.requests.max(1) as f64);
        table.rows.push(vec![
            request_name(row.request).into(),
            row.requests.into(),
            row.share.into(),
            of(row.then_read),
            of(row.then_any_write()),
            of(row.then_none),
        ]);
    }
    format!(
        "\n  storage requests: {} and {} dsync\n\n{}",
        storage.requests,
        storage.dsyncs,
        table.to_text().lines().map(|l| format!("  {l}\n")).collect::<String>()
    )
}
