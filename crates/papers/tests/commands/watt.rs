//! `millpond-papers watt`.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

use super::support::{
    assert_keeps_to_its_time, folder, labels, number, paper, rows, text, whole_run,
};

/// At the quick scale.
fn watt(out: &Path, more: &[&str]) -> Output {
    paper("watt", out, &[&["--scale", "quick"], more].concat())
}

/// Figures whose cells are runs of the engine.
const LIVE: [&str; 6] = ["9", "9-whole", "11", "13", "workers", "eviction"];

/// Figures of evictors while nothing else runs.
const EVICTORS: [&str; 2] = ["10", "12"];

#[test]
fn the_whole_experiment_runs_in_small_and_leaves_rows_and_a_page() {
    let out = tempfile::tempdir().unwrap();
    let simulated =
        ["1", "2", "3", "4", "5", "6", "7", "8", "aggregation", "logging", "pairs", "memory"];
    let figures: Vec<&str> = simulated.into_iter().chain(LIVE).chain(EVICTORS).collect();
    let (table, _) = whole_run("watt", out.path(), &figures);
    assert_eq!(labels(&table, "1", "policy").len(), 6);
    assert_eq!(labels(&table, "1", "percent"), ["10", "20", "5"]);
    assert_eq!(labels(&table, "1", "trace"), ["dynzipf-rw", "tpcc", "zipf-ro"]);
    assert_eq!(labels(&table, "6", "value"), ["0.1", "1"]);
    assert_eq!(labels(&table, "9", "workload"), ["tpcc", "ycsb 90/10", "ycsb read-only"]);
    assert_eq!(labels(&table, "9", "ratio"), ["1 : 30"]);
    assert_eq!(
        labels(&table, "9", "policy"),
        ["hyperbolic(sample=8,candidates=64)", "lean-evict(cooling=30%)", "random", "watt"]
    );
    assert_eq!(labels(&table, "9-whole", "ratio"), ["1 : 33"]);
    assert!(labels(&table, "9-whole", "policy").contains(&"watt(epochs=64)".to_string()));
    assert_eq!(labels(&table, "workers", "hit_delivery"), ["auto", "batched"]);
    let modes = ["adaptive(2)", "threads(1)", "threads(2)", "worker"];
    assert_eq!(labels(&table, "eviction", "mode"), modes);
    assert_eq!(labels(&table, "10", "state"), ["as left", "clean", "dirty"]);
    for figure in EVICTORS {
        let mut policies = labels(&table, figure, "policy");
        assert_eq!(policies.remove(0), "hyperbolic", "as it ships, beside what is judged");
        assert_eq!(policies, labels(&table, "9", "policy"));
    }
    for row in 0..table.rows.len() {
        let number = |name| number(&table, row, name);
        let figure = table.get(row, "figure").unwrap().to_string();
        if LIVE.contains(&figure.as_str()) {
            assert_eq!(table.get(row, "end"), Some(&"ran".into()));
            assert!(number("transactions") > 0.0);
            continue;
        }
        if EVICTORS.contains(&figure.as_str()) {
            assert!(number("evictions_per_s") > 0.0 && number("evicted") > 0.0);
            assert!(number("candidates_per_eviction") >= 1.0, "victims were examined");
            let is_dirty = table.get(row, "state") == Some(&"dirty".into());
            assert!(if is_dirty { number("writes_per_eviction") >= 0.9 } else { true });
            let is_clean = table.get(row, "state") == Some(&"clean".into());
            let is_read_only = table.get(row, "workload") == Some(&"ycsb read-only".into());
            if is_clean || (is_read_only && !is_dirty) {
                assert_eq!(number("writes_per_eviction"), 0.0, "nobody has written");
            }
            continue;
        }
        assert_eq!(number("hits") + number("misses"), number("references"));
        assert!(number("references") >= 20_000.0 && number("size") <= number("pages"));
    }
}

