//! TPC-C over the reference store: the data, each transaction's effects, and whole runs.

use std::collections::BTreeMap;

use millpond_base::Seed;
use millpond_workload::live::{MemorySession, MemoryStore, Scan, Session, Store, TableId};
use millpond_workload::tpcc::rows::{
    Customer, District, History, Item, Order, OrderLine, Stock, Warehouse,
};
use millpond_workload::tpcc::{
    Config, Kind, Mix, Scale, Step, Tables, Worker, check, keys, load, tables,
};

const SEED: Seed = Seed(7);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

struct Bed {
    store: MemoryStore,
    tables: Tables,
    scale: Scale,
}

impl Bed {
    fn new(scale: Scale, threads: u32) -> Bed {
        let store = MemoryStore::new();
        let tables = Tables::create(&store).unwrap();
        load(&store, &tables, &scale, SEED, threads).unwrap();
        Bed { store, tables, scale }
    }

    fn session(&self) -> MemorySession {
        self.store.session().unwrap()
    }

    fn rows(&self, table: TableId) -> Rows {
        let mut rows = Rows::new();
        self.session()
            .scan(table, Scan::whole(), |key, value| {
                rows.insert(key.to_vec(), value.to_vec());
                true
            })
            .unwrap();
        rows
    }

    fn everything(&self) -> Vec<Rows> {
        self.tables.all().into_iter().map(|table| self.rows(table)).collect()
    }

    fn worker(&self, kind: Kind) -> Worker {
        let config = Config { mix: Mix::only(kind), ..Config::standard(self.scale, 1) };
        Worker::new(&config, self.tables, SEED, 0).unwrap()
    }

    fn assert_consistent(&self) {
        let report = check(&mut self.session(), &self.tables).unwrap();
        assert!(report.is_consistent(), "{report}");
    }
}

fn run(worker: &mut Worker, session: &mut MemorySession, count: usize) -> Vec<Step> {
    (0..count).map(|_| worker.step(session).unwrap()).collect()
}

type Keys = Vec<Vec<u8>>;

/// Keys whose rows are new, changed and gone.
fn changes(before: &Rows, after: &Rows) -> (Keys, Keys, Keys) {
    let keys = |from: &Rows, is: &dyn Fn(&Vec<u8>, &Vec<u8>) -> bool| {
        from.iter().filter(|(key, row)| is(key, row)).map(|(key, _)| key.clone()).collect()
    };
    (
        keys(after, &|key, _| !before.contains_key(key)),
        keys(after, &|key, row| before.get(key).is_some_and(|old| old != row)),
        keys(before, &|key, _| !after.contains_key(key)),
    )
}

#[test]
fn the_loaded_data_has_the_cardinalities_and_values_of_the_specification() {
    let bed = Bed::new(Scale { warehouses: 2, items: 500, customers: 1100 }, 2);
    let report = check(&mut bed.session(), &bed.tables).unwrap();
    assert!(report.is_consistent(), "{report}");
    assert_eq!((report.warehouses, report.districts), (2, 20));
    assert_eq!((report.orders, report.new_orders), (22_000, 20 * 330));
    let count = |table| bed.rows(table).len();
    assert_eq!((count(bed.tables.item), count(bed.tables.stock)), (500, 1000));
    assert_eq!((count(bed.tables.customer), count(bed.tables.customer_name)), (22_000, 22_000));
    assert_eq!((count(bed.tables.history), count(bed.tables.order_customer)), (22_000, 22_000));
    let customers = bed.rows(bed.tables.customer);
    let bad = customers.values().filter(|row| Customer::CREDIT.get(row) == b"BC").count();
    assert!((1900..2500).contains(&bad), "{bad} of 22,000 with bad credit");
    for (key, row) in &customers {
        assert_eq!(Customer::BALANCE.get(row), -1000);
        assert!(Customer::DISCOUNT.get(row) <= 5000);
        let data = Customer::DATA.trimmed(row).len();
        assert!((300..=500).contains(&data));
        if keys::last_number(key) == 1 {
            assert_eq!(Customer::LAST.trimmed(row), b"BARBARBAR");
        }
    }
    let items = bed.rows(bed.tables.item);
    assert!(items.values().all(|row| (100..=10_000).contains(&Item::PRICE.get(row))));
    for (key, row) in bed.rows(bed.tables.order) {
        let is_delivered = keys::last_number(&key) <= bed.scale.delivered();
        assert_eq!(Order::CARRIER_ID.get(&row) != 0, is_delivered);
        assert!((5..=15).contains(&Order::OL_CNT.get(&row)));
    }
    for (key, row) in bed.rows(bed.tables.order_line) {
        let is_delivered = keys::number_at(&key, 5) <= bed.scale.delivered();
        assert_eq!(OrderLine::AMOUNT.get(&row) == 0, is_delivered);
        assert_eq!(OrderLine::DELIVERY_D.get(&row) != 0, is_delivered);
    }
}

