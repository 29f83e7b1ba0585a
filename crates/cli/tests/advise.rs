//! `millpond advise` as a user meets it, on the small traces that ship.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

fn advise(trace: &Path, more: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_millpond");
    Command::new(command).arg("advise").arg(trace).args(more).output().unwrap()
}

fn json(output: &Output) -> Json {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn three_lines_say_what_to_take_how_sure_that_is_and_why() {
    let output = advise(&trace("cache2k_web07.txt.gz"), &["--size", "5%,20%"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("Take ") || lines[0].starts_with("Stay with "), "{text}");
    assert!(lines[0].contains("1025 (5 %), 4097 (20 %) frames"), "{text}");
    assert!(lines[1].starts_with("Beside ") || lines[1].starts_with("The runner-up"), "{text}");
    assert!(lines[2].starts_with("Why: ") && lines[2].contains("referenced once"), "{text}");
    assert!(lines[3].is_empty() && lines[4].starts_with("policy"), "{text}");
    let listed = ["lru", "2q", "arc", "lirs", "s3-fifo", "tide", "w-tinylfu", "hyperbolic", "watt"];
    for policy in listed.into_iter().chain(["opt"]) {
        assert!(lines[5..].iter().any(|line| line.split(' ').next() == Some(policy)), "{policy}");
    }
}

#[test]
fn a_trace_that_loops_gets_a_policy_that_stands_loops() {
    // A loop a tenth longer than the pool: LRU never hits, LIRS nearly always.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.txt");
    let pages: String = (0..22_000).map(|at| format!("{}\n", at % 1100)).collect();
    std::fs::write(&path, pages).unwrap();
    let object = json(&advise(&path, &["--size", "1000", "--json"]));
    assert_eq!(object["command"], "advise");
    let params = &object["params"];
    assert_eq!(params["choice"], "lirs", "{params}");
    assert_eq!(params["scan_hints"], false, "the trace marks no scan");
    let ties: Vec<&str> =
        params["ties"].as_array().unwrap().iter().map(|tie| tie.as_str().unwrap()).collect();
    assert!(ties[0] == "lirs" && !ties.contains(&"lru") && !ties.contains(&"arc"), "{params}");
    let rows = object["rows"].as_array().unwrap();
    let of = |policy: &str| rows.iter().find(|row| row["policy"] == policy).unwrap();
    assert!(of("lru")["over_best"].as_f64().unwrap() > 5.0);
    assert_eq!(rows[0]["policy"], "opt", "who knows the future is first");
    assert_eq!(of("lru")["hits"], 0);
    assert_eq!(of("lru")["options"], "pool");
}

#[test]
fn what_a_write_costs_decides_where_pages_are_written() {
    let tpcc = trace("millpond_tpcc.parquet");
    let cost = |weight: &str, policy: &str| {
        let object = json(&advise(&tpcc, &["--size", "10%", "--json", "--write-weight", weight]));
        assert_eq!(object["params"]["references"], 600_000);
        let rows = object["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["policy"] == policy).unwrap().clone();
        let number = |name: &str| row[name].as_f64().unwrap();
        let weighted = number("misses") + weight.parse::<f64>().unwrap() * number("writes");
        assert!((number("cost") - weighted).abs() < 1e-6);
        number("writes")
    };
    // At its own weight of 4 it is what `--default` names once more, and runs once.
    let own = ["--size", "10%", "--json", "--write-weight", "4", "--default", "watt"];
    let object = json(&advise(&tpcc, &own));
    let rows = object["rows"].as_array().unwrap();
    let is_watt = |row: &&Json| row["policy"].as_str().unwrap().starts_with("watt");
    let watts: Vec<&Json> = rows.iter().filter(is_watt).collect();
    assert!(watts.len() == 1 && watts[0]["policy"] == "watt", "{watts:?}");
    // WATT gets the cost of a write as a parameter, and saves more of them the more they cost.
    assert!(cost("16", "watt(write_weight=16)") < cost("0", "watt(write_weight=0)"));
}

#[test]
fn what_cannot_be_advised_on_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.txt");
    std::fs::write(&path, "1\n2\n1\n").unwrap();
    let output = advise(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has 3 references: too few"));
    let few: String = (0..2000).map(|at| format!("{}\n", at % 20)).collect();
    std::fs::write(&path, few).unwrap();
    let output = advise(&path, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has only 20 pages: say with --size"));
    assert!(advise(&path, &["--size", "5"]).status.success());
    assert_eq!(advise(&path, &["--write-weight", "-1"]).status.code(), Some(2));
    assert_eq!(advise(&path, &["--size", "5", "--policy", "nope"]).status.code(), Some(2));
}
