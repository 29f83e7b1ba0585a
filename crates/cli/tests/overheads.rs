//! `millpond bench overheads` as a user meets it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

use crate::breakdown::printed;

fn overheads(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["bench", "overheads", "--quiet", "--tiny"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Samples of tests have no line tables, so that bars of components stay open: what is checked here
/// is the form, and the bar that needs no samples. The verdicts are tested where they are made.
#[test]
fn every_bar_is_judged_by_arms_that_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--seconds", "0.2", "--warm-up", "0.05", "--repetitions", "2", "--warehouses", "1"];
    let output = overheads(folder.path(), &[&few[..], &["--json", "--html", "a.html"]].concat());
    let Some(text) = printed(&output) else { return };
    let object: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(object["command"], "bench overheads");
    assert_eq!(object["params"]["repetitions"], 2);
    let rows = object["rows"].as_array().unwrap();
    let of = |part: &str| rows.iter().filter(|row| row["part"] == part).collect::<Vec<_>>();
    let number = |row: &Json, column: &str| {
        row[column].as_f64().unwrap_or_else(|| panic!("{column}: {row:#}"))
    };
    let (bars, arms) = (of("bar"), of("arm"));
    assert_eq!((bars.len(), arms.len()), (7, 14));
    for bar in &bars {
        let verdict = bar["verdict"].as_str().unwrap();
        assert!(["met", "missed", "open"].contains(&verdict), "{bar:#}");
        assert!(number(bar, "at_most") > 0.0 && bar["repetitions"] == 2, "{bar:#}");
    }
    // The ratio is that of the arms that are printed.
    let us = |repetition: u64, engine: &str| {
        let is = |row: &&&Json| {
            row["workload"] == "tpcc" && row["engine"] == engine && row["repetition"] == repetition
        };
        number(arms.iter().find(is).unwrap(), "cpu_us_per_tx")
    };
    let pool = bars.iter().find(|bar| bar["bar"] == "tpcc-pool").unwrap();
    let ratio = |turn| (us(turn, "neither") - us(turn, "twin")) / us(turn, "neither");
    let mean = (ratio(1) + ratio(2)) / 2.0;
    assert!((number(pool, "ratio") - mean).abs() < 1e-6, "{mean}: {pool:#}");
    assert!(number(pool, "ratio_low") <= number(pool, "ratio_high"), "{pool:#}");
    for arm in arms.iter().filter(|arm| arm["engine"] == "log and locks") {
        assert!(number(arm, "logging_us_per_tx") <= number(arm, "cpu_us_per_tx"), "{arm:#}");
        assert!(number(arm, "samples") > 0.0, "{arm:#}");
    }
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("tpcc-pool"), "{page}");
}

#[test]
fn bars_are_a_table_for_people_and_one_repetition_decides_none() {
    let folder = tempfile::tempdir().unwrap();
    let output = overheads(folder.path(), &["--seconds", "0.1", "--repetitions", "1"]);
    let Some(text) = printed(&output) else { return };
    for part in ["tpcc: logging + I/O over neither", "1 repetition, which", "log and locks"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let verdicts = |word: &str| text.lines().filter(|line| line.ends_with(word)).count();
    assert_eq!((verdicts(" open"), verdicts(" met"), verdicts(" missed")), (7, 0, 0), "{text}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn what_cannot_be_is_a_mistake_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["--repetitions", "0"][..],
        &["--seconds", "0"],
        &["--rows", "0"],
        &["--warehouses", "0"],
        &["--format", "parquet"],
        &["--translation", "hashed"],
    ] {
        let output = overheads(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}
