//! Workloads, and the clients that run them.

use millpond::internals::btree::Limits;
use millpond_base::Seed;
use millpond_workload::inserts;
use millpond_workload::live::{DriveError, Scan, Session, Store, TableId};
use millpond_workload::tpcc::{self, Kind, Tables};
use millpond_workload::ycsb::{self, LoadOrder, Operation};

use crate::error::BenchError;

/// Workload of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Workload {
    /// Key-value operations.
    Ycsb(ycsb::Config),
    /// TPC-C.
    Tpcc(tpcc::Config),
    /// Threads that scan TPC-C's orders and order lines in turn, without end (leanstore VI-C).
    Scan(tpcc::Config),
    /// Rows inserted in random order of their keys, in transactions of any size.
    Inserts(inserts::Config),
}

/// Work done in a step of a client.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Kind of the work, as an index into [`Workload::classes`].
    pub class: u8,
    /// Number of transactions, or rows, in the step.
    pub count: u32,
    /// Number of times that the work was rolled back and restarted: deadlocks and lock timeouts.
    pub retries: u32,
}

/// Maximum number of kinds of work of a client.
pub const CLASSES_MAX: usize = 6;

/// One thread's work, step by step.
pub trait Client: Send {
    /// Does the next piece of work.
    ///
    /// # Errors
    /// Any error of the workload or the store.
    fn step<S: Session>(&mut self, session: &mut S) -> Result<Done, DriveError<S::Error>>;

    /// Commits a transaction that spans steps, if there is one, at the end of the run.
    ///
    /// # Errors
    /// Any error of the store.
    fn finish<S: Session>(&mut self, _session: &mut S) -> Result<(), DriveError<S::Error>> {
        Ok(())
    }
}

impl Client for ycsb::Worker {
    #[inline(always)]
    fn step<S: Session>(&mut self, session: &mut S) -> Result<Done, DriveError<S::Error>> {
        let step = ycsb::Worker::step(self, session)?;
        Ok(Done { class: step.operation as u8, count: 1, retries: step.retries })
    }
}

impl Client for tpcc::Worker {
    #[inline(always)]
    fn step<S: Session>(&mut self, session: &mut S) -> Result<Done, DriveError<S::Error>> {
        let step = tpcc::Worker::step(self, session)?;
        // Rolled-back NewOrders are a separate class, after the five kinds.
        let class = if step.rolled_back { Kind::ALL.len() as u8 } else { step.kind as u8 };
        Ok(Done { class, count: 1, retries: step.retries })
    }
}

impl Client for inserts::Worker {
    fn step<S: Session>(&mut self, session: &mut S) -> Result<Done, DriveError<S::Error>> {
        Ok(Done { class: 0, count: inserts::Worker::step(self, session)?, retries: 0 })
    }

    fn finish<S: Session>(&mut self, session: &mut S) -> Result<(), DriveError<S::Error>> {
        inserts::Worker::finish(self, session)
    }
}

/// Rows of a scan between two clock checks.
const ROWS_PER_STEP: u32 = 100_000;

/// Scans one table repeatedly.
#[derive(Clone, Debug)]
pub struct Scanner {
    table: TableId,
    class: u8,
    /// Start key of the next step: just after the last row.
    next: Vec<u8>,
    /// Sum over the rows, which keeps the compiler from removing the reads.
    sum: u64,
    /// Bytes of keys and values seen.
    bytes: u64,
    rows: u64,
}

impl Scanner {
    fn new(table: TableId, class: u8) -> Scanner {
        Scanner { table, class, next: Vec::new(), sum: 0, bytes: 0, rows: 0 }
    }

    /// Returns the mean bytes of key and value per row seen.
    pub fn row_bytes(&self) -> f64 {
        self.bytes as f64 / self.rows.max(1) as f64
    }
}

impl Client for Scanner {
    fn step<S: Session>(&mut self, session: &mut S) -> Result<Done, DriveError<S::Error>> {
        let Scanner { table, class, next, sum, bytes, rows } = self;
        let start = std::mem::take(next);
        let mut seen = 0u32;
        session.scan(*table, Scan { start: &start, ..Scan::whole() }, |key, value| {
            seen += 1;
            *bytes += (key.len() + value.len()) as u64;
            if let Some(head) = value.first_chunk::<8>() {
                *sum = sum.wrapping_add(u64::from_le_bytes(*head));
            }
            if seen == ROWS_PER_STEP {
                // The smallest key after this one.
                next.extend_from_slice(key);
                next.push(0);
            }
            seen < ROWS_PER_STEP
        })?;
        *rows += u64::from(seen);
        std::hint::black_box(*sum);
        Ok(Done { class: *class, count: seen, retries: 0 })
    }
}

