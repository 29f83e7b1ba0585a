//! The phases that read: the number of rows, rows and ranges at random.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use millpond::RawTree;
use millpond_workload::inserts::{KEY_LEN, is_value_of};

use super::error::{PhaseError, failed};
use super::measure::{Measured, Meter};
use super::plan::Phase;
use super::store::{Tested, Watch};
use crate::error::BenchError;
use crate::run::latencies;

/// One read in this number is timed.
const TIMED: u64 = 32;

/// Reads between two checks for the end of the run.
const LOOK: u64 = 256;

/// Counts the rows.
pub(super) fn len(tested: &Tested<'_>) -> Result<Option<Measured>, BenchError> {
    let phase = Phase::Len;
    let mut meter = tested.meter(phase, 1)?;
    for _ in 0..tested.plan.rounds {
        let start = Instant::now();
        let found = tested.open()?.tree.len().map_err(failed(phase, 0))?;
        meter.timed(start.elapsed());
        meter.round(found, 1, start.elapsed().as_secs_f64());
        tested.expect_rows(phase, found)?;
    }
    tested.measured(meter)
}

/// Reads random rows, or random ranges, with `threads` threads.
pub(super) fn at_random(
    tested: &Tested<'_>,
    phase: Phase,
    threads: u32,
    watch: &mut Watch<'_>,
) -> Result<Option<Measured>, BenchError> {
    let mut meter = tested.meter(phase, threads)?;
    let greatest = tested.open()?.tree.last().map_err(failed(phase, 0))?;
    let greatest = greatest.map_or_else(Vec::new, |(key, _)| key);
    for round in 0..tested.plan.rounds {
        let reader = |thread: u32| Reader {
            tested,
            phase,
            greatest: &greatest,
            random: fastrand::Rng::with_seed(seed(tested, phase, round, thread)),
        };
        watch.look(phase, u64::from(round), u64::from(tested.plan.rounds))?;
        one_round(tested, phase, threads, &reader, &mut meter, watch)?;
    }
    tested.measured(meter)
}

fn seed(tested: &Tested<'_>, phase: Phase, round: u32, thread: u32) -> u64 {
    tested.plan.seed.derive(&format!("{phase}, round {round}, thread {thread}")).0
}

/// Time between two calls of the observer while threads read.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Result of a reading thread: rows, and the latencies of some reads; `None` if it was
/// stopped.
type Share = Option<(u64, Histogram<u64>)>;

/// Runs one round of all threads.
fn one_round<'t>(
    tested: &Tested<'_>,
    phase: Phase,
    threads: u32,
    reader: &(dyn Fn(u32) -> Reader<'t> + Sync),
    meter: &mut Meter,
    watch: &mut Watch<'_>,
) -> Result<(), BenchError> {
    let tree = &tested.open()?.tree;
    let all = if phase == Phase::Read { tested.plan.reads } else { tested.plan.ranges };
    let (halt, start) = (AtomicBool::new(false), Instant::now());
    let work = |thread: u32| {
        let (number, threads) = (u64::from(thread), u64::from(threads.max(1)));
        let count = all / threads + u64::from(number < all % threads);
        let done = reader(thread).work(tree, count, &halt);
        done.map(|share| (share, start.elapsed()))
    };
    let work = &work;
    let shares = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|at| scope.spawn(move || work(at))).collect();
        while !handles.iter().all(|handle| handle.is_finished()) {
            if watch.observer.stop() {
                halt.store(true, Ordering::Relaxed);
            }
            thread::park_timeout(BETWEEN_LOOKS);
        }
        let joined = handles.into_iter().map(|handle| match handle.join() {
            Ok(share) => share,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Result<Vec<(Share, Duration)>, _>>()
    })?;
    let (mut rows, mut seconds) = (0, 0f64);
    for (share, took) in shares {
        let (own, latency) = share.ok_or(BenchError::Stopped)?;
        rows += own;
        seconds = seconds.max(took.as_secs_f64());
        // Cannot fail: histograms with the same bounds.
        let _ = meter.latency.add(&latency);
    }
    meter.round(rows, all, seconds);
    Ok(())
}

