//! OrderStatus (clause 2.6): a customer's last order and its lines.

use super::access::{missing, read};
use super::customer::Named;
use super::keys;
use super::layout::Layout;
use super::new_order::name_word;
use super::rows::{Customer, Order, OrderCustomer, OrderLine};
use super::worker::{Outcome, Worker};
use crate::live::{DriveError, Scan, Session};

/// The input of an OrderStatus.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderStatus {
    w: u32,
    d: u8,
    named: Named,
}

impl OrderStatus {
    #[inline]
    pub(super) fn draw(worker: &mut Worker, w: u32) -> OrderStatus {
        OrderStatus { w, d: worker.draw_district(), named: Named::draw(worker) }
    }
}

impl Worker {
    #[inline]
    pub(super) fn order_status<S: Session>(
        &mut self,
        session: &mut S,
        input: &OrderStatus,
    ) -> Result<Outcome, DriveError<S::Error>> {
        let OrderStatus { w, d, .. } = *input;
        let tables = self.tables;
        let c = self.customer(session, w, d, &input.named)?;
        let key = keys::customer(w, d, c);
        let (balance, shown) = read::<Customer, S, _>(session, tables.customer, &key, |row| {
            (Customer::BALANCE.get(row), name_word(row))
        })?;
        self.show(balance as u64 ^ shown);
        let o = self.last_order(session, w, d, c)?;
        let key = keys::order(w, d, o);
        let (entered, carrier) = read::<Order, S, _>(session, tables.order, &key, |row| {
            (Order::ENTRY_D.get(row), Order::CARRIER_ID.get(row))
        })?;
        self.show(entered << 8 | u64::from(carrier));
        let (start, end) = (keys::order_line(w, d, o, 0), keys::order_line(w, d, o, u8::MAX));
        let mut lines = 0u64;
        let mut wrong = None;
        session.scan(tables.order_line, Scan::up(&start, 10).before(&end), |key, row| {
            if !key.starts_with(&start[..9]) {
                return false;
            }
            match OrderLine::view(row) {
                Ok(row) => {
                    let item = u64::from(OrderLine::I_ID.get(row));
                    let supplier = u64::from(OrderLine::SUPPLY_W_ID.get(row));
                    let amount = u64::from(OrderLine::AMOUNT.get(row));
                    let quantity = u64::from(OrderLine::QUANTITY.get(row));
                    let shown = (item << 32 | supplier) ^ (amount << 8 | quantity);
                    lines = lines.rotate_left(7) ^ shown ^ OrderLine::DELIVERY_D.get(row);
                }
                Err(found) => wrong = Some(found),
            }
            wrong.is_none()
        })?;
        if let Some(found) = wrong {
            let (table, expected) = (OrderLine::TABLE, OrderLine::LEN);
            return Err(DriveError::Length { table, found, expected });
        }
        self.show(lines);
        Ok(Outcome::default())
    }

    /// Returns the number of a customer's last order; each customer has one from the
    /// start.
    #[inline]
    fn last_order<S: Session>(
        &mut self,
        session: &mut S,
        w: u32,
        d: u8,
        c: u32,
    ) -> Result<u32, DriveError<S::Error>> {
        let end = keys::order_customer(w, d, c, u32::MAX);
        let mut last = None;
        session.scan(self.tables.order_customer, Scan::down(&end, 1), |key, _| {
            if key.starts_with(&end[..9]) {
                last = Some(keys::last_number(key));
            }
            false
        })?;
        last.ok_or_else(|| missing::<OrderCustomer, S>(&end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{MemoryStore, Store};
    use crate::tpcc::{Config, Kind, Mix, Scale, Tables, load};
    use millpond_base::Seed;

    #[test]
    fn the_last_order_of_the_customer_is_found() {
        let (store, scale) = (MemoryStore::new(), Scale::tiny(1));
        let tables = Tables::create(&store).unwrap();
        load(&store, &tables, &scale, Seed(1), 1).unwrap();
        let mut session = store.session().unwrap();
        let config = Config { mix: Mix::only(Kind::NewOrder), ..Config::standard(scale, 1) };
        let mut worker = Worker::new(&config, tables, Seed(2), 0).unwrap();
        for _ in 0..500 {
            worker.step(&mut session).unwrap();
        }
        let mut orders = Vec::new();
        session
            .scan(tables.order, Scan::whole(), |key, row| {
                let customer = (keys::district_of(key), Order::C_ID.get(row));
                orders.push((customer, keys::last_number(key)));
                true
            })
            .unwrap();
        for d in 1..=10 {
            for c in 1..=scale.customers {
                let own = orders.iter().filter(|order| order.0 == ((1, d), c));
                let last = own.map(|order| order.1).max().unwrap();
                assert_eq!(worker.last_order(&mut session, 1, d, c).unwrap(), last);
            }
        }
        let nobody = worker.last_order(&mut session, 1, 1, scale.customers + 1);
        assert!(matches!(nobody, Err(DriveError::Missing { table: "order_customer", .. })));
    }

    #[test]
    fn everything_that_the_terminal_shows_is_in_the_digest() {
        let (store, scale) = (MemoryStore::new(), Scale::tiny(1));
        let tables = Tables::create(&store).unwrap();
        load(&store, &tables, &scale, Seed(1), 1).unwrap();
        let mut session = store.session().unwrap();
        let input = OrderStatus { w: 1, d: 4, named: Named::Number(3) };
        let digest = || {
            let config = Config::standard(scale, 1);
            let mut worker = Worker::new(&config, tables, Seed(2), 0).unwrap();
            let mut session = store.session().unwrap();
            worker.order_status(&mut session, &input).unwrap();
            (worker.digest(), worker.last_order(&mut session, 1, 4, 3).unwrap())
        };
        let (before, o) = digest();
        assert_eq!(digest().0, before);
        let line = keys::order_line(1, 4, o, 5);
        let mut seen = vec![before];
        session.update(tables.order_line, &line, |row| OrderLine::QUANTITY.set(row, 6)).unwrap();
        seen.push(digest().0);
        let key = keys::customer(1, 4, 3);
        session.update(tables.customer, &key, |row| Customer::BALANCE.set(row, 1)).unwrap();
        seen.push(digest().0);
        let key = keys::order(1, 4, o);
        session.update(tables.order, &key, |row| Order::CARRIER_ID.set(row, 99)).unwrap();
        seen.push(digest().0);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4);
    }
}
