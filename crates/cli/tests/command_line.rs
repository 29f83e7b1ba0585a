//! The program as a user meets it: output that scripts rely on, errors, exit codes, files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

struct Lab {
    folder: TempDir,
}

impl Lab {
    fn new() -> Lab {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_millpond"))
            .args(args)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// A trace of 60 references to 10 pages, every third a write.
    fn trace(&self) -> PathBuf {
        let path = self.path("small.txt");
        let line = |i: u64| {
            format!("{} {}\n", i * i % 17 % 10, if i.is_multiple_of(3) { "W" } else { "R" })
        };
        std::fs::write(&path, (0..60).map(line).collect::<String>()).unwrap();
        path
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name);
    path.to_str().unwrap().to_string()
}

fn rows(output: &Output) -> Vec<Vec<String>> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    lines.lines().map(|l| l.split(',').map(str::to_string).collect()).collect()
}

#[test]
fn csv_has_the_promised_columns_and_one_row_per_run() {
    let lab = Lab::new();
    let trace = lab.trace();
    let twin = lab.path("twin.txt");
    std::fs::copy(&trace, &twin).unwrap();
    let (trace, twin) = (trace.to_str().unwrap(), twin.to_str().unwrap());
    let policies = "lru,clock(variant=fix),watt";
    let output = lab.run(&[
        "sim", trace, twin, "--policy", policies, "--size", "2,50%", "--seed", "1,2", "--format",
        "csv",
    ]);
    let rows = rows(&output);
    assert_eq!(
        rows[0][..13].join(","),
        "trace,policy,params,size,seed,references,hits,misses,writes,hit_ratio,\
         offers_per_eviction,policy_bytes,ns_per_reference"
    );
    // Two traces, two sizes; only watt draws, and runs with both seeds.
    assert_eq!(rows.len(), 1 + 2 * 2 * (1 + 1 + 2));
    let clock = rows.iter().find(|r| r[1] == "clock").unwrap();
    assert_eq!(
        (clock[2].as_str(), clock[3].as_str(), clock[5].as_str()),
        ("variant=fix", "2", "60")
    );
    let number = |row: &[String], at: usize| row[at].parse::<u64>().unwrap();
    for row in &rows[1..] {
        assert_eq!(number(row, 5), number(row, 6) + number(row, 7), "hits and misses");
    }
    assert!(output.stderr.is_empty(), "progress is for terminals: {}", text(&output.stderr));
}

#[test]
fn a_shipped_trace_gives_the_published_hits() {
    let lab = Lab::new();
    let args = ["--policy", "lru,opt", "--size", "1000", "--format", "csv", "--no-results"];
    let trace = shipped("arc_OLTP.txt.gz");
    let output = lab.run(&[&["sim", trace.as_str()], &args[..]].concat());
    let hits: Vec<String> = rows(&output)[1..].iter().map(|r| r[6].clone()).collect();
    assert_eq!(hits, ["300122", "490093"]);
}

