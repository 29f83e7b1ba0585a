//! Payment (clause 2.5): a customer pays; warehouse and district count the money.

use super::access::{add, change};
use super::customer::Named;
use super::draw::between;
use super::keys;
use super::layout::Layout;
use super::new_order::name_word;
use super::rows::{Customer, District, History, Warehouse};
use super::worker::{Outcome, Worker};
use crate::live::{DriveError, Scan, Session};

/// The input of a Payment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payment {
    w: u32,
    d: u8,
    /// The customer's own warehouse and district.
    c_w: u32,
    c_d: u8,
    named: Named,
    /// Cents.
    amount: u32,
}

impl Payment {
    #[inline]
    pub(super) fn draw(worker: &mut Worker, w: u32) -> Payment {
        let d = worker.draw_district();
        let is_remote = worker.scale.warehouses > 1 && worker.is_among(worker.remote_payments);
        let (c_w, c_d) =
            if is_remote { (worker.draw_other(w), worker.draw_district()) } else { (w, d) };
        let amount = between(&mut worker.random, 100, 500_000) as u32;
        Payment { w, d, c_w, c_d, named: Named::draw(worker), amount }
    }
}

impl Worker {
    #[inline]
    pub(super) fn payment<S: Session>(
        &mut self,
        session: &mut S,
        input: &Payment,
    ) -> Result<Outcome, DriveError<S::Error>> {
        let Payment { w, d, c_w, c_d, amount, .. } = *input;
        let tables = self.tables;
        let money = i64::from(amount);
        // Both names with four spaces between them.
        let mut data = [b' '; 24];
        let key = keys::warehouse(w);
        change::<Warehouse, S, _>(session, tables.warehouse, &key, |row| {
            Warehouse::YTD.add(row, money);
            data[..10].copy_from_slice(Warehouse::NAME.get(row));
        })?;
        let key = keys::district(w, d);
        change::<District, S, _>(session, tables.district, &key, |row| {
            District::YTD.add(row, money);
            data[14..].copy_from_slice(District::NAME.get(row));
        })?;
        let c = self.customer(session, c_w, c_d, &input.named)?;
        let key = keys::customer(c_w, c_d, c);
        let (balance, shown) = change::<Customer, S, _>(session, tables.customer, &key, |row| {
            let balance = Customer::BALANCE.add(row, -money);
            Customer::YTD_PAYMENT.add(row, money);
            Customer::PAYMENT_CNT.add(row, 1);
            if Customer::CREDIT.get(row) == b"BC" {
                note_payment(Customer::DATA.get_mut(row), input, c);
            }
            (balance, name_word(row))
        })?;
        let n = self.history_number(session)?;
        let mut row = [0; History::LEN];
        History::C_ID.set(&mut row, c);
        History::C_D_ID.set(&mut row, c_d);
        History::C_W_ID.set(&mut row, c_w);
        History::D_ID.set(&mut row, d);
        History::W_ID.set(&mut row, w);
        History::DATE.set(&mut row, self.now);
        History::AMOUNT.set(&mut row, amount);
        History::DATA.set(&mut row, &data);
        add::<History, S>(session, tables.history, &keys::history(self.thread, n), &row)?;
        self.next_history = Some(n + 1);
        self.show(balance as u64 ^ shown);
        Ok(Outcome::default())
    }

    /// Returns the number of this worker's next history row. A reopened store may have rows of a
    /// worker with the same number, so the first call searches for the last of them.
    #[inline]
    fn history_number<S: Session>(&mut self, session: &mut S) -> Result<u64, DriveError<S::Error>> {
        if let Some(n) = self.next_history {
            return Ok(n);
        }
        let end = keys::history(self.thread, u64::MAX);
        let mut next = 0;
        session.scan(self.tables.history, Scan::down(&end, 1), |key, _| {
            if let (true, Some(n)) = (key.starts_with(&end[..4]), key.last_chunk::<8>()) {
                next = u64::from_be_bytes(*n).wrapping_add(1);
            }
            false
        })?;
        Ok(next)
    }
}

/// Inserts customer, district and amount before the notes about a customer with bad credit; the
/// excess is dropped.
fn note_payment(data: &mut [u8], input: &Payment, c: u32) {
    let mut note = Note { bytes: [0; 64], len: 0 };
    for number in [c, u32::from(input.c_d), input.c_w, u32::from(input.d), input.w] {
        note.number(number);
        note.push(b' ');
    }
    note.number(input.amount / 100);
    note.push(b'.');
    note.push(b'0' + (input.amount / 10 % 10) as u8);
    note.push(b'0' + (input.amount % 10) as u8);
    note.push(b' ');
    let len = note.len.min(data.len());
    data.copy_within(..data.len() - len, len);
    data[..len].copy_from_slice(&note.bytes[..len]);
}

/// A short text under construction. The longest note has 5 numbers of up to 10 digits and an
/// amount below 10,000.00: 62 bytes.
struct Note {
    bytes: [u8; 64],
    len: usize,
}

impl Note {
    #[inline]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn number(&mut self, number: u32) {
        let mut digits = [0u8; 10];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        for digit in &digits[at..] {
            self.push(*digit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_goes_before_the_old_data_and_pushes_it_out() {
        let input =
            Payment { w: 2, d: 3, c_w: 40, c_d: 5, named: Named::Number(1), amount: 123_405 };
        let mut data = [b'x'; 40];
        data[39] = b'y';
        note_payment(&mut data, &input, 678);
        assert_eq!(&data[..], b"678 5 40 3 2 1234.05 xxxxxxxxxxxxxxxxxxx");
        note_payment(&mut data, &input, 9);
        assert_eq!(&data[..], b"9 5 40 3 2 1234.05 678 5 40 3 2 1234.05 "[..40].as_ref());
    }

    #[test]
    fn the_longest_note_fits() {
        let (w, d) = (u32::MAX, u8::MAX);
        let named = Named::Number(1);
        let input = Payment { w, d, c_w: w, c_d: d, named, amount: 500_000 };
        let mut data = [b'x'; 500];
        note_payment(&mut data, &input, u32::MAX);
        let text = String::from_utf8(data.to_vec()).unwrap();
        assert!(text.starts_with("4294967295 255 4294967295 255 4294967295 5000.00 xxx"), "{text}");
    }
}
