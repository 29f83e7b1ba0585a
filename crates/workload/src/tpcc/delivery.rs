//! Delivery (clause 2.7): the oldest new order of each of a warehouse's districts.
//!
//! Without isolation, two cases need care. Of two workers that find the same order, the one
//! whose `remove` returns true delivers it. And an order must not be delivered while an older
//! one of its district is still being inserted. The older order would remain behind a hole in
//! the queue, which consistency condition 3 forbids. So an order is delivered only if the one
//! before it has been, which by induction means all before it. Otherwise the district is
//! skipped, as the clause allows.

use super::access::{change, find};
use super::draw::between;
use super::keys;
use super::rows::{Customer, Order, OrderLine};
use super::scale::DISTRICTS;
use super::worker::{Outcome, Worker};
use crate::live::{DriveError, Scan, Session};

/// The input of a Delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    w: u32,
    carrier: u8,
}

impl Delivery {
    #[inline]
    pub(super) fn draw(worker: &mut Worker, w: u32) -> Delivery {
        Delivery { w, carrier: between(&mut worker.random, 1, 10) as u8 }
    }
}

impl Worker {
    #[inline]
    pub(super) fn delivery<S: Session>(
        &mut self,
        session: &mut S,
        input: &Delivery,
    ) -> Result<Outcome, DriveError<S::Error>> {
        let mut skipped = 0;
        for d in 1..=DISTRICTS {
            match self.claim(session, input.w, d)? {
                Some(o) => self.deliver(session, input, d, o)?,
                None => skipped += 1,
            }
        }
        self.show(u64::from(skipped));
        Ok(Outcome { rolled_back: false, skipped })
    }

    /// Takes the oldest new order of a district out of the queue.
    #[inline]
    fn claim<S: Session>(
        &mut self,
        session: &mut S,
        w: u32,
        d: u8,
    ) -> Result<Option<u32>, DriveError<S::Error>> {
        let tables = self.tables;
        let start = keys::order(w, d, 0);
        let mut oldest = None;
        session.scan(tables.new_order, Scan::up(&start, 1), |key, _| {
            if key.starts_with(&start[..5]) {
                oldest = Some(keys::last_number(key));
            }
            false
        })?;
        let Some(o) = oldest else { return Ok(None) };
        if !self.is_alone && !session.is_isolated() && o > 1 {
            let before = keys::order(w, d, o - 1);
            let carrier = find::<Order, S, _>(session, tables.order, &before, |row| {
                Order::CARRIER_ID.get(row)
            })?;
            if matches!(carrier, None | Some(0)) {
                return Ok(None);
            }
        }
        let is_ours = session.remove(tables.new_order, &keys::order(w, d, o))?;
        Ok(is_ours.then_some(o))
    }

    #[inline]
    fn deliver<S: Session>(
        &mut self,
        session: &mut S,
        input: &Delivery,
        d: u8,
        o: u32,
    ) -> Result<(), DriveError<S::Error>> {
        let Delivery { w, carrier } = *input;
        let (tables, now) = (self.tables, self.now);
        let key = keys::order(w, d, o);
        let (c, lines) = change::<Order, S, _>(session, tables.order, &key, |row| {
            Order::CARRIER_ID.set(row, carrier);
            (Order::C_ID.get(row), Order::OL_CNT.get(row))
        })?;
        let mut total = 0i64;
        for line in 1..=lines {
            let key = keys::order_line(w, d, o, line);
            total += change::<OrderLine, S, _>(session, tables.order_line, &key, |row| {
                OrderLine::DELIVERY_D.set(row, now);
                i64::from(OrderLine::AMOUNT.get(row))
            })?;
        }
        let key = keys::customer(w, d, c);
        change::<Customer, S, _>(session, tables.customer, &key, |row| {
            Customer::BALANCE.add(row, total);
            Customer::DELIVERY_CNT.add(row, 1);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{MemoryStore, Store};
    use crate::tpcc::{Config, Scale, Tables, load};
    use millpond_base::Seed;

    #[test]
    fn an_order_waits_while_the_one_before_it_is_on_its_way_in() {
        let (store, scale) = (MemoryStore::new(), Scale::tiny(1));
        let tables = Tables::create(&store).unwrap();
        load(&store, &tables, &scale, Seed(1), 1).unwrap();
        let mut session = store.session().unwrap();
        let worker = |threads| {
            let config = Config::standard(scale, threads);
            Worker::new(&config, tables, Seed(2), 0).unwrap()
        };
        let (mut alone, mut one_of_two) = (worker(1), worker(2));
        let oldest = scale.delivered() + 1;
        // The order before the oldest new one is written, but not in the queue yet.
        let before = keys::order(1, 4, oldest - 1);
        session.update(tables.order, &before, |row| Order::CARRIER_ID.set(row, 0)).unwrap();
        assert_eq!(one_of_two.claim(&mut session, 1, 4).unwrap(), None);
        // No row of that order is written yet.
        session.remove(tables.order, &before).unwrap();
        assert_eq!(one_of_two.claim(&mut session, 1, 4).unwrap(), None);
        let input = Delivery { w: 1, carrier: 3 };
        assert_eq!(one_of_two.delivery(&mut session, &input).unwrap().skipped, 1);
        // A single worker need not check, and other districts are not affected.
        assert_eq!(alone.claim(&mut session, 1, 4).unwrap(), Some(oldest));
        assert_eq!(one_of_two.claim(&mut session, 1, 5).unwrap(), Some(oldest + 1));
        // An order belongs to the worker that removed it.
        assert_eq!(alone.claim(&mut session, 1, 4).unwrap(), Some(oldest + 1));
    }
}
