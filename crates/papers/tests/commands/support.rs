//! Running `millpond-papers`, and reading what it leaves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millpond_lab::results::ResultDir;
use millpond_lab::table::{Table, Value};

/// Runs an experiment with results below `out`.
pub fn paper(experiment: &str, out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond-papers"))
        .args([experiment, "--out"])
        .arg(out)
        .args(more)
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The result directory of a run that went well.
pub fn folder(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let line = stdout.lines().find_map(|line| line.strip_prefix("Rows: ")).unwrap();
    PathBuf::from(line)
}

/// The rows in a result directory.
pub fn rows(folder: &Path) -> Table {
    ResultDir::open(folder).unwrap().rows().unwrap()
}

/// The rows of a figure.
pub fn of_figure(table: &Table, figure: &str) -> Vec<usize> {
    let is_own = |row: &usize| table.get(*row, "figure") == Some(&figure.into());
    (0..table.rows.len()).filter(is_own).collect()
}

/// The values in a column of a figure's rows, each once, sorted as text.
pub fn labels(table: &Table, figure: &str, column: &str) -> Vec<String> {
    let rows = of_figure(table, figure).into_iter();
    let mut labels: Vec<String> = rows
        .filter_map(|row| Some(table.get(row, column)?.to_string()))
        .filter(|label| !label.is_empty())
        .collect();
    labels.sort();
    labels.dedup();
    labels
}

/// A row's number in a column.
pub fn number(table: &Table, row: usize, column: &str) -> f64 {
    table.get(row, column).and_then(Value::number).unwrap()
}

/// The rows and the page of a whole run at the quick scale, in which each figure has rows and a
/// section, and nothing that was measured in passing looks like a result.
pub fn whole_run(experiment: &str, out: &Path, figures: &[&str]) -> (Table, String) {
    what_came(&paper(experiment, out, &["--scale", "quick"]), figures)
}

/// Checks a run that is over as `whole_run` does, and returns its rows and its page.
pub fn what_came(output: &Output, figures: &[&str]) -> (Table, String) {
    let folder = folder(output);
    let table = rows(&folder);
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    for figure in figures {
        assert!(!of_figure(&table, figure).is_empty(), "figure {figure} has rows");
        assert!(page.contains(&format!("<h2>{figure}: ")), "figure {figure} is on the page");
    }
    assert!(page.contains("data-mark=\"smoke\"") && !page.contains("<td>yes</td>"));
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is fetched");
    let run = ResultDir::open(&folder).unwrap().run().unwrap();
    assert_eq!(run["complete"], true);
    assert_eq!(run["params"]["scale"], "quick");
    (table, page)
}

/// The plan of the grid in miniature is not over 40 minutes.
pub fn assert_keeps_to_its_time(plan: &str) {
    let minutes = plan.lines().find_map(|line| {
        let about = line.strip_prefix("All: ")?.split("about ").nth(1)?;
        about.split(" min").next()?.parse::<f64>().ok()
    });
    assert!(minutes.is_some_and(|minutes| minutes > 5.0 && minutes <= 40.0), "{plan}");
}
