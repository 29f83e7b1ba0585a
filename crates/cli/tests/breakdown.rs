//! `millpond breakdown` as a user meets it.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

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
fn printed(output: &Output) -> Option<String> {
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
    ] {
        let output = breakdown(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}