#[test]
fn json_is_one_object_with_flat_rows() {
    let lab = Lab::new();
    let trace = lab.trace();
    let args = ["sim", trace.to_str().unwrap(), "--policy", "lru", "--size", "3"];
    let output = lab.run(&[&args[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for field in ["command", "version", "params", "machine", "rows"] {
        assert!(!json[field].is_null(), "no {field}");
    }
    assert_eq!(json["rows"][0]["references"], 60);
}

#[test]
fn bad_input_is_explained_with_an_exit_code_and_leaves_nothing_behind() {
    let lab = Lab::new();
    let trace = lab.trace();
    let trace = trace.to_str().unwrap();
    let empty = lab.path("empty.txt");
    std::fs::write(&empty, "").unwrap();
    let garbage = lab.path("garbage.txt");
    std::fs::write(&garbage, "1\n2\nthree\n4\n").unwrap();
    let (empty, garbage) = (empty.to_str().unwrap(), garbage.to_str().unwrap());
    let cases: &[(&[&str], i32, &str)] = &[
        (&["sim", trace, "-p", "lruu", "-s", "5"], 2, "did you mean 'lru'"),
        (&["sim", trace, "-p", "clock(variant=left)", "-s", "5"], 2, "one of"),
        (&["sim", trace, "-p", "clock(varaint=fix)", "-s", "5"], 2, "did you mean 'variant'"),
        (&["sim", trace, "-p", "clock(variant=fix", "-s", "5"], 2, "the ')' is missing"),
        (&["sim", trace, "-p", "lru", "-s", "0"], 2, "zero"),
        (&["sim", trace, "-p", "lru", "-s", "200%"], 2, "outside"),
        (&["sim", trace, "-p", "lru", "-s", "9999999999"], 2, "too large"),
        (&["sim", empty, "-p", "lru", "-s", "5"], 1, "empty"),
        (&["sim", garbage, "-p", "lru", "-s", "5"], 1, "record 3"),
        (&["sim", "missing.txt", "-p", "lru", "-s", "5"], 1, "missing.txt"),
        (&["sim", trace, "-p", "lru", "-s", "5", "--format", "parquet"], 2, "--out"),
        (&["sim", trace, "-p", "lru", "-s", "5", "--shard", "9/8"], 2, "no shard"),
        (&["sim", trace, "-p", "opt(bypass=true)", "--curve"], 2, "no curve"),
        (&["trace", "gen", "zipf-r0", "--out", "x.parquet"], 2, "did you mean 'zipf-ro'"),
        (&["trace", "convert", trace, "x.unknown"], 2, "does not say the format"),
        (&["report", "nowhere"], 1, "nowhere"),
    ];
    let before = std::fs::read_dir(lab.folder.path()).unwrap().count();
    for (args, code, part) in cases {
        let output = lab.run(&[args, &["--no-results"][..usize::from(args[0] == "sim")]].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(lab.folder.path()).unwrap().count(), before);
}

#[test]
fn a_full_disk_is_an_error_and_no_half_of_a_file() {
    if !Path::new("/dev/full").exists() {
        return println!("skipped: no /dev/full");
    }
    let lab = Lab::new();
    let trace = lab.trace();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["sim", trace.to_str().unwrap(), "-p", "lru", "-s", "5", "--format", "csv"])
        .current_dir(lab.folder.path())
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    let output = lab.run(&["sim", "small.txt", "-p", "lru", "-s", "5", "-o", "no/such/place.csv"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_rerun_with_resume_takes_the_rows_that_are_there() {
    let lab = Lab::new();
    let trace = lab.trace();
    let base = ["sim", trace.to_str().unwrap(), "-p", "lru,random", "-s", "2,4", "--format", "csv"];
    let first = lab.run(&base);
    let again = lab.run(&[&base[..], &["--resume"]].concat());
    // The CPU time of a row differs from run to run: equal rows were not run again.
    assert_eq!(text(&first.stdout), text(&again.stdout));
    assert_eq!(std::fs::read_dir(lab.path("results")).unwrap().count(), 1);
    std::fs::write(&trace, "1\n2\n3\n1\n").unwrap();
    let changed = lab.run(&[&base[..], &["--resume"]].concat());
    assert_eq!(rows(&changed)[1][5], "4", "another content is another run");
}

#[test]
fn relative_misses_are_added_with_their_policy() {
    let lab = Lab::new();
    let trace = lab.trace();
    let args = ["sim", trace.to_str().unwrap(), "-p", "random", "-s", "3", "--relative-to", "lru"];
    let rows = rows(&lab.run(&[&args[..], &["--format", "csv"]].concat()));
    let column = rows[0].iter().position(|c| c == "relative_misses").unwrap();
    assert_eq!(rows[2][1], "lru");
    assert_eq!(rows[2][column], "1");
}

#[test]
fn standard_input_is_a_trace_even_for_shares() {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["sim", "-", "-p", "lru", "-s", "50%", "--format", "csv", "--no-results"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"1\n2\n3\n4\n1\n").unwrap();
    let rows = rows(&child.wait_with_output().unwrap());
    assert_eq!((rows[1][3].as_str(), rows[1][5].as_str()), ("2", "5"));
}

#[test]
fn traces_are_made_described_converted_and_shown() {
    let lab = Lab::new();
    let made = lab.run(&["trace", "gen", "dynzipf-rw", "refs=20k", "--out", "t.parquet"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let stat = lab.run(&["trace", "stat", "t.parquet", "--format", "csv"]);
    assert_eq!(rows(&stat)[1][1], "20000");
    assert!(lab.run(&["trace", "convert", "t.parquet", "t.csv.gz"]).status.success());
    let again = lab.run(&["trace", "stat", "t.csv.gz", "--format", "csv"]);
    assert_eq!(rows(&stat)[1][1..], rows(&again)[1][1..]);
    let head = lab.run(&["trace", "head", "t.csv.gz", "-n", "3", "--format", "csv"]);
    assert_eq!(rows(&head).len(), 4);
    let plot = text(&lab.run(&["trace", "stat", "t.parquet"]).stdout);
    assert!(plot.contains("reuse distance") && plot.contains('█'), "{plot}");
}

#[test]
fn a_page_trace_becomes_a_storage_trace_that_second_tiers_run_on() {
    let lab = Lab::new();
    assert!(
        lab.run(&["trace", "gen", "dynzipf-rw", "refs=50k", "-o", "p.parquet"]).status.success()
    );
    let args =
        ["trace", "gen", "tier2", "--from", "p.parquet", "--pool", "1000", "--policy", "arc"];
    let rest = ["--dirty", "50%", "--lsn-gap", "2000", "--readahead", "--flush-neighbours"];
    let made = lab.run(&[&args[..], &rest, &["-o", "s.parquet"]].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    let plot = text(&lab.run(&["trace", "stat", "s.parquet"]).stdout);
    assert!(["read", "replace", "recov", "dsync"].iter().all(|w| plot.contains(w)), "{plot}");
    let sim = ["sim", "s.parquet", "-p", "tq,lru-io,min-rw", "-s", "500", "--model", "rw"];
    let rows = rows(&lab.run(&[&sim[..], &["--format", "csv"]].concat()));
    let column = rows[0].iter().position(|c| c == "unavoidable_io").unwrap();
    assert!(rows[2..].iter().all(|r| r[column] == rows[1][column]), "lemma 5.1: {rows:?}");
    let without = lab.run(&["trace", "gen", "tier2", "--pool", "10", "-o", "x.parquet"]);
    assert_eq!(without.status.code(), Some(2));
}

#[test]
fn every_policy_runs_in_every_model_and_is_listed_with_its_defaults() {
    let lab = Lab::new();
    let listed = rows(&lab.run(&["policies", "--format", "csv"]));
    let ids: Vec<&str> = listed[1..].iter().map(|r| r[0].as_str()).collect();
    let trace = lab.trace();
    for model in ["pool", "read", "rw"] {
        let output = lab.run(&[
            "sim",
            trace.to_str().unwrap(),
            "-p",
            &ids.join(","),
            "-s",
            "1,2,3,7",
            "--model",
            model,
            "--format",
            "csv",
            "--no-results",
        ]);
        assert_eq!(rows(&output).len(), 1 + ids.len() * 4, "{model}");
    }
    let detail = text(&lab.run(&["policies", "clock"]).stdout);
    assert!(detail.contains("variant=full"), "{detail}");
}

#[test]
fn a_report_is_made_from_a_result_directory() {
    let lab = Lab::new();
    let trace = lab.trace();
    let args = ["sim", trace.to_str().unwrap(), "-p", "lru,arc", "-s", "2,4,8", "--results", "r"];
    assert!(lab.run(&args).status.success());
    let dir = std::fs::read_dir(lab.path("r")).unwrap().next().unwrap().unwrap().path();
    let report = lab.run(&["report", dir.to_str().unwrap(), "--out", "page.html"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("small.txt"));
}

#[test]
fn an_output_never_replaces_what_is_read_for_it() {
    let lab = Lab::new();
    let trace = lab.trace();
    let (name, before) = (trace.to_str().unwrap(), std::fs::read(&trace).unwrap());
    std::fs::hard_link(&trace, lab.path("hard.txt")).unwrap();
    std::os::unix::fs::symlink("small.txt", lab.path("link.txt")).unwrap();
    assert!(lab.run(&["put", "s.mill", "k", "v", "--create"]).status.success());
    let store = std::fs::read(lab.path("s.mill")).unwrap();
    for args in [
        &["trace", "convert", name, name][..],
        &["trace", "convert", name, "hard.txt"],
        &["trace", "convert", "link.txt", "small.txt"],
        &["sim", name, "--policy", "lru", "--size", "4", "--out", "link.txt"],
        &["trace", "stat", name, "--out", name],
        &["dump", "s.mill", "--out", "s.mill"],
    ] {
        let done = lab.run(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", text(&done.stderr));
        assert!(text(&done.stderr).contains("would be replaced"), "{}", text(&done.stderr));
    }
    assert!(std::fs::read(&trace).unwrap() == before);
    assert!(std::fs::read(lab.path("s.mill")).unwrap() == store);
}

#[test]
fn what_is_no_file_is_no_store_and_no_dump_is_begun() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("folder")).unwrap();
    std::fs::write(lab.path("random"), [0x5a; 70_000]).unwrap();
    let done = lab.run(&["put", "/dev/null", "k", "v", "--create"]);
    assert!(!done.status.success());
    assert!(text(&done.stderr).contains("a character device"), "{}", text(&done.stderr));
    assert!(!Path::new("/dev/null-log").exists());
    for (name, what) in [("folder", "a directory"), ("random", "random")] {
        let done = lab.run(&["dump", name]);
        assert!(!done.status.success() && done.stdout.is_empty(), "{}", text(&done.stdout));
        assert!(text(&done.stderr).contains(what), "{}", text(&done.stderr));
    }
}
