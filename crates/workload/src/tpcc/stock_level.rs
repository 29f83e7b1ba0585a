//! StockLevel (clause 2.8): counts a district's recently ordered items that run low.

use super::access::read;
use super::draw::between;
use super::keys;
use super::layout::Layout;
use super::rows::{District, OrderLine, Stock};
use super::scale::ORDERS;
use super::worker::{Outcome, Worker};
use crate::live::{DriveError, Scan, Session};

/// The input of a StockLevel.
#[derive(Clone, Copy, Debug)]
pub(super) struct StockLevel {
    w: u32,
    d: u8,
    threshold: u16,
}

impl StockLevel {
    /// Draws the district too: even with affinity, a worker is no terminal with its own
    /// district.
    #[inline]
    pub(super) fn draw(worker: &mut Worker, w: u32) -> StockLevel {
        let d = worker.draw_district();
        StockLevel { w, d, threshold: between(&mut worker.random, 10, 20) as u16 }
    }
}

impl Worker {
    #[inline]
    pub(super) fn stock_level<S: Session>(
        &mut self,
        session: &mut S,
        input: &StockLevel,
    ) -> Result<Outcome, DriveError<S::Error>> {
        let StockLevel { w, d, threshold } = *input;
        let tables = self.tables;
        let key = keys::district(w, d);
        let next = read::<District, S, _>(session, tables.district, &key, |row| {
            District::NEXT_O_ID.get(row)
        })?;
        let start = keys::order_line(w, d, next.saturating_sub(ORDERS), 0);
        let end = keys::order_line(w, d, next, 0);
        let items = &mut self.items;
        items.clear();
        let mut wrong = None;
        session.scan(
            tables.order_line,
            Scan::up(&start, 10 * ORDERS).before(&end),
            |key, row| {
                if *key >= end[..] {
                    return false;
                }
                match OrderLine::view(row) {
                    Ok(row) => items.push(OrderLine::I_ID.get(row)),
                    Err(found) => wrong = Some(found),
                }
                wrong.is_none()
            },
        )?;
        if let Some(found) = wrong {
            let (table, expected) = (OrderLine::TABLE, OrderLine::LEN);
            return Err(DriveError::Length { table, found, expected });
        }
        items.sort_unstable();
        items.dedup();
        let mut low = 0u64;
        for item in items.iter() {
            let key = keys::stock(w, *item);
            low += read::<Stock, S, _>(session, tables.stock, &key, |row| {
                u64::from(Stock::QUANTITY.get(row) < threshold)
            })?;
        }
        self.show(low);
        Ok(Outcome::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{MemoryStore, Store};
    use crate::tpcc::{Config, Kind, Scale, Tables, load};
    use millpond_base::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn each_low_item_of_the_last_twenty_orders_counts_once() {
        let (store, scale) = (MemoryStore::new(), Scale { items: 100, ..Scale::tiny(2) });
        let tables = Tables::create(&store).unwrap();
        load(&store, &tables, &scale, Seed(1), 1).unwrap();
        let mut session = store.session().unwrap();
        let config = Config::standard(scale, 1);
        let mut worker = Worker::new(&config, tables, Seed(2), 0).unwrap();
        for _ in 0..300 {
            worker.run(Kind::NewOrder, &mut session).unwrap();
        }
        let mut counts = BTreeSet::new();
        for (w, d, threshold) in [(1, 1, 10), (1, 10, 20), (2, 5, 15), (2, 6, 40)] {
            let key = keys::district(w, d);
            let next =
                session.get(tables.district, &key, |row| District::NEXT_O_ID.get(row)).unwrap();
            let mut items = BTreeSet::new();
            let mut lines = 0;
            session
                .scan(tables.order_line, Scan::whole(), |key, row| {
                    let is_recent = keys::number_at(key, 5) + ORDERS >= next.unwrap();
                    if keys::district_of(key) == (w, d) && is_recent {
                        items.insert(OrderLine::I_ID.get(row));
                        lines += 1;
                    }
                    true
                })
                .unwrap();
            assert!(items.len() < lines, "no item came twice: the test shows nothing");
            let is_low = |item: &&u32| {
                let key = keys::stock(w, **item);
                let found = session.get(tables.stock, &key, |row| Stock::QUANTITY.get(row));
                found.unwrap().unwrap() < threshold
            };
            let low = items.iter().filter(is_low).count() as u64;
            counts.insert(low);
            let mut fresh = Worker::new(&config, tables, Seed(2), 0).unwrap();
            fresh.stock_level(&mut session, &StockLevel { w, d, threshold }).unwrap();
            let mut expected = Worker::new(&config, tables, Seed(2), 0).unwrap();
            expected.show(low);
            assert_eq!(fresh.digest(), expected.digest(), "{w}/{d} below {threshold}: {low}");
        }
        assert!(counts.len() > 1, "{counts:?}");
    }
}
