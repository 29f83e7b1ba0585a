//! The tables: aggregation functions, logging variants, memory.

use std::cell::RefCell;
use std::rc::Rc;

use super::ratios::Ratios;
use super::workloads::plan;
use crate::experiment::{About, Grid, Scale};
use crate::simulated::{Library, Setting, SimFigure, SimPlan};
use millpond_lab::interval::Interval;
use millpond_lab::registry::{PolicyError, Registry};
use millpond_lab::report::{Bar, BarPlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{above, below, claim, claim_of, shown};

/// Misses of other aggregations over the maximum's, in percent (watt 4.3): by function, on TPC-C,
/// TPC-E, ZipfRO, dynZipfRO, dynZipfRW.
pub const AGGREGATIONS: [(&str, &str, [f64; 5]); 3] = [
    ("minimum", "min", [4.5, 5.8, 11.1, 7.7, 9.9]),
    ("average", "mean", [-1.0, 0.5, 1.1, 0.7, 1.1]),
    ("median", "median", [0.5, 0.4, 1.0, 0.6, 0.4]),
];

/// A row of the paper's table of memory: name, bytes per cached page, our policy.
pub type Bytes = (&'static str, f32, &'static str);

/// Bytes of each algorithm per cached page (watt 3.2), and our policy.
pub const BYTES: [Bytes; 10] = [
    ("random", 0.0, "random"),
    ("CLOCK", 0.125, "clock"),
    ("LeanEvict", 8.0, "lean-evict"),
    ("LRU2", 8.0, "lru-k"),
    ("LRU", 24.0, "lru"),
    ("CFLRU", 24.0, "cflru"),
    ("LRU_WSR", 24.125, "lru-wsr"),
    ("Hyperbolic", 8.0, "hyperbolic"),
    ("ARC", 48.0, "arc"),
    ("WATT", 50.0, "watt"),
];

/// Our traces for the columns of [`AGGREGATIONS`].
const PUBLISHED_ON: [&str; 5] = ["tpcc", "tpce-like", "zipf-ro", "dynzipf-ro", "dynzipf-rw"];

pub(super) fn aggregation(
    scale: Scale,
    library: &Rc<RefCell<Library>>,
) -> Result<SimFigure, PolicyError> {
    let about = About {
        id: "aggregation",
        title: "Aggregation functions",
        asks: "How should subfrequencies become one value? Misses over the maximum's, before \
               writes are looked at.",
        says: "The minimum is bad, average and median are slightly worse than the maximum.",
    };
    let policy = |name: &str| format!("watt(writes=0,write_weight=0,aggregate={name})");
    let mut plan = plan(scale, false);
    plan.settings = ["max", "min", "mean", "median"].map(|a| Setting::at(a, policy(a))).to_vec();
    SimFigure::new(about, plan, library, draw_aggregation)
}

fn draw_aggregation(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["trace", "percent", "value"], "misses");
    let ratios = Ratios(&grid);
    let mut table = Table::new(["function", "trace", "published %", "ours %", "low %", "high %"]);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    for (function, value, published) in AGGREGATIONS {
        for trace in grid.labels(0) {
            let at = PUBLISHED_ON.iter().position(|on| *on == trace);
            let ours = ratios.on(trace, value, "max");
            let numbers = [
                at.map(|at| published[at]).into(),
                ours.map(|r| percent(r.mean)).into(),
                ours.map(|r| percent(r.low)).into(),
                ours.map(|r| percent(r.high)).into(),
            ];
            let names = [Value::from(function), trace.into()];
            table.rows.push(names.into_iter().chain(numbers).collect());
        }
    }
    let all = |value| ratios.all(value, "max");
    let least = [("over the maximum", all("min"))];
    let middle = [("average", all("mean")), ("median", all("median"))];
    let claims = vec![
        claim("the minimum is a bad choice (here: by 2 %)", &least, above(1.02)),
        claim("average and median are slightly worse than the maximum", &middle, above(1.0)),
    ];
    Section { table, claims, ..Section::default() }
}

