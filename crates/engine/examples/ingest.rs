//! More data than memory: random inserts into a small pool, with progress and statistics.
//!
//! `cargo run --release --example ingest -- [FILE] [ROWS] [MEMORY_MIB]`, and beside it
//! `millpond stat FILE`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use millpond::{Db, Options};

/// Bytes of a row's value.
const VALUE: usize = 200;

/// Inserts `rows` rows in random order through `memory` bytes, and reads some back.
pub fn run(path: &Path, rows: u64, memory: u64) -> Result<(), Box<dyn Error>> {
    let db = Db::open(path, Options::new().memory(memory))?;
    let tree = db.tree::<u64, Vec<u8>>("rows")?;
    let started = Instant::now();
    let mut before = db.stats();
    for i in 0..rows {
        // Multiplying by an odd number visits every key once, in no order that helps.
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut value = [0; VALUE];
        value[..8].copy_from_slice(&i.to_le_bytes());
        tree.put(&key, value.as_slice())?;
        if (i + 1) % (rows / 10).max(1) == 0 {
            let now = db.stats();
            let last = now.since(&before);
            println!(
                "{:>10} rows  {:>8.0} rows/s  {:>6.2} % hits  {:>8} pages read  {:>8} written",
                i + 1,
                (i + 1) as f64 / started.elapsed().as_secs_f64(),
                100.0 * last.hit_ratio().unwrap_or(0.0),
                last.reads,
                last.writes(),
            );
            before = now;
        }
    }
    for i in (0..rows).step_by(997) {
        let found = tree.get_with(&i.wrapping_mul(0x9e37_79b9_7f4a_7c15), |value| {
            value.len() == VALUE && value[..8] == i.to_le_bytes()
        })?;
        assert_eq!(found, Some(true), "row {i}");
    }
    let (stats, shape) = (db.stats(), tree.stats()?);
    println!("{} levels, leaves {:.0} % full", shape.height(), 100.0 * shape.levels[0].fill());
    println!("{stats}");
    assert!(shape.total_bytes > memory, "the data does not fit into memory");
    drop(tree);
    Ok(db.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().map(PathBuf::from);
    let path = path.unwrap_or_else(|| std::env::temp_dir().join("ingest.mill"));
    let rows = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let mib: u64 = args.next().map_or(Ok(32), |text| text.parse())?;
    run(&path, rows, mib << 20)
}
