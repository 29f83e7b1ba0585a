//! `millpond-papers factors` as a user meets it.

use std::path::Path;
use std::process::{Command, Output};

use millpond_lab::registry::Registry;
use millpond_policies::info::Tier;
use serde_json::Value as Json;

const SMALL: [&str; 4] = ["--frames", "64,16", "--seconds-max", "0"];

fn factors(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-papers"));
    command.args(["factors", "--quiet"]).args(SMALL).args(args);
    command.current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn rows(output: &Output) -> Vec<Json> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["command"], "paper factors");
    object["rows"].as_array().unwrap().clone()
}

fn of<'r>(rows: &'r [Json], policy: &str) -> &'r Json {
    rows.iter().find(|row| row["policy"] == policy).unwrap_or_else(|| panic!("{policy}"))
}

#[test]
fn every_live_policy_has_a_row_with_its_costs_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(&factors(folder.path(), &["--no-live", "--no-corrections", "--json"]));
    let registry = Registry::builtin();
    let live = registry.entries().iter().filter(|e| e.info.live && !e.needs_future);
    for entry in live.filter(|e| e.info.tier == Tier::First) {
        let row = of(&rows, entry.info.id);
        for frames in [16, 64] {
            let number = |what: &str| row[format!("{what}_{frames}")].as_f64().unwrap();
            assert!(number("victims") >= 5.0 && number("victim_ns") > 0.0, "{row:#}");
            let end = |end: &str| row[format!("victim_ns_{frames}_{end}")].as_f64().unwrap();
            assert!(end("low") <= number("victim_ns") && number("victim_ns") <= end("high"));
            assert!(number("hits") > 0.0, "{row:#}");
        }
        assert!(row["hit_percent"].is_null() && row["hit_instructions"].is_null(), "{row:#}");
    }
    let bytes = |policy: &str| {
        let row = of(&rows, policy);
        (row["fixed_bytes"].as_u64().unwrap(), row["bytes_per_frame"].as_f64().unwrap())
    };
    assert_eq!(bytes("random"), (0, 0.0));
    assert_eq!(bytes("loop"), (64, 0.0), "a counter in a line of its own");
    assert_eq!(bytes("loop(counter=thread)"), (4096, 0.0), "one for each of 64 threads");
    assert_eq!(bytes("lru"), (0, 8.0), "two links");
    for row in &rows {
        assert_eq!(row["part"], "policy");
    }
}

#[test]
fn hit_rates_are_live_and_a_table_is_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--policies", "random,lru", "--scale", "quick", "--no-corrections"];
    let of_json = rows(&factors(folder.path(), &[&args[..], &["--json"]].concat()));
    for policy in ["random", "lru"] {
        let hits = of(&of_json, policy)["hit_percent"].as_f64().unwrap();
        assert!((20.0..100.0).contains(&hits), "{policy}: {hits}");
    }
    let plot = ["--no-live", "--wide", "--plot", "victims.html"];
    let output = factors(folder.path(), &[&args[..], &plot].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for part in ["hit ns, 16", "victim ns, 64", "bytes/frame", "Large pools", "--instructions"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let drawn = std::fs::read_to_string(folder.path().join("victims.html")).unwrap();
    assert!(drawn.contains("<svg") && drawn.contains("random"), "{drawn}");
}

#[test]
fn what_he_says_is_judged_by_ratios_that_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--policies", "random", "--scale", "quick", "--no-live", "--json"];
    let rows = rows(&factors(folder.path(), &args));
    let parts = |part: &str| rows.iter().filter(|row| row["part"] == part).count();
    assert_eq!((parts("policy"), parts("correction")), (1, 6));
    for row in rows.iter().filter(|row| row["part"] == "correction") {
        let holds = row["holds"].as_str().unwrap();
        assert!(["yes", "no", "open"].contains(&holds), "{row:#}");
        assert!(row["place"].as_str().unwrap().contains("p. "), "{row:#}");
        assert_ne!(row["here"], "not run", "{row:#}");
    }
    assert!(parts("ratio") >= 10, "{rows:#?}");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["--policies", "lru,opt"][..], "'opt' does not run live"),
        (&["--policies", "t2-lru"], "'t2-lru' does not run live"),
        (&["--policies", "lrv"], "did you mean 'lru'"),
        (&["--policies", "lru-k(k=99)"], "lru-k"),
        (&["--policies", ""], "the name is missing"),
        (&["--rounds", "4"], "5..=1000"),
        (&["--frames", "0"], "1..="),
        (&["--frames", "99999999999"], "1..="),
        (&["--pool", "0"], "1..=1000"),
        (&["--scale", "large"], "quick, standard or paper"),
        (&["--json", "--csv"], "cannot be used with"),
        (&["--format", "parquet"], "--out"),
    ] {
        let output = factors(folder.path(), args);
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{args:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
