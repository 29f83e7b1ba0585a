//! Consistency conditions 1 to 4 (clause 3.3.2), to be checked while nothing runs.
//!
//! 1. W_YTD is the sum of the D_YTD of the warehouse's districts.
//! 2. D_NEXT_O_ID − 1 is the greatest O_ID and, if the district has new orders, the greatest
//!    NO_O_ID.
//! 3. The NO_O_IDs of a district have no holes.
//! 4. The O_OL_CNTs of a district sum to the number of its order lines.
//!
//! A fifth condition is ours: the index of orders by customer holds each order and nothing else.
//! The check makes one pass over each table concerned, in memory proportional to the number of
//! districts.

use std::collections::BTreeMap;
use std::fmt;

use super::keys;
use super::layout::Layout;
use super::rows::{District, Order, Warehouse};
use super::tables::Tables;
use crate::keys::mix;
use crate::live::{Access, DriveError, Scan, Session, TableId};

/// A consistency condition that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// Condition 1: the warehouse's sum differs from that of its districts.
    YearToDate {
        /// The warehouse.
        warehouse: u32,
        /// W_YTD in cents; `None` if there is no such warehouse.
        ytd: Option<i64>,
        /// The sum of D_YTD in cents.
        districts: i64,
    },
    /// Condition 2: the district's next order number does not follow its last one.
    NextOrder {
        /// The warehouse.
        warehouse: u32,
        /// The district.
        district: u8,
        /// D_NEXT_O_ID; `None` if there is no such district.
        next: Option<u32>,
        /// The greatest O_ID, if any.
        last: Option<u32>,
        /// The greatest NO_O_ID, if any.
        last_new: Option<u32>,
    },
    /// Condition 3: the new orders have holes.
    NewOrderHole {
        /// The warehouse.
        warehouse: u32,
        /// The district.
        district: u8,
        /// The least NO_O_ID.
        first: u32,
        /// The greatest NO_O_ID.
        last: u32,
        /// Number of rows.
        rows: u64,
    },
    /// Condition 4: order lines are missing or left over.
    OrderLines {
        /// The warehouse.
        warehouse: u32,
        /// The district.
        district: u8,
        /// The sum of O_OL_CNT.
        announced: u64,
        /// Number of order lines.
        rows: u64,
    },
    /// The index of orders by customer does not hold the district's orders.
    OrderIndex {
        /// The warehouse.
        warehouse: u32,
        /// The district.
        district: u8,
        /// Number of orders.
        orders: u64,
        /// Number of entries in the index; if the numbers agree, entries differ.
        indexed: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::YearToDate { warehouse, ytd, districts } => write!(
                f,
                "condition 1: warehouse {warehouse} has W_YTD {}, its districts {districts} cents",
                Known(*ytd)
            ),
            Violation::NextOrder { warehouse, district, next, last, last_new } => write!(
                f,
                "condition 2: district {warehouse}/{district} has D_NEXT_O_ID {}, last order {}, \
                 last new order {}",
                Known(*next),
                Known(*last),
                Known(*last_new)
            ),
            Violation::NewOrderHole { warehouse, district, first, last, rows } => write!(
                f,
                "condition 3: district {warehouse}/{district} has {rows} new orders from {first} \
                 to {last}"
            ),
            Violation::OrderLines { warehouse, district, announced, rows } => write!(
                f,
                "condition 4: district {warehouse}/{district} has {rows} order lines, its orders \
                 announce {announced}"
            ),
            Violation::OrderIndex { warehouse, district, orders, indexed } => write!(
                f,
                "order index: district {warehouse}/{district} has {orders} orders, {indexed} in \
                 the index by customer"
            ),
        }
    }
}

/// A number that may be missing.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// Findings of a check.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Warehouses.
    pub warehouses: u64,
    /// Districts.
    pub districts: u64,
    /// Orders.
    pub orders: u64,
    /// New orders.
    pub new_orders: u64,
    /// Order lines.
    pub order_lines: u64,
    /// Violated conditions, by warehouse and district.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Returns `true` if all conditions hold.
    pub fn is_consistent(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} warehouses, {} districts, {} orders, {} of them new, {} order lines: ",
            self.warehouses, self.districts, self.orders, self.new_orders, self.order_lines
        )?;
        match self.violations.len() {
            0 => f.write_str("consistent"),
            count => {
                write!(f, "{count} violations")?;
                for violation in &self.violations {
                    write!(f, "\n  {violation}")?;
                }
                Ok(())
            }
        }
    }
}

/// Sums over the tables for one district.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    next: Option<u32>,
    ytd: i64,
    orders: u64,
    last: Option<u32>,
    lines: u64,
    announced: u64,
    new_orders: u64,
    first_new: Option<u32>,
    last_new: Option<u32>,
    indexed: u64,
    /// Sums of hashes of (customer, order): of the orders, and of the index.
    order_hash: u64,
    index_hash: u64,
}

/// W_YTD of each warehouse, in cents.
type Warehouses = BTreeMap<u32, i64>;

type Districts = BTreeMap<(u32, u8), Sums>;

/// Checks the whole store.
pub fn check<S: Session>(session: &mut S, tables: &Tables) -> Result<Report, DriveError<S::Error>> {
    session.begin(Access::Read)?;
    let collected = collect(session, tables);
    session.commit()?;
    let (warehouses, districts) = collected?;
    let mut report = Report { warehouses: warehouses.len() as u64, ..Report::default() };
    for sums in districts.values() {
        report.districts += u64::from(sums.next.is_some());
        report.orders += sums.orders;
        report.new_orders += sums.new_orders;
        report.order_lines += sums.lines;
    }
    judge_warehouses(&warehouses, &districts, &mut report.violations);
    for ((warehouse, district), sums) in &districts {
        judge_district(*warehouse, *district, sums, &mut report.violations);
    }
    Ok(report)
}

