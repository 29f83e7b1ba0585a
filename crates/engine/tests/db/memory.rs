//! The memory number holds for the whole process: measured in a child that does nothing else.

use std::process::Command;

use millpond::{Db, Options};

use super::place;

const CHILD: &str = "MILLPOND_TEST_MEMORY";
const MEMORY: u64 = 32 << 20;

/// A field of `/proc/self/status`, in bytes.
pub fn status(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Not a test of its own: what the child of the next one does.
#[test]
fn child_that_fills_its_pool() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let before = status("VmRSS").unwrap_or(0);
    let db = Db::open(path, Options::new().memory(MEMORY)).unwrap();
    let tree = db.tree::<u64, Vec<u8>>("t").unwrap();
    let value = vec![7u8; 900];
    for i in 0..70_000u64 {
        tree.put(&(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)), &value).unwrap();
    }
    // Large values must not pile anything up either.
    for i in 0..4000u64 {
        tree.put(&(i % 16), [9u8; 9000].as_slice()).unwrap();
    }
    drop(tree);
    db.close().unwrap();
    println!("grew {} by {}", before, status("VmHWM").unwrap_or(0).saturating_sub(before));
}

#[test]
fn a_process_stays_within_two_percent_and_sixteen_mebibytes_of_its_number() {
    let (_dir, path) = place();
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "db::memory::child_that_fills_its_pool", "--nocapture"])
        .env(CHILD, &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once("grew ")).unwrap().1;
    let grown: u64 = line.split_once(" by ").unwrap().1.trim().parse().unwrap();
    assert!(grown <= MEMORY + MEMORY / 50 + (16 << 20), "{grown} bytes");
    assert!(grown > MEMORY / 2, "{grown} bytes: the pool was not filled");
}
