//! `millpond top` beside a store that is open in this process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use millpond::Db;
use millpond::internals::store::stats::stat_file::stat_path;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value as Json;
use tempfile::TempDir;

/// A store in a folder of its own, whose first statistics are published.
fn opened() -> (TempDir, Db) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.db");
    let db = Db::open(&path, Default::default()).unwrap();
    while !stat_path(&path).exists() {
        std::thread::yield_now();
    }
    (folder, db)
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.arg("top").args(args).current_dir(folder).env_remove("COLUMNS");
    command
}

/// What a top that ends by itself printed, and what it said on standard error.
fn run(folder: &Path, args: &[&str]) -> (ExitStatus, String, String) {
    let output = command(folder, args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status, text(output.stdout), text(output.stderr))
}

/// The sum over intervals of a rate and the interval's length: how many there were.
fn sum(lines: &[Json], counter: &str) -> f64 {
    let events = |line: &Json| {
        line["per_second"][counter].as_f64().unwrap() * line["seconds"].as_f64().unwrap()
    };
    lines.iter().map(events).sum()
}

#[test]
fn rates_over_all_intervals_are_the_calls_that_were_made() {
    let (folder, db) = opened();
    let mut top = command(folder.path(), &["run.db", "--json", "--interval", "0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    // The first interval is over: whatever happens now is in the next ones.
    let first: Json = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["pid"], std::process::id());
    let tree = db.tree::<u32, u32>("numbers").unwrap();
    for number in 0..500 {
        tree.put(&number, &(number + 1)).unwrap();
    }
    for number in 0..1234 {
        tree.get(&number).unwrap();
    }
    for number in 0..17 {
        let txn = db.begin().unwrap();
        txn.tree(&tree).put(&number, &0).unwrap();
        if number < 12 { txn.commit().unwrap() } else { txn.abort().unwrap() }
    }
    drop(tree);
    db.close().unwrap();
    let lines: Vec<Json> =
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let expected =
        [("gets", 1234.0), ("puts", 517.0), ("commits", 12.0), ("aborts", 5.0), ("scans", 0.0)];
    for (counter, calls) in expected {
        let found = sum(&lines, counter);
        assert!((found - calls).abs() < 1e-6, "{counter}: {found} of {calls}, {lines:#?}");
    }
    let samples: u64 = lines.iter().map(|line| line["samples"].as_u64().unwrap()).sum();
    assert!(samples > 0 && lines.iter().all(|line| line["seconds"].as_f64().unwrap() > 0.0));
    assert!(lines.iter().all(|line| line["waits"]["lock"]["threads"] == 0.0));
    assert!(lines.iter().any(|line| line["hit_ratio"].as_f64().is_some_and(|ratio| ratio > 0.5)));
    // The store's end is the command's.
    let mut said = String::new();
    top.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(top.wait().unwrap().success());
    assert_eq!(said, "the store was closed\n");
}

#[test]
fn so_many_intervals_as_asked_for_are_printed() {
    let (folder, _db) = opened();
    let (status, said, _) = run(folder.path(), &["run.db", "--json", "--count", "2"]);
    let lines: Vec<Json> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(status.success() && lines.len() == 2, "{said}");
    assert!(lines[0]["uptime_s"].as_f64() <= lines[1]["uptime_s"].as_f64());
    // There is no terminal, so this is plain as well.
    for args in [&["run.db", "--plain", "-n1"][..], &["run.db", "-i0.2", "-n1"]] {
        let (status, block, _) = run(folder.path(), args);
        assert!(status.success() && block.starts_with("run.db  process "), "{block}");
        assert!(block.ends_with("\n\n") && !block.contains('\x1b'), "{block}");
        for name in ["CALLS   gets", "WAITS", "log flush", "LOG     bytes", "KEPT"] {
            assert_eq!(block.matches(name).count(), 1, "{name}: {block}");
        }
    }
}

#[test]
fn a_wait_is_seen_while_it_lasts_and_charged_when_it_is_over() {
    let (folder, db) = opened();
    let tree = db.tree::<u32, u32>("numbers").unwrap();
    tree.put(&1, &1).unwrap();
    let mut top = command(folder.path(), &["run.db", "--json", "--interval", "0.1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap());
    lines.next().unwrap();
    let writer = db.begin().unwrap();
    writer.tree(&tree).put(&1, &2).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| tree.put(&1, &3).map_err(drop));
        // The store publishes only while it is used.
        let seen = lines.by_ref().take(50).find(|line| {
            tree.get(&2).unwrap();
            line["waits"]["lock"]["threads"].as_f64().unwrap() > 0.0
        });
        assert!(seen.is_some_and(|line| line["gauges"]["waiting_for_lock"] == 1));
        writer.commit().unwrap();
        waiting.join().unwrap().unwrap();
    });
    drop(tree);
    db.close().unwrap();
    let rest: Vec<Json> = lines.collect();
    let waited = |line: &Json| {
        let share = line["waits"]["lock"]["seconds_per_second"].as_f64().unwrap();
        share * line["seconds"].as_f64().unwrap()
    };
    assert!(rest.iter().map(waited).sum::<f64>() > 0.0, "{rest:#?}");
    assert!(top.wait().unwrap().success());
}

