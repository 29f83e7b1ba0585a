//! The laboratory's part of the tour: policies on traces that ship with the program.

use std::io::Cursor;
use std::path::Path;

use millpond_base::{Seed, Size};
use millpond_lab::registry::Registry;
use millpond_lab::sim::Stalled;
use millpond_lab::sweep::{Observer, Plan, Row, Sweep, SweepError, TraceInput, rows_to_table};
use millpond_lab::table::{Table, Value};
use millpond_policies::config::Spec;
use millpond_workload::formats::{ReadOptions, open, open_reader};
use millpond_workload::generate::generate;
use millpond_workload::trace::{Source, TraceError};

use crate::error::Failure;
use crate::interrupt;
use crate::progress::Progress;

/// One hour of an OLTP system (released on condition that the ARC paper, Megiddo and Modha,
/// FAST'03, is cited), and page requests to web sites (CC BY 4.0, headissue GmbH, Jens Wilke).
const RECORDED: [(&str, &[u8]); 2] = [
    ("arc_OLTP", include_bytes!("../../../../traces/arc_OLTP.txt.gz")),
    ("cache2k_web12", include_bytes!("../../../../traces/cache2k_web12.txt.gz")),
];

/// Page references of TPC-C on this engine, of our own.
const OWN: (&str, &[u8]) =
    ("millpond_tpcc", include_bytes!("../../../../traces/millpond_tpcc.parquet"));
const SYNTHETIC: &str = "dynzipf-rw (synthetic)";

/// Sources of the traces.
pub(super) const NOTE: &str = "arc_OLTP: one hour of a CODASYL database, 914,145 page references (Megiddo and Modha, ARC, \
     FAST'03). cache2k_web12: 95,607 requests to a web site (CC BY 4.0, headissue GmbH, Jens \
     Wilke). millpond_tpcc: 600,000 page references of TPC-C on this engine, inner pages of its \
     trees included. dynzipf-rw: synthetic, 1.2 million references, 16.7 % writes, after WATT's \
     table 2.";

const POLICIES: &str = "lru,clock,2q,arc,lirs,s3-fifo,w-tinylfu,watt,tide,opt";
const SIZES: [&str; 6] = ["0.5%", "1%", "2%", "5%", "10%", "20%"];
const WRITE_POLICIES: &str = "lru,clock,arc,hyperbolic,lru-wsr,cflru(window=10%),\
    cflru(window=30%),cflru(window=50%),watt(write_weight=0),watt(write_weight=1),\
    watt,watt(write_weight=16),tide,opt";
const WRITE_SIZES: [&str; 3] = ["5%", "10%", "20%"];

/// Result of the laboratory's part.
pub(super) struct Outcome {
    /// All rows.
    pub(super) table: Table,
    /// Hash that names the result directory.
    pub(super) hash: String,
    /// Text for the terminal.
    pub(super) summary: String,
}

/// The laboratory's part.
pub(super) struct Contest<'a> {
    /// Temporary folder of the tour, since Parquet is read from files only.
    pub(super) scratch: &'a Path,
    /// Set to run only a few cells.
    pub(super) is_quick: bool,
    /// Set to show no progress.
    pub(super) is_quiet: bool,
}

impl Contest<'_> {
    /// Simulates everything.
    pub(super) fn run(&self, registry: &Registry) -> Result<Outcome, Failure> {
        let progress = Progress::new(self.is_quiet);
        let mut collector = Rows { progress: &progress, rows: Vec::new(), simulated: 0 };
        let plans = self.plans()?;
        for plan in &plans {
            Sweep::new(plan, registry)?.run(&mut collector)?;
        }
        progress.finish();
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        let table = rows_to_table(&collector.rows);
        let summary = summary(&table);
        Ok(Outcome { table, hash: plans[0].hash(), summary })
    }

    fn plans(&self) -> Result<Vec<Plan>, Failure> {
        if self.is_quick {
            return Ok(vec![plan(vec![self.own()?], "lru,watt,tide,opt", &SIZES[3..5])?]);
        }
        let traces = recorded().chain([self.own()?]).collect();
        Ok(vec![
            plan(traces, POLICIES, &SIZES)?,
            plan(vec![synthetic()], WRITE_POLICIES, &WRITE_SIZES)?,
        ])
    }

    fn own(&self) -> Result<TraceInput, Failure> {
        let (name, bytes) = OWN;
        let path = self.scratch.join("own.parquet");
        std::fs::write(&path, bytes)?;
        Ok(TraceInput {
            name: name.to_string(),
            open: Box::new(move || open(&path, &ReadOptions::default())),
            repeatable: true,
            fingerprint: bytes.len().to_string(),
        })
    }
}

