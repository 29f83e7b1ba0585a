//! `millpond bench` as a user meets it: every command, small, and the fields of its JSON.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

fn bench(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .arg("bench")
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Json {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every row has what scripts rely on, and the object what every command prints.
fn check(object: &Json, command: &str, rows: usize) {
    assert_eq!(object["command"], command);
    for part in ["version", "params", "machine"] {
        assert!(!object[part].is_null(), "{part}");
    }
    let all = object["rows"].as_array().unwrap();
    assert_eq!(all.len(), rows, "{object:#}");
    for row in all {
        for field in [
            "step",
            "engine",
            "threads",
            "throughput_per_s",
            "p50_us",
            "p99_us",
            "hit_ratio",
            "reads_per_tx",
            "writes_per_tx",
        ] {
            assert!(row.get(field).is_some(), "{field}: {row:#}");
        }
        assert!(row["throughput_per_s"].as_f64().unwrap() > 0.0, "{row:#}");
    }
}

const TINY: [&str; 3] = ["--operations", "120", "--json"];

#[test]
fn ycsb_measures_and_draws() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let base = ["ycsb", "--rows", "2000", "--verify", "--updates", "20", "--scans", "5"];
        bench(folder.path(), &[&base, more].concat())
    };
    let pool = json(&run(&[&TINY[..], &["--threads", "2", "--plot", "plot.html"]].concat()));
    check(&pool, "bench ycsb", 1);
    assert_eq!(pool["params"]["rows"], 2000);
    assert_eq!(pool["rows"][0]["hit_ratio"], 1.0);
    assert!(pool["rows"][0]["scan_per_s"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(folder.path().join("plot.html")).unwrap().contains("<svg"));
    check(&json(&run(&[&TINY[..], &["--engine", "twin"]].concat())), "bench ycsb", 1);
    let series = run(&["--seconds", "0.2", "--interval", "0.05", "--series", "s.csv", "--csv"]);
    assert!(text(&series.stdout).starts_with("step,engine,threads,throughput_per_s,p50_us"));
    let points = std::fs::read_to_string(folder.path().join("s.csv")).unwrap();
    assert!(points.starts_with("step,engine,threads,second,throughput_per_s"), "{points}");
    assert!(points.lines().count() > 1, "{points}");
}

#[test]
fn what_a_run_asks_of_storage_is_simulated_as_a_second_tier() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["tpcc", "--scale", "tiny", "--pool", "20%", "--log", "on", "--log-gap", "2MiB"];
    let more = ["--record-storage", "storage.parquet", "--operations", "600", "--json"];
    let object = json(&bench(folder.path(), &[&run[..], &more].concat()));
    let recorded = object["rows"][0]["storage_recorded"].as_u64().unwrap();
    assert!(recorded > 500, "{object:#}");
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(args).current_dir(folder.path()).output().unwrap()
    };
    let stat = command(&["trace", "stat", "storage.parquet"]);
    let said = text(&stat.stdout);
    assert!(stat.status.success() && said.contains("storage requests:"), "{said}");
    let sim = ["sim", "storage.parquet", "--size", "100", "--policy", "t2-lru,tq"];
    for model in ["read", "rw"] {
        let more = ["--model", model, "--no-results", "--format", "json"];
        let object = json(&command(&[&sim[..], &more].concat()));
        assert_eq!(object["rows"].as_array().unwrap().len(), 2, "{object:#}");
    }
    let writes = |reason: &str, more: &[&str]| {
        let run = ["tpcc", "--scale", "tiny", "--pool", "95%", "--log", "on", "--log-gap", "2MiB"];
        let run = [&run[..], &["--record-storage", "s.parquet", "--operations", "4000"], more];
        let output = bench(folder.path(), &run.concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let csv = command(&["trace", "convert", "s.parquet", "s.csv"]);
        assert!(csv.status.success(), "{}", text(&csv.stderr));
        let rows = std::fs::read_to_string(folder.path().join("s.csv")).unwrap();
        rows.lines().filter(|row| row.split(',').any(|field| field == reason)).count()
    };
    // With nearly all of the data in memory pages are written for the log's sake, and, if the dirty
    // share is kept low, long before they are to go.
    let cleaned = ["--eviction", "threads(2)", "--dirty-share", "5%"];
    let (plain, kept) = (writes("replace", &[]), writes("replace", &cleaned));
    assert!(kept > 2 * plain && kept > 50, "{kept} with page cleaners, {plain} without");
    for mode in ["org", "rec", "range"] {
        assert!(writes("dsync", &["--sync-mode", mode]) > 50, "{mode}: checkpoints sync pages");
    }
    let unlogged = bench(folder.path(), &["tpcc", "--scale", "tiny", "--sync-mode", "range"]);
    assert!(text(&unlogged.stderr).contains("lab.log = true"), "{}", text(&unlogged.stderr));
    let refused = bench(folder.path(), &["tpcc", "--scale", "tiny", "--dirty-share", "50%"]);
    assert!(text(&refused.stderr).contains("eviction = threads(N)"), "{}", text(&refused.stderr));
    let twin = bench(folder.path(), &["tpcc", "--engine", "twin", "--record-storage", "x.parquet"]);
    assert!(text(&twin.stderr).contains("no pool"), "{}", text(&twin.stderr));
}

