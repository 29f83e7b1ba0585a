//! `cargo xtask peers`: prepares both sides, runs every cell, and prints each result.

use anyhow::Result;

use super::cells::{PAIRS, PERCENTS};
use super::measure::cell;
use super::options::{Options, USAGE};
use super::report::{Report, machine, row, verdict, write};
use super::tools::{Tools, WHEEL};
use super::traces::prepare;

/// Runs the comparison and reports. The reader judges if a ratio is good enough.
pub fn main(arguments: &[String]) -> Result<bool> {
    let Some(options) = Options::parse(arguments)? else {
        print!("{USAGE}");
        return Ok(true);
    };
    let tools = Tools::prepare(options.millpond.as_deref())?;
    let traces = prepare(&tools, &options)?;
    let out = options.out.clone().unwrap_or_else(|| tools.directory.clone());
    let mut report = Report {
        wheel: WHEEL,
        machine: machine(),
        repetitions: options.repetitions,
        is_default_table: options.is_default_table,
        traces,
        cells: Vec::new(),
    };
    let mut failed = 0;
    for trace in report.traces.clone() {
        println!("\n{}: {} references, {} pages", trace.name, trace.references, trace.pages);
        print_row([
            "policy",
            "size",
            "ours ns",
            "theirs ns (default)",
            "policy time ×",
            "end to end ×",
            "CPU ×",
            "misses",
        ]);
        for pair in PAIRS.into_iter().filter(|pair| options.takes_policy(pair.ours)) {
            for percent in PERCENTS {
                match cell(&tools, &trace, pair, percent, &options) {
                    Ok(cell) => {
                        let texts = row(&cell);
                        print_row(texts.each_ref().map(String::as_str));
                        report.cells.push(cell);
                        // Writing after each cell keeps the results of an interrupted
                        // comparison.
                        write(&report, &out)?;
                    }
                    Err(error) => {
                        failed += 1;
                        println!("{} at {percent} %: {error:#}", pair.ours);
                    }
                }
            }
        }
    }
    print!("\n{}", verdict(&report.cells));
    println!("{} cells, {failed} failed; see {}", report.cells.len(), out.display());
    Ok(failed == 0)
}

fn print_row(texts: [&str; 8]) {
    let widths = [22, 14, 8, 20, 20, 20, 20, 20];
    let columns = texts.iter().zip(widths).map(|(text, width)| format!("{text:<width$}"));
    println!("{}", columns.collect::<Vec<_>>().join(" ").trim_end());
}
