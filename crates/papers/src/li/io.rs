//! Figures 5.4 to 5.9 and table 5.6: all reads and writes that a second tier causes.

use std::cell::RefCell;
use std::rc::Rc;

use super::io_claims;
use super::places::Places;
use super::simulate::{Plan, Simulated};
use super::traces::Traces;
use crate::experiment::{About, Scale};
use millpond_lab::registry::PolicyError;
use millpond_lab::report::{Plot, Section};
use millpond_lab::table::Table;
use millpond_lab::tier2::Model;

/// His policies, in the order of table 5.6.
const POLICIES: [&str; 8] =
    ["pro-io", "min-rw", "lru-io", "t2-lru", "arc-io", "t2-arc", "tq-io", "tq"];

const MYSQL_SIZES: About = About {
    id: "5.4",
    title: "Total I/O over sizes of the second tier, below MySQL",
    asks: "Do write-aware policies cause less I/O below the MySQL-like pool?",
    says: "In most cases, but not by much, and at 40K and 50K pages ARC-IO causes more than ARC.",
};

const MYSQL_POOLS: About = About {
    id: "5.5",
    title: "Total I/O over MySQL's pool sizes",
    asks: "The same below pools of 12 to 96 % of the data.",
    says: "Write-aware policies gain nothing that counts; below the small pools LRU and ARC cause \
           less. Below the largest all are alike.",
};

const SIZES: About = About {
    id: "5.6",
    title: "Total I/O and eviction writes over sizes of the second tier (figures 5.6 and 5.7)",
    asks: "Do write-aware policies cause less I/O below the DB2-like pool?",
    says: "By up to 41 % (LRU), 26 % (ARC) and 59 % (TQ); nothing at 100K pages, and at 600K all \
           but TQ are alike.",
};

const POOLS: About = About {
    id: "5.8",
    title: "Total I/O over pool sizes, and its reads and writes (table 5.6)",
    asks: "Does what write-aware policies save depend on the pool?",
    says: "Only LRU-IO gains more with larger pools; below the largest MIN-RW has the fewest \
           reads and more writes than all others.",
};

const GAPS: About = About {
    id: "5.9",
    title: "Total I/O over LSN gaps",
    asks: "Does what write-aware policies save depend on the gap?",
    says: "The larger the gap the less I/O, and the more they save: up to 36 % (LRU), 26 % (ARC) \
           and 12 % (TQ). At softmax 40 there is no difference to speak of.",
};

/// Returns the five figures.
///
/// # Errors
/// A policy cannot be built.
pub(super) fn figures(
    scale: Scale,
    traces: &Rc<RefCell<Traces>>,
) -> Result<Vec<Simulated>, PolicyError> {
    let of = |about, traces_of: &[&'static str], sizes: &[f64], draw: fn(&Table) -> Section| {
        let traces_of = traces_of.iter().map(|name| (*name, sizes.to_vec())).collect();
        let plan = Plan { about, model: Model::Rw, traces: traces_of, policies: &POLICIES, draw };
        Simulated::new(plan, scale, traces)
    };
    let every = |step: f64| -> Vec<f64> {
        let sizes = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|at| at * step);
        scale.pick(vec![sizes[0], sizes[3]], sizes.to_vec(), sizes.to_vec())
    };
    let pools = ["120mbuf", "240mbuf", "480mbuf", "960mbuf"];
    Ok(vec![
        of(MYSQL_SIZES, &["480mbuf"], &every(10.0), draw_mysql_sizes)?,
        of(MYSQL_POOLS, &pools, &[30.0], draw_mysql_pools)?,
        of(SIZES, &["300k_4000"], &every(100.0), draw_sizes)?,
        of(POOLS, &["60k_4000", "300k_4000", "540k_4000"], &[300.0], draw_pools)?,
        of(GAPS, &["300k_40", "300k_400", "300k_4000"], &[300.0], draw_gaps)?,
    ])
}

const Y: &str = "thousand reads and writes of storage";
const NOTE: &str = "Totals are in thousands. pro-io is his PRO-IO, which table 5.6 calls OPT-IO.";

fn section(places: &Places, plots: Vec<Plot>, note: &str) -> Section {
    let note = format!("{note} {NOTE}");
    Section { note, table: places.table(), plots, ..Section::default() }
}

fn draw_mysql_sizes(rows: &Table) -> Section {
    let places = Places::thousands(rows, "total");
    let plot = places.over_sizes("480mbuf", "Total I/O, trace 480mbuf_120mlog", Y);
    let note = "Pool of 48 % of the data; second tiers of 15 to 92 % of the data. The text names \
                40K and 50K of his sizes; that the others lie at the same distances is ours.";
    let mut section = section(&places, vec![plot.into()], note);
    section.claims = io_claims::mysql_sizes(&places);
    section
}

fn draw_mysql_pools(rows: &Table) -> Section {
    let places = Places::thousands(rows, "total");
    let note = "Pools of 12, 24, 48 and 96 % of the data; second tier of 30K of MySQL's pages, \
                46 % of the data, a size that the text does not name.";
    let plots = vec![places.by_trace("Total I/O by pool", Y).into()];
    let mut section = section(&places, plots, note);
    section.claims = io_claims::mysql_pools(&places);
    section
}

fn draw_sizes(rows: &Table) -> Section {
    let places = Places::thousands(rows, "total");
    let evictions = Places::thousands(rows, "eviction_writes");
    let writes =
        evictions.over_sizes("300k_4000", "Eviction writes (figure 5.7)", "thousand writes");
    let total = places.over_sizes("300k_4000", "Total I/O, trace 300k_4000", Y);
    let note = "Pool of 50 % of the data, softmax 4000; second tiers of 16 to 99 % of the data.";
    let mut section = section(&places, vec![total.into(), writes.into()], note);
    section.claims = io_claims::sizes(&places);
    section.claims.extend(io_claims::eviction_writes(&evictions));
    section
}

fn draw_pools(rows: &Table) -> Section {
    let places = Places::thousands(rows, "total");
    let [reads, writes] =
        ["storage_reads", "storage_writes"].map(|column| Places::thousands(rows, column));
    let plots = vec![
        places.by_trace("Total I/O by pool", Y).into(),
        reads.by_trace("Of that, reads", "thousand reads of storage").into(),
        writes.by_trace("Of that, writes", "thousand writes to storage").into(),
    ];
    let note = "Pools of 10, 50 and 90 % of the data, softmax 4000; second tier of 300K pages, \
                49 % of the data. All traces are of the same number of transactions; his are of \
                the same time, so that his totals rise with the pool, which cannot be compared.";
    let mut section = section(&places, plots, note);
    section.claims = io_claims::pools(&places);
    section.claims.extend(io_claims::parts(&places, &reads, &writes));
    section
}

fn draw_gaps(rows: &Table) -> Section {
    let places = Places::thousands(rows, "total");
    let note = "Pool of 50 % of the data, softmax 40, 400 and 4000; second tier of 300K pages, \
                49 % of the data.";
    let plots = vec![places.by_trace("Total I/O by gap", Y).into()];
    let mut section = section(&places, plots, note);
    section.claims = io_claims::gaps(&places);
    section
}
