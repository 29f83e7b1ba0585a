//! `millpond breakdown compare`: CPU time by component before and after a change.

use std::path::PathBuf;

use millpond_bench::experiments::table::{Row, table};
use millpond_lab::breakdowns::{Breakdown, Change, changes};
use millpond_lab::report::{Bar, BarPlot};
use millpond_lab::table::{Table, Value};
use serde_json::{Value as Json, json};

use super::results::ResultArgs;
use crate::error::Failure;

const EXAMPLES: &str = "Examples:
  millpond breakdown tpcc --seconds 30 --json --out before.json
  …                                      another build, or other options
  millpond breakdown tpcc --seconds 30 --json --out after.json
  millpond breakdown compare before.json after.json --html changes.html

Microseconds of CPU time per transaction with 95 % intervals, which come from the numbers of samples \
(Poisson) and know nothing of the machine's mood. `less` and `more` mark differences whose interval \
does not hold 0. `all` has what could not be assigned in it, too.";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A result of `breakdown --json`
    #[arg(value_name = "BEFORE.json")]
    before: PathBuf,
    /// Another result of the same workload
    #[arg(value_name = "AFTER.json")]
    after: PathBuf,
    #[command(flatten)]
    results: ResultArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    args.results.check_beside([&args.before, &args.after])?;
    let (before, after) = (Breakdown::read(&args.before)?, Breakdown::read(&args.after)?);
    let changes = changes(&before, &after)?;
    let params = json!({ "before": side(&before), "after": side(&after) });
    let rows = table(changes.iter().map(row));
    args.results.write_parts(
        "breakdown compare",
        &params,
        &rows,
        &parts(&before, &after, &changes),
    )?;
    args.results.draw(|| bars(&before, &after, &changes).render())
}

fn side(of: &Breakdown) -> Json {
    json!({
        "file": of.path.display().to_string(),
        "build": of.build,
        "params": of.params,
    })
}

fn row(change: &Change) -> Row {
    Row::default()
        .with("threads", change.threads)
        .with("component", change.component.as_str())
        .with_interval("before_us", &change.before)
        .with_interval("after_us", &change.after)
        .with_interval("difference_us", &change.difference)
        .with("change", change.verdict())
}

/// Lists the file and build of each result, and the options in which they differ.
fn makers(before: &Breakdown, after: &Breakdown) -> String {
    let maker = |of: &Breakdown| format!("{}, build {}", of.path.display(), of.build);
    let mut text = format!("before: {}\nafter:  {}\n", maker(before), maker(after));
    let names: std::collections::BTreeSet<&String> =
        before.params.keys().chain(after.params.keys()).filter(|name| *name != "build").collect();
    let of =
        |side: &Breakdown, name: &str| side.params.get(name).unwrap_or(&Json::Null).to_string();
    let differing = names.into_iter().filter_map(|name| {
        let (one, other) = (of(before, name), of(after, name));
        (one != other).then(|| format!("{name} {one} → {other}"))
    });
    let differing: Vec<String> = differing.collect();
    text += "options that differ: ";
    text += &if differing.is_empty() { "none".to_string() } else { differing.join(", ") };
    text
}

/// Returns the printed parts: one table for each number of threads.
fn parts(before: &Breakdown, after: &Breakdown, changes: &[Change]) -> Vec<(String, Table)> {
    let of_threads = |some: &[Change]| {
        let mut table = Table::new(["component", "before, µs", "after, µs", "difference, µs", ""]);
        let cell = |value| -> Value { format!("{value:.2}").into() };
        table.rows.extend(some.iter().map(|change| {
            let mark = Some(change.verdict()).filter(|verdict| *verdict != "open");
            let times = [change.before, change.after, change.difference].map(cell);
            let name = std::iter::once(change.component.as_str().into());
            name.chain(times).chain([mark.unwrap_or_default().into()]).collect()
        }));
        let threads = some.first().map_or(0, |change| change.threads);
        let plural = if threads == 1 { "" } else { "s" };
        let workload = before.workload();
        (format!("{workload} with {threads} thread{plural}, CPU time per transaction"), table)
    };
    let tables = changes.chunk_by(|one, other| one.threads == other.threads).map(of_threads);
    std::iter::once((makers(before, after), Table::default())).chain(tables).collect()
}

fn bars(before: &Breakdown, after: &Breakdown, changes: &[Change]) -> BarPlot {
    let several = changes.iter().any(|change| change.threads != changes[0].threads);
    let bars = changes.iter().flat_map(|change| {
        let bar = |side: &str, value| {
            let threads =
                if several { format!(", {} threads", change.threads) } else { String::new() };
            Bar { group: change.component.clone(), series: format!("{side}{threads}"), value }
        };
        [bar("before", change.before), bar("after", change.after)]
    });
    BarPlot {
        title: format!("{}: CPU time by component, before and after", before.workload()),
        note: format!(
            "{}. With 95 % intervals from the numbers of samples.",
            makers(before, after).replace('\n', "; ")
        ),
        y: "µs of CPU time per transaction".to_string(),
        bars: bars.collect(),
    }
}
