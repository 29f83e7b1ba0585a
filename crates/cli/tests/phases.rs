//! `millpond bench phases` as a user meets it: small, with every number that can be known checked.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

fn phases(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["bench", "phases", "--quiet"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn rows(output: &Output) -> Vec<Json> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["command"], "bench phases");
    object["rows"].as_array().unwrap().clone()
}

fn number(row: &Json, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column}: {row:#}"))
}

/// Step, threads, rows, transactions and rounds.
fn counts(row: &Json) -> (String, [u64; 4]) {
    let step = row["step"].as_str().unwrap().to_string();
    (step, ["threads", "rows", "transactions", "rounds"].map(|column| number(row, column) as u64))
}

const SMALL: [&str; 19] = [
    "--rows",
    "2000",
    "--singles",
    "7",
    "--batches",
    "3",
    "--batch-rows",
    "50",
    "--async-singles",
    "11",
    "--reads",
    "333",
    "--ranges",
    "100",
    "--rounds",
    "2",
    "--threads",
    "1,3",
    "--json",
];

#[test]
fn each_phase_does_exactly_what_it_was_asked_for_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(&phases(folder.path(), &[&SMALL[..], &["--range-rows", "1"]].concat()));
    // 2,000 loaded, and in each of two rounds 7 + 150 + 11 + 150.
    let live = 2_000 + 2 * (7 + 150 + 11 + 150);
    let expected = [
        ("load", [1, 2_000, 1, 1]),
        ("single", [1, 14, 14, 2]),
        ("batch", [1, 300, 6, 2]),
        ("async-single", [1, 22, 22, 2]),
        ("async-batch", [1, 300, 6, 2]),
        ("len", [1, 2 * live, 2, 2]),
        ("read", [1, 666, 666, 2]),
        ("read", [3, 666, 666, 2]),
        ("range", [1, 200, 200, 2]),
        ("range", [3, 200, 200, 2]),
        ("remove", [1, live / 2, 1, 1]),
        ("shrink", [1, live / 2, 1, 1]),
        ("scan", [1, live / 2, 1, 1]),
        ("sorted", [1, 2_000, 1, 1]),
        ("pop", [1, 200, 1, 1]),
    ];
    let mut found: Vec<_> = rows.iter().map(counts).collect();
    // Of the 1,800 that popping leaves about a half goes, and of the rest again.
    let halves = found.split_off(found.len() - 2);
    let ["extract-if", "retain"] = [0, 1].map(|at: usize| halves[at].0.as_str()) else {
        panic!("{halves:?}");
    };
    let [extracted, retained] = [0, 1].map(|at: usize| halves[at].1[1]);
    assert!((750..1_050).contains(&extracted), "{halves:?}");
    assert!((300..600).contains(&retained), "{halves:?}");
    let expected: Vec<_> = expected.map(|(step, counts)| (step.to_string(), counts)).into();
    assert_eq!(found, expected);
    for row in &rows {
        for column in ["rows_per_s", "tx_per_s", "seconds", "disk_mib", "cpu_us_per_row"] {
            assert!(number(row, column) > 0.0, "{column}: {row:#}");
        }
        assert!(number(row, "rows_per_s_low") <= number(row, "rows_per_s_high"), "{row:#}");
        if row["step"] != "shrink" && row["step"] != "scan" {
            assert!(number(row, "p50_us") <= number(row, "p99_us"), "{row:#}");
        }
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "it cleans up");
}

#[test]
fn durable_commits_wait_for_the_log_and_others_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(&phases(folder.path(), &SMALL));
    let of = |step: &str| rows.iter().find(|row| row["step"] == step).unwrap();
    assert!(number(of("single"), "log_syncs") >= 14.0, "{:#}", of("single"));
    assert!(number(of("batch"), "log_syncs") >= 6.0, "{:#}", of("batch"));
    // A key, a value, and what is around them.
    for step in ["load", "single", "batch", "async-single", "async-batch"] {
        assert!(number(of(step), "log_bytes_per_row") >= 174.0, "{:#}", of(step));
    }
    // Ten rows of each range, unless it begins among the last nine.
    let range = number(of("range"), "rows");
    assert!((1_900.0..=2_000.0).contains(&range), "{range}");
}

#[test]
fn chosen_phases_run_in_their_order_on_rows_that_are_there_without_a_load() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = ["--phases", "scan,len,remove", "--memory", "4MiB", "--rows", "20000"];
    let rows = rows(&phases(folder.path(), &[&chosen[..], &["--rounds", "1", "--json"]].concat()));
    let found: Vec<_> = rows.iter().map(counts).collect();
    let one = |step: &str, rows| (step.to_string(), [1, rows, 1, 1]);
    assert_eq!(found, [one("len", 20_000), one("remove", 10_000), one("scan", 10_000)]);
    assert!(number(&rows[2], "reads_per_row") > 0.0, "memory is less than data: {:#}", rows[2]);
}

#[test]
fn a_store_gives_room_back_when_half_of_its_rows_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = ["--phases", "load,remove,shrink,scan", "--rows", "30000", "--json"];
    let rows = rows(&phases(folder.path(), &chosen));
    let of = |step: &str| rows.iter().find(|row| row["step"] == step).unwrap();
    // What shrinking logs is given back when the store is closed, and so before the scan.
    let [before, after] = ["shrink", "scan"].map(|step| number(of(step), "disk_before_mib"));
    assert!(after < before / 2.0, "{after} of {before}: {:#}", of("scan"));
}

#[test]
fn what_cannot_be_is_refused_with_exit_code_2_and_says_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["--rows", "0"][..], "0 is not in 1..="),
        (&["--threads", "0"], "0 is not in 1..=1024"),
        (&["--rounds", "none"], "invalid digit"),
        (&["--phases", "load,fly"], "there is no phase 'fly'; there are: load, single, batch,"),
        (&["--memory", "5%"], "Say bytes, such as 64MiB"),
        (&["--memory", "1KiB"], "memory"),
        (&["--log-gap", "much"], "'much' is no size"),
        (&["--folder", "nowhere"], "nowhere: No such file"),
    ] {
        let few: &[&str] = if args[0] == "--rows" { &[] } else { &["--rows", "10"] };
        let output = phases(folder.path(), &[args, few].concat());
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{args:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left behind");
}
