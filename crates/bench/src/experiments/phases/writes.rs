//! Phases that write: one transaction of many rows, and many transactions of few.

use std::time::{Duration, Instant};

use millpond::{Durability, TxnOptions};
use millpond_workload::inserts::value_of;

use super::error::{PhaseError, failed};
use super::measure::Measured;
use super::plan::Phase;
use super::store::{Open, Tested, Watch};
use crate::error::BenchError;

/// Rows of a transaction between two calls of the observer.
const LOOK: u64 = 1_000;

/// Rows per transaction of a load that is not measured.
const UNMEASURED: u64 = 1_000;

/// Inserts all rows: in one measured transaction, or in many that are not measured.
pub(super) fn load(
    tested: &mut Tested<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Measured>, BenchError> {
    let phase = Phase::Load;
    if !tested.plan.has(phase) {
        while tested.next < tested.plan.rows {
            watch.look(phase, tested.next, tested.plan.rows)?;
            let count = UNMEASURED.min(tested.plan.rows - tested.next);
            insert(tested, phase, count, Durability::Bulk, watch)?;
        }
        tested.open()?.db.flush()?;
        return Ok(None);
    }
    let mut meter = tested.meter(phase, 1)?;
    let start = Instant::now();
    meter.timed(insert(tested, phase, tested.plan.rows, Durability::Sync, watch)?);
    meter.round(tested.plan.rows, 1, start.elapsed().as_secs_f64());
    tested.measured(meter)
}

/// Runs transactions of a few rows each, one after the other.
pub(super) fn commits(
    tested: &mut Tested<'_>,
    phase: Phase,
    watch: &mut Watch<'_>,
) -> Result<Option<Measured>, BenchError> {
    let plan = tested.plan;
    let (count, rows, durability) = match phase {
        Phase::Single => (plan.singles, 1, Durability::Sync),
        Phase::Batch => (plan.batches, plan.batch_rows, Durability::Sync),
        Phase::AsyncSingle => (plan.async_singles, 1, Durability::Async),
        _ => (plan.batches, plan.batch_rows, Durability::Async),
    };
    let mut meter = tested.meter(phase, 1)?;
    for _ in 0..plan.rounds {
        let start = Instant::now();
        for at in 0..count {
            watch.look(phase, at, count)?;
            meter.timed(insert(tested, phase, rows, durability, watch)?);
        }
        meter.round(count * rows, count, start.elapsed().as_secs_f64());
    }
    let measured = tested.measured(meter)?;
    // Flush, so that the next phase does not pay for it.
    tested.open()?.db.flush()?;
    Ok(measured)
}

/// Inserts the next `count` rows in one transaction; returns the time of its commit.
fn insert(
    tested: &mut Tested<'_>,
    phase: Phase,
    count: u64,
    durability: Durability,
    watch: &mut Watch<'_>,
) -> Result<Duration, BenchError> {
    let Open { db, tree } = tested.open()?;
    let options = TxnOptions::default().durability(durability);
    let tx = db.begin_with(options).map_err(failed(phase, 0))?;
    let inside = tx.tree(tree);
    for at in 0..count {
        if at > 0 && at % LOOK == 0 {
            watch.look(phase, at, count)?;
        }
        let key = tested.rows.key(tested.next + at);
        if inside.put(&key, &value_of(&key)).map_err(failed(phase, at))? {
            return Err(PhaseError::Stray { phase, key: key.into() }.into());
        }
    }
    let start = Instant::now();
    tx.commit().map_err(failed(phase, count))?;
    let took = start.elapsed();
    tested.next += count;
    Ok(took)
}

/// Removes the older half of the rows, in one transaction.
pub(super) fn remove(
    tested: &mut Tested<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Measured>, BenchError> {
    let (phase, count) = (Phase::Remove, tested.live() / 2);
    let mut meter = tested.meter(phase, 1)?;
    let begun = Instant::now();
    let Open { db, tree } = tested.open()?;
    let tx = db.begin().map_err(failed(phase, 0))?;
    let inside = tx.tree(tree);
    for at in 0..count {
        if at % LOOK == 0 {
            watch.look(phase, at, count)?;
        }
        let key = tested.rows.key(tested.first + at);
        if !inside.delete(&key).map_err(failed(phase, at))? {
            return Err(PhaseError::Missing { phase, key: key.into() }.into());
        }
    }
    let start = Instant::now();
    tx.commit().map_err(failed(phase, count))?;
    meter.timed(start.elapsed());
    meter.round(count, 1, begun.elapsed().as_secs_f64());
    tested.first += count;
    tested.measured(meter)
}
