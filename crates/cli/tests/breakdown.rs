//! `millpond breakdown` as a user meets it.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value as Json, json};

fn breakdown(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .arg("breakdown")
        .args(args)
        .args(["--tiny", "--seconds", "0.6", "--warm-up", "0.1", "--quiet"])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What was printed; `None`, with a message, where a process may not sample itself.
pub fn printed(output: &Output) -> Option<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("may not sample itself") || errors.contains("x86-64 only") {
        println!("skipped: {errors}");
        assert_eq!(output.status.code(), Some(1));
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout.clone()).unwrap())
}

#[test]
fn components_are_printed_for_each_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let output = breakdown(folder.path(), &["tpcc", "--threads", "1,2"]);
    let Some(text) = printed(&output) else { return };
    for part in ["tpcc with 1 thread:", "tpcc with 2 threads:", "log on, locks on", "component"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches(" samples, ").count(), 2, "{text}");
}

/// Samples of tests have no line tables, so that all code is the program's: what is checked here is
/// the form. The profiler's own tests check what it finds.
#[test]
fn rows_have_shares_with_intervals_that_sum_to_one() {
    let folder = tempfile::tempdir().unwrap();
    for what in ["ycsb-read", "ycsb-update"] {
        let output = breakdown(folder.path(), &[what, "--json", "--log", "off"]);
        let Some(text) = printed(&output) else { return };
        let object: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&object["command"], &object["params"]["log"]),
            (&"breakdown".into(), &false.into())
        );
        assert_eq!(object["params"]["locks"], true);
        let rows = object["rows"].as_array().unwrap();
        let number = |row: &Json, name: &str| row[name].as_f64().unwrap();
        let sum: f64 = rows.iter().map(|row| number(row, "share")).sum();
        assert!((sum + number(&rows[0], "unassigned") - 1.0).abs() < 1e-6, "{object:#}");
        for row in rows {
            assert_eq!(row["workload"], what);
            assert!(number(row, "share_low") <= number(row, "share"), "{row:#}");
            assert!(number(row, "share_high") >= number(row, "share"), "{row:#}");
            assert!(number(row, "cpu_us_per_tx") > 0.0, "{row:#}");
        }
        assert_eq!(rows[0]["lost"], 0);
    }
}

#[test]
fn rows_that_are_inserted_are_counted_in_one_transaction_and_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    for (what, more) in [
        ("bulk-insert", &["--threads", "1"][..]),
        ("batch-insert", &["--threads", "2", "--batch-rows", "20"]),
    ] {
        let output = breakdown(folder.path(), &[&[what, "--rows", "10000"], more].concat());
        let Some(text) = printed(&output) else { return };
        assert!(text.contains(" rows/s, "), "{text}");
        let output = breakdown(folder.path(), &[&[what, "--json"], more].concat());
        let object: Json = serde_json::from_str(&printed(&output).unwrap()).unwrap();
        let row = &object["rows"][0];
        assert_eq!(row["workload"], what);
        assert!(row["throughput_per_s"].as_f64().unwrap() > 100.0, "{row:#}");
    }
}

#[test]
fn profiles_are_written_for_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--html", "a.html", "--folded", "a.folded", "--speedscope", "a.json", "--pprof"];
    let output = breakdown(folder.path(), &[&["ycsb-read"], &files[..], &["a.pb"]].concat());
    if printed(&output).is_none() {
        return;
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(String::from_utf8(read("a.html")).unwrap().contains("<svg"));
    let folded = String::from_utf8(read("a.folded")).unwrap();
    let counted = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert!(folded.lines().map(counted).sum::<u64>() > 100, "{folded}");
    let speedscope: Json = serde_json::from_slice(&read("a.json")).unwrap();
    assert_eq!(speedscope["profiles"][0]["type"], "sampled");
    assert!(read("a.pb").len() > 1000);
}

