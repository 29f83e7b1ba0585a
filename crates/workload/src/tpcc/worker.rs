//! One thread of a TPC-C run.

use memchr::memmem::Finder;
use millpond_base::Seed;

use super::delivery::Delivery;
use super::draw::{Constants, ORIGINAL, Picker, between};
use super::load::LOADED_AT;
use super::mix::{Kind, Mix};
use super::new_order::{LINES_MAX, NewOrder};
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::scale::{DISTRICTS, Scale, ScaleError};
use super::stock_level::{ORDERS, StockLevel};
use super::tables::Tables;
use crate::generate::Random;
use crate::live::{Access, DriveError, Session};

/// The number of rollbacks after which a step gives up and reports the store's error.
const RETRIES_MAX: u32 = 10_000;

/// A TPC-C run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// How much data was loaded.
    pub scale: Scale,
    /// Shares of the transactions.
    pub mix: Mix,
    /// Whether each worker keeps to one home warehouse (leanstore table I) instead of drawing one
    /// for every transaction. Remote payments and remote stock remain.
    pub has_affinity: bool,
    /// Payments by customers of another warehouse, in per cent; 15 (clause 2.5.1.2).
    pub remote_payments: u8,
    /// Order lines that another warehouse supplies, in per cent; 1 (clause 2.4.1.5).
    pub remote_lines: u8,
    /// Workers that run at the same time. With 1, what is needed only against concurrent
    /// transactions is left out.
    pub threads: u32,
}

impl Config {
    /// The specification's run.
    pub fn standard(scale: Scale, threads: u32) -> Config {
        Config {
            scale,
            mix: Mix::STANDARD,
            has_affinity: false,
            remote_payments: 15,
            remote_lines: 1,
            threads,
        }
    }

    /// Whether the run can be done.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.scale.validate()?;
        if self.mix.borders()[4] == 0 {
            return Err(ConfigError::NoTransactions);
        }
        if self.threads == 0 {
            return Err(ConfigError::NoThreads);
        }
        Ok(())
    }
}

/// Why a run cannot be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nothing to run on.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// All shares are 0.
    #[error("the mix has no transactions")]
    NoTransactions,
    /// No workers.
    #[error("a run needs at least one thread")]
    NoThreads,
    /// A worker's number is that of a loader.
    #[error("worker number {thread}: numbers go to 2^31 - 1")]
    Thread {
        /// The number.
        thread: u32,
    },
}

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which transaction it was.
    pub kind: Kind,
    /// Whether it ended in the rollback that the specification asks of 1 % of the NewOrders.
    pub rolled_back: bool,
    /// Districts in which a Delivery delivered nothing.
    pub skipped: u8,
    /// How often it was rolled back and done again because the store said so.
    pub retries: u32,
}

/// What a transaction has to say of itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Outcome {
    pub(super) rolled_back: bool,
    pub(super) skipped: u8,
}

/// One thread's transactions: draws their inputs, runs them, allocates nothing.
///
/// **Time is logical.** Where the specification stores the date, a worker stores the number of
/// its transaction: equal seeds then leave equal stores behind, byte by byte, on every engine,
/// and no clock is read.
///
/// **The digest** ([`Worker::digest`]) takes in what a terminal would be shown. It keeps the reads
/// from being optimised away, and shows whether two engines returned the same results to one
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
    borders: [u64; 5],
    home: Option<u32>,
    pub(super) thread: u32,
    /// The current transaction's logical time.
    pub(super) now: u64,
    /// The number of this worker's next history row, once it is known.
    pub(super) next_history: Option<u64>,
    /// Finds [`ORIGINAL`] in item and stock data.
    pub(super) original: Finder<'static>,
    /// Customers that share a last name.
    pub(super) customers: Vec<u32>,
    /// Items of recent orders.
    pub(super) items: Vec<u32>,
    digest: u64,
}

impl Worker {
    /// Worker number `thread` (from 0) of the run. All workers of a run have the same seed and
    /// different numbers; they then draw different streams.
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

