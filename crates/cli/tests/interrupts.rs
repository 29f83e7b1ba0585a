//! Ctrl-C ends what takes long: a load, a salvage, and a `get` of a large value.

use std::io::{BufWriter, Read, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::stores::Shop;

/// Rows that no machine loads while a signal is on its way.
const ROWS: u64 = 3_000_000;
/// Rows that do not fit into a pipe: once they are written, the child reads them.
const FIRST: u64 = 50_000;

/// Bytes that no machine passes through a pipe, a page at a time, while a signal is on its way.
const LARGE: usize = 64 << 20;
/// Bytes that the test takes from the pipe at a time.
const PIECE: usize = 4096;

/// Sends Ctrl-C to `child`, which reads the dump of these sections from its standard input, while
/// it does, and returns its exit code and whether it read the dump to its end.
fn interrupted(child: &mut Child, sections: &[&str]) -> (Option<i32>, bool) {
    let mut out = BufWriter::new(child.stdin.take().unwrap());
    let mut write = || -> std::io::Result<()> {
        writeln!(out, "@millpond-dump 1 text")?;
        for section in sections {
            writeln!(out, "{section}")?;
        }
        for row in 0..ROWS {
            writeln!(out, "{row:08}\tvalue")?;
            if row == FIRST {
                out.flush()?;
                kill_process(Pid::from_child(child), Signal::INT)?;
            }
        }
        writeln!(out, "@end {ROWS}")?;
        out.flush()
    };
    let is_whole = write().is_ok();
    drop(out);
    (child.wait().unwrap().code(), is_whole)
}

#[test]
fn loading_a_dump_ends_at_ctrl_c_and_leaves_a_store_that_is_whole() {
    for section in ["@tree t", "@hash t"] {
        let shop = Shop::new();
        let mut load = shop.command(&["load", "a.db", "--quiet"]);
        let mut child = load.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(interrupted(&mut child, &[section]), (Some(130), false), "{section}");
        shop.ok(&["check", "a.db"]);
        let count: u64 = shop.ok(&["scan", "a.db", "--count"]).trim().parse().unwrap();
        assert!((1..ROWS).contains(&count), "{count}");
    }
}

/// Runs a command, and sends Ctrl-C once it has begun to write to standard output. Returns its exit
/// code, and how many bytes it wrote.
fn stopped(shop: &Shop, args: &[&str]) -> (Option<i32>, usize) {
    let mut command = shop.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut out, mut piece, mut bytes) = (child.stdout.take().unwrap(), [0; PIECE], 0);
    loop {
        match out.read(&mut piece).unwrap() {
            0 => break,
            // From here on it waits for the pipe, until the test reads on.
            read if bytes == 0 => {
                kill_process(Pid::from_child(&child), Signal::INT).unwrap();
                bytes += read;
            }
            read => bytes += read,
        }
        std::thread::yield_now();
    }
    (child.wait().unwrap().code(), bytes)
}

#[test]
fn a_get_of_a_large_value_ends_at_ctrl_c() {
    let shop = Shop::new();
    std::fs::write(shop.path("large"), vec![b'x'; LARGE]).unwrap();
    shop.ok(&["put", "a.db", "key", "--value-file", "large", "--create"]);
    let (code, bytes) = stopped(&shop, &["get", "a.db", "key", "--raw"]);
    assert_eq!(code, Some(130), "after {bytes} bytes");
    assert!((1..LARGE).contains(&bytes), "{bytes}");
}

#[test]
fn a_salvage_ends_at_ctrl_c() {
    let shop = Shop::new();
    let value = "x".repeat(LARGE / 4096);
    let rows: String = (0..4096).map(|row| format!("{row:04}\t{value}\n")).collect();
    shop.load("a.db", &format!("@millpond-dump 1 text\n@tree t\n{rows}@end 4096\n"));
    let (code, bytes) = stopped(&shop, &["dump", "a.db", "--salvage"]);
    assert_eq!(code, Some(130), "after {bytes} bytes");
    assert!((1..LARGE).contains(&bytes), "{bytes}");
}

#[test]
fn what_was_finished_before_ctrl_c_replaces_no_output() {
    let shop = Shop::new();
    std::fs::write(shop.path("short.txt"), "1\n2\n1\n3\n").unwrap();
    for format in ["csv", "json", "parquet", "table"] {
        let out = shop.path(format);
        std::fs::write(&out, "as it was").unwrap();
        let args = ["sim", "short.txt", "slow.mpt", "-p", "lru", "-s", "2", "--no-results"];
        let pipe = shop.path("slow.mpt");
        let _ = std::fs::remove_file(&pipe);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        let mut sim = shop.command(&[&args[..], &["--format", format, "-o", format]].concat());
        let mut child = sim.stderr(Stdio::null()).spawn().unwrap();
        // The first trace is over once the second one is read.
        let mut feed = std::fs::File::options().write(true).open(&pipe).unwrap();
        let line = "7\n".repeat(4096);
        let mut lines = 0;
        while feed.write_all(line.as_bytes()).is_ok() {
            lines += 4096;
            if lines == 4096 * 64 {
                kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            }
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{format}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "as it was", "{format}");
        let partial = std::fs::read(shop.path(&format!("{format}.partial"))).unwrap();
        assert!(partial.len() > 20, "{format}: the row of the first trace");
    }
}

#[test]
fn what_was_finished_before_a_failure_replaces_no_output() {
    let shop = Shop::new();
    std::fs::write(shop.path("good.txt"), "1\n2\n1\n3\n").unwrap();
    std::fs::write(shop.path("bad.txt"), "1\n2\nneither\n").unwrap();
    std::fs::write(shop.path("all.csv"), "as it was").unwrap();
    let args = ["sim", "good.txt", "bad.txt", "-p", "lru", "-s", "2", "--no-results"];
    let said = shop.fails(1, &[&args[..], &["--format", "csv", "-o", "all.csv"]].concat());
    assert!(said.contains("all.csv.partial"), "{said}");
    assert_eq!(std::fs::read_to_string(shop.path("all.csv")).unwrap(), "as it was");
    let partial = std::fs::read_to_string(shop.path("all.csv.partial")).unwrap();
    assert!(partial.contains("good.txt,lru"), "{partial}");
    // What is no file of its own is written to as ever.
    let args = [&args[..], &["--format", "csv", "-o", "/dev/stdout"]].concat();
    let output = shop.run(&args);
    assert!(String::from_utf8_lossy(&output.stdout).contains("good.txt,lru"));
}
