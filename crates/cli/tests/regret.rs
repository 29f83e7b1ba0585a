//! `millpond regret`: who is how far from the best, on which half of the traces.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

/// Four traces of 3,000 references to 100 pages, every third one a write; their folder.
fn traces() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (seed, name) in ["d.txt", "b.txt", "a.txt", "c.txt"].into_iter().enumerate() {
        let line = |i: usize| {
            let page = (i * i % 97 * (seed + 1) + i / 400) % 100;
            format!("{page} {}\n", if i.is_multiple_of(3) { "W" } else { "R" })
        };
        std::fs::write(folder.path().join(name), (0..3000).map(line).collect::<String>()).unwrap();
    }
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.arg("regret").args(args).arg("-q").current_dir(folder).output().unwrap()
}

fn json(folder: &Path, args: &[&str]) -> Json {
    let output = run(folder, &[args, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

const ALL: [&str; 4] = ["d.txt", "b.txt", "a.txt", "c.txt"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ALL[..], more].concat()
}

#[test]
fn the_halves_are_made_by_name_and_each_is_judged_alone() {
    let folder = traces();
    let object = json(folder.path(), &with(&["-p", "lru,fifo,tide,opt", "-s", "10,30%"]));
    assert_eq!(object["command"], "regret");
    assert_eq!(object["params"]["tuning"], serde_json::json!(["a.txt", "c.txt"]));
    assert_eq!(object["params"]["held_out"], serde_json::json!(["d.txt", "b.txt"]));
    let rows = object["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for half in ["tuning", "held-out"] {
        let of_half: Vec<&Json> = rows.iter().filter(|row| row["half"] == half).collect();
        let wins: u64 = of_half.iter().map(|row| row["wins"].as_u64().unwrap()).sum();
        assert!(wins >= 4, "each of four cells has a best candidate: {of_half:?}");
        for row in &of_half {
            let is_bound = row["policy"] == "opt";
            assert_eq!(row["role"], if is_bound { "bound" } else { "candidate" });
            let number = |name: &str| row[name].as_f64().unwrap();
            assert!(number("p90_low") <= number("p90") && number("p90") <= number("p90_high"));
            assert!(number("median") <= number("p90") && number("p90") <= number("worst"));
            assert!(is_bound || number("median") >= 0.0);
            assert!(row["policy"] != "tide" || number("p90_less") == 0.0);
        }
    }
    let only = json(folder.path(), &with(&["-p", "lru,fifo", "-s", "10", "--only", "held-out"]));
    assert!(only["rows"].as_array().unwrap().iter().all(|row| row["half"] == "held-out"));
    let none = json(folder.path(), &with(&["-p", "lru", "-s", "10", "--held-out", "none"]));
    assert_eq!((&none["rows"][0]["half"], &none["rows"][0]["worst"]), (&"all".into(), &0.0.into()));
}

#[test]
fn a_cell_costs_its_reads_and_the_weight_times_its_writes() {
    let folder = traces();
    let args = with(&["-p", "lru,fifo,lru-wsr", "-s", "20", "--cells"]);
    for weight in ["2", "7.5"] {
        let object = json(folder.path(), &[&args[..], &["--write-weight", weight]].concat());
        let rows = object["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 12);
        let weight: f64 = weight.parse().unwrap();
        for row in rows {
            let number = |row: &Json, name: &str| row[name].as_f64().unwrap();
            let cost = number(row, "reads") + weight * number(row, "writes");
            assert!((number(row, "cost") - cost).abs() < 1e-6, "{row}");
            let same = rows.iter().filter(|other| other["trace"] == row["trace"]);
            let least = same.map(|other| number(other, "cost")).fold(f64::INFINITY, f64::min);
            assert!((number(row, "regret") - 100.0 * (cost / least - 1.0)).abs() < 0.006, "{row}");
        }
    }
}

#[test]
fn all_stands_for_every_candidate_and_the_forms_agree() {
    let folder = traces();
    let object = json(folder.path(), &["a.txt", "b.txt", "-s", "20", "--only", "tuning"]);
    let rows = object["rows"].as_array().unwrap();
    let has = |name: &str| rows.iter().any(|row| row["policy"] == name);
    assert!(rows.len() > 40 && has("watt") && has("s3-fifo") && has("tide"), "{}", rows.len());
    assert!(!has("opt") && !has("t2-lru"), "neither the future nor a second tier");
    let args = with(&["-p", "lru,fifo", "-s", "10", "--plot", "p.html"]);
    let csv = run(folder.path(), &[&args[..], &["--csv"]].concat());
    let csv = String::from_utf8(csv.stdout).unwrap();
    assert!(csv.starts_with("half,policy,p90,p90_low,p90_high,median") && csv.lines().count() == 5);
    let page = std::fs::read_to_string(folder.path().join("p.html")).unwrap();
    assert_eq!(page.matches("<rect").count(), 4);
    let table = String::from_utf8(run(folder.path(), &args).stdout).unwrap();
    assert!(table.contains("tuning: 2 traces, 2 cells") && table.contains("held-out: 2 traces"));
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let folder = traces();
    let refused = |args: &[&str], code: i32, says: &str| {
        let output = run(folder.path(), args);
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    };
    refused(&["a.txt", "a.txt"], 2, "given twice");
    refused(&["-"], 2, "no name to split by");
    refused(&["a.txt", "-p", "lro"], 2, "lru");
    refused(&["a.txt", "--only", "held-out"], 2, "no trace is in that half");
    refused(&["a.txt", "--write-weight=-1"], 2, "0 to 1000000 reads");
    refused(&["a.txt", "none.txt"], 1, "none.txt");
    refused(&["a.txt", "-p", "opt", "-s", "10"], 1, "does not need the future");
}