/// Clients of all threads of a run.
#[derive(Debug)]
pub enum Clients {
    /// Key-value workers.
    Ycsb(Vec<ycsb::Worker>),
    /// TPC-C workers.
    Tpcc(Vec<tpcc::Worker>),
    /// Scanners.
    Scan(Vec<Scanner>),
    /// Inserting threads.
    Inserts(Vec<inserts::Worker>),
}

impl Workload {
    /// Returns the command's name.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::Ycsb(_) => "ycsb",
            Workload::Tpcc(_) => "tpcc",
            Workload::Scan(_) => "scan",
            Workload::Inserts(_) => "inserts",
        }
    }

    /// Returns the kinds of work, by [`Done::class`].
    pub fn classes(&self) -> Vec<&'static str> {
        match self {
            Workload::Ycsb(_) => Operation::ALL.iter().map(|o| o.name()).collect(),
            Workload::Tpcc(_) => {
                Kind::ALL.iter().map(|k| k.name()).chain(["rolled-back"]).collect()
            }
            Workload::Scan(_) => vec!["order", "order_line"],
            Workload::Inserts(_) => vec!["row"],
        }
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> u32 {
        match self {
            Workload::Ycsb(config) => config.threads,
            Workload::Tpcc(config) | Workload::Scan(config) => config.threads,
            Workload::Inserts(config) => config.threads,
        }
    }

    /// Returns the workload for `threads` threads.
    pub fn with_threads(mut self, threads: u32) -> Workload {
        match &mut self {
            Workload::Ycsb(config) => config.threads = threads,
            Workload::Tpcc(config) | Workload::Scan(config) => config.threads = threads,
            Workload::Inserts(config) => config.threads = threads,
        }
        self
    }

    /// Returns the timing period: one step in this number is timed, so that the clock costs less
    /// than 2 % of a step.
    pub(crate) fn period(&self) -> u64 {
        match self {
            Workload::Ycsb(_) => 32,
            Workload::Tpcc(_) | Workload::Scan(_) | Workload::Inserts(_) => 1,
        }
    }

    /// Returns the approximate bytes of the loaded data in pages, for choosing a pool's size.
    pub fn bytes_loaded(&self, page_size: usize) -> u64 {
        match self {
            Workload::Ycsb(config) => {
                let (key, value) = (config.shape.key_len(), config.shape.value_len());
                if !Limits::of(page_size).fits_inline(key, value as u64) {
                    // Each value has its own pages, whose headers are small.
                    let pages = value.div_ceil(page_size - page_size / 32) * page_size;
                    return config.rows * (pages + 2 * (key + 40)) as u64;
                }
                let row = (key + value + 14) as u64;
                let fill_percent = if config.load_order == LoadOrder::Random { 66 } else { 95 };
                config.rows * row * 100 / fill_percent
            }
            Workload::Tpcc(config) | Workload::Scan(config) => {
                let scale = config.scale;
                let of_warehouse = u64::from(scale.items) * 450
                    + u64::from(scale.customers) * 10 * (950 + 12 * 90 + 110);
                u64::from(scale.warehouses) * of_warehouse + u64::from(scale.items) * 130
            }
            Workload::Inserts(config) => config.rows * INSERTED_BYTES,
        }
    }

    /// Returns the approximate bytes that `operations` operations add.
    pub fn bytes_added(&self, operations: u64) -> u64 {
        match self {
            Workload::Ycsb(config) if config.mix.insert == 0 => 0,
            Workload::Ycsb(config) => operations * (config.shape.value_len() as u64 + 30) * 3 / 2,
            Workload::Tpcc(_) => operations * 700,
            Workload::Scan(_) => 0,
            Workload::Inserts(config) => operations * config.rows_per_step() * INSERTED_BYTES,
        }
    }

    /// Returns the maximum operations per second of a thread, for choosing a pool's size.
    pub fn rate_max(&self) -> u64 {
        if cfg!(debug_assertions) {
            return 10_000;
        }
        match self {
            Workload::Ycsb(_) => 2_000_000,
            Workload::Tpcc(_) | Workload::Scan(_) => 80_000,
            Workload::Inserts(config) => 600_000 / config.rows_per_step(),
        }
    }

    /// Creates the tables and fills them; returns the number of rows.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn load<S: Store>(&self, store: &S, seed: Seed, threads: u32) -> Result<u64, BenchError> {
        match self {
            Workload::Ycsb(config) => {
                config.validate()?;
                let table = ycsb::create(store).map_err(DriveError::Store)?;
                in_parts(store, threads, |session, part, parts| {
                    ycsb::load(session, table, config, seed, part, parts)
                })
            }
            Workload::Tpcc(config) | Workload::Scan(config) => {
                config.validate()?;
                let tables = Tables::create(store)?;
                Ok(tpcc::load(store, &tables, &config.scale, seed, threads)?)
            }
            Workload::Inserts(config) => {
                let table = inserts::create(store).map_err(DriveError::Store)?;
                in_parts(store, threads, |session, part, parts| {
                    inserts::Worker::load(config, table, seed, part, parts, session)
                })
            }
        }
    }

    /// Returns the clients for a loaded store.
    ///
    /// # Errors
    /// A table is missing, or the configuration is impossible.
    pub fn clients<S: Store>(&self, store: &S, seed: Seed) -> Result<Clients, BenchError> {
        match self {
            Workload::Ycsb(config) => {
                let table = store.table(ycsb::TABLE).map_err(DriveError::Store)?;
                let no_table = DriveError::<S::Error>::NoTable { table: ycsb::TABLE };
                let table = table.ok_or(no_table)?;
                let worker = |thread| ycsb::Worker::new(config, table, seed, thread);
                let workers: Result<_, _> = (0..config.threads).map(worker).collect();
                Ok(Clients::Ycsb(workers?))
            }
            Workload::Tpcc(config) => {
                let tables = Tables::open(store)?;
                let worker = |thread| tpcc::Worker::new(config, tables, seed, thread);
                let workers: Result<_, _> = (0..config.threads).map(worker).collect();
                Ok(Clients::Tpcc(workers?))
            }
            Workload::Scan(config) => {
                let tables = Tables::open(store)?;
                let both = [tables.order, tables.order_line];
                let scanner = |thread: u32| {
                    let class = thread % 2;
                    Scanner::new(both[class as usize], class as u8)
                };
                Ok(Clients::Scan((0..config.threads).map(scanner).collect()))
            }
            Workload::Inserts(config) => {
                let table = store.table(inserts::TABLE).map_err(DriveError::Store)?;
                let no_table = DriveError::<S::Error>::NoTable { table: inserts::TABLE };
                let table = table.ok_or(no_table)?;
                let worker = |thread| inserts::Worker::new(config, table, seed, thread);
                Ok(Clients::Inserts((0..config.threads).map(worker).collect()))
            }
        }
    }
}

/// Approximate bytes of pages per row of [`Workload::Inserts`].
const INSERTED_BYTES: u64 = (inserts::KEY_LEN + inserts::VALUE_LEN + 14) as u64 * 3 / 2;

/// Loads rows with several threads, one part of the rows per thread.
fn in_parts<S: Store>(
    store: &S,
    threads: u32,
    part_of: impl Fn(&mut S::Session<'_>, u32, u32) -> Result<u64, DriveError<S::Error>> + Sync,
) -> Result<u64, BenchError> {
    let load = |part: u32| -> Result<u64, BenchError> {
        let mut session = store.session().map_err(DriveError::Store)?;
        Ok(part_of(&mut session, part, threads.max(1))?)
    };
    in_threads(threads, &load)
}

/// Loads each part in a thread of its own, except the first, and returns the total number of
/// rows. Compiled once for all stores.
fn in_threads(
    threads: u32,
    load: &(dyn Fn(u32) -> Result<u64, BenchError> + Sync),
) -> Result<u64, BenchError> {
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|part| scope.spawn(move || load(part))).collect();
        let mut rows = load(0);
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            rows = rows.and_then(|rows| Ok(rows + theirs?));
        }
        rows
    })
}
