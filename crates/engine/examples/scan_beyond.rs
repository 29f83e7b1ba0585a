//! A scan of a store five times its memory, beside the device's sequential reads:
//! `scan_beyond folder [MiB of rows] [rounds]`.
//!
//! Rows of 8 + 150 bytes come in random order, or sorted, and the store is shrunk or not; then it
//! is opened anew, and scanned as a whole with a fifth of its pages as memory. Beside each scan its
//! file is read from end to end, directly, 1 MiB at a time. What counts of a scan are the pages
//! that it reads, not free ones between them. Rounds are interleaved; each ratio has the least and
//! the most of the rounds.
#![allow(clippy::print_stdout, reason = "a measurement tells what it found")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use millpond::{Db, Error, Options};
use millpond_device::{AlignedBuffer, Device, FileDevice, FileOptions};

const ROW: u64 = 158;

struct Stand {
    name: &'static str,
    path: PathBuf,
    rows: u64,
    /// Of pages in use.
    bytes: u64,
}

fn load(path: &Path, rows: u64, sorted: bool, shrunk: bool) -> Result<u64, Error> {
    let db = Db::open(path, Options::new().memory(2 << 30))?;
    let tree = db.raw_tree("rows")?;
    let mut value = [0; 150];
    let mut random = fastrand::Rng::with_seed(7);
    for number in 0..rows {
        // An odd factor gives each key once.
        let key = if sorted { number } else { number.wrapping_mul(0x9E37_79B9_7F4A_7C15) };
        random.fill(&mut value);
        tree.put(&key.to_be_bytes(), &value)?;
    }
    drop(tree);
    if shrunk {
        db.shrink()?;
    }
    let stats = db.stats();
    db.close()?;
    Ok((stats.store_pages - stats.free_pages) * stats.page_size)
}

impl Stand {
    /// Bytes of pages per second of a scan.
    fn scan(&self) -> Result<f64, Error> {
        let options = Options::new().memory((self.bytes / 5).max(16 << 20)).read_only(true);
        let db = Db::open(&self.path, options)?;
        let tree = db.open_tree("rows")?;
        let (started, mut rows) = (Instant::now(), 0);
        let mut range = tree.iter();
        while range.next_entry()?.is_some() {
            rows += 1;
        }
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(rows, self.rows);
        Ok(db.stats().bytes_read as f64 / seconds)
    }

    /// Bytes per second of the device.
    fn read(&self) -> Result<f64, Error> {
        let options = FileOptions { read_only: true, ..FileOptions::default() };
        let device = FileDevice::open(&self.path, &options)?;
        let mut buffer = AlignedBuffer::new(1 << 20);
        let (started, mut at) = (Instant::now(), 0);
        while at < device.length() {
            let length = (device.length() - at).min(1 << 20) as usize;
            device.read(at, &mut buffer[..length])?;
            at += length as u64;
        }
        Ok(at as f64 / started.elapsed().as_secs_f64())
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_string()));
    let mut number = |or: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (rows, rounds) = ((number(512) << 20) / ROW, number(3));
    let cases = [
        ("random", false, false),
        ("random, shrunk", false, true),
        ("sorted", true, false),
        ("sorted, shrunk", true, true),
    ];
    let mut stands = Vec::new();
    for (index, (name, sorted, shrunk)) in cases.into_iter().enumerate() {
        let path = folder.join(format!("scan-beyond-{index}.mp"));
        let bytes = load(&path, rows, sorted, shrunk)?;
        println!("{name}: {} MiB", bytes >> 20);
        stands.push(Stand { name, path, rows, bytes });
    }
    let mut found = vec![Vec::new(); stands.len()];
    for _ in 0..rounds {
        for (stand, found) in stands.iter().zip(&mut found) {
            found.push((stand.read()?, stand.scan()?));
        }
    }
    println!("{:<16} {:>12} {:>12}   ratio [least, most]", "store", "device, MB/s", "scan, MB/s");
    for (stand, found) in stands.iter().zip(found) {
        let mean =
            |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
        let ratios = || found.iter().map(|(device, scan)| scan / device);
        let (device, scan) = (mean(|f| f.0), mean(|f| f.1));
        let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
        let (name, ratio) = (stand.name, scan / device);
        let (device, scan) = (device / 1e6, scan / 1e6);
        println!("{name:<16} {device:>12.0} {scan:>12.0}   {ratio:.2} [{least:.2}, {most:.2}]");
        for ending in ["mp", "mp-log", "mp.stat"] {
            let _ = std::fs::remove_file(stand.path.with_extension(ending));
        }
    }
    Ok(())
}
