//! One thread of a key-value run.

use millpond_base::Seed;

use super::config::{Config, ConfigError, ReadStyle, TABLE, UpdateStyle};
use super::shape::{KEY_LEN_MAX, Shape};
use crate::generate::Random;
use crate::keys::Chooser;
use crate::live::{Access, DriveError, Scan, Session, TableId};

/// Number of rollbacks after which a step gives up and reports the store's error.
const RETRIES_MAX: u32 = 10_000;

/// Operation of a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A point read.
    Read,
    /// An update.
    Update,
    /// An insert.
    Insert,
    /// A range scan.
    Scan,
    /// A read and an update of one row.
    ReadModifyWrite,
}

impl Operation {
    /// All operations, in the order of [`super::Mix`]'s shares.
    pub const ALL: [Operation; 5] = [
        Operation::Read,
        Operation::Update,
        Operation::Insert,
        Operation::Scan,
        Operation::ReadModifyWrite,
    ];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Scan => "scan",
            Operation::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The operation.
    pub operation: Operation,
    /// Rows read or written; 0 if the row was missing, or, for an insert, existed already.
    pub rows: u32,
    /// Number of times the operation was rolled back and repeated because the store asked for it.
    pub retries: u32,
}

/// Buffers through which a worker reads and writes.
#[derive(Clone, Debug)]
struct Scratch {
    key: [u8; KEY_LEN_MAX],
    value: Vec<u8>,
}

/// One thread's operations. A worker draws and runs them without allocating.
#[derive(Clone, Debug)]
pub struct Worker {
    table: TableId,
    shape: Shape,
    chooser: Chooser,
    random: Random,
    /// Upper borders of the operations' shares; the last is their sum.
    borders: [u64; 5],
    update: UpdateStyle,
    read: ReadStyle,
    scan_rows: (u32, u32),
    verify: bool,
    /// Number of loaded rows; new rows follow them.
    loaded: u64,
    thread: u64,
    threads: u64,
    inserted: u64,
    digest: u64,
    scratch: Scratch,
}

/// An operation with all its random choices, so that it can be repeated.
#[derive(Clone, Copy)]
struct Plan {
    operation: Operation,
    row: u64,
    field: u32,
    version: u64,
    rows: u32,
}

impl Worker {
    /// Creates worker number `thread` (from 0) of the run. Workers of one seed draw different
    /// streams.
    pub fn new(
        config: &Config,
        table: TableId,
        seed: Seed,
        thread: u32,
    ) -> Result<Worker, ConfigError> {
        config.validate()?;
        let mut borders = [0; 5];
        let mut sum = 0u64;
        for (border, part) in borders.iter_mut().zip(config.mix.parts()) {
            sum += u64::from(part);
            *border = sum;
        }
        Ok(Worker {
            table,
            shape: config.shape,
            chooser: Chooser::new(config.distribution, config.scramble, config.rows)?,
            random: Random::new(seed.derive(&format!("ycsb worker {thread}"))),
            borders,
            update: config.update,
            read: config.read,
            scan_rows: config.scan_rows,
            verify: config.verify,
            loaded: config.rows,
            thread: u64::from(thread),
            threads: u64::from(config.threads.max(thread + 1)),
            inserted: 0,
            digest: 0,
            scratch: Scratch { key: [0; KEY_LEN_MAX], value: vec![0; config.shape.value_len()] },
        })
    }

    /// Returns a digest of everything read so far, in order. It is equal for two stores that
    /// returned the same results to the same worker. Zero-copy reads add only the first word.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the number of rows that this worker has added.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Draws one operation and runs it in its own transaction.
    #[inline]
    pub fn step<S: Session>(&mut self, session: &mut S) -> Result<Step, DriveError<S::Error>> {
        let plan = self.plan();
        let mut retries = 0;
        loop {
            match self.run(session, &plan) {
                Ok(rows) => {
                    if plan.operation == Operation::Insert {
                        self.inserted += 1;
                    }
                    return Ok(Step { operation: plan.operation, rows, retries });
                }
                Err(DriveError::Store(error))
                    if S::is_retriable(&error) && retries < RETRIES_MAX =>
                {
                    session.rollback()?;
                    retries += 1;
                }
                Err(error) => {
                    // The first error is the one to report.
                    let _ = session.rollback();
                    return Err(error);
                }
            }
        }
    }

    #[inline]
    fn plan(&mut self) -> Plan {
        let total = self.borders[4];
        let dice = self.random.below(total);
        let at = self.borders.iter().take_while(|border| **border <= dice).count().min(4);
        let operation = Operation::ALL[at];
        let mut plan = Plan { operation, row: 0, field: 0, version: 0, rows: 1 };
        if operation == Operation::Insert {
            plan.row = self.own(self.inserted);
            return plan;
        }
        plan.row = self.draw();
        match operation {
            Operation::Scan => {
                let (fewest, most) = self.scan_rows;
                let span = u64::from(most - fewest) + 1;
                plan.rows = fewest + if span > 1 { self.random.below(span) as u32 } else { 0 };
            }
            Operation::Update | Operation::ReadModifyWrite => match self.update {
                UpdateStyle::InPlace if self.shape.fields > 1 => {
                    plan.field = self.random.below(u64::from(self.shape.fields)) as u32;
                }
                UpdateStyle::InPlace => {}
                UpdateStyle::Put => plan.version = self.random.below(u64::MAX),
            },
            Operation::Read | Operation::Insert => {}
        }
        plan
    }