#[test]
fn what_is_not_open_is_not_watched() {
    let (folder, db) = opened();
    db.close().unwrap();
    fs::write(folder.path().join("text"), "no store").unwrap();
    fs::write(folder.path().join("text.stat"), "no statistics").unwrap();
    fs::write(folder.path().join("silent"), "no store").unwrap();
    let cases = [
        (1, &["run.db"][..], "run.db is not in use"),
        (1, &["absent.db"], "there is no store at absent.db"),
        (
            1,
            &["silent"],
            "silent.stat is not there: the store was never open, or publishes nothing",
        ),
        (1, &["text", "--json"], "text.stat holds no statistics"),
        (2, &["run.db", "--interval", "0"], "0.1 to 86400"),
        (2, &["run.db", "--interval", "NaN"], "0.1 to 86400"),
        (2, &["run.db", "--count", "0"], "--count"),
        (2, &["run.db", "--plain", "--json"], "--plain"),
    ];
    for (code, args, says) in cases {
        let (status, output, error) = run(folder.path(), args);
        assert_eq!((status.code(), output.as_str()), (Some(code), ""), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

/// A top on a pseudo-terminal: our end, and what came so far. Only the program has the other end,
/// so that reading fails when it ended.
struct Screen {
    ours: File,
    top: Child,
    text: String,
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Screen {
    fn new(folder: &Path, args: &[&str]) -> Screen {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&ours, size(80, 24)).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let top = command(folder, args)
            .env("TERM", "vt100")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Screen { ours: File::from(ours), top, text: String::new() }
    }

    /// Reads until what came since `from` contains this; where it ends.
    #[track_caller]
    fn until(&mut self, from: usize, what: &str) -> usize {
        loop {
            if let Some(at) = self.text[from..].find(what) {
                return from + at + what.len();
            }
            let frames = self.text[from..].matches("\x1b[H").count();
            assert!(frames < 60, "no {what:?} in {}", &self.text[from..]);
            let mut bytes = [0; 4096];
            let mut count = self.ours.read(&mut bytes).unwrap();
            while std::str::from_utf8(&bytes[..count]).is_err() {
                count += self.ours.read(&mut bytes[count..][..1]).unwrap();
            }
            self.text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.ours).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    /// Reads to the end; the terminal must be as it was.
    #[track_caller]
    fn left(mut self, from: usize) -> ExitStatus {
        self.until(from, "\x1b[?25h\x1b[?1049l");
        let status = self.top.wait().unwrap();
        assert!(!self.is_raw());
        status
    }
}

/// Returns the visible text of a frame's lines.
fn shown(frame: &str) -> Vec<String> {
    let plain = ["\x1b[K", "\x1b[J", "\x1b[0m", "\x1b[1m"];
    let text = plain.iter().fold(frame.to_string(), |text, code| text.replace(code, ""));
    text.trim_end_matches("\r\n").split("\r\n").map(str::to_string).collect()
}

#[test]
fn a_screen_follows_the_size_of_its_terminal_and_the_end_of_its_store() {
    let (folder, db) = opened();
    let mut screen = Screen::new(folder.path(), &["run.db"]);
    let at = screen.until(0, "KEPT");
    assert!(screen.text.starts_with("\x1b[?1049h\x1b[?25l") && screen.is_raw());
    tcsetwinsize(&screen.ours, size(40, 9)).unwrap();
    let mut at = screen.until(at, "more lines");
    // The frame after one that was drawn for the new size is whole, and for that size.
    let begun = screen.until(at, "\x1b[H");
    at = screen.until(begun, "\x1b[H");
    let lines = shown(&screen.text[begun..at - "\x1b[H".len()]);
    assert!(lines.len() == 9 && lines.iter().all(|line| line.chars().count() <= 40), "{lines:?}");
    assert!(lines[0].starts_with("run.db  process") && lines[2] == "CALLS", "{lines:?}");
    db.close().unwrap();
    at = screen.until(at, "the store was closed");
    let db = Db::open(folder.path().join("run.db"), Default::default()).unwrap();
    at = screen.until(at, "the store was opened again");
    screen.ours.write_all(b"\x1b[Bq").unwrap();
    assert!(screen.left(at).success());
    drop(db);
}

#[test]
fn a_screen_is_left_by_a_key_by_a_signal_by_a_count_and_by_an_error() {
    let (folder, db) = opened();
    for key in [b"\x1b", b"\x03"] {
        let mut screen = Screen::new(folder.path(), &["run.db", "--interval", "60"]);
        let at = screen.until(0, "KEPT");
        screen.ours.write_all(key).unwrap();
        assert!(screen.left(at).success());
    }
    let mut screen = Screen::new(folder.path(), &["run.db", "--interval", "60"]);
    let at = screen.until(0, "KEPT");
    kill_process(Pid::from_child(&screen.top), Signal::TERM).unwrap();
    assert!(screen.left(at).success());
    let screen = Screen::new(folder.path(), &["run.db", "--count", "1", "--interval", "0.1"]);
    assert!(screen.left(0).success());
    let mut screen = Screen::new(folder.path(), &["run.db"]);
    let at = screen.until(0, "KEPT");
    db.close().unwrap();
    fs::remove_file(stat_path(&folder.path().join("run.db"))).unwrap();
    let at = screen.until(at, "\x1b[?1049l");
    screen.until(at, "run.db.stat is not there");
    assert_eq!(screen.top.wait().unwrap().code(), Some(1));
    assert!(!screen.is_raw());
}
