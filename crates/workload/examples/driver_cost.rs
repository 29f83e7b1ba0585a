//! Measures the cost of the drivers of live runs by themselves: nanoseconds per draw, step and
//! transaction over a store that does nothing, and, to see how much that is, over a `BTreeMap`.
//!
//! `cargo run --release -p millpond-workload --example driver_cost [warehouses]`
//!
//! The store that does nothing returns the same rows again and again; what is left is the driver,
//! the closures that it passes in, and calls that are mostly inlined. Each figure is the best of
//! nine runs: others on the machine only ever add.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use millpond_base::Seed;
use millpond_workload::generate::Random;
use millpond_workload::keys::{Chooser, Distribution, Scramble};
use millpond_workload::live::{MemoryError, MemoryStore, Scan, Session, Store, TableId};
use millpond_workload::tpcc::rows::{Customer, District, Order, OrderLine, Stock};
use millpond_workload::tpcc::{self, Kind, Layout, Mix, Scale, Tables, Worker, keys, rows};
use millpond_workload::ycsb;

const RUNS: u32 = 9;

/// A session of the store that does nothing: one row a table.
struct Nothing {
    rows: Vec<Vec<u8>>,
    tables: Tables,
    items: u32,
}

impl Nothing {
    /// Tables numbered in the order of their names.
    fn new(scale: &Scale) -> Nothing {
        let store = MemoryStore::new();
        // Cannot fail: a store in memory creates any table.
        let tables = Tables::create(&store).expect("a store in memory");
        let mut rows: Vec<Vec<u8>> = [
            rows::Warehouse::LEN,
            District::LEN,
            Customer::LEN,
            0,
            rows::History::LEN,
            0,
            Order::LEN,
            0,
            OrderLine::LEN,
            rows::Item::LEN,
            Stock::LEN,
        ]
        .map(|len| vec![b'x'; len])
        .into();
        District::NEXT_O_ID.set(&mut rows[1], 3001);
        Customer::CREDIT.set(&mut rows[2], b"GC");
        Order::OL_CNT.set(&mut rows[6], 10);
        Nothing { rows, tables, items: scale.items }
    }

    /// Over values of one length, for key-value runs.
    fn values(value: Vec<u8>) -> Nothing {
        Nothing { rows: vec![value], ..Nothing::new(&Scale::full(1)) }
    }
}

impl Session for Nothing {
    type Error = MemoryError;

    #[inline]
    fn get<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>, MemoryError> {
        let is_unknown = table == self.tables.item && keys::last_number(key) > self.items;
        Ok(if is_unknown { None } else { Some(read(&self.rows[table.0 as usize])) })
    }

    #[inline]
    fn insert(&mut self, _: TableId, key: &[u8], value: &[u8]) -> Result<bool, MemoryError> {
        black_box((key, value));
        Ok(true)
    }

    #[inline]
    fn put(&mut self, _: TableId, key: &[u8], value: &[u8]) -> Result<(), MemoryError> {
        black_box((key, value));
        Ok(())
    }

    #[inline]
    fn update<R>(
        &mut self,
        table: TableId,
        key: &[u8],
        mut change: impl FnMut(&mut [u8]) -> R,
    ) -> Result<Option<R>, MemoryError> {
        black_box(key);
        Ok(Some(change(&mut self.rows[table.0 as usize])))
    }

    #[inline]
    fn remove(&mut self, _: TableId, key: &[u8]) -> Result<bool, MemoryError> {
        black_box(key);
        Ok(true)
    }

    /// Rows behind the start: order lines ten to an order, three namesakes, else the start itself.
    #[inline]
    fn scan(
        &mut self,
        table: TableId,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), MemoryError> {
        let mut key = [0u8; 48];
        let len = scan.start.len();
        key[..len].copy_from_slice(scan.start);
        let order = keys::number_at(scan.start, 5);
        let is_lines = table == self.tables.order_line;
        let is_names = table == self.tables.customer_name;
        for row in 0..250u32 {
            if is_lines {
                key[5..9].copy_from_slice(&(order + row / 10).to_be_bytes());
                key[9] = (row % 10) as u8 + 1;
                let item = row.wrapping_mul(0x9e37_79b1) % self.items + 1;
                OrderLine::I_ID.set(&mut self.rows[8], item);
            } else if is_names {
                key[4] += u8::from(row == 3);
                key[37..41].copy_from_slice(&(row + 1).to_be_bytes());
            }
            if !visit(&key[..len], &self.rows[table.0 as usize]) {
                break;
            }
        }
        Ok(())
    }
}

