//! What rows take on disk, compressed or not: `sizes DIRECTORY [MiB] [value bytes, ... or json]`
//!
//! Rows of 8 bytes of key and a value come in random order, in transactions of a thousand. Then
//! leaves are packed, the store is shrunk and closed, and the bytes of its files are divided by
//! those of the rows. Values are random bytes, which nothing compresses, or `json`: documents of a
//! kilobyte with names, words and numbers. Look-ups follow, in an eighth of the rows' memory.
#![allow(clippy::print_stdout, reason = "a measurement tells what it found")]

use std::path::Path;
use std::time::Instant;

use millpond::{Compression, Db, Durability, Options};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A value of a row.
enum Values {
    Random(usize),
    Json(Vec<String>),
}

const JSON: usize = 1000;
const LOOKUPS: u64 = 50_000;

impl Values {
    fn of(name: &str) -> Result<Values, Failure> {
        if name != "json" {
            return Ok(Values::Random(name.parse()?));
        }
        let mut random = fastrand::Rng::with_seed(5);
        let mut word = || (0..random.usize(3..9)).map(|_| random.lowercase()).collect();
        Ok(Values::Json((0..4000).map(|_| word()).collect()))
    }

    fn bytes(&self) -> usize {
        match self {
            Values::Random(bytes) => *bytes,
            Values::Json(_) => JSON,
        }
    }

    fn row(&self, row: u64) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(row);
        match self {
            Values::Random(bytes) => (0..*bytes).map(|_| random.u8(..)).collect(),
            Values::Json(words) => {
                let mut word = || words[random.usize(..words.len())].as_str();
                let mut text = format!(
                    "{{\"id\": {row}, \"name\": \"{} {}\", \"email\": \"{}@{}.example\", \
                     \"address\": {{\"street\": \"{} {}\", \"city\": \"{}\"}}, \"notes\": \"",
                    word(),
                    word(),
                    word(),
                    word(),
                    row % 400,
                    word(),
                    word()
                );
                while text.len() < JSON - 2 {
                    text.push_str(word());
                    text.push(' ');
                }
                text.truncate(JSON - 2);
                text.push_str("\"}");
                text.into_bytes()
            }
        }
    }
}

/// Keys in random order, each once: an odd factor turns numbers into others.
fn key(row: u64) -> [u8; 8] {
    row.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// CPU time of the process, in microseconds.
fn cpu_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn files(store: &Path) -> Result<u64, Failure> {
    let log = store.with_extension("mp-log");
    Ok(std::fs::metadata(store)?.len() + std::fs::metadata(log)?.len())
}

fn measure(
    folder: &Path,
    name: &str,
    mib: u64,
    compression: Compression,
) -> Result<String, Failure> {
    let values = Values::of(name)?;
    let (path, rows) = (folder.join("sizes.mp"), (mib << 20) / (values.bytes() as u64 + 8));
    let raw = rows * (values.bytes() as u64 + 8);
    let options = Options::new().memory((2 * raw).max(64 << 20)).compression(compression);
    let begun = Instant::now();
    let db = Db::open(&path, options.clone().durability(Durability::Async))?;
    let tree = db.raw_tree("rows")?;
    for first in (0..rows).step_by(1000) {
        let tx = db.begin()?;
        for row in first..(first + 1000).min(rows) {
            tx.tree(&tree).put(&key(row), &values.row(row))?;
        }
        tx.commit()?;
    }
    let loaded_s = begun.elapsed().as_secs_f64();
    while !tree.compact(256)? {}
    drop(tree);
    db.shrink()?;
    db.close()?;
    let closed = files(&path)?;
    let db = Db::open(&path, options.memory((raw / 8).max(8 << 20)))?;
    let tree = db.raw_tree("rows")?;
    let (before, begun, cpu) = (db.stats(), Instant::now(), cpu_us());
    for at in 0..LOOKUPS {
        let row = at.wrapping_mul(0x2545_F491_4F6C_DD1D) % rows;
        if tree.get(&key(row))? != Some(values.row(row)) {
            return Err(format!("row {row} is not what was put").into());
        }
    }
    let (lookup, stats) = (begun.elapsed().as_secs_f64(), db.stats().since(&before));
    let cpu = cpu_us() - cpu;
    drop(tree);
    db.close()?;
    std::fs::remove_file(&path)?;
    std::fs::remove_file(path.with_extension("mp-log"))?;
    Ok(format!(
        "{name:>6}  {:>5}  {:>10.2}  {:>8.1}  {:>9.2}  {:>10.1}  {:>10.1}",
        if compression == Compression::None { "none" } else { "lz4" },
        closed as f64 / raw as f64,
        loaded_s,
        stats.reads as f64 / LOOKUPS as f64,
        lookup * 1e6 / LOOKUPS as f64,
        cpu / LOOKUPS as f64,
    ))
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or("sizes DIRECTORY [MiB] [value bytes, ... or json]")?;
    let mib = words.next().map_or(Ok(100), |word| word.parse())?;
    let names = words.next().unwrap_or("100,400,1000,1500,3000,10000,json".to_string());
    println!(" value  pages  closed/raw  loaded s  reads/get  µs per get  CPU of it");
    for name in names.split(',') {
        for compression in [Compression::None, Compression::Lz4] {
            println!("{}", measure(Path::new(&folder), name, mib, compression)?);
        }
    }
    Ok(())
}