#[test]
fn what_cannot_be_is_a_mistake_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["tpcc", "--threads", "0"][..],
        &["tpcc", "--translation", "hashed"],
        &["nothing"],
        &["tpcc", "--format", "parquet"],
        &["tpcc", "--frequency", "0"],
        &["batch-insert", "--batch-rows", "0"],
        &["tpcc", "compare", "a.json", "b.json"],
    ] {
        let output = breakdown(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}

fn compare(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["breakdown", "compare"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// A result whose samples stand for a microsecond each.
fn written(folder: &Path, name: &str, params: &Json, samples: &[(&str, u64)]) {
    let row = |(component, samples): &(&str, u64)| {
        json!({
            "workload": params["workload"],
            "threads": 1,
            "component": component,
            "samples": samples,
            "cpu_us_per_tx": samples,
            "unassigned": 0.0,
        })
    };
    let rows: Vec<Json> = samples.iter().map(row).collect();
    let object =
        json!({ "command": "breakdown", "version": "7.8.9", "params": params, "rows": rows });
    std::fs::write(folder.join(name), object.to_string()).unwrap();
}

#[test]
fn results_of_two_builds_are_put_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let params = |build: &str, log: bool| {
        let data = "2 warehouses";
        json!({ "workload": "tpcc", "data": data, "build": build, "log": log, "seed": 1 })
    };
    let before = [("B-tree", 4000), ("logging", 2500), ("locking", 100)];
    written(folder.path(), "a.json", &params("1.0-aaa", true), &before);
    let after = [("B-tree", 4010), ("logging", 900), ("locking", 160)];
    written(folder.path(), "b.json", &params("1.0-bbb", false), &after);
    let output = compare(folder.path(), &["a.json", "b.json", "--html", "c.html"]);
    let text = printed(&output).unwrap();
    for part in [
        "before: a.json, build 1.0-aaa",
        "after:  b.json, build 1.0-bbb",
        "options that differ: log true → false\n",
        "tpcc (2 warehouses) with 1 thread",
        "-1600.00 (-1715.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("logging").ends_with("less") && line("locking").ends_with("more"), "{text}");
    assert!(line("B-tree").ends_with(')') && line("all ").ends_with("less"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert_eq!(page.matches("<rect").count(), 8, "two bars for each");
    assert!(page.contains("1.0-aaa") && page.contains("<li>"), "{page}");

    let output = compare(folder.path(), &["a.json", "b.json", "--json"]);
    let object: Json = serde_json::from_str(&printed(&output).unwrap()).unwrap();
    assert_eq!(object["params"]["after"]["build"], "1.0-bbb");
    let logging = &object["rows"][1];
    assert_eq!((&logging["component"], &logging["change"]), (&"logging".into(), &"less".into()));
    assert_eq!(logging["difference_us"], -1600.0);
    assert!(logging["difference_us_high"].as_f64().unwrap() < 0.0, "{logging:#}");
}

#[test]
fn what_a_breakdown_writes_can_be_compared_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let written = breakdown(folder.path(), &["ycsb-read", "--json", "--out", "a.json"]);
    if printed(&written).is_none() {
        return;
    }
    let output = compare(folder.path(), &["a.json", "a.json"]);
    let text = printed(&output).unwrap();
    assert!(text.contains("ycsb-read (10000 rows) with 1 thread"), "{text}");
    assert!(text.contains("options that differ: none"), "{text}");
    assert!(
        text.contains("build 0.") && !text.contains("less") && !text.contains("more"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_compared_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, params: &Json| written(folder.path(), name, params, &[("pool", 9)]);
    write("a.json", &json!({ "workload": "tpcc", "data": "1 warehouses" }));
    write("b.json", &json!({ "workload": "ycsb-read", "data": "5 rows" }));
    std::fs::write(folder.path().join("c.json"), "{\"command\": \"bench tpcc\"}").unwrap();
    for (args, code, expected) in [
        (&["a.json", "b.json"][..], 1, "a.json is of tpcc (1 warehouses), and b.json of ycsb-read"),
        (
            &["a.json", "c.json"],
            1,
            "c.json: it is a result of `bench tpcc`; a result of a breakdown",
        ),
        (&["a.json", "none.json"], 1, "none.json: No such file"),
        (&["a.json"], 2, "AFTER.json"),
        (&["a.json", "a.json", "--html", "a.json"], 2, "would be replaced"),
        (&["a.json", "a.json", "--out", "a.json"], 2, "would be replaced"),
    ] {
        let output = compare(folder.path(), args);
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(error.contains(expected), "{args:?}: {error}");
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    }
}

#[test]
fn pages_of_the_published_pairs_are_made_of_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reports/breakdown");
    for pair in ["ids", "leaf", "redo", "log"] {
        let file = |side: &str| reports.join(format!("{pair}-{side}.json")).display().to_string();
        let (before, after) = (file("before"), file("after"));
        let text =
            printed(&compare(folder.path(), &[&before, &after, "--html", "c.html"])).unwrap();
        let page = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
        let components = text.lines().filter(|line| line.contains(" (")).count();
        assert!(page.contains("<rect") && page.contains("before and after"), "{pair}");
        assert!(components > 5 && text.contains("\nall "), "{pair}: {text}");
    }
}
