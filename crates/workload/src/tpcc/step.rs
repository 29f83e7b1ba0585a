//! One step of a worker: draws a transaction, and repeats it while the store asks for that.

use super::delivery::Delivery;
use super::draw::between;
use super::mix::Kind;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::stock_level::StockLevel;
use super::worker::{Outcome, Worker};
use crate::live::{Access, DriveError, Session};

/// Number of rollbacks after which a step gives up and reports the store's error.
const RETRIES_MAX: u32 = 10_000;

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Kind of the transaction.
    pub kind: Kind,
    /// `true` if the transaction ended in the rollback that the specification requires for 1 % of
    /// the NewOrders.
    pub rolled_back: bool,
    /// Number of districts in which a Delivery delivered nothing.
    pub skipped: u8,
    /// Number of times the transaction was rolled back and repeated because the store asked for it.
    pub retries: u32,
}

impl Worker {
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

    /// Runs `body` in a transaction, and repeats it while the store asks for that.
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
            // A rolled-back attempt shows nothing, so its reads leave the digest.
            self.digest = shown;
        }
        ended
    }
}
