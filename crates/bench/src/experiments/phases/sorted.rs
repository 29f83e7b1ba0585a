//! Phases of the sorted rows, which are inserted in key order, popped at both ends, and removed by
//! a closure's choice.

use std::ops::Range;
use std::time::{Duration, Instant};

use millpond::{Durability, RawTree, Txn, TxnOptions};
use millpond_workload::inserts::{KEY_LEN, Rows, is_value_of, value_of};

use super::error::{PhaseError, failed};
use super::measure::Measured;
use super::plan::{Phase, Plan};
use super::store::{Open, Tested, Watch};
use crate::error::BenchError;

/// Name of the tree of sorted rows.
const TABLE: &str = "sorted";

/// Rows between two calls of the observer.
const LOOK: u64 = 1_000;

/// One row in this number is popped.
const POPPED: u64 = 10;

/// The sorted rows, and the ones among them that still exist.
pub(super) struct Sorted {
    rows: Rows,
    count: u64,
    /// Rows that popping left.
    left: Range<u64>,
    /// Every remaining key has all of these bits set in its last byte; 0 if all keys remain.
    bits: u8,
    is_loaded: bool,
}

impl Sorted {
    /// Returns the state before any row is inserted.
    pub(super) fn new(plan: &Plan) -> Sorted {
        let rows = Rows::new(plan.seed.derive("sorted"));
        Sorted { rows, count: plan.rows, left: 0..0, bits: 0, is_loaded: false }
    }

    /// Returns the key of a row: its number, spread over the key space, and random bytes.
    fn key(&self, row: u64) -> [u8; KEY_LEN] {
        let mut key = self.rows.key(row);
        let head = row.wrapping_mul(u64::MAX / self.count.max(1));
        key[..8].copy_from_slice(&head.to_be_bytes());
        key
    }

    fn is_there(&self, key: &[u8]) -> bool {
        let last = key.last().copied().unwrap_or(0);
        (0..8).map(|bit| 1u8 << bit).all(|bit| self.bits & bit == 0 || last & bit != 0)
    }

    /// Returns the number of existing rows.
    fn live(&self) -> u64 {
        self.left.clone().filter(|row| self.is_there(&self.key(*row))).count() as u64
    }

