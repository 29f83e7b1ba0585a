//! Fills the tables by clause 4.3.3.1.
//!
//! Warehouses are loaded in parallel, each from its own seed, so that the data does not
//! depend on the number of threads. Within a warehouse, every table and index is filled in
//! key order.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use millpond_base::Seed;

use super::draw::{self, Constants, between, digits, last_name, letters};
use super::keys;
use super::layout::{Layout, Text};
use super::rows::{
    Customer, CustomerName, District, History, Item, NewOrder, Order, OrderCustomer, OrderLine,
    Stock, Warehouse,
};
use super::scale::{DISTRICTS, Scale};
use super::tables::Tables;
use crate::generate::Random;
use crate::live::{Access, DriveError, Session, Store, TableId};

/// Rows of a transaction while loading.
const BATCH: u32 = 1000;

/// Logical time of all loaded rows.
pub(super) const LOADED_AT: u64 = 1;

/// Loads everything with `threads` threads; returns the number of rows, indexes included.
pub fn load<S: Store>(
    store: &S,
    tables: &Tables,
    scale: &Scale,
    seed: Seed,
    threads: u32,
) -> Result<u64, DriveError<S::Error>> {
    let next = AtomicU32::new(1);
    let failed = AtomicBool::new(false);
    let work = || -> Result<u64, DriveError<S::Error>> {
        let mut rows = 0;
        while !failed.load(Ordering::Relaxed) {
            let warehouse = next.fetch_add(1, Ordering::Relaxed);
            if warehouse > scale.warehouses {
                break;
            }
            let loaded = store.session().map_err(DriveError::from).and_then(|mut session| {
                load_warehouse(&mut session, tables, scale, seed, warehouse)
            });
            rows += loaded.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(rows)
    };
    let mut total = load_items(&mut store.session()?, tables, scale, seed)?;
    std::thread::scope(|scope| {
        let helpers: Vec<_> =
            (1..threads.min(scale.warehouses)).map(|_| scope.spawn(work)).collect();
        let mut outcome = work();
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and_then(|rows| Ok(rows + theirs?));
        }
        total += outcome?;
        Ok(total)
    })
}

/// Loads the items, which all warehouses share; returns their number.
pub fn load_items<S: Session>(
    session: &mut S,
    tables: &Tables,
    scale: &Scale,
    seed: Seed,
) -> Result<u64, DriveError<S::Error>> {
    let mut random = Random::new(seed.derive("tpcc items"));
    let mut rows = Batch::begin(session)?;
    let mut row = [0; Item::LEN];
    for i in 1..=scale.items {
        Item::PRICE.set(&mut row, between(&mut random, 100, 10_000) as u32);
        Item::IM_ID.set(&mut row, between(&mut random, 1, 10_000) as u32);
        letters(&mut random, Item::NAME.get_mut(&mut row), 14, 24);
        draw::data(&mut random, Item::DATA.get_mut(&mut row));
        rows.add::<Item>(tables.item, &keys::item(i), &row)?;
    }
    rows.commit()
}

/// Loads all rows of one warehouse (from 1); returns their number.
pub fn load_warehouse<S: Session>(
    session: &mut S,
    tables: &Tables,
    scale: &Scale,
    seed: Seed,
    warehouse: u32,
) -> Result<u64, DriveError<S::Error>> {
    let random = Random::new(seed.derive(&format!("tpcc warehouse {warehouse}")));
    let rows = Batch::begin(session)?;
    let constants = Constants::loading(seed);
    let mut loader = Loader { rows, tables, scale, constants, random, w: warehouse };
    loader.warehouse()?;
    loader.stock()?;
    let mut histories = 0;
    for d in 1..=DISTRICTS {
        loader.district(d)?;
        loader.customers(d, &mut histories)?;
        loader.orders(d)?;
    }
    loader.rows.commit()
}

/// Inserts in transactions of [`BATCH`] rows.
struct Batch<'s, S> {
    session: &'s mut S,
    left: u32,
    rows: u64,
}

