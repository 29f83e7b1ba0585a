//! All phases, one after the other.

use std::path::Path;

use super::measure::Measured;
use super::plan::{Phase, Plan};
use super::sorted::Sorted;
use super::store::{Tested, Watch};
use super::{reads, upkeep, writes};
use crate::error::BenchError;
use crate::run::runner::Observer;

/// Runs the plan's phases on a new store in `folder`, which is removed afterwards. The result of a
/// phase is added to `done` when the phase ends, so that it survives a failure of the next one.
///
/// # Errors
/// An impossible folder or impossible options, an error of the store, rows that differ from the
/// committed ones, or an error if the observer ended the run.
pub fn phases(
    folder: &Path,
    plan: &Plan,
    observer: &mut dyn Observer,
    done: &mut Vec<Measured>,
) -> Result<(), BenchError> {
    let own = tempfile::Builder::new().prefix("millpond-phases").tempdir_in(folder);
    let own = own.map_err(|error| BenchError::Usage(format!("{}: {error}", folder.display())))?;
    let mut tested = Tested::create(plan, own.path())?;
    let watch = &mut Watch::new(observer);
    if plan.phases.iter().any(|phase| !phase.is_of_sorted()) {
        done.extend(writes::load(&mut tested, watch)?);
    }
    let mut sorted = Sorted::new(plan);
    for phase in Phase::ALL.into_iter().filter(|phase| plan.has(*phase)) {
        match phase {
            Phase::Load => {}
            Phase::Single | Phase::Batch | Phase::AsyncSingle | Phase::AsyncBatch => {
                done.extend(writes::commits(&mut tested, phase, watch)?);
            }
            Phase::Len => done.extend(reads::len(&tested)?),
            Phase::Read | Phase::Range => {
                for threads in &plan.threads {
                    done.extend(reads::at_random(&tested, phase, *threads, watch)?);
                }
            }
            Phase::Remove => done.extend(writes::remove(&mut tested, watch)?),
            Phase::Shrink => done.extend(upkeep::shrink(&tested, watch)?),
            Phase::Scan => done.extend(upkeep::scan(&mut tested, watch)?),
            Phase::Sorted | Phase::Pop | Phase::ExtractIf | Phase::Retain => {
                done.extend(sorted.run(&tested, phase, watch)?);
            }
        }
    }
    watch.observer.begin("closing the store");
    tested.close()
}
