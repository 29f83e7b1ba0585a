//! `millpond paper leanstore` as a user meets it, at the quick scale.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millpond_lab::results::ResultDir;
use millpond_lab::table::{Table, Value};

fn leanstore(out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["paper", "leanstore", "--out"])
        .arg(out)
        .args(more)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The result directory of a run that went well.
fn folder(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let line = stdout.lines().find_map(|line| line.strip_prefix("Rows: ")).unwrap();
    PathBuf::from(line)
}

/// The rows of a figure.
fn of_figure(table: &Table, figure: &str) -> Vec<usize> {
    let is_own = |row: &usize| table.get(*row, "figure") == Some(&figure.into());
    (0..table.rows.len()).filter(is_own).collect()
}

fn labels(table: &Table, figure: &str, column: &str) -> Vec<String> {
    let rows = of_figure(table, figure).into_iter();
    let mut labels: Vec<String> = rows
        .filter_map(|row| Some(table.get(row, column)?.to_string()))
        .filter(|label| !label.is_empty())
        .collect();
    labels.sort();
    labels.dedup();
    labels
}

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let folder = folder(&leanstore(out.path(), &["--scale", "quick"]));
    let table = ResultDir::open(&folder).unwrap().rows().unwrap();
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    for figure in ["1", "7", "8", "10", "11", "12", "hits", "ramp-up", "table-1"] {
        assert!(!of_figure(&table, figure).is_empty(), "figure {figure} has rows");
        assert!(page.contains(&format!("<h2>{figure}: ")), "figure {figure} is on the page");
    }
    assert_eq!(labels(&table, "1", "what"), ["pool", "twin"]);
    let steps = ["+lean-evict", "+optimistic", "+swizzling", "baseline", "twin"];
    assert_eq!(labels(&table, "7", "step"), steps);
    assert_eq!(labels(&table, "7", "latching"), ["latched", "optimistic"]);
    assert_eq!(labels(&table, "10", "skew"), ["0", "2"]);
    assert_eq!(labels(&table, "11", "cooling"), ["10", "50"]);
    assert_eq!(labels(&table, "12", "table"), ["order", "order_line"]);
    assert_eq!(labels(&table, "ramp-up", "drive"), ["nvme"]);
    assert_eq!(of_figure(&table, "hits").len(), 10);
    let number = |row, name| table.get(row, name).and_then(Value::number).unwrap();
    let reads = of_figure(&table, "10").into_iter().map(|row| number(row, "reads_per_tx"));
    let reads: Vec<f64> = reads.collect();
    assert!(reads[0] > reads[1], "skewed keys miss less: {reads:?}");
    for row in of_figure(&table, "12") {
        assert!(number(row, "rows_per_s") > 0.0 && number(row, "mib_per_s") > 0.0);
    }
    assert!(page.contains("data-mark=\"smoke\"") && !page.contains("<td>yes</td>"));
    let run = ResultDir::open(&folder).unwrap().run().unwrap();
    assert_eq!(run["complete"], true);
}

#[test]
fn the_grid_in_miniature_keeps_to_its_time() {
    let out = tempfile::tempdir().unwrap();
    let plan = text(&leanstore(out.path(), &["--plan"]).stdout);
    let minutes = plan.lines().find_map(|line| {
        let about = line.strip_prefix("All: ")?.split("about ").nth(1)?;
        about.split(" min").next()?.parse::<f64>().ok()
    });
    assert!(minutes.is_some_and(|minutes| minutes > 5.0 && minutes <= 40.0), "{plan}");
}
