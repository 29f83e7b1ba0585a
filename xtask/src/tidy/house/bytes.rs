//! Bytes of the tracked files.

use std::path::Path;

use serde::Serialize;

use crate::tree::Tree;

/// Bytes of the reports, which are pages and rows of runs, and of all files.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Bytes {
    pub reports: u64,
    pub all: u64,
}

/// Measures the files of the working tree.
pub fn bytes(tree: &Tree, root: &Path) -> Bytes {
    let bytes = |path: &str| root.join(path).metadata().map_or(0, |metadata| metadata.len());
    let sum = |folder: &str| tree.paths().filter(|path| path.starts_with(folder)).map(bytes).sum();
    Bytes { reports: sum("docs/reports/"), all: sum("") }
}
