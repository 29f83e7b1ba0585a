//! The laboratory's commands as a user meets them: what is impossible is refused, and what is left
//! out is reported.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

struct Lab {
    folder: TempDir,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Lab {
    fn new() -> Lab {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.args(args).current_dir(self.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn refused(&self, args: &[&str], says: &str) {
        let output = self.run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }

    /// A trace of 2,000 references to 100 pages.
    fn trace(&self, name: &str) -> String {
        let line = |i: u64| format!("{}\n", i * i % 97 * i % 100);
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, (0..2000).map(line).collect::<String>()).unwrap();
        name.to_string()
    }
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

#[test]
fn no_second_tier_policy_is_called_live() {
    let lab = Lab::new();
    let policies = json(&lab.ok(&["policies", "--format", "json"]));
    let rows = policies["rows"].as_array().unwrap();
    let live = |tier: u64| {
        rows.iter().filter(move |row| row["tier"] == tier && row["live"] == "yes").count()
    };
    assert!(live(1) > 40, "{policies:#}");
    assert_eq!(live(2), 0);
}

#[test]
fn two_worlds_runs_every_live_policy() {
    let lab = Lab::new();
    let args = [
        "bench",
        "two-worlds",
        "--policy",
        "all",
        "--pool",
        "20%",
        "--rows",
        "400",
        "--operations",
        "40",
    ];
    let object = json(&lab.ok(&[&args[..], &["--quiet", "--json"]].concat()));
    let rows = object["rows"].as_array().unwrap();
    let worlds: Vec<&Json> = rows.iter().map(|r| &r["worlds"]).filter(|w| !w.is_null()).collect();
    assert!(worlds.len() > 40, "{}", worlds.len());
    assert!(worlds.iter().all(|w| *w == "same" || *w == "same when fed"), "{worlds:?}");
}

#[test]
fn columns_that_are_not_used_are_named_and_operations_are_recognised() {
    let lab = Lab::new();
    let csv = |name: &str, header: &str| {
        let lines: String = (0..40)
            .map(|i| format!("{i},{},{},512\n", i % 7, if i % 2 == 0 { "get" } else { "put" }))
            .collect();
        std::fs::write(lab.path(name), format!("{header}\n{lines}")).unwrap();
        let output = lab.run(&["sim", name, "-p", "lru", "-s", "3", "--json", "--no-results"]);
        (json(&text(&output.stdout))["rows"][0]["writes"].clone(), text(&output.stderr))
    };
    let (writes, said) = csv("a.csv", "timestamp,object_id,request_type,bytes");
    assert!(writes.as_u64().unwrap() > 0, "{said}");
    assert!(!said.contains("not used"), "{said}");
    let (writes, said) = csv("b.csv", "timestamp,object_id,verb,bytes");
    assert_eq!(writes, 0);
    assert!(said.contains("not used: 'verb'") && said.contains("all are reads"), "{said}");
}

#[test]
fn every_command_hands_on_what_the_reader_says_of_a_trace() {
    let lab = Lab::new();
    let trace = &lab.trace("t.txt");
    let note = "not used with the format text: --expand-sizes";
    for args in [
        &["sim", "-p", "lru", "-s", "10", "--no-results"][..],
        &["sim", "-p", "lru", "--curve", "--no-results"],
        &["sim", "-p", "lru,fifo", "-s", "10", "--seed", "1,2", "--out-dir", "out"],
        &["regret", "-p", "lru,fifo", "-s", "10", "--held-out", "none"],
        &["advise", "-s", "20%"],
        &["trace", "stat"],
        &["trace", "stat", "--format", "csv"],
        &["trace", "stat", "--format", "json"],
        &["trace", "head"],
        &["trace", "convert", "t.csv"],
    ] {
        let at = if args[0] == "trace" { 2 } else { 1 };
        let (begin, end) = args.split_at(at);
        let output = lab.run(&[begin, &[trace.as_str()], end, &["--expand-sizes"]].concat());
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(output.status.success(), "{args:?}: {said}");
        assert_eq!(said.matches(note).count(), 1, "{args:?}: {said}");
    }
}

#[test]
fn what_leaves_nothing_to_simulate_is_refused() {
    let lab = Lab::new();
    let trace = &lab.trace("t.txt");
    let sim = |more: &[&'static str], says: &str| {
        let base = ["sim", trace, "-p", "lru", "--no-results", "-q"];
        lab.refused(&[&base[..], more].concat(), says);
    };
    sim(&["-s", "10", "--warmup", "2000"], "warm-up is longer than the trace of 2000");
    sim(&["-s", "100B"], "holds no page");
    sim(&["-s", "100B", "--curve"], "holds no page");
    sim(&["-s", "10", "--batch", "11"], "cannot evict 11 at a time");
    sim(&["-s", "2000000000"], "to simulate");
    let stored = lab.ok(&["sim", trace, "-p", "lru", "-s", "10", "--warmup", "1999", "--json"]);
    assert_eq!(json(&stored)["rows"][0]["references"], 1);
}

#[test]
fn a_curve_refuses_what_it_would_ignore() {
    let lab = Lab::new();
    let trace = &lab.trace("t.txt");
    for more in [
        ["--warmup", "10"],
        ["--batch", "2"],
        ["--model", "rw"],
        ["--shard", "1/2"],
        ["--tables", "hashed"],
        ["--charge-ghosts", "8"],
        ["--relative-to", "lru"],
    ] {
        let base = ["sim", trace, "-p", "lru", "--curve", "--no-results"];
        lab.refused(&[&base[..], &more].concat(), "cannot be used with");
    }
    lab.refused(&["sim", trace, "-p", "lru", "--curve", "--resume"], "cannot be used with");
}

#[test]
fn rows_of_standard_input_are_never_taken_for_those_of_another_trace() {
    let lab = Lab::new();
    let args = ["sim", "-", "-p", "lru", "-s", "3", "--resume"];
    let mut child = lab
        .command(&args)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It may be gone before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(b"1\n2\n3\n1\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("store it in a file"), "{}", text(&output.stderr));
}

#[test]
fn traces_with_equal_names_are_told_apart() {
    let lab = Lab::new();
    let (a, b) = (lab.trace("a/t.txt"), lab.trace("b/t.txt"));
    let table = lab.ok(&["sim", &a, &b, "-p", "lru", "-s", "3", "--no-results", "-q"]);
    assert!(table.contains("a/t.txt") && table.contains("b/t.txt"), "{table}");
    let table = lab.ok(&["sim", &a, "-p", "lru", "-s", "3", "--no-results", "-q"]);
    assert!(!table.contains("a/t.txt"), "{table}");
}

#[test]
fn seeds_run_what_draws_and_are_summed_up() {
    let lab = Lab::new();
    let trace = &lab.trace("t.txt");
    let sim = ["sim", trace, "-p", "lru,watt", "-s", "10", "--seed", "1,2,3", "-q", "--no-results"];
    let rows = json(&lab.ok(&[&sim[..], &["--json"]].concat()));
    let of = |id: &str| {
        let rows = rows["rows"].as_array().unwrap();
        rows.iter().filter(|row| row["policy"] == id).count()
    };
    assert_eq!((of("lru"), of("watt")), (1, 3));
    let table = lab.ok(&sim);
    assert!(table.contains("misses_low") && table.contains("misses_high"), "{table}");
    assert_eq!(table.lines().count(), 3, "one row for each policy: {table}");
}

#[test]
fn a_live_run_of_nothing_or_with_a_flag_that_does_nothing_is_refused() {
    let lab = Lab::new();
    let ycsb = ["bench", "ycsb", "--rows", "500", "--quiet"];
    for (more, says) in [
        (&["--seconds", "0"][..], "--seconds cannot be 0"),
        (&["--operations", "0"], "0 is not in"),
        (&["--operations", "10", "--pool", "1"], "at least 8"),
        (&["--operations", "10", "--pool", "1%"], "at least 8"),
        (&["--operations", "10", "--durability", "sync"], "add --log on"),
        (&["--operations", "10", "--log-gap", "1MiB"], "add --log on"),
    ] {
        lab.refused(&[&ycsb[..], more].concat(), says);
    }
    let logged = ["--operations", "10", "--log", "on", "--durability", "sync"];
    lab.ok(&[&ycsb[..], &logged].concat());
}

#[test]
fn advise_can_be_quiet() {
    let lab = Lab::new();
    let output = lab.run(&["advise", &lab.trace("t.txt"), "-q"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn a_table_fits_the_terminal_and_says_what_it_leaves_out() {
    let lab = Lab::new();
    let args = ["bench", "ycsb", "--rows", "500", "--operations", "50", "--quiet"];
    let run = |more: &[&str]| {
        let mut command = lab.command(&[&args[..], more].concat());
        let output = command.env("COLUMNS", "80").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let fitted = run(&[]);
    assert!(fitted.lines().all(|line| line.chars().count() <= 80), "{fitted}");
    assert!(fitted.contains("throughput_per_s"), "what was asked comes first: {fitted}");
    assert!(fitted.trim_end().ends_with("more columns: --wide"), "{fitted}");
    let wide = run(&["--wide"]);
    assert!(wide.contains("load_s") && !fitted.contains("load_s"), "{wide}");
    let row = json(&run(&["--json"]))["rows"][0].clone();
    assert!(row.get("load_s").is_some(), "a program gets everything");
}

#[test]
fn a_tour_to_a_folder_that_is_not_there_says_so_at_once() {
    let lab = Lab::new();
    lab.refused(&["tour", "--quick", "--dir", "missing"], "there is no such folder");
    assert!(!lab.path("missing").exists() && !lab.path("results").exists());
}

#[test]
fn help_is_broken_where_the_terminal_ends_and_not_in_mid_sentence() {
    let lab = Lab::new();
    for command in [
        &["sim"][..],
        &["bench", "scan"],
        &["bench", "ladder"],
        &["bench", "acid"],
        &["bench", "commits"],
        &["bench", "two-worlds"],
        &["bench", "evictors"],
        &["bench", "factors"],
    ] {
        let args = [command, &["--help"]].concat();
        let output = lab.command(&args).env("COLUMNS", "70").output().unwrap();
        let help = text(&output.stdout);
        let lines: Vec<&str> = help.lines().skip_while(|line| *line != "Examples:").collect();
        for pair in lines.windows(2) {
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            if is_prose(pair[0]) && is_prose(pair[1]) {
                let next = pair[1].split(' ').next().unwrap_or_default().chars().count();
                let fits = pair[0].chars().count() + 1 + next <= 66;
                assert!(!fits, "{command:?}: {:?} ends early", pair[0]);
            }
        }
    }
}

#[test]
fn a_job_array_fills_a_folder_that_report_and_compare_read() {
    let lab = Lab::new();
    let trace = |n: usize| {
        let name = lab.trace(&format!("{n}.txt"));
        let own = std::fs::read_to_string(lab.path(&name)).unwrap() + &"7\n".repeat(n);
        std::fs::write(lab.path(&name), own).unwrap();
        name
    };
    let traces: Vec<String> = (0..4).map(trace).collect();
    let mut base = vec!["sim"];
    base.extend(traces.iter().map(String::as_str));
    base.extend(["-p", "lru,random,opt", "-s", "5,10%", "--seed", "1,2"]);
    let to = |folder, shard| [&base[..], &["--out-dir", folder, "--shard", shard]].concat();
    let whole = lab.run(&[&base[..], &["--out-dir", "whole"]].concat());
    let said = text(&whole.stderr);
    assert!(whole.status.success() && said.contains("12 units, 12 run, 0 were there"), "{said}");
    for shard in ["1/3", "2/3", "3/3", "2/3"] {
        let output = lab.run(&to("parts", shard));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!lab.path("results").exists());
    }
    let files = |folder: &str| {
        let entries = std::fs::read_dir(lab.path(folder)).unwrap().map(Result::unwrap);
        let mut files: Vec<_> =
            entries.map(|e| (e.file_name(), std::fs::read(e.path()).unwrap())).collect();
        files.sort();
        files
    };
    assert_eq!(files("parts").len(), 13);
    assert!(files("parts") == files("whole"), "they differ");

    lab.ok(&["report", "parts", "--out", "page.html", "--compare"]);
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("--out-dir parts") && page.contains("random"), "{page}");
    let found = json(&lab.ok(&["compare", "parts", "--to", "lru", "--json"]));
    assert_eq!(found["rows"].as_array().unwrap().len(), 2);
    assert_eq!(found["params"]["replicate"], "trace");
}

#[test]
fn a_folder_of_files_refuses_what_it_would_mix_or_ignore() {
    let lab = Lab::new();
    let trace = &lab.trace("t.txt");
    let base = ["sim", trace, "-p", "lru", "-s", "5", "--out-dir", "out"];
    lab.ok(&base);
    let output = lab.run(&[&base[..], &["--warmup", "10"]].concat());
    let said = text(&output.stderr);
    assert!(said.contains("another sweep: they have warmup = \"0\", and not \"10\""), "{said}");
    for more in
        [&["--resume"][..], &["--curve"], &["--format", "csv"], &["-o", "x"], &["--no-results"]]
    {
        lab.refused(&[&base[..], more].concat(), "cannot be used with");
    }
    lab.refused(&["sim", "-", "-p", "lru", "-s", "5", "--out-dir", "out"], "standard input");
    lab.refused(&["sim", trace, trace, "-p", "lru", "-s", "5", "--out-dir", "out"], "given twice");
    std::fs::write(lab.path(trace), "1\n2\n1\n").unwrap();
    lab.ok(&base);
    let output = lab.run(&["report", "out"]);
    assert!(text(&output.stderr).contains("was the trace changed?"), "{}", text(&output.stderr));
    let last = std::fs::read_dir(lab.path("out")).unwrap().map(|e| e.unwrap().path());
    let last = last.filter(|p| p.extension().is_some_and(|e| e == "parquet")).last().unwrap();
    std::fs::write(&last, b"PAR1 and no more").unwrap();
    let output = lab.run(&["compare", "out"]);
    let name = last.file_name().unwrap().to_str().unwrap();
    assert!(text(&output.stderr).contains(name), "{}", text(&output.stderr));
}