#[test]
fn the_data_depends_on_the_seed_and_not_on_the_threads() {
    let scale = Scale { warehouses: 3, items: 50, customers: 20 };
    let once = Bed::new(scale, 1).everything();
    assert_eq!(once, Bed::new(scale, 3).everything());
    let store = MemoryStore::new();
    let tables = Tables::create(&store).unwrap();
    let rows = load(&store, &tables, &scale, Seed(8), 1).unwrap();
    let other = Bed { store, tables, scale }.everything();
    assert_ne!(once, other);
    assert_eq!(rows, other.iter().map(|rows| rows.len() as u64).sum::<u64>());
}

#[test]
fn loading_twice_is_an_error_that_names_table_and_key() {
    let bed = Bed::new(Scale::tiny(1), 1);
    let again = load(&bed.store, &bed.tables, &bed.scale, SEED, 1).unwrap_err();
    assert!(again.to_string().contains("table item has a row with key"), "{again}");
}

#[test]
fn new_orders_insert_an_order_with_all_that_belongs_to_it() {
    let bed = Bed::new(Scale::tiny(2), 1);
    let before = bed.everything();
    let steps = run(&mut bed.worker(Kind::NewOrder), &mut bed.session(), 200);
    let made = steps.iter().filter(|step| !step.rolled_back).count();
    let after = bed.everything();
    let diff: BTreeMap<&str, _> = tables()
        .into_iter()
        .zip(before.iter().zip(&after).map(|(old, new)| changes(old, new)))
        .collect();
    for table in ["orders", "new_order", "order_customer"] {
        assert_eq!(diff[table].0.len(), made, "{table}");
        assert!(diff[table].1.is_empty() && diff[table].2.is_empty(), "{table}");
    }
    for table in ["warehouse", "customer", "customer_name", "history", "item"] {
        assert_eq!(diff[table], Default::default(), "{table}");
    }
    // Every piece that was ordered left a stock, and every order has a number of its own.
    let (lines, stock) = (bed.rows(bed.tables.order_line), bed.rows(bed.tables.stock));
    let new_lines = &diff["order_line"].0;
    let ordered: u64 =
        new_lines.iter().map(|key| u64::from(OrderLine::QUANTITY.get(&lines[key]))).sum();
    let sold: u64 = stock.values().map(|row| u64::from(Stock::YTD.get(row))).sum();
    let sales: u64 = stock.values().map(|row| u64::from(Stock::ORDER_CNT.get(row))).sum();
    assert_eq!((sold, sales), (ordered, new_lines.len() as u64));
    let remote: u64 = stock.values().map(|row| u64::from(Stock::REMOTE_CNT.get(row))).sum();
    let is_remote =
        |key: &&Vec<u8>| OrderLine::SUPPLY_W_ID.get(&lines[*key]) != keys::number_at(key, 0);
    assert_eq!(new_lines.iter().filter(is_remote).count() as u64, remote);
    let items = bed.rows(bed.tables.item);
    for key in new_lines {
        let row = &lines[key];
        let price = Item::PRICE.get(&items[&keys::item(OrderLine::I_ID.get(row)).to_vec()]);
        let quantity = u32::from(OrderLine::QUANTITY.get(row));
        assert_eq!(OrderLine::AMOUNT.get(row), price * quantity);
        assert_eq!(OrderLine::DELIVERY_D.get(row), 0);
        let (_, d) = keys::district_of(key);
        let supplier = keys::stock(OrderLine::SUPPLY_W_ID.get(row), OrderLine::I_ID.get(row));
        let dist = Stock::dist(&stock[&supplier.to_vec()], d);
        assert_eq!(OrderLine::DIST_INFO.get(row), dist);
    }
    bed.assert_consistent();
}

#[test]
fn one_new_order_in_a_hundred_is_rolled_back_and_changes_nothing() {
    let bed = Bed::new(Scale { warehouses: 1, items: 20, customers: 10 }, 1);
    let (mut worker, mut session) = (bed.worker(Kind::NewOrder), bed.session());
    let state = || {
        let sizes = bed.tables.all().map(|table| {
            let mut rows = 0;
            let mut count = |_: &[u8], _: &[u8]| {
                rows += 1;
                true
            };
            bed.session().scan(table, Scan::whole(), &mut count).unwrap();
            rows
        });
        (sizes, bed.rows(bed.tables.district), bed.rows(bed.tables.stock))
    };
    let mut rolled_back = 0;
    let count = 1500;
    let mut before = state();
    for _ in 0..count {
        let is_rolled_back = worker.step(&mut session).unwrap().rolled_back;
        let after = state();
        assert_eq!(before == after, is_rolled_back);
        before = after;
        rolled_back += usize::from(is_rolled_back);
    }
    assert!((4..=30).contains(&rolled_back), "{rolled_back} of {count}");
    assert_eq!(bed.rows(bed.tables.order).len(), 100 + count - rolled_back);
    bed.assert_consistent();
}