#[test]
fn rows_of_an_earlier_run_are_judged_anew_and_those_of_another_experiment_refused() {
    let out = tempfile::tempdir().unwrap();
    let ran = watt(out.path(), &["--figure", "2,memory"]);
    let dir = folder(&ran);
    let page = dir.join("report.html");
    let (before, table) = (std::fs::read(&page).unwrap(), rows(&dir));
    std::fs::write(&page, "spoilt").unwrap();
    std::fs::remove_file(dir.join("cells.jsonl")).unwrap();
    let at = dir.to_str().unwrap();
    let judged = watt(out.path(), &["--judge", at]);
    assert!(judged.status.success(), "{}", text(&judged.stderr));
    assert_eq!(folder(&judged), dir);
    let again = std::fs::read(&page).unwrap();
    assert!(again == before, "the same rows give the same page");
    assert_eq!(rows(&dir), table);
    let other = paper("leanstore", out.path(), &["--scale", "quick", "--judge", at]);
    let said = text(&other.stderr);
    assert!(!other.status.success() && said.contains("is of `millpond-papers watt"), "{said}");
    assert!(std::fs::read(&page).unwrap() == before, "nothing was written");
    let standard = paper("watt", out.path(), &["--judge", at]);
    assert!(text(&standard.stderr).contains("not of `millpond-papers watt --scale standard`"));
    let nothing = watt(out.path(), &["--judge", out.path().to_str().unwrap()]);
    assert!(text(&nothing.stderr).contains("run.json is missing"));
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
    let more = ["--scale", "paper", "--figure", "1", "--minutes", "0.01"];
    let refused = paper("watt", &results, &more);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(
        said.contains("`millpond-papers watt --scale paper` is refused: it takes about"),
        "{said}"
    );
    assert!(!results.exists(), "nothing was made");
}

fn worker(load: &str, policy: &str, transactions: u32, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond-papers"))
        .args(["watt-worker", "--load", load, "--policy", policy, "--scale", "quick"])
        .args(["--transactions", &transactions.to_string()])
        .args(more)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Json {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_worker_runs_alone_and_refuses_what_there_is_not() {
    for load in ["ycsb read-only", "ycsb 90/10", "tpcc"] {
        let printed = json(&worker(load, "watt", 3, &[]));
        assert_eq!(printed["transactions"], 3);
        assert!(printed["references"].as_u64().unwrap() >= 3);
    }
    for (load, policy) in [("scan", "watt"), ("tpcc", "what")] {
        assert_eq!(worker(load, policy, 3, &[]).status.code(), Some(2), "{load} {policy}");
    }
}

fn has_valgrind() -> bool {
    let valgrind = Command::new("valgrind").arg("--version").output();
    valgrind.is_ok_and(|output| output.status.success())
}

#[test]
fn what_a_worker_executes_repeats_and_tracking_is_part_of_it() {
    if !has_valgrind() {
        println!("skipped: there is no valgrind");
        return;
    }
    let count = |policy| json(&worker("ycsb read-only", policy, 200, &["--instructions"]));
    let of = |counted: &Json, name: &str| counted[name].as_f64().unwrap();
    let [random, again, watt] = ["random", "random", "watt"].map(count);
    let names = ["instructions", "l1_data_misses", "branch_misses", "references"];
    for name in names {
        assert!(of(&random, name) > 0.0, "{name}: {random}");
    }
    let near = of(&random, "instructions") / of(&again, "instructions");
    assert!((near - 1.0).abs() < 0.001, "{random} and {again}");
    let cost = (of(&watt, "instructions") - of(&random, "instructions")) / of(&watt, "references");
    assert!(cost > 1.0 && cost < 100.0, "{cost} instructions per hit");
    assert!(of(&random, "l1_data_misses") < of(&random, "instructions") / 2.0);
}

#[test]
fn counts_are_cells_of_their_own_where_there_is_valgrind() {
    let plan = |more: &[&str], path: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-papers"));
        command.args(["watt", "--figure", "11", "--plan", "--repetitions", "2"]);
        command.args(more).envs(path.map(|path| ("PATH", path)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    assert!(plan(&[], None).0.contains("All: 16 cells"));
    let (without, said) = plan(&["--instructions"], Some("/nonexistent"));
    assert!(without.contains("All: 16 cells"), "{without}");
    assert!(said.contains("instructions are not counted: valgrind cannot be started"), "{said}");
    if has_valgrind() {
        assert!(plan(&["--instructions"], None).0.contains("All: 40 cells"));
    }
    let out = tempfile::tempdir().unwrap();
    let whole = text(&paper("watt", out.path(), &["--instructions", "--plan"]).stdout);
    assert_keeps_to_its_time(&whole);
}
