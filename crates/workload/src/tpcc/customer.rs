//! Choice of a customer: by number, or by last name (clauses 2.5.2.2 and 2.6.2.2).

use super::access::missing;
use super::draw::last_name;
use super::keys::{self, NAME_LEN, NAME_PREFIX_LEN};
use super::rows::CustomerName;
use super::worker::Worker;
use crate::live::{DriveError, Scan, Session};

/// A customer as a terminal names one: by last name in 60 % of the cases.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Number(u32),
    Last([u8; NAME_LEN]),
}

impl Named {
    #[inline]
    pub(super) fn draw(worker: &mut Worker) -> Named {
        if worker.is_among(60) {
            Named::Last(last_name(worker.picker.last_name(&mut worker.random)))
        } else {
            Named::Number(worker.picker.customer(&mut worker.random))
        }
    }
}

impl Worker {
    /// Returns the customer's number. Of the n customers with a last name, in the order of their
    /// first names, it is the middle one: number n/2, rounded up.
    #[inline]
    pub(super) fn customer<S: Session>(
        &mut self,
        session: &mut S,
        w: u32,
        d: u8,
        named: &Named,
    ) -> Result<u32, DriveError<S::Error>> {
        let last = match named {
            Named::Number(c) => return Ok(*c),
            Named::Last(last) => last,
        };
        let start = keys::customer_name(w, d, last, &[0; NAME_LEN], 0);
        // First names are text.
        let end = keys::customer_name(w, d, last, &[u8::MAX; NAME_LEN], u32::MAX);
        let prefix = &start[..NAME_PREFIX_LEN];
        let customers = &mut self.customers;
        customers.clear();
        session.scan(self.tables.customer_name, Scan::up(&start, 3).before(&end), |key, _| {
            let is_namesake = key.starts_with(prefix);
            if is_namesake {
                customers.push(keys::last_number(key));
            }
            is_namesake
        })?;
        match self.customers.get(self.customers.len().saturating_sub(1) / 2) {
            Some(c) => Ok(*c),
            None => Err(missing::<CustomerName, S>(&start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{MemoryStore, Store};
    use crate::tpcc::{Config, Scale, Tables};
    use millpond_base::Seed;

    #[test]
    fn of_namesakes_the_middle_one_by_first_name_is_meant() {
        let store = MemoryStore::new();
        let tables = Tables::create(&store).unwrap();
        let mut session = store.session().unwrap();
        let scale = Scale::tiny(1);
        let mut worker = Worker::new(&Config::standard(scale, 1), tables, Seed(1), 0).unwrap();
        let named = Named::Last(last_name(7));
        assert!(worker.customer(&mut session, 1, 2, &named).is_err());
        // Neighbours in the index that must not count: another district, another name.
        let mut add = |d, number, first: u8, c| {
            let key = keys::customer_name(1, d, &last_name(number), &[first; NAME_LEN], c);
            session.insert(tables.customer_name, &key, &[]).unwrap();
        };
        add(1, 7, b'a', 100);
        add(3, 7, b'a', 101);
        add(2, 6, b'z', 102);
        add(2, 8, b'a', 103);
        let mut middle = Vec::new();
        for (first, c) in [(b'm', 20), (b'z', 5), (b'c', 30), (b'a', 40)] {
            let mut session = store.session().unwrap();
            let key = keys::customer_name(1, 2, &last_name(7), &[first; NAME_LEN], c);
            session.insert(tables.customer_name, &key, &[]).unwrap();
            middle.push(worker.customer(&mut session, 1, 2, &named).unwrap());
        }
        // m; m z; c m z; a c m z.
        assert_eq!(middle, [20, 20, 20, 30]);
        let number = Named::Number(77);
        assert_eq!(worker.customer(&mut store.session().unwrap(), 1, 2, &number).unwrap(), 77);
    }
}
