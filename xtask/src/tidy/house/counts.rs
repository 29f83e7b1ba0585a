//! Counts of one part of the code base: the engine, or all crates.

use std::collections::BTreeSet;

use serde::Serialize;

use super::openings::{Openings, openings};
use super::parsed::{Parsed, Site};
use super::raw_locks::raw_locks;
use super::tuple_parameters::tuple_parameters;
use crate::tree::Tree;

/// Counts of the sources below one folder.
#[derive(Serialize)]
pub struct Counts {
    pub tuple_parameters: usize,
    pub raw_locks: usize,
    pub raw_lock_files: usize,
    pub openings: Openings,
    /// Number of files with 440 to 500 lines, comments and blank lines included.
    pub files_of_440_to_500_lines: usize,
    pub files_over_500_lines: usize,
    pub files_under_60_lines: usize,
    #[serde(skip)]
    pub tuple_parameter_sites: Vec<Site>,
    #[serde(skip)]
    pub raw_lock_sites: Vec<Site>,
}

/// Counts the sources below `folder`; `""` is the whole tree.
pub fn counts(tree: &Tree, parsed: &[Parsed<'_>], folder: &str) -> Counts {
    let ours: Vec<_> = parsed.iter().filter(|file| file.source.path.starts_with(folder)).collect();
    let tuple_parameter_sites: Vec<Site> =
        ours.iter().flat_map(|file| tuple_parameters(file)).collect();
    let raw_lock_sites: Vec<Site> = ours.iter().flat_map(|file| raw_locks(file)).collect();
    let raw_lock_files: BTreeSet<&str> =
        raw_lock_sites.iter().map(|site| site.file.as_str()).collect();
    let lines: Vec<usize> = ours.iter().map(|file| file.source.lines.len()).collect();
    Counts {
        tuple_parameters: tuple_parameter_sites.len(),
        raw_locks: raw_lock_sites.len(),
        raw_lock_files: raw_lock_files.len(),
        openings: openings(tree, folder),
        files_of_440_to_500_lines: lines.iter().filter(|n| (440..=500).contains(*n)).count(),
        files_over_500_lines: lines.iter().filter(|n| **n > 500).count(),
        files_under_60_lines: lines.iter().filter(|n| **n < 60).count(),
        tuple_parameter_sites,
        raw_lock_sites,
    }
}