#[test]
fn tpcc_is_checked_and_can_be_recorded_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let scale = ["tpcc", "--scale", "tiny", "--warehouses", "2", "--record", "t.parquet"];
    let object = json(&bench(folder.path(), &[&scale[..], &TINY].concat()));
    check(&object, "bench tpcc", 1);
    let row = &object["rows"][0];
    assert_eq!((&row["violations"], &row["transactions"]), (&Json::from(0), &Json::from(120)));
    assert!(row["recorded"].as_u64().unwrap() > 1000, "{row:#}");
    let output = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["sim", "t.parquet", "--policy", "lru", "--size", "10%", "--no-results"])
        .args(["--format", "json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(json(&output)["rows"][0]["references"], row["recorded"]);
}

#[test]
fn equal_seeds_do_equal_work_on_twin_and_pool() {
    let folder = tempfile::tempdir().unwrap();
    let run = |engine: &str| {
        let args = ["tpcc", "--scale", "tiny", "--engine", engine, "--seed", "5"];
        json(&bench(folder.path(), &[&args[..], &TINY].concat()))["rows"][0].clone()
    };
    let (twin, pool) = (run("twin"), run("pool"));
    for share in ["rows_loaded", "transactions", "violations"] {
        assert_eq!(twin[share], pool[share], "{share}");
    }
}

#[test]
fn a_pool_that_is_too_small_for_the_data_reads_and_writes() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["tpcc", "--scale", "tiny", "--pool", "20%", "--device", "file:store"];
    let object = json(&bench(folder.path(), &[&args[..], &TINY].concat()));
    check(&object, "bench tpcc", 1);
    let row = &object["rows"][0];
    assert!(row["reads_per_tx"].as_f64().unwrap() > 0.0, "{row:#}");
    assert!(row["hit_ratio"].as_f64().unwrap() < 1.0, "{row:#}");
    assert!(!folder.path().join("store").exists());
}

