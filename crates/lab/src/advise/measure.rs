//! Running the shortlist on a trace, part by part.

use crate::parameters::SIZES;
use millpond_base::Size;
use millpond_policies::config::{ParamError, Spec};
use millpond_workload::trace::{Batch, Source, TraceError};
use rayon::prelude::*;

use super::course::Course;
use super::judge::judge;
use super::options::AdviseOptions;
use super::shortlist::SHORTLIST;
use super::verdict::Advice;
use crate::compare::CompareError;
use crate::registry::{PolicyError, Registry};
use crate::sim::{Counts, Recorded, SimOptions, Stalled};
use crate::sweep::Room;

/// Number of parts that a trace is cut into; the first part is warm-up.
const PARTS: usize = 31;
/// Minimum number of references in a part.
const PART_MIN: usize = 50;
/// Seeds for policies that draw random numbers.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Reason why there is no advice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviseError {
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The registry has no such policy, or the policy cannot run here.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The text of a policy could not be parsed.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A policy found no victim.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The trace has too few references for advice.
    #[error(
        "{name} has {references} references: too few for advice, which takes {} at least",
        PARTS * PART_MIN
    )]
    Short {
        /// Name of the trace.
        name: String,
        /// Number of references in the trace.
        references: u64,
    },
    /// No pool size is left to run.
    #[error("{0}")]
    Size(String),
    /// The price of a page write is out of range.
    #[error("a write costs 0 to 1000000 reads, and not {0}")]
    Weight(f64),
    /// The courses cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The observer asked to stop.
    #[error("stopped")]
    Stopped,
}

/// Runs the shortlist, the default and OPT over a trace and judges them. Scans that the trace marks
/// are hints, as in a pool, for all policies except those that know the future. `watch` receives
/// the finished share, and returns `true` to continue. The reader's notes stay with the caller:
/// [`Source::notes`].
///
/// # Errors
/// [`AdviseError`].
pub fn advise(
    name: &str,
    source: &mut dyn Source,
    registry: &Registry,
    options: &AdviseOptions,
    watch: &mut (dyn FnMut(&str, f64) -> bool + Send),
) -> Result<Advice, AdviseError> {
    if !(0.0..=1e6).contains(&options.write_weight) {
        return Err(AdviseError::Weight(options.write_weight));
    }
    check_sizes(options)?;
    let mut batch = Batch::default();
    while source.fill(&mut batch, 1 << 16)? > 0 {
        batch.drop_dsyncs();
        if !watch("reading", source.progress().unwrap_or(0.0)) {
            return Err(AdviseError::Stopped);
        }
    }
    if batch.len() < PARTS * PART_MIN {
        let references = batch.len() as u64;
        return Err(AdviseError::Short { name: name.to_string(), references });
    }
    let trace = Recorded::of(name, 1, batch);
    let policies = policies(registry, options)?;
    let sizes = sizes(&trace, options)?;
    let cells: Vec<(&String, u32)> =
        policies.iter().flat_map(|policy| sizes.iter().map(move |size| (policy, *size))).collect();
    let (mut courses, mut room) = (Vec::new(), Room::now());
    for (policy, size) in &cells {
        let entry = registry.find(&Spec::parse(policy)?.id)?;
        let room = room.add(&entry.info, u64::from(*size));
        room.map_err(|error| AdviseError::Size(error.to_string()))?;
    }
    // Enough cells at a time to keep the cores busy, and few enough to notice a request to stop.
    for some in cells.chunks(room.at_once(rayon::current_num_threads() * 2)) {
        if !watch(some[0].0, courses.len() as f64 / cells.len() as f64) {
            return Err(AdviseError::Stopped);
        }
        let ran: Result<Vec<Course>, AdviseError> = some
            .par_iter()
            .with_max_len(1)
            .map(|(policy, size)| course(registry, &trace, policy, *size))
            .collect();
        courses.extend(ran?);
    }
    Ok(judge(&trace, courses, &sizes, options)?)
}

/// Returns the policies to run: the default, the shortlist, the requested ones, and OPT as the
/// bound.
fn policies(registry: &Registry, options: &AdviseOptions) -> Result<Vec<String>, AdviseError> {
    let mut all = vec![Spec::parse(&options.default)?];
    let weighted = (options.write_weight != 1.0).then_some(options.write_weight);
    for candidate in SHORTLIST {
        let text = match (candidate.id, weighted) {
            ("watt", Some(weight)) => format!("watt(write_weight={weight})"),
            (id, _) => id.to_string(),
        };
        all.push(Spec::parse(&text)?);
    }
    for more in &options.more {
        all.extend(Spec::parse_list(more)?);
    }
    all.push(Spec::parse("opt")?);
    // Spelled-out parameters may equal the defaults, so two texts can name one policy.
    let mut known = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for spec in all {
        let entry = registry.find(&spec.id)?;
        let same = (entry.info.id, entry.values(&spec)?);
        if !known.contains(&same) {
            known.push(same);
            texts.push(spec.to_string());
        }
    }
    Ok(texts)
}

