//! Bytes of the tracked files.

use std::path::Path;

use serde::Serialize;

use crate::tree::Tree;

/// Reports, which are pages and rows of runs, beside all else.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Bytes {
    pub reports: u64,
    pub all: u64,
}

/// Measures the files as they lie in the working tree.
pub fn bytes(tree: &Tree, root: &Path) -> Bytes {
    let bytes = |path: &str| root.join(path).metadata().map_or(0, |metadata| metadata.len());
    let sum = |folder: &str| tree.paths().filter(|path| path.starts_with(folder)).map(bytes).sum();
    Bytes { reports: sum("docs/reports/"), all: sum("") }
}