impl<'s, S: Session> Batch<'s, S> {
    fn begin(session: &'s mut S) -> Result<Batch<'s, S>, DriveError<S::Error>> {
        session.begin(Access::Write)?;
        Ok(Batch { session, left: BATCH, rows: 0 })
    }

    fn add<L: Layout>(
        &mut self,
        table: TableId,
        key: &[u8],
        row: &[u8],
    ) -> Result<(), DriveError<S::Error>> {
        super::access::add::<L, S>(self.session, table, key, row)?;
        self.rows += 1;
        self.left -= 1;
        if self.left == 0 {
            self.session.commit()?;
            self.session.begin(Access::Write)?;
            self.left = BATCH;
        }
        Ok(())
    }

    fn commit(self) -> Result<u64, DriveError<S::Error>> {
        self.session.commit()?;
        Ok(self.rows)
    }
}

/// Offsets of street, city, state and ZIP code in a row.
struct Address {
    streets: [Text; 2],
    city: Text,
    state: Text,
    zip: Text,
}

impl Address {
    fn draw(&self, random: &mut Random, row: &mut [u8]) {
        for street in self.streets {
            letters(random, street.get_mut(row), 10, 20);
        }
        letters(random, self.city.get_mut(row), 10, 20);
        letters(random, self.state.get_mut(row), 2, 2);
        let zip = self.zip.get_mut(row);
        zip.fill(b'1');
        digits(random, &mut zip[..4]);
    }
}

/// One warehouse's rows.
struct Loader<'a, S> {
    rows: Batch<'a, S>,
    tables: &'a Tables,
    scale: &'a Scale,
    constants: Constants,
    random: Random,
    w: u32,
}

