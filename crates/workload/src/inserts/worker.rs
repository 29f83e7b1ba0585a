//! One inserting thread.

use millpond_base::Seed;

use super::rows::{Rows, value_of};
use crate::live::{Access, DriveError, Session, Store, TableId};

/// The table's name.
pub const TABLE: &str = "scattered";

/// Maximum rows per step of a worker.
const ROWS_PER_STEP: u64 = 1_000;

/// A run of inserts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Rows loaded before the measurement.
    pub rows: u64,
    /// Rows of a transaction, at least 1.
    pub rows_per_transaction: u64,
    /// Threads that insert.
    pub threads: u32,
}

impl Config {
    /// Returns the maximum rows per step of a worker, at least 1.
    pub fn rows_per_step(&self) -> u64 {
        self.rows_per_transaction.clamp(1, ROWS_PER_STEP)
    }
}

/// Creates the table.
///
/// # Errors
/// Any error of the store.
pub fn create<S: Store>(store: &S) -> Result<TableId, S::Error> {
    store.create_table(TABLE)
}

/// One thread's inserts.
#[derive(Clone, Debug)]
pub struct Worker {
    table: TableId,
    rows: Rows,
    /// The next row, and the distance to the one after it.
    next: u64,
    stride: u64,
    per_transaction: u64,
    /// Rows inserted by the open transaction; 0 if none is open.
    pending: u64,
}

impl Worker {
    /// Creates the worker of `thread` for the rows after the loaded ones.
    pub fn new(config: &Config, table: TableId, seed: Seed, thread: u32) -> Worker {
        Worker {
            next: config.rows + u64::from(thread),
            stride: u64::from(config.threads.max(1)),
            ..Worker::of(config, table, seed)
        }
    }

    fn of(config: &Config, table: TableId, seed: Seed) -> Worker {
        let per_transaction = config.rows_per_transaction.max(1);
        Worker { table, rows: Rows::new(seed), next: 0, stride: 1, per_transaction, pending: 0 }
    }

    /// Inserts part `part` of `parts` of the rows to load, one step's rows per transaction;
    /// returns their number.
    ///
    /// # Errors
    /// As [`Worker::step`].
    pub fn load<S: Session>(
        config: &Config,
        table: TableId,
        seed: Seed,
        part: u32,
        parts: u32,
        session: &mut S,
    ) -> Result<u64, DriveError<S::Error>> {
        let config = Config { rows_per_transaction: ROWS_PER_STEP, ..*config };
        let (part, stride) = (u64::from(part), u64::from(parts.max(1)));
        let mut worker = Worker { next: part, stride, ..Worker::of(&config, table, seed) };
        let rows = config.rows.saturating_sub(part).div_ceil(stride);
        let mut left = rows;
        while left > 0 {
            left -= worker.insert(left, session)?;
        }
        worker.finish(session)?;
        Ok(rows)
    }

    /// Inserts the next rows, a thousand or the remainder of the transaction; returns their
    /// number. A transaction is committed when it is full, so it may span steps.
    ///
    /// # Errors
    /// An error of the store, or an error if a row exists already.
    pub fn step<S: Session>(&mut self, session: &mut S) -> Result<u32, DriveError<S::Error>> {
        // Cannot be more than ROWS_PER_STEP.
        Ok(self.insert(ROWS_PER_STEP, session)? as u32)
    }

    /// Commits the open transaction, if there is one.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn finish<S: Session>(&mut self, session: &mut S) -> Result<(), DriveError<S::Error>> {
        if self.pending > 0 {
            session.commit()?;
            self.pending = 0;
        }
        Ok(())
    }

    fn insert<S: Session>(
        &mut self,
        most: u64,
        session: &mut S,
    ) -> Result<u64, DriveError<S::Error>> {
        if self.pending == 0 {
            session.begin(Access::Write)?;
        }
        let count = most.min(ROWS_PER_STEP).min(self.per_transaction - self.pending);
        for _ in 0..count {
            let key = self.rows.key(self.next);
            if !session.insert(self.table, &key, &value_of(&key))? {
                return Err(DriveError::Duplicate { table: TABLE, key: key.into() });
            }
            self.next += self.stride;
        }
        self.pending += count;
        if self.pending >= self.per_transaction {
            self.finish(session)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::is_value_of;
    use super::*;
    use crate::live::{MemoryStore, Scan};

    /// Returns the number of rows of the table, and checks all of them.
    fn count(store: &MemoryStore, table: TableId) -> u64 {
        let mut count = 0;
        let mut session = store.session().unwrap();
        let visit = |key: &[u8], value: &[u8]| {
            assert!(is_value_of(key, value));
            count += 1;
            true
        };
        session.scan(table, Scan::whole(), visit).unwrap();
        count
    }

    #[test]
    fn loaded_and_inserted_rows_are_all_there_whatever_the_threads() {
        for (threads, rows_per_transaction) in [(1, 1), (2, 300), (3, 1_000_000)] {
            let config = Config { rows: 2_501, rows_per_transaction, threads };
            let (store, seed) = (MemoryStore::new(), Seed(9));
            let table = create(&store).unwrap();
            let mut session = store.session().unwrap();
            let [even, odd] = [0, 1]
                .map(|part| Worker::load(&config, table, seed, part, 2, &mut session).unwrap());
            assert_eq!((even, odd), (1_251, 1_250));
            assert_eq!(count(&store, table), 2_501);
            let mut inserted = 0;
            for thread in 0..threads {
                let mut worker = Worker::new(&config, table, seed, thread);
                for _ in 0..5 {
                    inserted += u64::from(worker.step(&mut session).unwrap());
                }
                worker.finish(&mut session).unwrap();
            }
            assert_eq!(inserted, 5 * config.rows_per_step() * u64::from(threads));
            assert_eq!(count(&store, table), 2_501 + inserted);
        }
    }

    #[test]
    fn two_workers_of_one_number_are_found_out() {
        let config = Config { rows: 0, rows_per_transaction: 10, threads: 1 };
        let store = MemoryStore::new();
        let table = create(&store).unwrap();
        let mut session = store.session().unwrap();
        let mut worker = || Worker::new(&config, table, Seed(1), 0).step(&mut session);
        assert_eq!(worker().unwrap(), 10);
        assert!(matches!(worker(), Err(DriveError::Duplicate { .. })));
    }
}
