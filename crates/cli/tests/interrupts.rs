//! Ctrl-C ends what takes long.

use std::io::{BufWriter, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::stores::Shop;

/// Rows that no machine loads while a signal is on its way.
const ROWS: u64 = 3_000_000;
/// Rows that do not fit into a pipe: once they are written, the child reads them.
const FIRST: u64 = 50_000;

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
