//! LeanStore's evaluation (ICDE 2018): in memory, over threads, out of memory.
//!
//! The paper has 100 warehouses (10 GB) in memory, 41 M rows (5 GB) with a pool of a fifth of them
//! for lookups, pages of 16 KiB, and 10 or 60 cores. Here data are smaller at the same ratios, with
//! one thread per core. Out of memory, pages come from memory that is slowed down to the paper's
//! drives.

use std::path::Path;

use crate::experiment::{Experiment, Figure, Scale};

use super::course::Course;
use super::{hits, memory, outgrow, outside};
use crate::live::Loaded;

/// Returns the experiment for one scale; figures that need a file create it in `folder`.
pub fn experiment(scale: Scale, folder: &Path) -> Experiment {
    let (course, loaded) = (Course { scale }, Loaded::default());
    let mut figures: Vec<Box<dyn Figure>> = memory::figures(course, &loaded);
    figures.push(Box::new(outgrow::Outgrown::new(course, folder)));
    figures.extend(outside::figures(course, &loaded));
    figures.push(Box::new(hits::Hits::new(scale)));
    Experiment {
        paper: "leanstore",
        title: "LeanStore (Leis et al., ICDE 2018), repeated".to_string(),
        note: format!(
            "TPC-C and lookups on the pool and its trees, without log and locks and with pages of \
             16 KiB, as in the paper; runs with many threads have {}. BerkeleyDB and WiredTiger \
             are not run here.",
            course.threads()
        ),
        scale,
        figures,
    }
}
