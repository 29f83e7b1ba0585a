//! The store under test, its rows, and the observer.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use millpond::{Db, Error, Options, RawTree};
use millpond_workload::inserts::{Rows, TABLE};

use super::error::PhaseError;
use super::measure::{Measured, Meter};
use super::plan::{Phase, Plan};
use crate::error::BenchError;
use crate::run::runner::Observer;

/// An open store and its only tree.
pub(super) struct Open {
    pub(super) db: Db,
    pub(super) tree: RawTree,
}

/// A store under test.
pub(super) struct Tested<'p> {
    pub(super) plan: &'p Plan,
    /// Folder that holds the store's files, and nothing else.
    pub(super) folder: &'p Path,
    pub(super) rows: Rows,
    /// First row that is committed and not removed.
    pub(super) first: u64,
    /// Row after the last committed one.
    pub(super) next: u64,
    open: Option<Open>,
}

impl<'p> Tested<'p> {
    /// Creates an empty store in `folder`, which is empty.
    pub(super) fn create(plan: &'p Plan, folder: &'p Path) -> Result<Tested<'p>, BenchError> {
        let (rows, open) = (Rows::new(plan.seed), None);
        let mut tested = Tested { plan, folder, rows, first: 0, next: 0, open };
        tested.reopen()?;
        Ok(tested)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("store.mp")
    }

    /// Closes the store, if it is open, and opens it.
    pub(super) fn reopen(&mut self) -> Result<(), BenchError> {
        self.close()?;
        let mut options = Options::new();
        options = options.compression(self.plan.compression);
        if let Some(bytes) = self.plan.memory {
            options = options.memory(bytes);
        }
        if let Some(bytes) = self.plan.log_gap {
            options = options.log_gap(bytes);
        }
        let opened = |error| match error {
            // The command line is at fault.
            Error::Options(error) => BenchError::Options(error),
            other => BenchError::Store(other),
        };
        let db = Db::open(self.path(), options).map_err(opened)?;
        let tree = db.raw_tree(TABLE)?;
        self.open = Some(Open { db, tree });
        Ok(())
    }

    /// Closes the store, if it is open.
    pub(super) fn close(&mut self) -> Result<(), BenchError> {
        let Some(Open { db, tree }) = self.open.take() else { return Ok(()) };
        drop(tree);
        Ok(db.close()?)
    }

    /// Returns the open store.
    pub(super) fn open(&self) -> Result<&Open, BenchError> {
        self.open.as_ref().ok_or(BenchError::Closed)
    }

    /// Returns the number of rows that are committed and not removed.
    pub(super) fn live(&self) -> u64 {
        self.next - self.first
    }

    /// Starts measuring a phase.
    pub(super) fn meter(&self, phase: Phase, threads: u32) -> Result<Meter, BenchError> {
        Ok(Meter::start(phase, threads, &self.open()?.db, self.folder)?)
    }

    /// Ends the measurement of a phase.
    pub(super) fn measured(&self, meter: Meter) -> Result<Option<Measured>, BenchError> {
        Ok(meter.end(&self.open()?.db, self.folder)?)
    }

    /// Fails unless `found` is the number of rows that must exist.
    pub(super) fn expect_rows(&self, phase: Phase, found: u64) -> Result<(), PhaseError> {
        let expected = self.live();
        if found == expected { Ok(()) } else { Err(PhaseError::Rows { phase, found, expected }) }
    }
}

/// Time between two messages for the observer.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(200);

/// Observer of the phases, which may end the run.
pub(super) struct Watch<'o> {
    pub(super) observer: &'o mut dyn Observer,
    last: Option<Instant>,
}

impl<'o> Watch<'o> {
    pub(super) fn new(observer: &'o mut dyn Observer) -> Watch<'o> {
        Watch { observer, last: None }
    }

    /// Reports the progress of `phase` from time to time; fails if the run must end.
    pub(super) fn look(&mut self, phase: Phase, done: u64, all: u64) -> Result<(), BenchError> {
        if self.observer.stop() {
            return Err(BenchError::Stopped);
        }
        if self.last.is_none_or(|last| last.elapsed() >= BETWEEN_MESSAGES) {
            self.last = Some(Instant::now());
            self.observer.begin(&format!("{phase}: {done} of {all}"));
        }
        Ok(())
    }
}