    /// Returns the number of this worker's `nth` new row.
    #[inline]
    fn own(&self, nth: u64) -> u64 {
        self.loaded.wrapping_add(self.thread).wrapping_add(nth.wrapping_mul(self.threads))
    }

    #[inline]
    fn draw(&mut self) -> u64 {
        let drawn = self.chooser.draw(&mut self.random);
        if !self.chooser.draws_ages() {
            drawn
        } else if drawn < self.inserted {
            self.own(self.inserted - 1 - drawn)
        } else {
            self.loaded - 1 - (drawn - self.inserted).min(self.loaded - 1)
        }
    }

    #[inline]
    fn run<S: Session>(
        &mut self,
        session: &mut S,
        plan: &Plan,
    ) -> Result<u32, DriveError<S::Error>> {
        let writes = !matches!(plan.operation, Operation::Read | Operation::Scan);
        session.begin(if writes { Access::Write } else { Access::Read })?;
        let rows = match plan.operation {
            Operation::Read => self.read(session, plan.row)?,
            Operation::Update => self.update(session, plan)?,
            Operation::Insert => self.insert(session, plan)?,
            Operation::Scan => self.scan(session, plan)?,
            Operation::ReadModifyWrite => {
                let read = self.read(session, plan.row)?;
                read.min(self.update(session, plan)?)
            }
        };
        session.commit()?;
        Ok(rows)
    }

    #[inline]
    fn read<S: Session>(&mut self, session: &mut S, row: u64) -> Result<u32, DriveError<S::Error>> {
        let Worker { shape, verify, read, .. } = *self;
        let Scratch { key, value: copy } = &mut self.scratch;
        let seen = session.get(self.table, shape.key(row, key), |value| {
            if read == ReadStyle::Copy && value.len() == copy.len() {
                copy.copy_from_slice(value);
            }
            (shape.version(value, 0), !verify || shape.check(row, value))
        })?;
        match seen {
            Some((version, true)) => {
                self.digest = self.digest.rotate_left(1) ^ row ^ version;
                Ok(1)
            }
            Some((_, false)) => Err(DriveError::Content { table: TABLE, row }),
            None => Ok(0),
        }
    }

    #[inline]
    fn update<S: Session>(
        &mut self,
        session: &mut S,
        plan: &Plan,
    ) -> Result<u32, DriveError<S::Error>> {
        let shape = self.shape;
        let Scratch { key, value } = &mut self.scratch;
        let key = shape.key(plan.row, key);
        if self.update == UpdateStyle::Put {
            shape.fill(value, plan.row, plan.version);
            session.put(self.table, key, value)?;
            return Ok(1);
        }
        let at = plan.field as usize * shape.field_len as usize;
        let done = session.update(self.table, key, |value| {
            let version = shape.version(value, plan.field).wrapping_add(1);
            match value.get_mut(at..at + shape.field_len as usize) {
                Some(field) => Shape::fill_field(field, plan.row, plan.field, version),
                None => return false,
            }
            true
        })?;
        match done {
            Some(true) => Ok(1),
            Some(false) => Err(DriveError::Content { table: TABLE, row: plan.row }),
            None => Ok(0),
        }
    }

    #[inline]
    fn insert<S: Session>(
        &mut self,
        session: &mut S,
        plan: &Plan,
    ) -> Result<u32, DriveError<S::Error>> {
        let Scratch { key, value } = &mut self.scratch;
        self.shape.fill(value, plan.row, 0);
        Ok(u32::from(session.insert(self.table, self.shape.key(plan.row, key), value)?))
    }

    #[inline]
    fn scan<S: Session>(
        &mut self,
        session: &mut S,
        plan: &Plan,
    ) -> Result<u32, DriveError<S::Error>> {
        let Worker { shape, verify, read, mut digest, .. } = *self;
        let Scratch { key, value: copy } = &mut self.scratch;
        let mut rows = 0u32;
        let mut bad = None;
        // A scattered key does not reveal its row, so only the lengths of its neighbours can be
        // checked.
        let is_checked = verify && !shape.scattered_keys;
        session.scan(self.table, Scan::up(shape.key(plan.row, key), plan.rows), |key, value| {
            if read == ReadStyle::Copy && value.len() == copy.len() {
                copy.copy_from_slice(value);
            }
            digest = digest.rotate_left(1) ^ shape.version(value, 0);
            let row = key.first_chunk::<8>().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
            if (is_checked && !shape.check(row, value)) || (verify && value.len() != copy.len()) {
                bad = Some(row);
            }
            rows += 1;
            rows < plan.rows && bad.is_none()
        })?;
        self.digest = digest;
        match bad {
            Some(row) => Err(DriveError::Content { table: TABLE, row }),
            None => Ok(rows),
        }
    }
}
