//! The comparison as a table, as Markdown and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::measure::{Agreement, Cell};
use super::statistics::Ratio;
use super::traces::Trace;

/// Ratios that the project promises.
const POLICY_AIM: f64 = 5.0;
const END_TO_END_AIM: f64 = 2.0;

/// All measurements of the comparison.
#[derive(Serialize)]
pub struct Report {
    pub wheel: &'static str,
    pub machine: String,
    pub repetitions: usize,
    pub is_default_table: bool,
    pub traces: Vec<Trace>,
    pub cells: Vec<Cell>,
}

/// Returns the processor and the cores of this machine.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {cores} cores, {}", std::env::consts::OS)
}

/// Columns of both tables.
const HEADER: [&str; 8] = [
    "policy",
    "size",
    "ours ns/ref",
    "theirs ns/ref",
    "policy time ×",
    "end to end × (wall)",
    "end to end × (CPU)",
    "misses",
];

/// Formats one cell as a row.
pub fn row(cell: &Cell) -> [String; 8] {
    let (mine, other) = cell.pairs.first().map_or((0, 0), |(m, o)| (m.misses, o.misses));
    let misses = match cell.agreement {
        Agreement::Equal => format!("{mine}, equal"),
        Agreement::MayDiffer => format!("{mine} / {other}"),
        Agreement::Differs => format!("{mine} / {other} DIFFER"),
    };
    [
        cell.ours.to_string(),
        format!("{} % = {}", cell.percent, cell.frames),
        format!("{:.1}", cell.ours_ns),
        format!("{:.1} ({:.1})", cell.theirs_ns, cell.theirs_default_ns),
        interval(cell.policy),
        interval(cell.wall),
        interval(cell.cpu),
        misses,
    ]
}

fn interval(ratio: Ratio) -> String {
    format!("{:.1} [{:.1}, {:.1}]", ratio.median, ratio.low, ratio.high)
}

/// Returns the report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    let table = match report.is_default_table {
        true => "Theirs has the hash table that its Python classes choose (2^24 buckets)",
        false => {
            "Theirs has the best of three hash tables; in brackets its Python classes' default"
        }
    };
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{} against millpond on {}; one core; {} interleaved pairs; ratios are theirs / ours, \
         median and 95 % interval.\n\n{table}. Policy time: `ns_per_reference` of `millpond sim \
         --tables dense` against `process_trace` less a pass of its reader alone. End to end: our \
         whole process with its defaults against its `process_trace`, both from the same \
         oracleGeneral file in the page cache.",
        report.wheel, report.machine, report.repetitions
    );
    for trace in &report.traces {
        let _ = writeln!(
            text,
            "\n## {}: {}, {} references, {} pages\n\n| {} |\n|{}",
            trace.name,
            trace.about,
            trace.references,
            trace.pages,
            HEADER.join(" | "),
            "---|".repeat(HEADER.len())
        );
        for cell in report.cells.iter().filter(|cell| cell.trace == trace.name) {
            let _ = writeln!(text, "| {} |", row(cell).join(" | "));
        }
    }
    text.push('\n');
    text.push_str(&verdict(&report.cells));
    text
}

/// Returns the cells that fail the promised ratios, and those whose miss counts differ
/// and should not.
pub fn verdict(cells: &[Cell]) -> String {
    let mut text = String::new();
    let name = |cell: &Cell| format!("{} at {} % of {}", cell.ours, cell.percent, cell.trace);
    let mut list = |what: String, is_bad: &dyn Fn(&Cell) -> bool| {
        let bad: Vec<String> = cells.iter().filter(|c| is_bad(c)).map(name).collect();
        let bad = if bad.is_empty() { "none".to_string() } else { bad.join(", ") };
        let _ = writeln!(text, "{what}: {bad}.");
    };
    list(format!("Policy time less than {POLICY_AIM} times as fast"), &|cell| {
        cell.policy.median < POLICY_AIM
    });
    list("The same against libCacheSim's default table".to_string(), &|cell| {
        cell.theirs_default_ns / cell.ours_ns < POLICY_AIM
    });
    list(format!("End to end less than {END_TO_END_AIM} times as fast"), &|cell| {
        cell.wall.median < END_TO_END_AIM
    });
    list("Misses differ where they should not".to_string(), &|cell| {
        cell.agreement == Agreement::Differs
    });
    text
}

/// Writes `peers.json` and `peers.md`.
pub fn write(report: &Report, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("making {}", directory.display()))?;
    let json = serde_json::to_string_pretty(report)?;
    for (name, text) in [("peers.json", json), ("peers.md", markdown(report))] {
        let part = directory.join(format!("{name}.part"));
        std::fs::write(&part, text).with_context(|| format!("writing {}", part.display()))?;
        let file = directory.join(name);
        std::fs::rename(&part, &file).with_context(|| format!("naming {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::measure::Run;
    use super::super::tools::WHEEL;
    use super::*;

    fn cell(ours: &'static str, times: f64, agreement: Agreement) -> Cell {
        let run = |ns| Run { misses: 9, policy_ns: ns, end_to_end_s: ns, end_to_end_cpu_s: ns };
        let even = Ratio { median: times, low: times, high: times };
        Cell {
            trace: "t".into(),
            percent: 1,
            frames: 10,
            ours,
            theirs: "X",
            hashpower: 9,
            theirs_default_ns: 99.0,
            pairs: vec![(run(1.0), run(times))],
            ours_ns: 1.0,
            theirs_ns: times,
            policy: even,
            wall: even,
            cpu: even,
            agreement,
        }
    }

    #[test]
    fn the_verdict_names_the_cells_that_fall_short() {
        let cells = [
            cell("fast", 6.0, Agreement::Equal),
            cell("middling", 3.0, Agreement::Differs),
            cell("slow", 1.5, Agreement::MayDiffer),
        ];
        let text = verdict(&cells);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("fast: middling at 1 % of t, slow at 1 % of t."));
        assert!(lines[1].ends_with("table: none."));
        assert!(lines[2].ends_with("fast: slow at 1 % of t."));
        assert!(lines[3].ends_with("not: middling at 1 % of t."));
    }

    #[test]
    fn markdown_holds_a_row_per_cell_under_its_trace() {
        let trace = Trace {
            name: "t".into(),
            about: "made up".into(),
            file: "t.bin".into(),
            references: 20,
            pages: 10,
        };
        let report = Report {
            wheel: WHEEL,
            machine: machine(),
            repetitions: 1,
            is_default_table: false,
            traces: vec![trace],
            cells: vec![cell("lru", 6.0, Agreement::Equal)],
        };
        let text = markdown(&report);
        assert!(text.contains("\n| lru | 1 % = 10 | 1.0 | 6.0 (99.0) | 6.0 [6.0, 6.0] |"));
        assert!(text.contains("## t: made up, 20 references, 10 pages"));
    }
}
