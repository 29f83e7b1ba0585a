//! `millpond paper watt` as a user meets it, at the quick scale.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use millpond_lab::results::ResultDir;
use millpond_lab::table::{Table, Value};

fn watt(out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["paper", "watt", "--scale", "quick", "--out"])
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

/// Figures whose cells are runs of the engine.
const LIVE: [&str; 4] = ["9", "11", "13", "workers"];

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let folder = folder(&watt(out.path(), &[]));
    let table = rows(&folder);
    let figures =
        ["1", "2", "3", "4", "5", "6", "7", "8", "aggregation", "logging", "pairs", "memory"]
            .into_iter()
            .chain(LIVE);
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    for figure in figures {
        assert!(!labels(&table, figure, "policy").is_empty(), "figure {figure} has rows");
        assert!(page.contains(&format!("<h2>{figure}: ")), "figure {figure} is on the page");
    }
    assert_eq!(labels(&table, "1", "policy").len(), 6);
    assert_eq!(labels(&table, "1", "percent"), ["10", "20", "5"]);
    assert_eq!(labels(&table, "1", "trace"), ["dynzipf-rw", "tpcc", "zipf-ro"]);
    assert_eq!(labels(&table, "6", "value"), ["0.1", "1"]);
    assert_eq!(labels(&table, "9", "workload"), ["tpcc", "ycsb 90/10", "ycsb read-only"]);
    assert_eq!(labels(&table, "9", "ratio"), ["1 : 30"]);
    assert_eq!(
        labels(&table, "9", "policy"),
        ["hyperbolic", "lean-evict(cooling=30%)", "random", "watt"]
    );
    assert_eq!(labels(&table, "workers", "seat"), ["auto", "batched"]);
    for row in 0..table.rows.len() {
        let number = |name| table.get(row, name).and_then(Value::number).unwrap();
        let figure = table.get(row, "figure").unwrap().to_string();
        if LIVE.contains(&figure.as_str()) {
            assert_eq!(table.get(row, "end"), Some(&"ran".into()));
            assert!(number("transactions") > 0.0);
            continue;
        }
        assert_eq!(number("hits") + number("misses"), number("references"));
        assert!(number("references") >= 20_000.0 && number("size") <= number("pages"));
    }
    assert!(page.contains("data-mark=\"smoke\"") && !page.contains("<td>yes</td>"));
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is fetched");
    let run = ResultDir::open(&folder).unwrap().run().unwrap();
    assert_eq!(run["complete"], true);
    assert_eq!(run["params"]["scale"], "quick");
}

#[test]
fn a_run_can_be_resumed_and_gives_the_same_rows_as_one_run() {
    let (out, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = rows(&folder(&watt(out.path(), &["--figure", "2,logging,memory"])));
    let first = folder(&watt(other.path(), &["--figure", "2"]));
    // As a run that was killed leaves it: a line that is not whole, and no rows.
    let journal = first.join("cells.jsonl");
    let lines = std::fs::read_to_string(&journal).unwrap();
    let kept: Vec<&str> = lines.lines().take(5).collect();
    std::fs::write(&journal, format!("{}\n[\"2|tra", kept.join("\n"))).unwrap();
    std::fs::remove_file(first.join("rows.parquet")).unwrap();
    std::fs::remove_file(first.join("run.json")).unwrap();
    let output = watt(other.path(), &["--figure", "2,logging,memory", "--resume"]);
    assert!(text(&output.stdout).contains(&format!(
        "{} of {} cells, {} of them run now.",
        whole.rows.len(),
        whole.rows.len(),
        whole.rows.len() - 5
    )));
    assert_eq!(folder(&output), first);
    assert_eq!(rows(&first), whole);
}

#[test]
fn what_cannot_be_is_refused_and_a_plan_runs_nothing() {
    let out = tempfile::tempdir().unwrap();
    let output = watt(out.path(), &["--figure", "1,99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no figure '99': it has 1, 2"), "{output:?}");
    let results = out.path().join("results");
    let output = watt(&results, &["--plan"]);
    let plan = text(&output.stdout);
    assert!(plan.contains("aggregation") && plan.contains("of memory"), "{plan}");
    let paper = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["paper", "watt", "--scale", "paper", "--figure", "1", "--minutes", "0.01", "--out"])
        .arg(&results)
        .output()
        .unwrap();
    assert_eq!(paper.status.code(), Some(1));
    let said = text(&paper.stderr);
    assert!(said.contains("`paper watt --scale paper` is refused: it takes about"), "{said}");
    assert!(!results.exists(), "nothing was made");
}
