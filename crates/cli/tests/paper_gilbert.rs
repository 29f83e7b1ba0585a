//! `millpond paper gilbert` as a user meets it, at the quick scale.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millpond_lab::results::ResultDir;
use millpond_lab::table::{Table, Value};

fn gilbert(out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["paper", "gilbert", "--out"])
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

fn rows(folder: &Path) -> Table {
    ResultDir::open(folder).unwrap().rows().unwrap()
}

fn labels(table: &Table, figure: &str, column: &str) -> Vec<String> {
    let mut labels: Vec<String> = (0..table.rows.len())
        .filter(|row| table.get(*row, "figure") == Some(&figure.into()))
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
    let folder = folder(&gilbert(out.path(), &["--scale", "quick"]));
    let table = rows(&folder);
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    let figures = ["1.29", "1.10", "1.12", "1.16", "1.18", "1.20", "1.22", "1.25", "1.27", "2.21"];
    for figure in figures {
        assert!(labels(&table, figure, "policy").len() >= 2, "figure {figure} has rows");
        assert!(page.contains(&format!("<h2>{figure}: ")), "figure {figure} is on the page");
    }
    assert_eq!(
        labels(&table, "1.29", "policy"),
        ["lean-evict", "lru", "mru", "random", "sorting-lru", "watt"]
    );
    assert_eq!(labels(&table, "1.29", "percent"), ["20", "200", "5"]);
    assert_eq!(labels(&table, "2.21", "translation"), ["hashed", "swizzled"]);
    assert_eq!(
        labels(&table, "1.12", "policy")[1..],
        ["zclock(variant=fix)".to_string(), "zclock(variant=unfix)".to_string()]
    );
    for row in 0..table.rows.len() {
        let number = |name| table.get(row, name).and_then(Value::number).unwrap();
        assert_eq!(table.get(row, "end"), Some(&"ran".into()));
        assert_eq!(number("transactions"), 200.0);
        let share = number("percent") / 100.0;
        let frames = (share * number("data_pages")).floor().max(8.0);
        assert_eq!(number("pool_frames"), frames, "the pool is that share of the data");
        let (misses, references) = (number("misses_per_tx"), number("references_per_tx"));
        assert!((number("miss_ratio") - misses / references).abs() < 1e-9);
        assert!(misses > 0.0 && misses < references);
    }
    assert!(page.contains("data-mark=\"smoke\"") && !page.contains("<td>yes</td>"));
    assert!(page.contains("Stalled means") && page.contains("transactions per second"));
    let run = ResultDir::open(&folder).unwrap().run().unwrap();
    assert_eq!(run["complete"], true);
    assert_eq!(run["params"]["scale"], "quick");
}

#[test]
fn what_is_too_much_for_the_machine_is_refused_and_the_grid_in_miniature_keeps_to_its_time() {
    let out = tempfile::tempdir().unwrap();
    let results = out.path().join("results");
    let output = gilbert(&results, &["--scale", "paper", "--minutes", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("`paper gilbert --scale paper` is refused: it "), "{said}");
    let output = gilbert(&results, &["--plan"]);
    let plan = text(&output.stdout);
    assert!(output.status.success() && plan.contains("1.29") && plan.contains("2.21"), "{plan}");
    let minutes = plan.lines().find_map(|line| {
        let about = line.strip_prefix("All: ")?.split("about ").nth(1)?;
        about.split(" min").next()?.parse::<f64>().ok()
    });
    assert!(minutes.is_some_and(|minutes| minutes > 5.0 && minutes <= 40.0), "{plan}");
    assert!(!results.exists(), "nothing was made");
}