/// Nanoseconds per call in the best of the runs.
fn nanos(calls: u32, mut call: impl FnMut()) -> f64 {
    let run = |_| {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

fn draws(out: &mut impl Write) -> io::Result<()> {
    let theta = 0.99;
    for (name, distribution, scramble) in [
        ("uniform", Distribution::Uniform, Scramble::Off),
        ("Zipf 0.99 by YCSB's formula", Distribution::Ycsb { theta }, Scramble::Off),
        ("the same, permuted", Distribution::Ycsb { theta }, Scramble::Permute),
        ("the same, hashed", Distribution::Ycsb { theta }, Scramble::Hash),
        ("Zipf 0.99, exact", Distribution::Zipf { theta }, Scramble::Off),
        ("Zipf 1.0, exact", Distribution::Zipf { theta: 1.0 }, Scramble::Off),
        ("Zipf 1.5, exact", Distribution::Zipf { theta: 1.5 }, Scramble::Off),
        ("Zipf 0.9, exact, permuted", Distribution::Zipf { theta: 0.9 }, Scramble::Permute),
    ] {
        let chooser = Chooser::new(distribution, scramble, 5_000_000).map_err(io::Error::other)?;
        let mut random = Random::new(Seed(1));
        let cost = nanos(1_000_000, || {
            black_box(chooser.draw(&mut random));
        });
        writeln!(out, "{:44} {cost:8.1} ns", format!("draw, {name}"))?;
    }
    Ok(())
}

fn key_value(out: &mut impl Write) -> io::Result<()> {
    for (name, config) in [
        ("leanstore, reads", ycsb::Config::leanstore(5_000_000)),
        ("watt, 10 % updates", ycsb::Config::watt(5_000_000, 10)),
        (
            "leanstore, updates",
            ycsb::Config { mix: ycsb::Mix::updates(100), ..ycsb::Config::leanstore(5_000_000) },
        ),
        ("gilbert, reads", ycsb::Config::gilbert(5_000_000, 0)),
        ("gilbert, updates", ycsb::Config::gilbert(5_000_000, 100)),
    ] {
        let mut session = Nothing::values(vec![0; config.shape.value_len()]);
        let mut worker =
            ycsb::Worker::new(&config, TableId(0), Seed(1), 0).map_err(io::Error::other)?;
        let cost = nanos(1_000_000, || {
            black_box(worker.step(&mut session).is_ok());
        });
        writeln!(out, "{:44} {cost:8.1} ns", format!("key-value step, {name}"))?;
    }
    Ok(())
}

fn tpcc_driver(out: &mut impl Write, scale: Scale) -> io::Result<()> {
    let standard = tpcc::Config::standard(scale, 1);
    let kinds = Kind::ALL.map(|kind| (kind.name(), Mix::only(kind)));
    for (name, mix) in [("standard mix", Mix::STANDARD)].into_iter().chain(kinds) {
        let mut session = Nothing::new(&scale);
        let config = tpcc::Config { mix, ..standard };
        let tables = session.tables;
        let mut worker = Worker::new(&config, tables, Seed(1), 0).map_err(io::Error::other)?;
        let cost = nanos(100_000, || {
            black_box(worker.step(&mut session).is_ok());
        });
        writeln!(out, "{:44} {cost:8.1} ns", format!("TPC-C without a store, {name}"))?;
    }
    Ok(())
}

fn tpcc_memory(out: &mut impl Write, scale: Scale) -> io::Result<()> {
    let store = MemoryStore::new();
    let tables = Tables::create(&store).map_err(io::Error::other)?;
    let start = Instant::now();
    let rows = tpcc::load(&store, &tables, &scale, Seed(1), 2).map_err(io::Error::other)?;
    let seconds = start.elapsed().as_secs_f64();
    writeln!(out, "TPC-C load over BTreeMap: {rows} rows in {seconds:.2} s with 2 threads")?;
    let mut session = store.session().map_err(io::Error::other)?;
    let config = tpcc::Config::standard(scale, 1);
    let kinds = Kind::ALL.map(|kind| (kind.name(), Mix::only(kind), 500));
    for (name, mix, calls) in [("standard mix", Mix::STANDARD, 10_000)].into_iter().chain(kinds) {
        let config = tpcc::Config { mix, ..config };
        let mut worker = Worker::new(&config, tables, Seed(1), 0).map_err(io::Error::other)?;
        let cost = nanos(calls, || {
            black_box(worker.step(&mut session).is_ok());
        });
        writeln!(out, "{:44} {cost:8.1} ns", format!("TPC-C over BTreeMap, {name}"))?;
    }
    let start = Instant::now();
    let report = tpcc::check(&mut session, &tables).map_err(io::Error::other)?;
    writeln!(out, "{report} ({:.2} s)", start.elapsed().as_secs_f64())
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let warehouses = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    draws(&mut out)?;
    key_value(&mut out)?;
    tpcc_driver(&mut out, Scale::full(warehouses))?;
    tpcc_memory(&mut out, Scale::full(warehouses))
}
