//! The consistency check finds what is planted, and drivers repeat what a store rolls back.

use millpond_base::Seed;
use millpond_workload::live::{
    Access, DriveError, MemoryError, MemorySession, MemoryStore, Scan, Session, Store, TableId,
};
use millpond_workload::tpcc::rows::{District, Order, Warehouse};
use millpond_workload::tpcc::{
    Config, Report, Scale, Tables, Violation, Worker, check, keys, load,
};

const SEED: Seed = Seed(3);

fn loaded() -> (MemoryStore, Tables) {
    let store = MemoryStore::new();
    let tables = Tables::create(&store).unwrap();
    load(&store, &tables, &Scale { warehouses: 2, items: 50, customers: 30 }, SEED, 1).unwrap();
    (store, tables)
}

/// Returns the violations found after `plant` has damaged a fresh store.
fn found(plant: impl FnOnce(&mut MemorySession, &Tables)) -> Vec<Violation> {
    let (store, tables) = loaded();
    let mut session = store.session().unwrap();
    assert!(check(&mut session, &tables).unwrap().is_consistent());
    plant(&mut session, &tables);
    let report = check(&mut session, &tables).unwrap();
    assert_eq!(report.is_consistent(), report.violations.is_empty());
    assert_eq!(report.to_string().contains("violations"), !report.is_consistent());
    report.violations
}

#[test]
fn lost_money_breaks_condition_1() {
    let violations = found(|session, tables| {
        let changed = session.update(tables.district, &keys::district(2, 7), |row| {
            District::YTD.add(row, -1);
        });
        assert_eq!(changed, Ok(Some(())));
    });
    let (ytd, districts) = (Some(30_000_000), 29_999_999);
    assert_eq!(violations, [Violation::YearToDate { warehouse: 2, ytd, districts }]);
    let violations = found(|session, tables| {
        session.remove(tables.warehouse, &keys::warehouse(1)).unwrap();
    });
    let (ytd, districts) = (None, 30_000_000);
    assert_eq!(violations, [Violation::YearToDate { warehouse: 1, ytd, districts }]);
    // Money that was taken in twice everywhere is no violation.
    let violations = found(|session, tables| {
        let key = keys::warehouse(1);
        session.update(tables.warehouse, &key, |row| Warehouse::YTD.add(row, 5)).unwrap();
        let key = keys::district(1, 1);
        session.update(tables.district, &key, |row| District::YTD.add(row, 5)).unwrap();
    });
    assert_eq!(violations, []);
}

#[test]
fn a_lost_or_repeated_order_number_breaks_condition_2() {
    for step in [1, u32::MAX] {
        let violations = found(|session, tables| {
            let key = keys::district(1, 3);
            session
                .update(tables.district, &key, |row| District::NEXT_O_ID.add(row, step))
                .unwrap();
        });
        let next = Some(31u32.wrapping_add(step));
        let (last, last_new) = (Some(30), Some(30));
        let expected = Violation::NextOrder { warehouse: 1, district: 3, next, last, last_new };
        assert_eq!(violations, [expected]);
    }
    let violations = found(|session, tables| {
        session.remove(tables.district, &keys::district(1, 3)).unwrap();
    });
    assert!(violations.iter().any(|violation| matches!(
        violation,
        Violation::NextOrder { warehouse: 1, district: 3, next: None, .. }
    )));
}

#[test]
fn a_new_order_that_was_passed_over_breaks_condition_3() {
    let violations = found(|session, tables| {
        assert_eq!(session.remove(tables.new_order, &keys::order(2, 10, 25)), Ok(true));
    });
    let (first, last, rows) = (22, 30, 8);
    let hole = Violation::NewOrderHole { warehouse: 2, district: 10, first, last, rows };
    assert_eq!(violations, [hole]);
    // The oldest one gone is a delivery; the newest one gone breaks condition 2.
    let violations = found(|session, tables| {
        session.remove(tables.new_order, &keys::order(2, 10, 22)).unwrap();
    });
    assert_eq!(violations, []);
    let violations = found(|session, tables| {
        session.remove(tables.new_order, &keys::order(2, 10, 30)).unwrap();
    });
    assert!(matches!(violations[..], [Violation::NextOrder { last_new: Some(29), .. }]));
}

#[test]
fn a_missing_or_extra_order_line_breaks_condition_4() {
    let violations = found(|session, tables| {
        assert_eq!(session.remove(tables.order_line, &keys::order_line(1, 1, 1, 1)), Ok(true));
    });
    let [Violation::OrderLines { warehouse: 1, district: 1, announced, rows }] = violations[..]
    else {
        panic!("{violations:?}");
    };
    assert_eq!(announced, rows + 1);
    let violations = found(|session, tables| {
        let key = keys::order(2, 2, 9);
        session.update(tables.order, &key, |row| Order::OL_CNT.add(row, 2)).unwrap();
    });
    assert!(matches!(
        violations[..],
        [Violation::OrderLines { warehouse: 2, district: 2, announced, rows }]
            if announced == rows + 2
    ));
}