fn judge_warehouses(
    warehouses: &Warehouses,
    districts: &Districts,
    violations: &mut Vec<Violation>,
) {
    let mut sums: BTreeMap<u32, i64> = warehouses.keys().map(|w| (*w, 0)).collect();
    for ((w, _), district) in districts {
        let sum = sums.entry(*w).or_default();
        *sum = sum.wrapping_add(district.ytd);
    }
    for (warehouse, districts) in sums {
        let ytd = warehouses.get(&warehouse).copied();
        if ytd != Some(districts) {
            violations.push(Violation::YearToDate { warehouse, ytd, districts });
        }
    }
}

fn judge_district(warehouse: u32, district: u8, sums: &Sums, violations: &mut Vec<Violation>) {
    let Sums { next, last, last_new, orders, indexed, .. } = *sums;
    let expected = next.map(|next| next.wrapping_sub(1));
    if expected.is_none()
        || last.unwrap_or(0) != expected.unwrap_or(0)
        || last_new.is_some_and(|last_new| Some(last_new) != expected)
    {
        violations.push(Violation::NextOrder { warehouse, district, next, last, last_new });
    }
    if let (Some(first), Some(last)) = (sums.first_new, last_new)
        && u64::from(last - first) + 1 != sums.new_orders
    {
        let rows = sums.new_orders;
        violations.push(Violation::NewOrderHole { warehouse, district, first, last, rows });
    }
    if sums.announced != sums.lines {
        let (announced, rows) = (sums.announced, sums.lines);
        violations.push(Violation::OrderLines { warehouse, district, announced, rows });
    }
    if orders != indexed || sums.order_hash != sums.index_hash {
        violations.push(Violation::OrderIndex { warehouse, district, orders, indexed });
    }
}

/// Collects the sums of all tables for the warehouses and districts.
fn collect<S: Session>(
    session: &mut S,
    tables: &Tables,
) -> Result<(Warehouses, Districts), DriveError<S::Error>> {
    let mut warehouses = Warehouses::new();
    rows::<Warehouse, S>(session, tables.warehouse, |key, row| {
        warehouses.insert(keys::number_at(key, 0), Warehouse::YTD.get(row));
    })?;
    let mut districts = Districts::new();
    by_district::<District, S>(session, tables.district, &mut districts, |sums, _, row| {
        sums.next = Some(District::NEXT_O_ID.get(row));
        sums.ytd = District::YTD.get(row);
    })?;
    by_district::<Order, S>(session, tables.order, &mut districts, |sums, key, row| {
        let o = keys::last_number(key);
        sums.orders += 1;
        sums.last = Some(o);
        sums.announced += u64::from(Order::OL_CNT.get(row));
        sums.order_hash = sums.order_hash.wrapping_add(entry_hash(Order::C_ID.get(row), o));
    })?;
    let table = tables.new_order;
    by_district::<super::rows::NewOrder, S>(session, table, &mut districts, |sums, key, _| {
        let o = keys::last_number(key);
        sums.new_orders += 1;
        sums.first_new.get_or_insert(o);
        sums.last_new = Some(o);
    })?;
    let table = tables.order_line;
    by_district::<super::rows::OrderLine, S>(session, table, &mut districts, |sums, _, _| {
        sums.lines += 1;
    })?;
    let table = tables.order_customer;
    by_district::<super::rows::OrderCustomer, S>(
        session,
        table,
        &mut districts,
        |sums, key, _| {
            sums.indexed += 1;
            let entry = entry_hash(keys::number_at(key, 5), keys::last_number(key));
            sums.index_hash = sums.index_hash.wrapping_add(entry);
        },
    )?;
    Ok((warehouses, districts))
}

fn entry_hash(c: u32, o: u32) -> u64 {
    mix(u64::from(c) << 32 | u64::from(o))
}

/// Passes all rows of a table to a visitor, in key order.
fn rows<L: Layout, S: Session>(
    session: &mut S,
    table: TableId,
    mut visit: impl FnMut(&[u8], &[u8]),
) -> Result<(), DriveError<S::Error>> {
    let mut wrong = None;
    session.scan(table, Scan::whole(), |key, value| {
        match L::view(value) {
            Ok(row) => visit(key, row),
            Err(found) => wrong = Some(found),
        }
        wrong.is_none()
    })?;
    match wrong {
        Some(found) => Err(DriveError::Length { table: L::TABLE, found, expected: L::LEN }),
        None => Ok(()),
    }
}

/// Passes all rows of a table to a visitor, each with the sums of its district.
///
/// The rows of a district are adjacent, so its sums are looked up once and kept.
fn by_district<L: Layout, S: Session>(
    session: &mut S,
    table: TableId,
    districts: &mut Districts,
    mut visit: impl FnMut(&mut Sums, &[u8], &[u8]),
) -> Result<(), DriveError<S::Error>> {
    let mut current = ((0, 0), Sums::default());
    let mut has_current = false;
    rows::<L, S>(session, table, |key, row| {
        let district = keys::district_of(key);
        if !has_current || current.0 != district {
            if has_current {
                districts.insert(current.0, current.1);
            }
            current = (district, districts.get(&district).copied().unwrap_or_default());
            has_current = true;
        }
        visit(&mut current.1, key, row);
    })?;
    if has_current {
        districts.insert(current.0, current.1);
    }
    Ok(())
}