    /// A number that follows from everything that the transactions read for their terminals.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Draws one transaction and runs it.
    #[inline]
    pub fn step<S: Session>(&mut self, session: &mut S) -> Result<Step, DriveError<S::Error>> {
        let dice = self.random.below(self.borders[4]);
        let at = self.borders.iter().take_while(|border| **border <= dice).count();
        self.run(Kind::ALL[at.min(4)], session)
    }

    /// Runs a transaction of the given kind.
    #[inline]
    pub fn run<S: Session>(
        &mut self,
        kind: Kind,
        session: &mut S,
    ) -> Result<Step, DriveError<S::Error>> {
        self.now += 1;
        let w = match self.home {
            Some(home) => home,
            None => between(&mut self.random, 1, u64::from(self.scale.warehouses)) as u32,
        };
        match kind {
            Kind::NewOrder => {
                let input = NewOrder::draw(self, w);
                self.attempt(session, kind, |me, session| me.new_order(session, &input))
            }
            Kind::Payment => {
                let input = Payment::draw(self, w);
                self.attempt(session, kind, |me, session| me.payment(session, &input))
            }
            Kind::OrderStatus => {
                let input = OrderStatus::draw(self, w);
                self.attempt(session, kind, |me, session| me.order_status(session, &input))
            }
            Kind::Delivery => {
                let input = Delivery::draw(self, w);
                self.attempt(session, kind, |me, session| me.delivery(session, &input))
            }
            Kind::StockLevel => {
                let input = StockLevel::draw(self, w);
                self.attempt(session, kind, |me, session| me.stock_level(session, &input))
            }
        }
    }

    /// Runs `body` in a transaction, again as long as the store asks for it.
    #[inline]
    fn attempt<S: Session>(
        &mut self,
        session: &mut S,
        kind: Kind,
        mut body: impl FnMut(&mut Worker, &mut S) -> Result<Outcome, DriveError<S::Error>>,
    ) -> Result<Step, DriveError<S::Error>> {
        let access = match kind {
            Kind::OrderStatus | Kind::StockLevel => Access::Read,
            Kind::NewOrder | Kind::Payment | Kind::Delivery => Access::Write,
        };
        let mut retries = 0;
        loop {
            match self.once(session, access, &mut body) {
                Ok(Outcome { rolled_back, skipped }) => {
                    return Ok(Step { kind, rolled_back, skipped, retries });
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
    fn once<S: Session>(
        &mut self,
        session: &mut S,
        access: Access,
        body: &mut impl FnMut(&mut Worker, &mut S) -> Result<Outcome, DriveError<S::Error>>,
    ) -> Result<Outcome, DriveError<S::Error>> {
        session.begin(access)?;
        let shown = self.digest;
        let ended = body(self, session).and_then(|outcome| {
            match outcome.rolled_back {
                true => session.rollback()?,
                false => session.commit()?,
            }
            Ok(outcome)
        });
        if !matches!(ended, Ok(Outcome { rolled_back: false, .. })) {
            // What came to nothing was not shown.
            self.digest = shown;
        }
        ended
    }

    /// A random district.
    #[inline]
    pub(super) fn draw_district(&mut self) -> u8 {
        between(&mut self.random, 1, u64::from(DISTRICTS)) as u8
    }

    /// A warehouse other than `w`, or `w` if there is no other.
    #[inline]
    pub(super) fn draw_other(&mut self, w: u32) -> u32 {
        let others = u64::from(self.scale.warehouses) - 1;
        if others == 0 {
            return w;
        }
        let drawn = between(&mut self.random, 1, others) as u32;
        drawn + u32::from(drawn >= w)
    }

    /// True in `percent` of 100 draws.
    #[inline]
    pub(super) fn is_among(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    /// Takes something that was read into the digest.
    #[inline(always)]
    pub(super) fn show(&mut self, value: u64) {
        self.digest = (self.digest.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