#[test]
fn an_index_entry_that_is_missing_or_wrong_is_found() {
    let entry = |session: &mut MemorySession, tables: &Tables| {
        let mut first = Vec::new();
        session
            .scan(tables.order_customer, Scan::up(&keys::district(1, 5), 1), |key, _| {
                first = key.to_vec();
                false
            })
            .unwrap();
        first
    };
    let violations = found(|session, tables| {
        let key = entry(session, tables);
        session.remove(tables.order_customer, &key).unwrap();
    });
    let (orders, indexed) = (30, 29);
    assert_eq!(violations, [Violation::OrderIndex { warehouse: 1, district: 5, orders, indexed }]);
    let violations = found(|session, tables| {
        let key = entry(session, tables);
        session.remove(tables.order_customer, &key).unwrap();
        let wrong = keys::order_customer(1, 5, keys::number_at(&key, 5), 4711);
        session.insert(tables.order_customer, &wrong, &[]).unwrap();
    });
    let indexed = 30;
    assert_eq!(violations, [Violation::OrderIndex { warehouse: 1, district: 5, orders, indexed }]);
}

#[test]
fn an_order_of_a_district_that_does_not_exist_is_found() {
    let violations = found(|session, tables| {
        session.insert(tables.new_order, &keys::order(9, 9, 9), &[]).unwrap();
    });
    assert_eq!(violations.len(), 2);
    assert!(matches!(violations[0], Violation::YearToDate { warehouse: 9, ytd: None, .. }));
    assert!(matches!(violations[1], Violation::NextOrder { warehouse: 9, next: None, .. }));
}

#[test]
fn a_row_of_the_wrong_length_is_an_error_that_says_so() {
    let (store, tables) = loaded();
    let mut session = store.session().unwrap();
    session.put(tables.order_line, &keys::order_line(1, 1, 1, 1), b"short").unwrap();
    let error = check(&mut session, &tables).unwrap_err();
    assert!(matches!(error, DriveError::Length { table: "order_line", found: 5, .. }), "{error}");
}

#[test]
fn an_empty_store_is_consistent_and_empty() {
    let store = MemoryStore::new();
    let tables = Tables::create(&store).unwrap();
    let report = check(&mut store.session().unwrap(), &tables).unwrap();
    assert_eq!(report, Report::default());
}

/// A session whose every seventh commit fails, after the first operation of the transaction: the
/// transaction then did nothing.
struct Moody {
    inner: MemorySession,
    begun: u32,
    fails: bool,
}

#[derive(Debug, thiserror::Error)]
enum MoodyError {
    #[error("conflict")]
    Conflict,
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Moody {
    fn check(&mut self) -> Result<(), MoodyError> {
        if std::mem::take(&mut self.fails) { Err(MoodyError::Conflict) } else { Ok(()) }
    }
}

impl Session for Moody {
    type Error = MoodyError;

    fn begin(&mut self, _: Access) -> Result<(), MoodyError> {
        self.begun += 1;
        self.fails = self.begun.is_multiple_of(7);
        Ok(())
    }

    fn is_retriable(error: &MoodyError) -> bool {
        matches!(error, MoodyError::Conflict)
    }

    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, MoodyError> {
        self.check()?;
        Ok(self.inner.get(table, key, read)?)
    }

    fn insert(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<bool, MoodyError> {
        self.check()?;
        Ok(self.inner.insert(table, key, value)?)
    }

    fn put(&mut self, table: TableId, key: &[u8], value: &[u8]) -> Result<(), MoodyError> {
        self.check()?;
        Ok(self.inner.put(table, key, value)?)
    }

    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, MoodyError> {
        self.check()?;
        Ok(self.inner.update(table, key, change)?)
    }

    fn remove(&mut self, table: TableId, key: &[u8]) -> Result<bool, MoodyError> {
        self.check()?;
        Ok(self.inner.remove(table, key)?)
    }

    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), MoodyError> {
        self.check()?;
        Ok(self.inner.scan(table, scan, visit)?)
    }
}

#[test]
fn what_a_store_rolls_back_is_done_again_with_the_same_input() {
    let config = Config::standard(Scale { warehouses: 2, items: 50, customers: 30 }, 1);
    let (calm, tables) = loaded();
    let mut worker = Worker::new(&config, tables, SEED, 0).unwrap();
    let mut session = calm.session().unwrap();
    for _ in 0..1000 {
        assert_eq!(worker.step(&mut session).unwrap().retries, 0);
    }
    let (moody, tables) = loaded();
    let mut again = Worker::new(&config, tables, SEED, 0).unwrap();
    let mut session = Moody { inner: moody.session().unwrap(), begun: 0, fails: false };
    let mut retries = 0;
    for _ in 0..1000 {
        retries += again.step(&mut session).unwrap().retries;
    }
    assert!(retries > 100);
    assert_eq!(worker.digest(), again.digest());
}
