//! `millpond tour` as a newcomer meets it, with little data.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn millpond(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(args).current_dir(folder);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the names of a folder's entries.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_tour_runs_engine_and_laboratory_and_leaves_a_report_and_a_sound_store() {
    let folder = tempfile::tempdir().unwrap();
    let tour = ["tour", "--quick", "--dir", "."];
    let shown = ok(&millpond(folder.path(), &tour).output().unwrap());
    for part in [
        "larger than memory",
        "in memory",
        "reads/tx",
        "consistency conditions hold",
        "millpond_tpcc: hit ratio in %",
        "tide",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // With a fraction of the data in memory there are reads, with all of it hardly any miss.
    let hits = |run: &str| -> f64 {
        let line = shown.lines().find(|line| line.trim_start().starts_with(run)).unwrap();
        let figures = line.trim_start().strip_prefix(run).unwrap();
        figures.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    assert!(hits("larger than memory") < 100.0, "{shown}");
    assert!(hits("in memory") > hits("larger than memory"), "{shown}");
    let results = folder.path().join("results");
    let dir = results.join(&names(&results)[0]);
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    for part in ["Throughput", "Hit rate", "transactions per second", "Miss ratio over cache size"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("larger than memory: 2 MiB") && page.contains("millpond_tpcc"));
    for file in ["run.json", "rows.parquet", "live.parquet", "series.parquet"] {
        assert!(dir.join(file).is_file(), "{file}");
    }
    ok(&millpond(folder.path(), &["check", "tour.mp"]).output().unwrap());
    assert!(
        ok(&millpond(folder.path(), &["trees", "tour.mp"]).output().unwrap()).contains("stock")
    );
    let again = millpond(folder.path(), &tour).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("is there already"), "{}", text(&again.stderr));
}

/// Stopped at any moment, it leaves nothing behind, or a store that is sound. The moments are lines
/// that it prints: before loading, after it, and when the laboratory begins.
#[test]
fn ctrl_c_ends_a_tour_without_damage() {
    for moment in ["4. A report", "were loaded", "After each run"] {
        let folder = tempfile::tempdir().unwrap();
        let temporary = folder.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        let mut child = millpond(folder.path(), &["tour", "--dir", ".", "--quiet"])
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(moment)), "it has not come to {moment:?}");
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        // What it says until it ends is taken from it.
        lines.for_each(drop);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{moment:?}: {}", text(&output.stderr));
        if moment != "4. A report" || folder.path().join("tour.mp").exists() {
            ok(&millpond(folder.path(), &["check", "tour.mp"]).output().unwrap());
        }
        assert_eq!(names(&temporary), [] as [String; 0], "the temporary folder is empty");
        assert!(!folder.path().join("results").exists());
    }
}
