//! Checks of a plan before it runs, and the number of threads.

use crate::parameters::{BLOCKS, SCAN_HINTS};

use super::error::SweepError;
use super::plan::{Model, Plan, Warmup};
use crate::registry::Registry;

/// Checks for faults that are visible before anything runs.
pub(super) fn check(plan: &Plan, registry: &Registry) -> Result<(), SweepError> {
    plan.check(registry)?;
    for (what, empty) in [
        ("trace", plan.traces.is_empty()),
        ("policy", plan.policies.is_empty()),
        ("size", plan.sizes.is_empty()),
        ("seed", plan.seeds.is_empty()),
    ] {
        if empty {
            return Err(SweepError::Plan(format!("nothing to run: no {what} is given")));
        }
    }
    plan.check_numbers().map_err(SweepError::Plan)?;
    let names: Vec<&str> = plan.traces.iter().map(|trace| trace.name.as_str()).collect();
    if let Some(name) = twice(&names) {
        return Err(SweepError::Plan(format!(
            "the trace {name} is given twice: rows are told apart by their traces' names"
        )));
    }
    if let Some(seed) = twice(&plan.seeds) {
        return Err(SweepError::Plan(format!(
            "the seed {seed} is given twice: it would count as two repetitions"
        )));
    }
    if plan.model != Model::Pool && plan.scan_hints {
        return Err(SweepError::Plan(format!(
            "no hint reaches a second tier: leave {SCAN_HINTS} away"
        )));
    }
    if plan.model != Model::Pool && plan.blocks > 0 {
        return Err(SweepError::Plan(format!(
            "the second-tier models are not cut into blocks: leave {BLOCKS} away"
        )));
    }
    if plan.model != Model::Pool && (plan.warmup != Warmup::References(0) || plan.batch != 1) {
        return Err(SweepError::Plan(
            "the second-tier models have a warm-up of their own and evict on demand: leave \
             --warmup and --batch away"
                .to_string(),
        ));
    }
    Ok(())
}

/// Maximum number of threads per core: more threads would only wait for each other.
const THREADS_OF_CORE: usize = 16;

/// Returns the number of threads for `work` pieces of work if the user asked for `asked` threads; 0
/// stands for one per core.
pub(crate) fn threads_for(asked: usize, work: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let asked = if asked == 0 { cores } else { asked };
    asked.min(work).clamp(1, cores.saturating_mul(THREADS_OF_CORE))
}

/// Returns the first item that occurs earlier in the list.
fn twice<T: PartialEq>(items: &[T]) -> Option<&T> {
    let is_there = |(at, item): &(usize, &T)| items[..*at].contains(item);
    items.iter().enumerate().find(is_there).map(|(_, item)| item)
}