fn recorded() -> impl Iterator<Item = TraceInput> {
    let input = |(name, bytes): (&'static str, &'static [u8])| TraceInput {
        name: name.to_string(),
        open: Box::new(move || {
            open_reader(
                format!("{name}.txt.gz"),
                Box::new(Cursor::new(bytes)),
                &ReadOptions::default(),
            )
        }),
        repeatable: true,
        fingerprint: bytes.len().to_string(),
    };
    RECORDED.into_iter().map(input)
}

fn synthetic() -> TraceInput {
    let open = || -> Result<Box<dyn Source>, TraceError> { generate("dynzipf-rw", &[], Seed(1)) };
    TraceInput {
        name: SYNTHETIC.to_string(),
        open: Box::new(open),
        repeatable: true,
        fingerprint: "seed 1".to_string(),
    }
}

fn plan(traces: Vec<TraceInput>, policies: &str, sizes: &[&str]) -> Result<Plan, Failure> {
    let mut parsed = Vec::new();
    for size in sizes {
        parsed.push(size.parse::<Size>().map_err(|e| Failure::Usage(e.to_string()))?);
    }
    let mut plan = Plan::new(Spec::parse_list(policies)?, parsed);
    plan.traces = traces;
    Ok(plan)
}

struct Rows<'a> {
    progress: &'a Progress,
    rows: Vec<Row>,
    simulated: u64,
}

impl Observer for Rows<'_> {
    fn stop(&self) -> bool {
        interrupt::asked()
    }

    fn progress(&mut self, what: &str, share: Option<f64>, simulated: u64) {
        self.simulated = simulated;
        self.progress.show(what, share, simulated, "references");
    }

    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        self.rows.push(row);
        Ok(())
    }

    fn stalled(&mut self, stalled: &Stalled) {
        self.progress.say(&format!("millpond: {stalled}"));
    }
}

/// Returns the hit ratios in per cent, policies down and sizes across, and reads and writes
/// where pages are written.
fn summary(table: &Table) -> String {
    let mut text = String::new();
    for (name, _) in RECORDED.into_iter().chain([OWN]) {
        let rows = pivot(table, name, "hit_ratio", |x| format!("{:.2}", x * 100.0));
        if !rows.is_empty() {
            text += &format!("{name}: hit ratio in % by cache size (frames)\n{rows}\n");
        }
    }
    let rows = pivot(&add_reads_and_writes(table), SYNTHETIC, "io", |x| format!("{x:.0}"));
    if !rows.is_empty() {
        text += &format!("{SYNTHETIC}: page reads + page writes by cache size (frames)\n{rows}");
    }
    text
}

fn add_reads_and_writes(table: &Table) -> Table {
    let mut both = table.clone();
    both.columns.push("io".to_string());
    for row in 0..table.rows.len() {
        let number = |name| table.get(row, name).and_then(Value::number).unwrap_or(0.0);
        both.rows[row].push((number("misses") + number("writes")).into());
    }
    both
}

fn pivot(table: &Table, trace: &str, column: &str, shown: impl Fn(f64) -> String) -> String {
    let mut sizes: Vec<String> = Vec::new();
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for row in 0..table.rows.len() {
        let text = |name| table.get(row, name).map(ToString::to_string).unwrap_or_default();
        if text("trace") != trace {
            continue;
        }
        let label = match text("params") {
            params if params.is_empty() => text("policy"),
            params => format!("{}({params})", text("policy")),
        };
        let value = table.get(row, column).and_then(Value::number).map(&shown).unwrap_or_default();
        if !sizes.contains(&text("size")) {
            sizes.push(text("size"));
        }
        match lines.iter_mut().find(|(l, _)| *l == label) {
            Some((_, values)) => values.push(value),
            None => lines.push((label, vec![value])),
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut out = format!("  {:width$}", "");
    sizes.iter().for_each(|size| out.push_str(&format!("{size:>9}")));
    for (label, values) in &lines {
        out.push_str(&format!("\n  {label:width$}"));
        values.iter().for_each(|value| out.push_str(&format!("{value:>9}")));
    }
    out + "\n"
}