#[test]
fn payments_move_the_same_money_everywhere() {
    let bed = Bed::new(Scale::tiny(2), 1);
    let total =
        |table, ytd: fn(&[u8]) -> i64| bed.rows(table).values().map(|row| ytd(row)).sum::<i64>();
    let sums = || {
        let districts = total(bed.tables.district, |row| District::YTD.get(row));
        let balance = total(bed.tables.customer, |row| Customer::BALANCE.get(row));
        let paid = total(bed.tables.customer, |row| Customer::YTD_PAYMENT.get(row));
        let warehouses = total(bed.tables.warehouse, |row| Warehouse::YTD.get(row));
        [warehouses, districts, paid, -balance]
    };
    let before = sums();
    let old_history = bed.rows(bed.tables.history);
    let count = 2000;
    run(&mut bed.worker(Kind::Payment), &mut bed.session(), count);
    let history = bed.rows(bed.tables.history);
    let (new, changed, gone) = changes(&old_history, &history);
    assert_eq!((new.len(), changed.len(), gone.len()), (count, 0, 0));
    let amount: i64 = new.iter().map(|key| i64::from(History::AMOUNT.get(&history[key]))).sum();
    for (before, after) in before.into_iter().zip(sums()) {
        assert_eq!(after - before, amount);
    }
    let remote = new
        .iter()
        .filter(|key| History::C_W_ID.get(&history[*key]) != History::W_ID.get(&history[*key]));
    let remote = remote.count();
    assert!((220..380).contains(&remote), "{remote} of {count} remote, 15 % meant");
    let customers = bed.rows(bed.tables.customer);
    let payments: u32 = customers.values().map(|row| Customer::PAYMENT_CNT.get(row) - 1).sum();
    assert_eq!(payments as usize, count);
    // Bad credit is noted, good credit is not: a note begins with the customer's number.
    for (key, row) in &customers {
        let note = format!("{} {} ", keys::last_number(key), keys::district_of(key).1);
        let is_noop = Customer::DATA.get(row).starts_with(note.as_bytes());
        let is_bad = Customer::CREDIT.get(row) == b"BC";
        assert_eq!(is_noop, is_bad && Customer::PAYMENT_CNT.get(row) > 1);
    }
    bed.assert_consistent();
}

#[test]
fn a_delivery_takes_the_oldest_new_order_of_each_district() {
    let bed = Bed::new(Scale::tiny(1), 1);
    let before = bed.everything();
    let step = bed.worker(Kind::Delivery).step(&mut bed.session()).unwrap();
    assert_eq!((step.kind, step.skipped), (Kind::Delivery, 0));
    let first = bed.scale.delivered() + 1;
    let expected: Vec<Vec<u8>> = (1..=10).map(|d| keys::order(1, d, first).to_vec()).collect();
    let (_, _, gone) = changes(&before[5], &bed.rows(bed.tables.new_order));
    assert_eq!(gone, expected);
    let orders = bed.rows(bed.tables.order);
    let (_, changed, _) = changes(&before[6], &orders);
    assert_eq!(changed, expected);
    let carrier = Order::CARRIER_ID.get(&orders[&expected[0]]);
    assert!((1..=10).contains(&carrier));
    let (lines, customers) = (bed.rows(bed.tables.order_line), bed.rows(bed.tables.customer));
    for (key, d) in expected.iter().zip(1u8..) {
        let order = &orders[key];
        assert_eq!(Order::CARRIER_ID.get(order), carrier);
        let mut sum = 0;
        for line in 1..=Order::OL_CNT.get(order) {
            let row = &lines[&keys::order_line(1, d, first, line).to_vec()];
            assert_ne!(OrderLine::DELIVERY_D.get(row), 0);
            sum += i64::from(OrderLine::AMOUNT.get(row));
        }
        let customer = &customers[&keys::customer(1, d, Order::C_ID.get(order)).to_vec()];
        assert_eq!(Customer::BALANCE.get(customer), sum - 1000);
        assert_eq!(Customer::DELIVERY_CNT.get(customer), 1);
    }
    bed.assert_consistent();
}