/// A reading thread.
struct Reader<'t> {
    tested: &'t Tested<'t>,
    phase: Phase,
    /// The greatest key of the tree.
    greatest: &'t [u8],
    random: fastrand::Rng,
}

impl Reader<'_> {
    fn work(mut self, tree: &RawTree, count: u64, halt: &AtomicBool) -> Result<Share, PhaseError> {
        let (mut rows, mut latency) = (0, latencies());
        for at in 0..count {
            if at % LOOK == 0 && halt.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let row = self.random.u64(0..self.tested.live().max(1));
            let key = self.tested.rows.key(self.tested.first + row);
            let start = (at % TIMED == 0).then(Instant::now);
            rows += match self.phase {
                Phase::Read => self.row(tree, &key)?,
                _ => self.range(tree, &key)?,
            };
            if let Some(start) = start {
                latency.saturating_record(start.elapsed().as_nanos() as u64);
            }
        }
        Ok(Some((rows, latency)))
    }

    /// Looks up one row.
    fn row(&self, tree: &RawTree, key: &[u8]) -> Result<u64, PhaseError> {
        let phase = self.phase;
        let found = tree.get_with(key, |value| is_value_of(key, value)).map_err(failed(phase, 0));
        match found? {
            Some(true) => Ok(1),
            Some(false) => Err(PhaseError::Value { phase, key: key.into() }),
            None => Err(PhaseError::Missing { phase, key: key.into() }),
        }
    }

    /// Reads a range that begins with an existing row.
    fn range(&self, tree: &RawTree, start: &[u8]) -> Result<u64, PhaseError> {
        let phase = self.phase;
        let mut rows = tree.range(start..);
        let (mut count, mut last) = (0, [0; KEY_LEN]);
        while count < self.tested.plan.range_rows {
            let Some((key, value)) = rows.next_entry().map_err(failed(phase, count))? else {
                break;
            };
            check(phase, key, value, (count > 0).then_some(&last[..]))?;
            if count == 0 && key != start {
                return Err(PhaseError::Missing { phase, key: start.into() });
            }
            last.copy_from_slice(key);
            count += 1;
        }
        // The range may be shorter only at the end of the tree.
        match count < self.tested.plan.range_rows && last[..] != *self.greatest {
            true => Err(PhaseError::Missing { phase, key: self.greatest.into() }),
            false => Ok(count),
        }
    }
}

/// Checks a row that was read after the one with the key `last`.
pub(super) fn check(
    phase: Phase,
    key: &[u8],
    value: &[u8],
    last: Option<&[u8]>,
) -> Result<(), PhaseError> {
    if key.len() != KEY_LEN {
        return Err(PhaseError::Stray { phase, key: key.into() });
    }
    if last.is_some_and(|last| key <= last) {
        return Err(PhaseError::Order { phase, key: key.into() });
    }
    match is_value_of(key, value) {
        true => Ok(()),
        false => Err(PhaseError::Value { phase, key: key.into() }),
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Seed;
    use millpond_workload::inserts::{Rows, value_of};

    use super::*;

    #[test]
    fn a_row_of_a_range_is_checked_for_its_value_and_its_place() {
        let rows = Rows::new(Seed(1));
        let [mut low, mut high] = [rows.key(0), rows.key(1)];
        if low > high {
            std::mem::swap(&mut low, &mut high);
        }
        let value = value_of(&high);
        let check = |key: &[u8], value: &[u8], last| check(Phase::Range, key, value, last);
        assert!(check(&high, &value, None).is_ok() && check(&high, &value, Some(&low)).is_ok());
        let wrong = check(&high, &value_of(&low), Some(&low));
        assert!(matches!(wrong, Err(PhaseError::Value { .. })), "{wrong:?}");
        for last in [&high, &[0xff; KEY_LEN]] {
            let order = check(&high, &value, Some(last));
            assert!(matches!(order, Err(PhaseError::Order { .. })), "{order:?}");
        }
        let stray = check(&high[1..], &value, None);
        assert!(matches!(stray, Err(PhaseError::Stray { .. })), "{stray:?}");
    }
}