    /// Runs one of the phases.
    pub(super) fn run(
        &mut self,
        tested: &Tested<'_>,
        phase: Phase,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Measured>, BenchError> {
        let tree = tested.open()?.db.raw_tree(TABLE)?;
        if phase == Phase::Sorted {
            return self.load(tested, &tree, watch);
        }
        self.load_unmeasured(tested, &tree, watch)?;
        let before = self.live();
        let mut meter = tested.meter(phase, 1)?;
        let start = Instant::now();
        let tx = tested.open()?.db.begin().map_err(failed(phase, 0))?;
        let inside = tx.tree(&tree);
        let removed = match phase {
            Phase::Pop => self.pop(&inside, watch)?,
            Phase::ExtractIf => self.extract(&inside, watch)?,
            _ => self.retain(&inside)?,
        };
        let committing = Instant::now();
        tx.commit().map_err(failed(phase, removed))?;
        meter.timed(committing.elapsed());
        meter.round(removed, 1, start.elapsed().as_secs_f64());
        let measured = tested.measured(meter)?;
        let (found, expected) = (tree.len().map_err(failed(phase, removed))?, self.live());
        if found != expected || removed != before - expected {
            return Err(PhaseError::Rows { phase, found, expected }.into());
        }
        Ok(measured)
    }

    /// Inserts all sorted rows in one transaction.
    fn load(
        &mut self,
        tested: &Tested<'_>,
        tree: &RawTree,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Measured>, BenchError> {
        let mut meter = tested.meter(Phase::Sorted, 1)?;
        let start = Instant::now();
        meter.timed(self.insert(tested, tree, 0..self.count, Durability::Sync, watch)?);
        meter.round(self.count, 1, start.elapsed().as_secs_f64());
        (self.left, self.is_loaded) = (0..self.count, true);
        tested.measured(meter)
    }

    /// Inserts the sorted rows in small transactions, if they are missing.
    fn load_unmeasured(
        &mut self,
        tested: &Tested<'_>,
        tree: &RawTree,
        watch: &mut Watch<'_>,
    ) -> Result<(), BenchError> {
        if self.is_loaded {
            return Ok(());
        }
        for from in (0..self.count).step_by(LOOK as usize) {
            let to = (from + LOOK).min(self.count);
            self.insert(tested, tree, from..to, Durability::Bulk, watch)?;
        }
        (self.left, self.is_loaded) = (0..self.count, true);
        Ok(tested.open()?.db.flush()?)
    }

    /// Inserts a range of rows in one transaction; returns the time of its commit.
    fn insert(
        &self,
        tested: &Tested<'_>,
        tree: &RawTree,
        rows: Range<u64>,
        durability: Durability,
        watch: &mut Watch<'_>,
    ) -> Result<Duration, BenchError> {
        let phase = Phase::Sorted;
        let Open { db, .. } = tested.open()?;
        let options = TxnOptions::default().durability(durability);
        let tx = db.begin_with(options).map_err(failed(phase, 0))?;
        let inside = tx.tree(tree);
        for row in rows {
            if row % LOOK == 0 {
                watch.look(phase, row, self.count)?;
            }
            let key = self.key(row);
            if inside.put(&key, &value_of(&key)).map_err(failed(phase, row))? {
                return Err(PhaseError::Stray { phase, key: key.into() }.into());
            }
        }
        let start = Instant::now();
        tx.commit().map_err(failed(phase, self.count))?;
        Ok(start.elapsed())
    }

    /// Pops rows at both ends in turns; returns their number.
    fn pop(&mut self, tree: &RawTree<&Txn>, watch: &mut Watch<'_>) -> Result<u64, BenchError> {
        let phase = Phase::Pop;
        let count = (self.left.end - self.left.start) / POPPED;
        for at in 0..count {
            if at % LOOK == 0 {
                watch.look(phase, at, count)?;
            }
            let is_first = at % 2 == 0;
            let popped = if is_first { tree.pop_first() } else { tree.pop_last() };
            let row = if is_first { self.left.start } else { self.left.end - 1 };
            let expected = self.key(row);
            match popped.map_err(failed(phase, at))? {
                Some((key, value)) if key == expected => check(phase, &key, &value)?,
                Some((key, _)) => return Err(PhaseError::Order { phase, key: key.into() }.into()),
                None => return Err(PhaseError::Missing { phase, key: expected.into() }.into()),
            }
            if is_first {
                self.left.start += 1;
            } else {
                self.left.end -= 1;
            }
        }
        Ok(count)
    }

    /// Removes the rows without a bit, by an iterator; returns their number.
    fn extract(&mut self, tree: &RawTree<&Txn>, watch: &mut Watch<'_>) -> Result<u64, BenchError> {
        let (phase, bit) = (Phase::ExtractIf, 1);
        let (mut removed, all) = (0, self.count);
        for row in tree.extract_if(.., |key, _| key.last().is_some_and(|last| last & bit == 0)) {
            let (key, value) = row.map_err(failed(phase, removed))?;
            if removed % LOOK == 0 {
                watch.look(phase, removed, all)?;
            }
            check(phase, &key, &value)?;
            removed += 1;
        }
        self.bits |= bit;
        Ok(removed)
    }

    /// Keeps the rows with another bit; returns the number of removed rows.
    fn retain(&mut self, tree: &RawTree<&Txn>) -> Result<u64, BenchError> {
        let (phase, bit) = (Phase::Retain, 2);
        let mut wrong = None;
        let removed = tree.retain(|key, value| {
            if wrong.is_none() && !is_value_of(key, value) {
                wrong = Some(key.to_vec());
            }
            key.last().is_some_and(|last| last & bit != 0)
        });
        let removed = removed.map_err(failed(phase, 0))?;
        if let Some(key) = wrong {
            return Err(PhaseError::Value { phase, key: key.into() }.into());
        }
        self.bits |= bit;
        Ok(removed)
    }
}

fn check(phase: Phase, key: &[u8], value: &[u8]) -> Result<(), PhaseError> {
    if is_value_of(key, value) { Ok(()) } else { Err(PhaseError::Value { phase, key: key.into() }) }
}
