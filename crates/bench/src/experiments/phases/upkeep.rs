//! Phases of file maintenance: shrinking the file, opening it again.

use std::ops::ControlFlow;
use std::time::Instant;

use super::error::{PhaseError, failed};
use super::measure::Measured;
use super::plan::Phase;
use super::reads::check;
use super::store::{Open, Tested, Watch};
use crate::error::BenchError;

/// Leaves packed between two calls of the observer.
const LEAVES: u32 = 256;

/// Rows scanned between two calls of the observer.
const LOOK: u64 = 10_000;

/// Packs leaves, and returns the freed space to the file system.
pub(super) fn shrink(
    tested: &Tested<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Measured>, BenchError> {
    let phase = Phase::Shrink;
    let mut meter = tested.meter(phase, 1)?;
    let start = Instant::now();
    let Open { db, tree } = tested.open()?;
    let pages = db.stats().store_pages;
    let mut packed = 0;
    while !tree.compact(LEAVES).map_err(failed(phase, 0))? {
        watch.look(phase, packed, pages)?;
        packed += u64::from(LEAVES);
    }
    let mut stopped = Ok(());
    let watcher = &mut |progress: millpond::report::ShrinkProgress| {
        stopped = watch.look(phase, progress.moved, progress.moved + progress.left);
        if stopped.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let shrunk = db.shrink_with(watcher).map_err(failed(phase, 0));
    stopped?;
    shrunk?;
    meter.round(tested.live(), 1, start.elapsed().as_secs_f64());
    tested.measured(meter)
}

/// Closes the store and opens it, then reads all rows in key order. They must be exactly the
/// committed ones that were not removed.
pub(super) fn scan(
    tested: &mut Tested<'_>,
    watch: &mut Watch<'_>,
) -> Result<Option<Measured>, BenchError> {
    let phase = Phase::Scan;
    watch.look(phase, 0, tested.live())?;
    tested.reopen()?;
    let mut meter = tested.meter(phase, 1)?;
    let start = Instant::now();
    let mut rows = tested.open()?.tree.iter().as_scan();
    let (mut count, mut sum, mut last) = (0, 0u64, Vec::new());
    while let Some((key, value)) = rows.next_entry().map_err(failed(phase, count))? {
        if count % LOOK == 0 {
            watch.look(phase, count, tested.live())?;
        }
        check(phase, key, value, (count > 0).then_some(&last[..]))?;
        sum = sum.wrapping_add(head(key));
        last.clear();
        last.extend_from_slice(key);
        count += 1;
    }
    drop(rows);
    meter.round(count, 1, start.elapsed().as_secs_f64());
    tested.expect_rows(phase, count)?;
    let heads = (tested.first..tested.next).map(|row| tested.rows.head(row));
    if sum != heads.fold(0, u64::wrapping_add) {
        let expected = tested.live();
        return Err(PhaseError::Rows { phase, found: count, expected }.into());
    }
    tested.measured(meter)
}

fn head(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |head| u64::from_be_bytes(*head))
}