fn check_sizes(options: &AdviseOptions) -> Result<(), AdviseError> {
    let checked = Size::check_all(&options.sizes, options.page_size);
    checked.map_err(|error| AdviseError::Size(error.to_string()))
}

/// Fewest frames of a pool size that is chosen here.
const FRAMES_MIN: u32 = 16;

fn sizes(trace: &Recorded, options: &AdviseOptions) -> Result<Vec<u32>, AdviseError> {
    let mut sizes: Vec<u32> = match options.sizes.is_empty() {
        // Below a fiftieth of the pages no policy helps; above two fifths every policy does.
        true => [2.0, 5.0, 10.0, 20.0, 40.0]
            .iter()
            .map(|percent| trace.frames(*percent))
            .filter(|frames| *frames >= FRAMES_MIN)
            .collect(),
        false => {
            let mut sizes = Vec::new();
            for size in &options.sizes {
                let frames = size.frames(options.page_size, trace.distinct);
                let fits = u32::try_from(frames).ok().filter(|frames| *frames < u32::MAX / 2);
                let text = || format!("a pool of {frames} frames is too large: at most 2^31");
                sizes.push(fits.ok_or_else(|| AdviseError::Size(text()))?);
            }
            sizes
        }
    };
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        let text = format!(
            "{} has only {} pages: say with {SIZES} how many frames the pool has",
            trace.name, trace.distinct
        );
        return Err(AdviseError::Size(text));
    }
    Ok(sizes)
}

/// Runs one policy at one size, over all seeds if it draws.
fn course(
    registry: &Registry,
    trace: &Recorded,
    policy: &str,
    size: u32,
) -> Result<Course, AdviseError> {
    let spec = Spec::parse(policy)?;
    let entry = registry.find(&spec.id)?;
    // The bound ignores scan hints: with them it would no longer be a lower bound.
    let scan_hints = !entry.needs_future;
    let mut runs: Vec<(Counts, Vec<[f64; 2]>)> = Vec::new();
    for seed in SEEDS {
        let options =
            SimOptions { seed, scan_hints, ..SimOptions::new(size, Some(trace.distinct)) };
        let mut simulation = entry.simulation(&spec, &options)?;
        let future = entry.needs_future.then(|| trace.future());
        let (mut parts, mut before) = (Vec::new(), [0.0; 2]);
        for part in 0..PARTS {
            let (from, to) = (edge(trace, part), edge(trace, part + 1));
            let piece = Batch {
                pages: trace.batch.pages[from..to].to_vec(),
                marks: trace.batch.marks[from..to].to_vec(),
                lsns: Vec::new(),
            };
            simulation.run(&piece, future)?;
            let counts = simulation.counts();
            let now = [counts.misses() as f64, counts.writes() as f64];
            parts.push([now[0] - before[0], now[1] - before[1]]);
            before = now;
        }
        let counts = simulation.counts();
        let is_known = runs.iter().any(|(known, _)| *known == counts);
        runs.push((counts, parts));
        if is_known {
            break; // It draws nothing: a third run would be the same again.
        }
    }
    let mean = |part: usize, kind: usize| {
        runs.iter().map(|(_, parts)| parts[part][kind]).sum::<f64>() / runs.len() as f64
    };
    let parts = (0..PARTS).map(|part| [mean(part, 0), mean(part, 1)]).collect();
    Ok(Course { policy: policy.to_string(), size, counts: runs[0].0, parts })
}

/// Returns the position of the first reference of a part.
fn edge(trace: &Recorded, part: usize) -> usize {
    trace.batch.len() * part / PARTS
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;

    /// Returns a trace with a marked scan that repeats over 40 pages, and a new page after every
    /// four.
    fn scanned() -> Recorded {
        let mut batch = Batch::default();
        for at in 0..4000u64 {
            match at % 5 {
                4 => batch.push(1000 + at, Mark::READ),
                _ => batch.push(at % 40, Mark::READ.with_scan(true)),
            }
        }
        Recorded::of("scanned", 1, batch)
    }

    #[test]
    fn the_bound_follows_no_hints_and_the_others_do() {
        let (registry, trace) = (Registry::builtin(), scanned());
        let misses = |policy: &str| {
            course(&registry, &trace, policy, 36).map(|course| course.counts.misses())
        };
        let alone = |policy: &str, scan_hints: bool| {
            let spec = Spec::parse(policy)?;
            let options = SimOptions { scan_hints, ..SimOptions::new(36, Some(trace.distinct)) };
            let mut simulation = registry.find(&spec.id)?.simulation(&spec, &options)?;
            simulation.run(&trace.batch, Some(trace.future()))?;
            Ok::<u64, AdviseError>(simulation.counts().misses())
        };
        let (with, without) = (alone("opt", true).unwrap(), alone("opt", false).unwrap());
        assert!(with > without, "hints cost the bound {with} misses, {without} without");
        assert_eq!(misses("opt").unwrap(), without);
        assert_eq!(misses("lru").unwrap(), alone("lru", true).unwrap());
        for policy in ["lru", "fifo", "arc", "lirs", "tide"] {
            assert!(misses(policy).unwrap() >= without, "{policy}");
        }
    }
}
