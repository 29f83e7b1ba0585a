//! One thread of a TPC-C run.

use memchr::memmem::Finder;
use millpond_base::Seed;

use super::config::{Config, ConfigError};
use super::draw::{Constants, ORIGINAL, Picker, between};
use super::load::LOADED_AT;
use super::scale::{DISTRICTS, LINES_MAX, ORDERS, Scale};
use super::tables::Tables;
use crate::generate::Random;

/// The outcome of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Outcome {
    pub(super) rolled_back: bool,
    pub(super) skipped: u8,
}

/// One thread's transactions. A worker draws their inputs and runs them without allocating.
///
/// **Time is logical.** Where the specification stores the date, a worker stores the number of its
/// transaction. Equal seeds then produce equal stores, byte by byte, on every engine, and no clock
/// is read.
///
/// **The digest** ([`Worker::digest`]) covers the data that a terminal would show. It keeps the
/// compiler from removing the reads, and differs if two engines return different results to one
/// worker, alone on its store.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(super) tables: Tables,
    pub(super) scale: Scale,
    pub(super) picker: Picker,
    pub(super) random: Random,
    pub(super) remote_payments: u64,
    pub(super) remote_lines: u64,
    pub(super) is_alone: bool,
    pub(super) borders: [u64; 5],
    pub(super) home: Option<u32>,
    pub(super) thread: u32,
    /// Logical time of the current transaction.
    pub(super) now: u64,
    /// Number of this worker's next history row, once known.
    pub(super) next_history: Option<u64>,
    /// Finds [`ORIGINAL`] in item and stock data.
    pub(super) original: Finder<'static>,
    /// Customers that share a last name.
    pub(super) customers: Vec<u32>,
    /// Items of recent orders.
    pub(super) items: Vec<u32>,
    pub(super) digest: u64,
}

impl Worker {
    /// Creates worker number `thread` (from 0) of the run. All workers of a run have the same seed
    /// and different numbers, and so draw different streams.
    pub fn new(
        config: &Config,
        tables: Tables,
        seed: Seed,
        thread: u32,
    ) -> Result<Worker, ConfigError> {
        config.validate()?;
        if thread >= 1 << 31 {
            return Err(ConfigError::Thread { thread });
        }
        let Config { scale, .. } = *config;
        Ok(Worker {
            tables,
            scale,
            picker: Picker::new(Constants::running(seed), scale.customers, scale.items),
            random: Random::new(seed.derive(&format!("tpcc worker {thread}"))),
            remote_payments: u64::from(config.remote_payments),
            remote_lines: u64::from(config.remote_lines),
            is_alone: config.threads == 1,
            borders: config.mix.borders(),
            home: config.has_affinity.then_some(thread % scale.warehouses + 1),
            thread,
            now: LOADED_AT,
            next_history: None,
            original: Finder::new(ORIGINAL),
            customers: Vec::with_capacity(scale.customers as usize),
            items: Vec::with_capacity(ORDERS as usize * LINES_MAX),
            digest: 0,
        })
    }

    /// Returns a digest of everything that the transactions read for their terminals.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Draws a district.
    #[inline]
    pub(super) fn draw_district(&mut self) -> u8 {
        between(&mut self.random, 1, u64::from(DISTRICTS)) as u8
    }

    /// Draws a warehouse other than `w`, or `w` if there is no other.
    #[inline]
    pub(super) fn draw_other(&mut self, w: u32) -> u32 {
        let others = u64::from(self.scale.warehouses) - 1;
        if others == 0 {
            return w;
        }
        let drawn = between(&mut self.random, 1, others) as u32;
        drawn + u32::from(drawn >= w)
    }

    /// Returns `true` in `percent` of 100 draws.
    #[inline]
    pub(super) fn is_among(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    /// Adds a read value to the digest.
    #[inline(always)]
    pub(super) fn show(&mut self, value: u64) {
        self.digest = (self.digest.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
