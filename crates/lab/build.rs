//! A hash of the sources that simulated rows depend on: `MILLPOND_SOURCES`.
//!
//! Files of a sweep have it in their names. So the command line and the Python module, which are
//! different programs, give the same names if they were built from the same sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of these sources, as seen from this crate. A package holds only this crate's own; the
/// version stands for the others.
const SOURCES: [&str; 8] = [
    "../base/src",
    "../policies/src",
    "../workload/src",
    "src/registry.rs",
    "src/sim",
    "src/sweep",
    "src/tier2",
    "src/units",
];

fn main() {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        let mut files = Vec::new();
        collect(Path::new(source), &mut files);
        files.sort();
        for file in files {
            hash.add(file.to_string_lossy().as_bytes());
            hash.add(&fs::read(&file).unwrap_or_default());
        }
    }
    println!("cargo::rustc-env=MILLPOND_SOURCES={:016x}", hash.0);
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.extension().is_some_and(|end| end == "rs") => files.push(path.to_path_buf()),
        Err(_) => {}
    }
}

/// FNV-1a of 64 bits: a build script should need no crates.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
