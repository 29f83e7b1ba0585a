//! `millpond compare` as a user meets it: from simulations to a verdict, a table, a page.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

struct Lab {
    folder: TempDir,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Lab {
    /// With a trace for each seed.
    fn with_traces(count: u64) -> Lab {
        let lab = Lab { folder: tempfile::tempdir().unwrap() };
        for seed in 1..=count {
            let (seed, out) = (seed.to_string(), format!("t{seed}.parquet"));
            let what = ["trace", "gen", "zipf-ro"];
            let params = ["pages=500", "refs=6k", "theta=0.9"];
            lab.ok(&[&what[..], &params, &["--seed", &seed, "--out", &out]].concat());
        }
        lab
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(args).current_dir(self.folder.path()).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Simulates; the result directory, which is the only one below `root`.
    fn sim(&self, root: &str, args: &[&str]) -> String {
        self.ok(&[&["sim", "-q", "--results", root], args].concat());
        let mut entries = fs::read_dir(self.folder.path().join(root)).unwrap();
        let name = entries.next().unwrap().unwrap().file_name().into_string().unwrap();
        assert!(entries.next().is_none());
        format!("{root}/{name}")
    }

    fn fails(&self, args: &[&str], code: i32, says: &str) {
        let output = self.run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

#[test]
fn traces_decide_between_policies_and_a_page_shows_it() {
    let lab = Lab::with_traces(6);
    let traces: Vec<String> = (1..=6).map(|seed| format!("t{seed}.parquet")).collect();
    let traces: Vec<&str> = traces.iter().map(String::as_str).collect();
    let policies = ["-p", "lru,fifo,lfu", "-s", "5%,20%"];
    let dir = &lab.sim("r", &[&traces[..], &policies].concat());
    let shown = lab.ok(&["compare", dir, "--plot", "page.html"]);
    assert!(shown.starts_with("lfu has the least; clearly behind it: lru, fifo."), "{shown}");
    assert!(shown.contains("over 6 traces") && shown.contains("by Holm over 3 pairs"), "{shown}");
    assert!(shown.contains("Final scores, the best first:"), "{shown}");
    let page = fs::read_to_string(lab.folder.path().join("page.html")).unwrap();
    for part in ["Compared: misses", "Mean ranks over 6 traces", "Luan&#39;s joint", "<svg"] {
        assert!(page.contains(part) || page.contains(&part.replace("&#39;", "'")), "{part}");
    }
    let rows: Json =
        serde_json::from_str(&lab.ok(&["compare", dir, "--to", "lru", "--json"])).unwrap();
    let verdicts: Vec<&str> = rows["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(
        (verdicts, &rows["params"]["replicate"]),
        (vec!["worse", "better"], &"trace".into())
    );
    let two = ["--where", "trace=t1.parquet", "--replicate", "size", "-p", "lru,lfu"];
    let one_trace = lab.ok(&[&["compare", dir.as_str()], &two[..]].concat());
    assert!(one_trace.contains("over 2 sizes"), "{one_trace}");
    lab.ok(&["report", dir, "--compare=misses+2*writes", "--out", "report.html"]);
    let report = fs::read_to_string(lab.folder.path().join("report.html")).unwrap();
    assert!(report.contains("Compared: misses+2*writes") && report.contains("Miss ratio over"));
}

#[test]
fn blocks_add_up_to_the_whole_and_decide_on_one_trace() {
    let lab = Lab::with_traces(1);
    let sim = ["t1.parquet", "-p", "lru,lfu", "-s", "10%", "--warmup", "1000"];
    let whole = lab.sim("whole", &sim);
    let blocks = lab.sim("blocks", &[&sim[..], &["--blocks", "12"]].concat());
    let rows = |dir: &str| -> Vec<Json> {
        let args: [&str; 9] =
            ["sim", "t1.parquet", "-p", "lru,lfu", "-s", "10%", "--warmup", "1000", "--json"];
        let cut: &[&str] = if dir == "blocks" { &["--blocks", "12"] } else { &[] };
        let out = lab.ok(&[&args[..], cut, &["-q", "--no-results"]].concat());
        let json: Json = serde_json::from_str(&out).unwrap();
        json["rows"].as_array().unwrap().clone()
    };
    let (all, parts) = (rows("whole"), rows("blocks"));
    assert_eq!((all.len(), parts.len()), (2, 24));
    for of in &all {
        for column in ["references", "hits", "misses", "writes", "evictions", "dirty_evictions"] {
            let own = parts.iter().filter(|part| part["policy"] == of["policy"]);
            let sum: u64 = own.map(|part| part[column].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), of[column].as_u64(), "{column}");
        }
    }
    let shown = lab.ok(&["compare", &blocks]);
    assert!(shown.contains("over 12 blocks") && shown.contains("block bootstrap"), "{shown}");
    assert!(shown.starts_with("lru is worse than lfu: misses × 1."), "{shown}");
    lab.fails(&["compare", &whole], 1, "--blocks");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let lab = Lab::with_traces(3);
    let sim = ["t1.parquet", "t2.parquet", "t3.parquet", "-p", "lru,lfu", "-s", "10%"];
    let dir = &lab.sim("r", &sim);
    lab.fails(&["compare", "nowhere"], 1, "nowhere is no result directory");
    lab.fails(&["compare", dir, "--metric", "misses+hits"], 2, "is no metric");
    lab.fails(&["compare", dir, "--metric", "beauty"], 1, "no row has a number for beauty");
    lab.fails(&["compare", dir, "-p", "lru,nru"], 2, "no row is of 'nru'; there are lru, lfu");
    lab.fails(&["compare", dir, "--to", "arc"], 2, "no row is of 'arc'");
    lab.fails(&["compare", dir, "-p", "lru"], 1, "two policies or runs are needed");
    lab.fails(&["compare", dir, "--where", "size"], 2, "write COLUMN=VALUE");
    lab.fails(&["compare", dir, "--where", "colour=red"], 2, "no row has a column 'colour'");
    lab.fails(&["compare", dir, "--where", "trace=t9.parquet"], 1, "there is no row");
    lab.fails(&["compare", dir, "--margin", "wide"], 2, "--margin wide is no share");
    lab.fails(&["compare", dir, "--level", "2"], 2, "is no probability");
    lab.fails(&["compare", dir, "--weights", "1,2"], 2, "are not three numbers");
    lab.fails(&["compare", dir, "--replicate", "repetition"], 1, "fewer than two repetitions");
    lab.fails(&["compare", dir, "--format", "parquet"], 2, "name a file with --out");
    let cut = ["sim", "t1.parquet", "-p", "lru", "-s", "10", "--no-results", "-q", "--blocks"];
    lab.fails(&[&cut[..], &["9000"]].concat(), 2, "6000 references cannot be cut into 9000 blocks");
    let two = [&cut[..], &["4", "--model", "rw"]].concat();
    lab.fails(&two, 2, "leave --blocks away");
}

#[test]
fn points_of_a_curve_say_of_which_references_and_options_they_are() {
    let lab = Lab::with_traces(2);
    fs::copy(lab.folder.path().join("t1.parquet"), lab.folder.path().join("copy.parquet")).unwrap();
    let curve =
        ["t1.parquet", "copy.parquet", "t2.parquet", "-p", "lru,mru", "-s", "50", "--curve"];
    let json = ["sim", "-q", "--no-results", "--json"];
    let rows: Json = serde_json::from_str(&lab.ok(&[&json[..], &curve].concat())).unwrap();
    let content = |trace: &str| {
        let row =
            rows["rows"].as_array().unwrap().iter().find(|row| row["trace"] == trace).unwrap();
        assert_eq!(row["options"], "pool");
        row["content"].as_str().unwrap().to_string()
    };
    assert_eq!(content("t1.parquet"), content("copy.parquet"));
    assert_ne!(content("t1.parquet"), content("t2.parquet"));
    let simulated = ["t1.parquet", "-p", "lru", "-s", "50"];
    let one: Json = serde_json::from_str(&lab.ok(&[&json[..], &simulated].concat())).unwrap();
    assert_eq!(one["rows"][0]["content"], content("t1.parquet").as_str());
    let dir = lab.sim("c", &curve);
    let shown = lab.ok(&["compare", &dir, "--replicate", "trace"]);
    assert!(shown.contains("over 2 traces"), "a copy is no third trace: {shown}");
    let threads = [&["sim", "-q", "--no-results", "--threads", "2"][..], &curve].concat();
    lab.fails(&threads, 2, "cannot be used with");
}

#[test]
fn a_report_relative_to_a_policy_that_no_row_is_of_is_refused() {
    let lab = Lab::with_traces(1);
    let dir = &lab.sim("r", &["t1.parquet", "-p", "lru,lfu", "-s", "10%"]);
    let report = ["report", dir, "--out", "page.html", "--relative-to"];
    lab.fails(&[&report[..], &["arc"]].concat(), 2, "no row is of 'arc'");
    assert!(!lab.folder.path().join("page.html").exists());
    lab.ok(&[&report[..], &["lfu"]].concat());
    let page = fs::read_to_string(lab.folder.path().join("page.html")).unwrap();
    assert!(page.contains("Misses relative to lfu"), "{page}");
}
