//! A trace in memory, on which many simulations run side by side.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use millpond_base::Seed;
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Counts, Future, Renumber, SimOptions};
use millpond_policies::config::Spec;
use millpond_workload::formats::{ReadOptions, open};
use millpond_workload::generate::{generate, parse_params};
use millpond_workload::trace::{BATCH_LEN, Batch, Source};
use rayon::prelude::*;

/// Any error; it ends the program, which prints it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A renumbered trace, with its future once computed.
pub struct Arena {
    registry: Registry,
    batch: Batch,
    distinct: u64,
    future: OnceLock<Future>,
}

impl Arena {
    /// Reads the real trace called `name` from `traces/` of the repository or `shared/traces/`
    /// beside it; returns `None` if it is in neither.
    pub fn of_file(name: &str) -> Result<Option<Arena>, Failure> {
        let Some(path) = find(name) else { return Ok(None) };
        Ok(Some(Arena::of(open(path, &ReadOptions::default())?)?))
    }

    /// Generates a trace, such as `dynzipf-ro` with `pages=20k,theta=0.9`.
    pub fn generated(id: &str, params: &str) -> Result<Arena, Failure> {
        Arena::of(generate(id, &parse_params(params)?, Seed(1))?)
    }

    fn of(mut source: Box<dyn Source>) -> Result<Arena, Failure> {
        let mut batch = Batch::default();
        while source.fill(&mut batch, BATCH_LEN)? > 0 {}
        Ok(Arena::of_batch(batch))
    }

    /// Takes a trace made by hand.
    pub fn of_batch(mut batch: Batch) -> Arena {
        let mut renumber = Renumber::new();
        renumber.apply(&mut batch);
        let distinct = renumber.distinct();
        Arena { registry: Registry::builtin(), batch, distinct, future: OnceLock::new() }
    }

    /// Returns the number of references.
    pub fn references(&self) -> u64 {
        self.batch.len() as u64
    }

    /// Returns the number of frames for `percent` of the trace's distinct pages, at least one.
    pub fn frames(&self, percent: f64) -> u32 {
        ((self.distinct as f64 * percent / 100.0).ceil() as u32).max(1)
    }

    /// Runs one simulation from a cold start.
    pub fn run(&self, policy: &str, frames: u32) -> Result<Counts, Failure> {
        self.run_parts(policy, frames, &[self.batch.len()]).map(|parts| parts[0])
    }

    /// Runs one simulation from a cold start; returns the counts at the end of each part of
    /// the trace.
    pub fn run_parts(
        &self,
        policy: &str,
        frames: u32,
        ends: &[usize],
    ) -> Result<Vec<Counts>, Failure> {
        let spec = Spec::parse(policy)?;
        let entry = self.registry.find(&spec.id)?;
        let future = entry.needs_future.then(|| {
            self.future.get_or_init(|| Future::of(&self.batch, self.distinct)) // at most once
        });
        let options = SimOptions::new(frames, Some(self.distinct));
        let mut simulation = entry.simulation(&spec, &options)?;
        let (mut counts, mut from) = (Vec::new(), 0);
        for &end in ends {
            if from == 0 && end == self.batch.len() {
                simulation.run(&self.batch, future)?;
            } else {
                let part = Batch {
                    pages: self.batch.pages[from..end].to_vec(),
                    marks: self.batch.marks[from..end].to_vec(),
                    lsns: Vec::new(),
                };
                simulation.run(&part, future)?;
            }
            counts.push(simulation.counts());
            from = end;
        }
        Ok(counts)
    }

    /// Runs many simulations on all cores; results are in the given order.
    pub fn run_all(&self, cells: &[(&str, u32)]) -> Result<Vec<Counts>, Failure> {
        let one = |(policy, frames): &(&str, u32)| self.run(policy, *frames);
        cells.par_iter().with_max_len(1).map(one).collect()
    }
}

/// Returns the path of a trace, if the file exists.
fn find(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [root.join("traces"), root.join("../shared/traces")];
    let files = folders.iter().flat_map(|folder| {
        ["txt.gz", "extents.txt.gz"].map(|ending| folder.join(format!("{name}.{ending}")))
    });
    files.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;

    #[test]
    fn parts_of_a_trace_count_what_the_whole_counts() {
        let mut batch = Batch::default();
        (0..1000u64).for_each(|at| batch.push(at * at % 37, Mark::READ));
        let arena = Arena::of_batch(batch);
        let whole = arena.run("lru", 10).unwrap();
        let parts = arena.run_parts("lru", 10, &[300, 1000]).unwrap();
        assert_eq!(parts[1].hits, whole.hits);
        assert!(parts[0].hits < whole.hits && parts[0].references == 300);
    }

    #[test]
    fn a_trace_that_ships_is_found_and_another_one_is_not_invented() {
        assert!(find("arc_OLTP").is_some());
        assert!(Arena::of_file("no_such_trace").unwrap().is_none());
    }
}
