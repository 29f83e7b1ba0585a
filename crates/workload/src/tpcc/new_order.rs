//! NewOrder (clause 2.4): a customer orders 5 to 15 items.
//!
//! One order in a hundred ends with an item that does not exist, and is rolled back. All items
//! are read before anything is written, so the rollback needs no undo. If the store has undo
//! ([`Session::undoes`]), the order is entered up to that item and rolled back as a whole.
//!
//! Without isolation, others must not find half an order. So an order is inserted from the inside
//! out: lines, order, index, and last the new-order row, from which Delivery starts.

use super::access::{add, change, find, read};
use super::draw::between;
use super::keys;
use super::layout::Layout;
use super::rows::{self, Customer, District, Item, OrderCustomer, OrderLine, Stock, Warehouse};
use super::scale::LINES_MAX;
use super::worker::{Outcome, Worker};
use crate::live::{DriveError, Session};

/// One item of an order: its supplier and its quantity.
#[derive(Clone, Copy, Default, Debug)]
struct Line {
    item: u32,
    supplier: u32,
    quantity: u8,
}

/// The input of a NewOrder.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewOrder {
    w: u32,
    d: u8,
    c: u32,
    lines: [Line; LINES_MAX],
    count: usize,
    is_local: bool,
}

impl NewOrder {
    #[inline]
    pub(super) fn draw(worker: &mut Worker, w: u32) -> NewOrder {
        let d = worker.draw_district();
        let c = worker.picker.customer(&mut worker.random);
        let count = between(&mut worker.random, 5, LINES_MAX as u64) as usize;
        let mut lines = [Line::default(); LINES_MAX];
        let mut is_local = true;
        for line in &mut lines[..count] {
            line.item = worker.picker.item(&mut worker.random);
            line.quantity = between(&mut worker.random, 1, 10) as u8;
            let is_remote = worker.is_among(worker.remote_lines);
            line.supplier = if is_remote { worker.draw_other(w) } else { w };
            is_local &= line.supplier == w;
        }
        if worker.is_among(1) {
            lines[count - 1].item = worker.scale.items + 1;
        }
        NewOrder { w, d, c, lines, count, is_local }
    }
}

impl Worker {
    #[inline]
    pub(super) fn new_order<S: Session>(
        &mut self,
        session: &mut S,
        input: &NewOrder,
    ) -> Result<Outcome, DriveError<S::Error>> {
        let NewOrder { w, d, c, count, .. } = *input;
        let tables = self.tables;
        let mut known = count;
        let w_tax =
            read::<Warehouse, S, _>(session, tables.warehouse, &keys::warehouse(w), |row| {
                Warehouse::TAX.get(row)
            })?;
        let key = keys::customer(w, d, c);
        let (discount, shown) = read::<Customer, S, _>(session, tables.customer, &key, |row| {
            (Customer::DISCOUNT.get(row), name_word(row))
        })?;
        let mut prices = [(0u32, false); LINES_MAX];
        for (at, (line, price)) in input.lines[..count].iter().zip(&mut prices).enumerate() {
            let original = &self.original;
            let found = find::<Item, S, _>(session, tables.item, &keys::item(line.item), |row| {
                (Item::PRICE.get(row), original.find(Item::DATA.get(row)).is_some())
            })?;
            match found {
                Some(found) => *price = found,
                None if session.undoes() => {
                    known = at;
                    break;
                }
                None => return Ok(Outcome { rolled_back: true, skipped: 0 }),
            }
        }
        let key = keys::district(w, d);
        let (d_tax, o) = change::<District, S, _>(session, tables.district, &key, |row| {
            let next = District::NEXT_O_ID.add(row, 1);
            (District::TAX.get(row), next.wrapping_sub(1))
        })?;
        if known < count {
            self.order_lines(session, &NewOrder { count: known, ..*input }, o, &prices)?;
            return Ok(Outcome { rolled_back: true, skipped: 0 });
        }
        let total = self.order_lines(session, input, o, &prices)?;
        self.insert_order(session, input, o)?;
        // Cents × (1 − discount) × (1 + taxes), the rates in 1/10,000.
        let net = total * (10_000 - u64::from(discount));
        let gross = net * (10_000 + u64::from(w_tax) + u64::from(d_tax)) / 100_000_000;
        self.show(gross ^ shown);
        self.show(u64::from(o));
        Ok(Outcome::default())
    }