#[test]
fn scan_ramp_up_ladder_and_affinity_have_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| json(&bench(folder.path(), args));
    let tiny = ["--scale", "tiny", "--json", "--operations"];
    let scan = run(&[&["scan", "--pools", "30%,100%"], &tiny[..], &["4"]].concat());
    check(&scan, "bench scan", 4);
    assert!(scan["rows"][0]["mib_per_s"].as_f64().unwrap() > 0.0);
    let outgrow = ["outgrow", "--rows", "3000", "--pools", "100%,30%", "--json"];
    let outgrow = run(&[&outgrow[..], &["--operations", "400", "--warm-up", "0"]].concat());
    check(&outgrow, "bench outgrow", 2);
    let over = |row: usize| outgrow["rows"][row]["data_over_pool"].as_f64().unwrap();
    assert!(over(0) < 1.1 && over(1) > 2.0, "{outgrow:#}");
    let probed =
        ["outgrow", "--rows", "3000", "--pools", "30%", "--rounds", "2", "--probe", "0.02"];
    let run_of_it = ["--operations", "200", "--warm-up", "0", "--device", "slow:nvme", "--json"];
    let probed = run(&[&probed[..], &run_of_it].concat());
    check(&probed, "bench outgrow", 1);
    let row = &probed["rows"][0];
    let number = |column: &str| row[column].as_f64().unwrap();
    assert_eq!(number("rounds"), 2.0);
    assert!(number("device_reads_per_s") > 0.0 && number("reads_per_s") > 0.0);
    assert!(number("share_of_device_low") <= number("share_of_device"));
    let ramp = ["ramp-up", "--devices", "slow:nvme"];
    let ramp = run(&[&ramp[..], &tiny, &["60", "--interval", "3600"]].concat());
    check(&ramp, "bench ramp-up", 2);
    assert!(ramp["rows"][0]["reads_per_tx"].as_f64().unwrap() > 0.0);
    let short = ["--rounds", "2", "--warm-up", "0"];
    let ladder = ["ladder", "--rows", "1000"];
    let ladder = run(&[&ladder[..], &short, &tiny, &["50"]].concat());
    check(&ladder, "bench ladder", 10);
    let steps: Vec<&str> =
        (0..5).map(|row| ladder["rows"][row]["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["baseline", "+swizzling", "+lean-evict", "+optimistic", "twin"]);
    assert_eq!(ladder["rows"][0]["ratio_to_first"], 1.0);
    let affinity = ["affinity", "--threads", "2", "--warehouses", "1"];
    let affinity = run(&[&affinity[..], &short, &tiny, &["50"]].concat());
    check(&affinity, "bench affinity", 5);
}

#[test]
fn evictors_are_compared_and_what_cannot_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let policies = ["evictors", "--policies", "random,opt,watt(sample=4,candidates=32)"];
    let run = ["--rows", "60000", "--rounds", "2", "--evictor-threads", "1,2", "--json"];
    let output = bench(folder.path(), &[&policies[..], &run].concat());
    assert!(text(&output.stderr).contains("left out: "), "{}", text(&output.stderr));
    let object = json(&output);
    assert_eq!(object["command"], "bench evictors");
    let rows = object["rows"].as_array().unwrap();
    let of = |row: &Json| (row["step"].as_str().unwrap().to_string(), row["threads"].as_u64());
    let all: Vec<_> = rows.iter().map(of).collect();
    let expected = [("clean", 1), ("clean", 1), ("dirty", 1), ("dirty", 1), ("clean", 2)];
    for (found, (step, threads)) in all.iter().zip(expected) {
        assert_eq!(*found, (step.to_string(), Some(threads)));
    }
    assert_eq!(rows.len(), 8);
    for row in rows {
        let number = |column: &str| row[column].as_f64().unwrap();
        assert!(number("evictions_per_s") > 0.0 && number("ratio_to_first") > 0.0, "{row:#}");
        assert!(number("candidates_per_eviction") >= 1.0, "{row:#}");
        let is_dirty = row["step"] == "dirty";
        assert_eq!(number("writes_per_eviction") >= 1.0, is_dirty, "{row:#}");
    }
    let none = bench(folder.path(), &["evictors", "--policies", "opt"]);
    assert_eq!(none.status.code(), Some(2));
    let too_few = ["evictors", "--rows", "100", "--pool", "2000", "--policies", "watt"];
    let too_few = bench(folder.path(), &too_few);
    assert!(text(&too_few.stderr).contains("does not fill the pool"), "{}", text(&too_few.stderr));
}

#[test]
fn what_cannot_be_is_refused_with_exit_code_2_and_says_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (&["ycsb", "--latching", "none", "--policy", "lru"][..], "is not compiled; there are:"),
        (&["ycsb", "--policy", "lean-evikt"], "did you mean 'lean-evict'"),
        (&["ycsb", "--latching", "none", "--policy", "watt", "--threads", "2"], "for one thread"),
        (&["tpcc", "--device", "tape"], "slow:nvme|sata|disk|array"),
        (&["tpcc", "--scale", "tiny", "--fast-warm-up"], "--device slow:nvme"),
        (&["ycsb", "--updates", "80", "--scans", "30"], "at most 100"),
        (&["ycsb", "--pool", "none"], "is no size"),
        (&["tpcc", "--engine", "twin", "--record", "x.parquet", "--scale", "tiny"], "no pool"),
    ] {
        let output = bench(folder.path(), args);
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{args:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    }
}