impl<S: Session> Loader<'_, S> {
    fn warehouse(&mut self) -> Result<(), DriveError<S::Error>> {
        const ADDRESS: Address = Address {
            streets: [Warehouse::STREET_1, Warehouse::STREET_2],
            city: Warehouse::CITY,
            state: Warehouse::STATE,
            zip: Warehouse::ZIP,
        };
        let random = &mut self.random;
        let mut row = [0; Warehouse::LEN];
        Warehouse::YTD.set(&mut row, 30_000_000);
        Warehouse::TAX.set(&mut row, between(random, 0, 2000) as u16);
        letters(random, Warehouse::NAME.get_mut(&mut row), 6, 10);
        ADDRESS.draw(random, &mut row);
        self.rows.add::<Warehouse>(self.tables.warehouse, &keys::warehouse(self.w), &row)
    }

    fn stock(&mut self) -> Result<(), DriveError<S::Error>> {
        let mut row = [0; Stock::LEN];
        for i in 1..=self.scale.items {
            let random = &mut self.random;
            Stock::QUANTITY.set(&mut row, between(random, 10, 100) as u16);
            letters(random, Stock::DISTS.get_mut(&mut row), 240, 240);
            draw::data(random, Stock::DATA.get_mut(&mut row));
            self.rows.add::<Stock>(self.tables.stock, &keys::stock(self.w, i), &row)?;
        }
        Ok(())
    }

    fn district(&mut self, d: u8) -> Result<(), DriveError<S::Error>> {
        const ADDRESS: Address = Address {
            streets: [District::STREET_1, District::STREET_2],
            city: District::CITY,
            state: District::STATE,
            zip: District::ZIP,
        };
        let random = &mut self.random;
        let mut row = [0; District::LEN];
        District::YTD.set(&mut row, 3_000_000);
        District::NEXT_O_ID.set(&mut row, self.scale.customers + 1);
        District::TAX.set(&mut row, between(random, 0, 2000) as u16);
        letters(random, District::NAME.get_mut(&mut row), 6, 10);
        ADDRESS.draw(random, &mut row);
        self.rows.add::<District>(self.tables.district, &keys::district(self.w, d), &row)
    }

    fn customers(&mut self, d: u8, histories: &mut u64) -> Result<(), DriveError<S::Error>> {
        let (w, tables) = (self.w, self.tables);
        let mut names = Vec::with_capacity(self.scale.customers as usize);
        for c in 1..=self.scale.customers {
            let (row, last, first) = self.customer(c);
            self.rows.add::<Customer>(tables.customer, &keys::customer(w, d, c), &row)?;
            names.push(keys::customer_name(w, d, &last, &first, c));
        }
        names.sort_unstable();
        for key in &names {
            self.rows.add::<CustomerName>(tables.customer_name, key, &[])?;
        }
        let mut row = [0; History::LEN];
        for c in 1..=self.scale.customers {
            History::C_ID.set(&mut row, c);
            History::C_D_ID.set(&mut row, d);
            History::C_W_ID.set(&mut row, w);
            History::D_ID.set(&mut row, d);
            History::W_ID.set(&mut row, w);
            History::DATE.set(&mut row, LOADED_AT);
            History::AMOUNT.set(&mut row, 1000);
            letters(&mut self.random, History::DATA.get_mut(&mut row), 12, 24);
            let key = keys::history(keys::loading_writer(w), *histories);
            self.rows.add::<History>(tables.history, &key, &row)?;
            *histories += 1;
        }
        Ok(())
    }

    /// Returns a customer's row, last name and first name.
    fn customer(&mut self, c: u32) -> ([u8; Customer::LEN], [u8; 16], [u8; 16]) {
        const ADDRESS: Address = Address {
            streets: [Customer::STREET_1, Customer::STREET_2],
            city: Customer::CITY,
            state: Customer::STATE,
            zip: Customer::ZIP,
        };
        let random = &mut self.random;
        let number = if c <= 1000 {
            c - 1
        } else {
            draw::nurand(random, 255, 0, 999, self.constants.last) as u32
        };
        let last = last_name(number);
        let mut first = [0; 16];
        letters(random, &mut first, 8, 16);
        let mut row = [0; Customer::LEN];
        Customer::LAST.set(&mut row, &last);
        Customer::MIDDLE.set(&mut row, b"OE");
        Customer::FIRST.set(&mut row, &first);
        ADDRESS.draw(random, &mut row);
        digits(random, Customer::PHONE.get_mut(&mut row));
        Customer::SINCE.set(&mut row, LOADED_AT);
        let credit = if random.below(10) == 0 { b"BC" } else { b"GC" };
        Customer::CREDIT.set(&mut row, credit);
        Customer::CREDIT_LIM.set(&mut row, 5_000_000);
        Customer::DISCOUNT.set(&mut row, between(random, 0, 5000) as u16);
        Customer::BALANCE.set(&mut row, -1000);
        Customer::YTD_PAYMENT.set(&mut row, 1000);
        Customer::PAYMENT_CNT.set(&mut row, 1);
        letters(random, Customer::DATA.get_mut(&mut row), 300, 500);
        (row, last, first)
    }

    /// Loads the orders of a district: one per customer, in random order.
    fn orders(&mut self, d: u8) -> Result<(), DriveError<S::Error>> {
        let (w, tables, count) = (self.w, self.tables, self.scale.customers);
        let delivered = self.scale.delivered();
        let customers = self.random.permutation(count);
        let mut lines = Vec::with_capacity(count as usize);
        let mut row = [0; Order::LEN];
        for (o, c) in (1..=count).zip(&customers) {
            let is_delivered = o <= delivered;
            let carrier = between(&mut self.random, 1, 10) as u8;
            lines.push(between(&mut self.random, 5, 15) as u8);
            Order::C_ID.set(&mut row, c + 1);
            Order::ENTRY_D.set(&mut row, LOADED_AT);
            Order::CARRIER_ID.set(&mut row, if is_delivered { carrier } else { 0 });
            Order::OL_CNT.set(&mut row, lines[o as usize - 1]);
            Order::ALL_LOCAL.set(&mut row, 1);
            self.rows.add::<Order>(tables.order, &keys::order(w, d, o), &row)?;
        }
        let mut index: Vec<[u8; 13]> = (1..=count)
            .zip(&customers)
            .map(|(o, c)| keys::order_customer(w, d, c + 1, o))
            .collect();
        index.sort_unstable();
        for key in &index {
            self.rows.add::<OrderCustomer>(tables.order_customer, key, &[])?;
        }
        for (o, lines) in (1..=count).zip(lines) {
            self.order_lines(d, o, lines, o <= delivered)?;
        }
        for o in delivered + 1..=count {
            self.rows.add::<NewOrder>(tables.new_order, &keys::order(w, d, o), &[])?;
        }
        Ok(())
    }

    fn order_lines(
        &mut self,
        d: u8,
        o: u32,
        lines: u8,
        is_delivered: bool,
    ) -> Result<(), DriveError<S::Error>> {
        let mut row = [0; OrderLine::LEN];
        for line in 1..=lines {
            let random = &mut self.random;
            let item = between(random, 1, u64::from(self.scale.items.max(1))) as u32;
            let amount = between(random, 1, 999_999) as u32;
            OrderLine::I_ID.set(&mut row, item);
            OrderLine::SUPPLY_W_ID.set(&mut row, self.w);
            OrderLine::DELIVERY_D.set(&mut row, if is_delivered { LOADED_AT } else { 0 });
            OrderLine::QUANTITY.set(&mut row, 5);
            OrderLine::AMOUNT.set(&mut row, if is_delivered { 0 } else { amount });
            letters(random, OrderLine::DIST_INFO.get_mut(&mut row), 24, 24);
            let key = keys::order_line(self.w, d, o, line);
            self.rows.add::<OrderLine>(self.tables.order_line, &key, &row)?;
        }
        Ok(())
    }
}