    /// Takes the items from stock and inserts the lines; returns the sum of their amounts.
    #[inline]
    fn order_lines<S: Session>(
        &mut self,
        session: &mut S,
        input: &NewOrder,
        o: u32,
        prices: &[(u32, bool); LINES_MAX],
    ) -> Result<u64, DriveError<S::Error>> {
        let NewOrder { w, d, count, .. } = *input;
        let mut total = 0u64;
        let mut row = [0; OrderLine::LEN];
        for (at, (line, (price, is_original))) in
            input.lines[..count].iter().zip(prices).enumerate()
        {
            let key = keys::stock(line.supplier, line.item);
            let (is_remote, original) = (line.supplier != w, &self.original);
            let (dist, quantity, is_brand) =
                change::<Stock, S, _>(session, self.tables.stock, &key, |row| {
                    let quantity = take(row, line.quantity, is_remote);
                    // A brand is original only if both texts contain the word.
                    let is_brand = *is_original && original.find(Stock::DATA.get(row)).is_some();
                    (Stock::dist(row, d), quantity, is_brand)
                })?;
            let amount = price * u32::from(line.quantity);
            total += u64::from(amount);
            OrderLine::I_ID.set(&mut row, line.item);
            OrderLine::SUPPLY_W_ID.set(&mut row, line.supplier);
            OrderLine::DELIVERY_D.set(&mut row, 0);
            OrderLine::AMOUNT.set(&mut row, amount);
            OrderLine::QUANTITY.set(&mut row, line.quantity);
            OrderLine::DIST_INFO.set(&mut row, &dist);
            let key = keys::order_line(w, d, o, at as u8 + 1);
            add::<OrderLine, S>(session, self.tables.order_line, &key, &row)?;
            self.show(u64::from(quantity) << 1 | u64::from(is_brand));
        }
        Ok(total)
    }

    #[inline]
    fn insert_order<S: Session>(
        &mut self,
        session: &mut S,
        input: &NewOrder,
        o: u32,
    ) -> Result<(), DriveError<S::Error>> {
        let NewOrder { w, d, c, count, is_local, .. } = *input;
        let tables = self.tables;
        let mut row = [0; rows::Order::LEN];
        rows::Order::C_ID.set(&mut row, c);
        rows::Order::ENTRY_D.set(&mut row, self.now);
        rows::Order::OL_CNT.set(&mut row, count as u8);
        rows::Order::ALL_LOCAL.set(&mut row, u8::from(is_local));
        let key = keys::order(w, d, o);
        add::<rows::Order, S>(session, tables.order, &key, &row)?;
        let by_customer = keys::order_customer(w, d, c, o);
        add::<OrderCustomer, S>(session, tables.order_customer, &by_customer, &[])?;
        add::<rows::NewOrder, S>(session, tables.new_order, &key, &[])
    }
}

/// Takes `quantity` pieces from a stock row, which is refilled when it runs low (clause 2.4.2.2);
/// returns the remaining quantity.
#[inline]
fn take(row: &mut [u8], quantity: u8, is_remote: bool) -> u16 {
    let (have, quantity) = (Stock::QUANTITY.get(row), u16::from(quantity));
    let left =
        if have >= quantity + 10 { have - quantity } else { (have + 91).saturating_sub(quantity) };
    Stock::QUANTITY.set(row, left);
    Stock::YTD.add(row, u32::from(quantity));
    Stock::ORDER_CNT.add(row, 1);
    if is_remote {
        Stock::REMOTE_CNT.add(row, 1);
    }
    left
}

/// Returns eight bytes that represent a customer's last name and credit, which the terminal
/// shows.
#[inline]
pub(super) fn name_word(row: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&Customer::LAST.get(row)[..6]);
    word[6..].copy_from_slice(Customer::CREDIT.get(row));
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_refilled_below_ten_left() {
        let mut row = [0; Stock::LEN];
        Stock::QUANTITY.set(&mut row, 20);
        assert_eq!(take(&mut row, 10, false), 10);
        assert_eq!(take(&mut row, 1, true), 100);
        assert_eq!(take(&mut row, 5, false), 95);
        assert_eq!(Stock::YTD.get(&row), 16);
        assert_eq!((Stock::ORDER_CNT.get(&row), Stock::REMOTE_CNT.get(&row)), (3, 1));
    }
}