pub(super) fn logging(
    scale: Scale,
    library: &Rc<RefCell<Library>>,
) -> Result<SimFigure, PolicyError> {
    let about = About {
        id: "logging",
        title: "Write-awareness variants",
        asks: "Where should writes be logged: also in a list of their own (both), only there \
               (strict), or in one list with a bit?",
        says: "One list of accesses and one of writes outperforms both others.",
    };
    let mut plan = plan(scale, true);
    plan.settings =
        ["both", "strict", "bit"].map(|l| Setting::at(l, format!("watt(log={l})"))).to_vec();
    SimFigure::new(about, plan, library, draw_logging)
}

fn draw_logging(rows: &Table) -> Section {
    let axes = ["trace", "percent", "value"];
    let grid = Grid::of(rows, &axes, "io");
    let ratios = Ratios(&grid);
    let mut table = Table::new(["variant", "trace", "misses", "writes", "io"]);
    let mut bars = Vec::new();
    let (misses, writes) = (Grid::of(rows, &axes, "misses"), Grid::of(rows, &axes, "writes"));
    for value in ["strict", "bit"] {
        for trace in grid.labels(0) {
            let mean = |grid: &Grid| Ratios(grid).on(trace, value, "both").map(|r| r.mean);
            let numbers = [mean(&misses).into(), mean(&writes).into(), mean(&grid).into()];
            let names = [Value::from(value), trace.into()];
            table.rows.push(names.into_iter().chain(numbers).collect());
            if let Some(ratio) = ratios.on(trace, value, "both") {
                let (group, series) = (trace.to_string(), value.to_string());
                bars.push(Bar { group, series, value: ratio });
            }
        }
    }
    let others = [ratios.all("strict", "both"), ratios.all("bit", "both")];
    let plot = BarPlot {
        title: "Reads and writes over those with both lists".to_string(),
        y: "ratio".to_string(),
        bars,
        ..BarPlot::default()
    };
    let claims = vec![claim(
        "one access and one write list beat strict lists and one list with a bit",
        &[("I/O: strict ×", others[0]), ("bit ×", others[1])],
        above(1.0),
    )];
    Section { table, plots: vec![plot.into()], claims, ..Section::default() }
}

pub(super) fn memory(
    scale: Scale,
    library: &Rc<RefCell<Library>>,
) -> Result<SimFigure, PolicyError> {
    let about = About {
        id: "memory",
        title: "Memory per cached page",
        asks: "How many bytes does each algorithm keep for a cached page?",
        says: "From none (random) to 50 (WATT), which is 1.2 % of a page of 4 KiB.",
    };
    let references = scale.pick(20_000, 1_000_000, 1_000_000);
    let plan = SimPlan {
        traces: vec![("zipf-ro", references)],
        percents: vec![10.0],
        settings: BYTES.iter().map(|(_, _, policy)| Setting::policy(policy)).collect(),
        repetitions: 1,
    };
    SimFigure::new(about, plan, library, draw_memory)
}

fn draw_memory(rows: &Table) -> Section {
    let state = |row: usize| {
        let number = |name| rows.get(row, name).and_then(Value::number);
        Some(number("policy_bytes")? / number("size")?)
    };
    let grid = Grid::with(rows, &["policy"], state);
    let registry = Registry::builtin();
    let mut table =
        Table::new(["algorithm", "policy", "published", "ours, per frame", "all state, measured"]);
    for (name, published, policy) in BYTES {
        let per_frame = registry.find(policy).ok().map(|entry| f64::from(entry.info.frame_bytes));
        let numbers = [f64::from(published).into(), per_frame.into(), grid.mean(&[policy]).into()];
        let names = [Value::from(name), policy.into()];
        table.rows.push(names.into_iter().chain(numbers).collect());
    }
    let watt = grid.interval(&["watt"]);
    let line = claim_of(
        "WATT's state fits a cache line per page",
        format!("{} bytes of state per frame, the rest of which finds frames", shown(watt)),
        &[(registry.find("watt").ok().map(|e| Interval::exact(f64::from(e.info.frame_bytes))), {
            below(65.0)
        })],
    );
    let note = "The paper counts what the idea needs with pointers of 8 bytes; ours is what a \
                frame's metadata and list nodes take, with frames numbered by 4 bytes. The last \
                column is the whole state over the frames, ghosts and the dense tables that find \
                them among all pages included.";
    Section { note: note.to_string(), table, claims: vec![line], ..Section::default() }
}