#[test]
fn deliveries_skip_districts_without_new_orders() {
    let bed = Bed::new(Scale::tiny(1), 1);
    let new_orders = usize::try_from(bed.scale.customers - bed.scale.delivered()).unwrap();
    let steps = run(&mut bed.worker(Kind::Delivery), &mut bed.session(), new_orders + 2);
    let skipped: Vec<u8> = steps.iter().map(|step| step.skipped).collect();
    assert_eq!(skipped[..new_orders], vec![0; new_orders]);
    assert_eq!(skipped[new_orders..], [10, 10]);
    assert!(bed.rows(bed.tables.new_order).is_empty());
    bed.assert_consistent();
}

#[test]
fn order_status_and_stock_level_change_nothing() {
    let bed = Bed::new(Scale::tiny(2), 1);
    let before = bed.everything();
    for kind in [Kind::OrderStatus, Kind::StockLevel] {
        let mut worker = bed.worker(kind);
        run(&mut worker, &mut bed.session(), 300);
        assert_ne!(worker.digest(), 0);
    }
    assert_eq!(bed.everything(), before);
}

#[test]
fn the_standard_mix_has_the_standard_shares() {
    let bed = Bed::new(Scale::tiny(1), 1);
    let mut worker = Worker::new(&Config::standard(bed.scale, 1), bed.tables, SEED, 0).unwrap();
    let steps = run(&mut worker, &mut bed.session(), 10_000);
    for (kind, percent) in Kind::ALL.into_iter().zip([45.0, 43.0, 4.0, 4.0, 4.0]) {
        let count = steps.iter().filter(|step| step.kind == kind).count();
        let share = count as f64 / 100.0;
        assert!((share - percent).abs() < 2.0, "{}: {share} %", kind.name());
    }
    bed.assert_consistent();
}

#[test]
fn two_threads_leave_a_consistent_store_with_and_without_affinity() {
    for has_affinity in [false, true] {
        // So few orders that deliveries catch up with new orders all the time.
        let bed = Bed::new(Scale { warehouses: 2, items: 200, customers: 10 }, 2);
        let mix =
            Mix { new_order: 40, payment: 30, order_status: 10, delivery: 10, stock_level: 10 };
        let config = Config { has_affinity, mix, ..Config::standard(bed.scale, 2) };
        let made: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|thread| {
                    let (bed, config) = (&bed, &config);
                    scope.spawn(move || {
                        let mut worker = Worker::new(config, bed.tables, SEED, thread).unwrap();
                        let steps = run(&mut worker, &mut bed.session(), 5000);
                        let is_order =
                            |step: &&Step| step.kind == Kind::NewOrder && !step.rolled_back;
                        steps.iter().filter(is_order).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        bed.assert_consistent();
        let mut by_warehouse = [0usize; 2];
        for key in bed.rows(bed.tables.order).keys() {
            by_warehouse[keys::number_at(key, 0) as usize - 1] += 1;
        }
        assert_eq!(by_warehouse.iter().sum::<usize>(), 200 + made.iter().sum::<usize>());
        if has_affinity {
            assert_eq!(by_warehouse, [100 + made[0], 100 + made[1]]);
        }
    }
}

#[test]
fn a_seed_repeats_a_run_byte_by_byte() {
    let run_once = |seed: u64| {
        let bed = Bed::new(Scale::tiny(2), 2);
        let config = Config::standard(bed.scale, 1);
        let mut worker = Worker::new(&config, bed.tables, Seed(seed), 0).unwrap();
        run(&mut worker, &mut bed.session(), 1000);
        (worker.digest(), bed.everything())
    };
    let first = run_once(1);
    assert_eq!(first, run_once(1));
    assert_ne!(first.0, run_once(2).0);
}

#[test]
fn a_later_run_continues_the_history_of_its_worker_s_number() {
    let bed = Bed::new(Scale::tiny(1), 1);
    for _ in 0..3 {
        run(&mut bed.worker(Kind::Payment), &mut bed.session(), 50);
    }
    assert_eq!(bed.rows(bed.tables.history).len(), 300 + 150);
    assert!(bed.rows(bed.tables.history).contains_key(keys::history(0, 149).as_slice()));
}

#[test]
fn a_run_at_another_scale_than_the_data_s_says_what_is_missing() {
    let bed = Bed::new(Scale::tiny(1), 1);
    let config = Config::standard(Scale::tiny(9), 1);
    let mut worker = Worker::new(&config, bed.tables, SEED, 0).unwrap();
    let error = (0..200).find_map(|_| worker.step(&mut bed.session()).err()).unwrap();
    assert!(error.to_string().contains("at this scale"), "{error}");
}
